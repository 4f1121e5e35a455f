"""Writing a Snapshot document; what was not read is absent, what does not exist is null."""

from typing import Any

from twgen.model.world import (
    CurrentVersion,
    Drainage,
    GateRun,
    RampingVersion,
    Routing,
    TaskQueue,
    Version,
    WorkerDeployment,
    WorkerWorld,
    World,
)
from twgen.records.snapshot_reader import API_VERSION, KIND
from twgen.records.times import format_time


def write_snapshot(world: World) -> dict[str, Any]:
    """The document that `read_snapshot` reads as this world."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "takenAt": format_time(world.taken_at),
        "workers": [_worker(worker) for _, worker in sorted(world.workers.items())],
    }


def _worker(worker: WorkerWorld) -> dict[str, Any]:
    item: dict[str, Any] = {
        "name": worker.name,
        "temporalNamespace": worker.temporal_namespace,
    }
    if worker.temporal_was_read:
        item["temporal"] = _worker_deployment(worker.temporal) if worker.temporal else None
    if worker.deployments is not None:
        item["deployments"] = [live.recorded.manifest for live in worker.deployments]
    return item


def _worker_deployment(temporal: WorkerDeployment) -> dict[str, Any]:
    return {
        "conflictToken": temporal.conflict_token,
        "serverVersion": temporal.server_version,
        "managerIdentity": temporal.manager_identity,
        "lastModifierIdentity": temporal.last_modifier_identity,
        "routing": _routing(temporal.routing),
        "versions": [_version(version) for version in temporal.versions],
    }


def _routing(routing: Routing) -> dict[str, Any]:
    return _known(
        updateState=routing.update_state and routing.update_state.value,
        changedAt=routing.changed_at,
        current=_current(routing.current) if routing.current else None,
        ramping=_ramping(routing.ramping) if routing.ramping else None,
    )


def _current(current: CurrentVersion) -> dict[str, Any]:
    return _known(buildID=current.build_id, since=current.since)


def _ramping(ramping: RampingVersion) -> dict[str, Any]:
    percentage = ramping.percentage
    return _known(
        buildID=ramping.build_id,
        percentage=int(percentage) if percentage == int(percentage) else percentage,
        since=ramping.since,
        percentageChangedAt=ramping.percentage_changed_at,
    )


def _version(version: Version) -> dict[str, Any]:
    return _known(
        buildID=version.build_id,
        status=version.status.value,
        createdAt=version.created_at,
        firstActivatedAt=version.first_activated_at,
        lastCurrentAt=version.last_current_at,
        lastDeactivatedAt=version.last_deactivated_at,
        drainage=_drainage(version.drainage) if version.drainage else None,
        openWorkflows=version.open_workflows,
        metadata=version.metadata,
        taskQueues=None if version.task_queues is None else [_queue(item) for item in version.task_queues],
        gateRuns=None if version.gate_runs is None else [_gate_run(item) for item in version.gate_runs],
    )


def _drainage(drainage: Drainage) -> dict[str, Any]:
    return _known(status=drainage.status.value, changedAt=drainage.changed_at, checkedAt=drainage.checked_at)


def _queue(queue: TaskQueue) -> dict[str, Any]:
    return _known(
        name=queue.name,
        type=queue.type.value,
        pollers=queue.pollers,
        unversionedPollers=queue.unversioned_pollers,
    )


def _gate_run(run: GateRun) -> dict[str, Any]:
    return _known(
        taskQueue=run.task_queue,
        workflowID=run.workflow_id,
        status=run.status.value,
        startedAt=run.started_at,
    )


def _known(**fields: Any) -> dict[str, Any]:
    return {
        name: format_time(value) if hasattr(value, "tzinfo") else value
        for name, value in fields.items()
        if value is not None
    }
