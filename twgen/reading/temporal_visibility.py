"""Counting the workflows that still hold a version."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from twgen.clients.temporal import Call, TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerDeployment
from twgen.reading.temporal_describe import with_versions


def with_open_workflows(
    known: Sequence[tuple[WorkerSpec, WorkerDeployment]],
    due: Sequence[Collection[str]],
    clients: TemporalClients,
) -> list[WorkerDeployment]:
    """The deployments with the open workflows of the due build IDs counted, one call for each."""
    versions = [
        [version for version in deployment.versions if version.build_id in build_ids]
        for (_, deployment), build_ids in zip(known, due, strict=True)
    ]
    counts = iter(
        clients.ask(
            _count(spec, version.build_id)
            for (spec, _), counted in zip(known, versions, strict=True)
            for version in counted
        )
    )
    return [
        with_versions(
            deployment,
            {version.build_id: replace(version, open_workflows=next(counts).count) for version in counted},
        )
        for (_, deployment), counted in zip(known, versions, strict=True)
    ]


def open_workflows_query(worker_deployment: str, build_id: str) -> str:
    """Temporal's query for the workflows pinned to a version that have not closed.

    A workflow pinned by an override carries the attributes from its start. Having no close time covers
    running and paused ones on servers with and without pausing; the server's own drainage check forgets those
    that are paused.
    """
    version = f"{worker_deployment}:{build_id}".replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"TemporalWorkerDeploymentVersion = '{version}' "
        "AND TemporalWorkflowVersioningBehavior = 'Pinned' AND CloseTime IS NULL"
    )


def _count(spec: WorkerSpec, build_id: str) -> Call:
    from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsRequest

    request = CountWorkflowExecutionsRequest(
        namespace=spec.temporal_namespace, query=open_workflows_query(spec.worker_deployment, build_id)
    )
    return Call(spec.connection, spec.temporal_namespace, "count_workflow_executions", request)
