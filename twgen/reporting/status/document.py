"""A status as the document that tools read; its schema is `schemas/status.json`."""

import json
from datetime import datetime
from typing import Any

from twgen.model.plan import RoutingAction, RoutingPlan
from twgen.model.status import GateProgress, Status, VersionView, WorkerView
from twgen.model.times import format_time
from twgen.model.world import TaskQueue, VersionStatus
from twgen.reporting.plan.document import attached_objects
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


def status_data(status: Status, since: datetime) -> dict[str, str]:
    """The entries of the ConfigMap that tells how one worker's rollout goes; so it has been since then."""
    [worker] = status.workers
    routing = worker.plan.routing
    shares = {version.plan.build_id: version for version in worker.versions}
    target = shares.get(worker.plan.versions.spec.build_id)
    current = [
        build_id for build_id, version in shares.items() if version.plan.status is VersionStatus.CURRENT
    ]
    return {
        "phase": routing.phase.value,
        "reason": routing.reason,
        "message": "; ".join(filter(None, (worker.plan.unserved, routing.because))),
        "target": worker.plan.versions.spec.build_id,
        "current": "".join(current),
        "percentage": f"{(target.percentage if target else None) or 0:g}",
        "since": format_time(since),
        "status.json": json.dumps(status_document(status), ensure_ascii=False, indent=1) + "\n",
    }


def _worker(worker: WorkerView) -> dict[str, Any]:
    spec, routing = worker.plan.versions.spec, worker.plan.routing
    return {
        "worker": spec.worker_deployment,
        "temporalNamespace": spec.temporal_namespace,
        "targetBuildID": spec.build_id,
        "phase": routing.phase.value,
        "reason": routing.reason,
        "because": routing.because,
        "unserved": worker.plan.unserved,
        "next": _next(worker),
        "waitsUntil": _time(routing.due_at),
        "owner": {"identity": worker.plan.manager, "relation": worker.ownership.value},
        "lastModifierIdentity": worker.last_modifier,
        "gates": [_gate(gate) for gate in worker.gates],
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


def _next(worker: WorkerView) -> dict[str, Any] | None:
    routing = worker.plan.routing
    if routing.action is not RoutingAction.NONE:
        return _change(routing, None)
    return _change(worker.later, routing.due_at) if worker.later else None


def _change(routing: RoutingPlan, at: datetime | None) -> dict[str, Any]:
    return {
        "action": routing.action.value,
        "buildID": routing.build_id,
        "percentage": routing.percentage,
        "at": _time(at),
    }


def _gate(gate: GateProgress) -> dict[str, Any]:
    return {
        "taskQueue": gate.task_queue,
        "workflowID": gate.workflow_id,
        "status": gate.status.value if gate.status else _NOT_STARTED,
    }


def _version(version: VersionView) -> dict[str, Any]:
    plan, later = version.plan, version.later
    return {
        "buildID": plan.build_id,
        "isTarget": version.is_target,
        "status": plan.status.value,
        "percentage": version.percentage,
        "since": _time(version.since),
        "openWorkflows": version.open_workflows,
        "taskQueues": None
        if version.task_queues is None
        else [_task_queue(queue) for queue in version.task_queues],
        "deployment": plan.deployment,
        "clusterWasRead": version.cluster_was_read,
        "pods": _pods(version),
        "attached": attached_objects(plan),
        "action": plan.action.value,
        "reason": plan.reason,
        "because": plan.because,
        "next": {"action": later.action.value, "at": _time(later.at)} if later else None,
    }


def _task_queue(queue: TaskQueue) -> dict[str, Any]:
    return {
        "name": queue.name,
        "type": queue.type.value,
        "pollers": queue.pollers,
        "unversionedPollers": queue.unversioned_pollers,
    }


def _pods(version: VersionView) -> dict[str, Any] | None:
    live = version.plan.live
    if not live:
        return None
    return {
        "available": live.available_replicas,
        "wanted": live.replicas,
        "terminating": live.terminating,
        "paused": live.paused,
        "stalled": live.stalled,
        "problem": version.pod_problem,
    }


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment else None
