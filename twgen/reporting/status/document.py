"""A status as the document that tools read; its schema is `schemas/status.json`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from twgen.model.plan import RoutingAction, RoutingPlan
from twgen.model.status import RolloutStatus, Status, VersionView, WorkerView
from twgen.model.temporal import VersionStatus
from twgen.model.times import format_time
from twgen.planning.sentences import timed
from twgen.reporting.plan.document import action_items, judgement_items
from twgen.versioning.names import TWGEN_API

_NOT_STARTED = "NotStarted"


def status_document(status: Status) -> dict[str, Any]:
    """The Status document: workers by name, of each the versions as `WorkerView` has them."""
    return {
        "apiVersion": TWGEN_API,
        "kind": "Status",
        "now": format_time(status.now),
        "workers": [_worker(worker) for worker in status.workers],
        "warnings": list(status.warnings),
    }


def rollout_status(status: Status, since: datetime, intent_hash: str) -> RolloutStatus:
    """How the rollout of the one worker goes, as its cluster keeps it; in this phase since then."""
    [worker] = status.workers
    spec, routing = worker.plan.spec, worker.plan.routing
    versions = {version.plan.build_id: version for version in worker.versions}
    target = versions.get(spec.build_id)
    current = (name for name, item in versions.items() if item.plan.status is VersionStatus.CURRENT)
    return RolloutStatus(
        worker=spec.worker_deployment,
        phase=routing.phase,
        reason=routing.reason,
        message=timed(
            "; ".join(filter(None, (worker.plan.unserved, routing.because))), status.now, routing.due_at
        ),
        target=spec.build_id,
        current="".join(current),
        percentage=(target.percentage if target else None) or 0,
        since=since,
        document=status_document(status),
        intent=intent_hash,
    )


def is_news(before: RolloutStatus, after: RolloutStatus) -> bool:
    """The two statuses differ in more than the times in their sentences."""
    return _without_times(before) != _without_times(after)


def _without_times(status: RolloutStatus) -> tuple[object, ...]:
    workers = status.document.get("workers") or ()
    # with a due time, the reason counts down to it; the text about a version contains its age
    counts_down = any(worker.get("waitsUntil") for worker in workers)
    untimed = [
        {
            **worker,
            "because": "",
            "analysis": [judged.get("verdict") for judged in worker.get("analysis") or ()],
            # each check moves the entries after an overdue one to a later time
            "draining": [{**ending, "at": ""} for ending in worker.get("draining") or ()],
            "versions": [
                {**version, "because": "", "attached": _states(version)}
                for version in worker.get("versions") or ()
            ],
        }
        for worker in workers
    ]
    message = "" if counts_down else status.message
    return (
        (status.phase, status.reason, message, status.target, status.current, status.percentage),
        status.intent,
        untimed,
    )


def _states(version: Mapping[str, Any]) -> list[Any]:
    """The states of its attached objects; without their messages, which may contain counters."""
    return [[item.get(key) for key in ("kind", "name", "state")] for item in version.get("attached") or ()]


def _worker(worker: WorkerView) -> dict[str, Any]:
    spec, routing = worker.plan.spec, worker.plan.routing
    next_change = _change(worker.later, routing.due_at) if worker.later else None
    if routing.action is not RoutingAction.NONE:
        next_change = _change(routing, None)
    return {
        "worker": spec.worker_deployment,
        "temporalNamespace": spec.temporal_namespace,
        "targetBuildID": spec.build_id,
        "phase": routing.phase.value,
        "reason": routing.reason,
        "because": routing.because,
        "unserved": worker.plan.unserved,
        "next": next_change,
        "waitsUntil": _time(routing.due_at),
        "owner": {"identity": worker.plan.manager, "relation": worker.ownership.value},
        "lastModifierIdentity": worker.last_modifier,
        "steps": [
            {
                "percentage": step.percentage,
                "place": step.place.value,
                "gate": step.gate,
                "untilPromoted": step.until_promoted,
            }
            for step in worker.steps
        ],
        "gates": [
            {
                "taskQueue": gate.task_queue,
                "workflowID": gate.workflow_id,
                "workflowType": gate.workflow_type,
                "status": gate.status.value if gate.status else _NOT_STARTED,
            }
            for gate in worker.gates
        ],
        "analysis": judgement_items(worker.plan),
        "draining": action_items(worker.plan),
        "request": None,
        "unversionedPercentage": worker.unversioned_percentage,
        "versionCount": {
            "deployed": worker.count.deployed,
            "maxVersions": worker.count.most_deployed,
            "registered": worker.count.registered,
            "mostRegistered": worker.count.most_registered,
        },
        "versions": [_version(version) for version in worker.versions],
        "warnings": list(worker.plan.versions.warnings),
    }


def _change(routing: RoutingPlan, at: datetime | None) -> dict[str, Any]:
    return {
        "action": routing.action.value,
        "buildID": routing.build_id,
        "percentage": routing.percentage,
        "at": _time(at),
    }


def _version(version: VersionView) -> dict[str, Any]:
    plan, live, later = version.plan, version.plan.live, version.later
    queues = [
        {
            "name": queue.name,
            "type": queue.type.value,
            "pollers": queue.pollers,
            "unversionedPollers": queue.unversioned_pollers,
        }
        for queue in version.task_queues or ()
    ]
    return {
        "buildID": plan.build_id,
        "isTarget": version.is_target,
        "status": plan.status.value,
        "percentage": version.percentage,
        "since": _time(version.since),
        "movedBy": {
            "identity": version.moved.identity,
            "intent": version.moved.intent,
            "application": version.moved.application,
            "at": version.moved.at,
        }
        if version.moved
        else None,
        "openWorkflows": version.open_workflows,
        "oldestOpenAt": _time(version.oldest_open_at),
        "taskQueues": None if version.task_queues is None else queues,
        "deployment": plan.deployment,
        "clusterWasRead": version.cluster_was_read,
        "pods": {
            "available": live.available_replicas,
            "wanted": live.replicas,
            "terminating": live.terminating,
            "paused": live.paused,
            "stalled": live.stalled,
            "problem": version.pod_problem,
        }
        if live
        else None,
        "attached": [
            {"kind": item.kind, "name": item.name, "state": item.state.value, "message": item.says}
            for item in version.attached
        ],
        "action": plan.action.value,
        "reason": plan.reason,
        "because": plan.because,
        "next": {"action": later.action.value, "at": _time(later.at)} if later else None,
    }


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment else None
