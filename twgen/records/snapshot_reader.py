"""Reading a Snapshot document: the world as it was."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from twgen.errors import StateUnavailable
from twgen.model.world import (
    CurrentVersion,
    Drainage,
    GateRun,
    GateStatus,
    RampingVersion,
    Routing,
    TaskQueue,
    TaskQueueType,
    UpdateState,
    Version,
    VersionStatus,
    WorkerDeployment,
    WorkerWorld,
    World,
)
from twgen.records.deployments import live_deployments
from twgen.records.times import parse_time

API_VERSION = "twgen.io/v1alpha1"
KIND = "Snapshot"

Value = TypeVar("Value")


def read_snapshot(document: Any, source: str) -> World:
    """The world of a snapshot; raises StateUnavailable when it is none, of a newer format, or incomplete."""
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise StateUnavailable(f"{source} is not a Snapshot: make one with `twgen snapshot`")
    if document.get("apiVersion") != API_VERSION:
        raise StateUnavailable(
            f"{source} is of {document.get('apiVersion')}, this twgen reads {API_VERSION}: upgrade it"
        )
    try:
        taken_at = parse_time(document["takenAt"])
        workers = [_worker(item) for item in document["workers"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateUnavailable(f"{source} is not a complete Snapshot: {_said(error)}") from error
    return World(taken_at, {(worker.name, worker.temporal_namespace): worker for worker in workers})


def _said(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _worker(item: Mapping[str, Any]) -> WorkerWorld:
    name = item["name"]
    if "temporal" not in item:
        message = f"what Temporal says of {name} was not read"
        raise ValueError(message)
    deployments = item.get("deployments")
    return WorkerWorld(
        name=name,
        temporal_namespace=item["temporalNamespace"],
        temporal=_optional(item["temporal"], _worker_deployment),
        deployments=None if deployments is None else tuple(live_deployments(deployments)),
    )


def _worker_deployment(item: Mapping[str, Any]) -> WorkerDeployment:
    return WorkerDeployment(
        routing=_routing(item.get("routing") or {}),
        versions=tuple(_version(version) for version in item["versions"]),
        conflict_token=item.get("conflictToken", ""),
        server_version=item.get("serverVersion", ""),
        manager_identity=item.get("managerIdentity", ""),
        last_modifier_identity=item.get("lastModifierIdentity", ""),
    )


def _routing(item: Mapping[str, Any]) -> Routing:
    return Routing(
        current=_optional(item.get("current"), _current),
        ramping=_optional(item.get("ramping"), _ramping),
        update_state=_optional(item.get("updateState"), UpdateState),
        changed_at=_time(item, "changedAt"),
    )


def _current(item: Mapping[str, Any]) -> CurrentVersion:
    return CurrentVersion(item["buildID"], _time(item, "since"))


def _ramping(item: Mapping[str, Any]) -> RampingVersion:
    return RampingVersion(
        build_id=item["buildID"],
        percentage=float(item["percentage"]),
        since=_time(item, "since"),
        percentage_changed_at=_time(item, "percentageChangedAt"),
    )


def _version(item: Mapping[str, Any]) -> Version:
    return Version(
        build_id=item["buildID"],
        status=VersionStatus(item["status"]),
        created_at=_time(item, "createdAt"),
        first_activated_at=_time(item, "firstActivatedAt"),
        last_current_at=_time(item, "lastCurrentAt"),
        last_deactivated_at=_time(item, "lastDeactivatedAt"),
        drainage=_optional(item.get("drainage"), _drainage),
        open_workflows=_optional(item.get("openWorkflows"), int),
        metadata=item.get("metadata"),
        task_queues=_optional(item.get("taskQueues"), lambda queues: tuple(map(_task_queue, queues))),
        gate_runs=_optional(item.get("gateRuns"), lambda runs: tuple(map(_gate_run, runs))),
    )


def _drainage(item: Mapping[str, Any]) -> Drainage:
    return Drainage(VersionStatus(item["status"]), _time(item, "changedAt"), _time(item, "checkedAt"))


def _task_queue(item: Mapping[str, Any]) -> TaskQueue:
    return TaskQueue(
        name=item["name"],
        type=TaskQueueType(item["type"]),
        pollers=item.get("pollers"),
        unversioned_pollers=bool(item.get("unversionedPollers", False)),
    )


def _gate_run(item: Mapping[str, Any]) -> GateRun:
    return GateRun(
        task_queue=item["taskQueue"],
        workflow_id=item["workflowID"],
        status=GateStatus(item["status"]),
        started_at=_time(item, "startedAt"),
    )


def _optional(item: Any, read: Callable[[Any], Value]) -> Value | None:
    return None if item is None else read(item)


def _time(item: Mapping[str, Any], name: str) -> datetime | None:
    text = item.get(name)
    return parse_time(text) if text else None
