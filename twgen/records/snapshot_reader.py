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
        workers = [_worker(item) for item in _items(document, "workers", required=True) or ()]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateUnavailable(f"{source} is not a complete Snapshot: {_said(error)}") from error
    return World(taken_at, {(worker.name, worker.temporal_namespace): worker for worker in workers})


def _said(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _worker(item: Mapping[str, Any]) -> WorkerWorld:
    return WorkerWorld(
        name=_text(item, "name"),
        temporal_namespace=_text(item, "temporalNamespace"),
        temporal=_optional(item.get("temporal"), _worker_deployment),
        temporal_was_read="temporal" in item,
        deployments=_optional(_items(item, "deployments"), lambda found: tuple(live_deployments(found))),
    )


def _worker_deployment(item: Mapping[str, Any]) -> WorkerDeployment:
    return WorkerDeployment(
        routing=_routing(item.get("routing") or {}),
        versions=tuple(map(_version, _items(item, "versions", required=True) or ())),
        conflict_token=_text(item, "conflictToken", ""),
        server_version=_text(item, "serverVersion", ""),
        manager_identity=_text(item, "managerIdentity", ""),
        last_modifier_identity=_text(item, "lastModifierIdentity", ""),
    )


def _routing(item: Mapping[str, Any]) -> Routing:
    return Routing(
        current=_optional(item.get("current"), _current),
        ramping=_optional(item.get("ramping"), _ramping),
        update_state=_optional(item.get("updateState"), UpdateState),
        changed_at=_time(item, "changedAt"),
    )


def _current(item: Mapping[str, Any]) -> CurrentVersion:
    return CurrentVersion(_text(item, "buildID"), _time(item, "since"))


def _ramping(item: Mapping[str, Any]) -> RampingVersion:
    return RampingVersion(
        build_id=_text(item, "buildID"),
        percentage=_number(item, "percentage"),
        since=_time(item, "since"),
        percentage_changed_at=_time(item, "percentageChangedAt"),
    )


def _version(item: Mapping[str, Any]) -> Version:
    return Version(
        build_id=_text(item, "buildID"),
        status=VersionStatus(item["status"]),
        created_at=_time(item, "createdAt"),
        first_activated_at=_time(item, "firstActivatedAt"),
        last_current_at=_time(item, "lastCurrentAt"),
        last_deactivated_at=_time(item, "lastDeactivatedAt"),
        drainage=_optional(item.get("drainage"), _drainage),
        open_workflows=_count(item, "openWorkflows"),
        metadata=_optional(item.get("metadata"), _mapping),
        task_queues=_optional(_items(item, "taskQueues"), lambda queues: tuple(map(_task_queue, queues))),
        gate_runs=_optional(_items(item, "gateRuns"), lambda runs: tuple(map(_gate_run, runs))),
    )


def _drainage(item: Mapping[str, Any]) -> Drainage:
    return Drainage(VersionStatus(item["status"]), _time(item, "changedAt"), _time(item, "checkedAt"))


def _task_queue(item: Mapping[str, Any]) -> TaskQueue:
    return TaskQueue(
        name=_text(item, "name"),
        type=TaskQueueType(item["type"]),
        pollers=_flag(item, "pollers"),
        unversioned_pollers=bool(_flag(item, "unversionedPollers")),
    )


def _gate_run(item: Mapping[str, Any]) -> GateRun:
    return GateRun(
        task_queue=_text(item, "taskQueue"),
        workflow_id=_text(item, "workflowID"),
        status=GateStatus(item["status"]),
        started_at=_time(item, "startedAt"),
    )


def _optional(item: Any, read: Callable[[Any], Value]) -> Value | None:
    return None if item is None else read(item)


def _text(item: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = item[name] if default is None else item.get(name, default)
    return _typed(value, str, name)


def _items(item: Mapping[str, Any], name: str, *, required: bool = False) -> list[Any] | None:
    value = item[name] if required else item.get(name)
    # an empty text or mapping must never pass for "none"
    return None if value is None and not required else _typed(value, list, name)


def _mapping(value: Any) -> dict[str, Any]:
    return _typed(value, dict, "metadata")


def _flag(item: Mapping[str, Any], name: str) -> bool | None:
    return _optional(item.get(name), lambda value: _typed(value, bool, name))


def _number(item: Mapping[str, Any], name: str) -> float:
    value = item[name]
    return float(value if isinstance(value, float) else _typed(value, int, name))


def _count(item: Mapping[str, Any], name: str) -> int | None:
    count = _optional(item.get(name), lambda value: _typed(value, int, name))
    if count is not None and count < 0:
        raise ValueError(f"{name} is {count}")
    return count


def _typed(value: Any, kind: type[Value], name: str) -> Value:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{name} is of a wrong type ({type(value).__name__})")
    return value


def _time(item: Mapping[str, Any], name: str) -> datetime | None:
    text = _text(item, name, "") if item.get(name) is not None else ""
    return parse_time(text) if text else None
