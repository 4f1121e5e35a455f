"""Autoscalers that are left as they are, and scale what a template alone should scale."""

from collections.abc import Iterator, Sequence
from typing import Any

from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.problem import Document, Problem
from twgen.model.spec import WorkerSpec
from twgen.specs.attached import KINDS
from twgen.specs.kinds import WORKER_KINDS
from twgen.versioning.names import versioned_deployment_name


def misplaced_scalers(
    documents: Sequence[Document], workers: Sequence[WorkerSpec], namespace: str
) -> Iterator[Problem]:
    """A warning for each document that scales the Deployment of one version, or one called like a worker.

    `namespace` is that of documents that name none; empty: not known, it may be any worker's.
    """
    kinds = ((document, KINDS.get(GroupKind.of(document.value))) for document in documents)
    scalers = [(document, kind.target) for document, kind in kinds if kind and kind.target]
    places: dict[tuple[str, str], WorkerSpec] = {}
    # a dict keeps what was put in last: the first worker of a name that may be any
    for worker in reversed(workers if scalers else ()):
        names = [worker.name]
        if worker.build_id:
            names.append(versioned_deployment_name(worker.name, worker.build_id))
        places |= {(place, name): worker for place in ("", worker.namespace) for name in names}

    def place(document: Document, name: Any) -> tuple[str, str]:
        return str(value_at(document.value, "metadata", "namespace") or namespace), str(name)

    there = {
        place(document, value_at(document.value, "metadata", "name"))
        for document in documents
        if GroupKind.of(document.value) == GroupKind("apps", "Deployment")
    }
    for document, field in scalers:
        target = value_at(document.value, "spec", field)
        scaled = place(document, value_at(target, "name"))
        found = places.get(scaled)
        kind = value_at(target, "kind") or "Deployment"
        is_there = kind == "Deployment" and scaled in there
        if not found or is_there or kind not in ("Deployment", *WORKER_KINDS):
            continue
        what = "not a version" if kind != "Deployment" or scaled[1] == found.name else "only one version"
        message = (
            f"scales {kind} {scaled[1]}, which is {what} of worker {found.worker_deployment}:"
            " make it a WorkerResourceTemplate"
        )
        yield Problem.at(document, f"spec.{field}.name", message)
