"""A plan as the document that tools and tests read; its schema is `schemas/plan.json`."""

from typing import Any

from twgen.model.plan import Plan, VersionPlan, WorkerPlan
from twgen.model.times import format_time
from twgen.versioning.names import TWGEN_API


def plan_document(plan: Plan) -> dict[str, Any]:
    """The Plan document: workers by name, versions by build ID."""
    return {
        "apiVersion": TWGEN_API,
        "kind": "Plan",
        "now": format_time(plan.now),
        "workers": [_worker(worker) for worker in plan.workers],
        "warnings": list(plan.warnings),
    }


def _worker(worker: WorkerPlan) -> dict[str, Any]:
    spec, routing = worker.spec, worker.routing
    return {
        "worker": spec.worker_deployment,
        "temporalNamespace": spec.temporal_namespace,
        "targetBuildID": spec.build_id,
        "manager": worker.manager,
        "phase": routing.phase.value,
        "unserved": worker.unserved,
        "routing": {
            "action": routing.action.value,
            "buildID": routing.build_id,
            "percentage": routing.percentage,
            "claimManager": routing.claim_manager,
            "reason": routing.reason,
            "because": routing.because,
            "dueAt": format_time(routing.due_at) if routing.due_at else None,
        },
        "gates": [
            {"taskQueue": gate.task_queue, "workflowID": gate.workflow_id, "workflowType": gate.workflow_type}
            for gate in worker.gates
        ],
        "analysis": judgement_items(worker),
        "draining": action_items(worker),
        # absent for most workers
        **({"prunes": list(worker.old_records)} if worker.old_records else {}),
        "versions": [_version(version) for version in worker.versions.versions],
        "warnings": list(worker.versions.warnings),
    }


def _version(version: VersionPlan) -> dict[str, Any]:
    return {
        "buildID": version.build_id,
        "status": version.status.value,
        "deployment": version.deployment,
        "action": version.action.value,
        "replicas": version.replicas,
        "protected": version.protected,
        "reason": version.reason,
        "because": version.because,
        "attached": attached_objects(version),
    }


def judgement_items(worker: WorkerPlan) -> list[dict[str, Any]]:
    """The verdict of each metric of a worker's analysis."""
    return [
        {
            "metric": judged.metric,
            "verdict": judged.verdict.value,
            "value": judged.value,
            "bound": judged.bound,
            "because": judged.because,
        }
        for judged in worker.judgements
    ]


def action_items(worker: WorkerPlan) -> list[dict[str, Any]]:
    """How a worker's policy ends the workflows of its draining versions."""
    return [
        {
            "buildID": scheduled.build_id,
            "action": scheduled.what.action.value,
            "workflowTypes": list(scheduled.what.workflow_types),
            "at": format_time(scheduled.at),
            "begun": scheduled.is_begun,
            "workflows": scheduled.workflows,
            "repeats": scheduled.repeats,
            "heldBy": scheduled.held_by,
        }
        for scheduled in worker.scheduled_actions
    ]


def attached_objects(version: VersionPlan) -> list[dict[str, str]]:
    """The objects that are rendered with a version's Deployment."""
    return [{"kind": item.kind, "name": item.name} for item in version.attached]
