"""What a plan warns of: printed, or refused under --strict."""

from collections.abc import Iterable

from twgen.errors import InvalidDocuments
from twgen.model.plan import WorkerVersions


def plan_warnings(workers: Iterable[WorkerVersions], general: Iterable[str]) -> list[str]:
    """Every warning of a plan, each with the worker that it is about."""
    about = (f"{item.spec.worker_deployment}: {text}" for item in workers for text in item.warnings)
    return [*about, *general]


def refuse(warnings: list[str]) -> None:
    """Raise InvalidDocuments when there are any."""
    if warnings:
        raise InvalidDocuments(warnings)
