"""Asking by name for versions that are live in the cluster and missing from what Temporal listed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from twgen.clients.temporal import TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.world import Version, WorkerDeployment
from twgen.reading.kubernetes import LiveByWorker
from twgen.reading.temporal_describe import describe_version, described_version


def with_live_versions(
    known: Sequence[tuple[WorkerSpec, WorkerDeployment]], live: LiveByWorker | None, clients: TemporalClients
) -> list[tuple[WorkerSpec, WorkerDeployment]]:
    """The workers with every live version that Temporal knows, listed or not.

    Its list may lag behind, and a version taken for unknown is scaled away.
    """
    missing = [_missing(spec, deployment, live or {}) for spec, deployment in known]
    asked = (
        describe_version(spec, build_id)
        for (spec, _), build_ids in zip(known, missing, strict=True)
        for build_id in build_ids
    )
    answers = iter(clients.ask(asked))
    found = [[next(answers) for _ in build_ids] for build_ids in missing]
    return [
        (spec, replace(deployment, versions=deployment.versions + _versions(more)))
        for (spec, deployment), more in zip(known, found, strict=True)
    ]


def _versions(answers: Iterable[Any]) -> tuple[Version, ...]:
    return tuple(described_version(answer) for answer in answers if answer)


def _missing(spec: WorkerSpec, deployment: WorkerDeployment, live: LiveByWorker) -> list[str]:
    listed = {version.build_id for version in deployment.versions}
    return [item.build_id for item in live.get(spec.worker_deployment, ()) if item.build_id not in listed]
