"""The gate: which workflows must have completed on the target, which to start, and what failed."""

from twgen.model.plan import GateStart
from twgen.model.world import GateRun, GateStatus
from twgen.planning.target import Target

_ATTEMPT = "twgen.io/gate-attempt"


def gate_workflow_id(worker_deployment: str, build_id: str, task_queue: str, attempt: int = 1) -> str:
    """The ID of the gate's run on one task queue; attempts count from 1."""
    first = f"test-{worker_deployment}:{build_id}-{task_queue}"
    return first if attempt == 1 else f"{first}-{attempt}"


def gate_attempt(target: Target) -> int:
    """The attempt that counts: `retry` asks for another one."""
    attempt = (target.version.metadata or {}).get(_ATTEMPT, 1) if target.version else 1
    return attempt if isinstance(attempt, int) and attempt > 0 else 1


def gates_to_start(target: Target) -> tuple[GateStart, ...]:
    """The gate's workflows that have no run yet, by task queue."""
    gate = target.spec.rollout.gate
    if not gate:
        return ()
    return tuple(
        GateStart(queue, _workflow_id(target, queue), gate.workflow_type)
        for queue in target.workflow_task_queues
        if not gate_run(target, queue)
    )


def gate_failures(target: Target) -> list[GateRun]:
    """The gate's runs that ended without completing."""
    return [run for run in _runs(target) if run.status not in {GateStatus.RUNNING, GateStatus.COMPLETED}]


def gate_passed(target: Target) -> bool:
    """There is no gate, or it completed on every workflow task queue, of which one at least is known."""
    if not target.spec.rollout.gate:
        return True
    runs = _runs(target)
    complete = all(run.status is GateStatus.COMPLETED for run in runs)
    return bool(runs) and complete and len(runs) == len(target.workflow_task_queues)


def _runs(target: Target) -> list[GateRun]:
    found = (gate_run(target, queue) for queue in target.workflow_task_queues)
    return [run for run in found if run]


def gate_run(target: Target, task_queue: str) -> GateRun | None:
    """The gate's run that counts on one task queue; None: it has not started."""
    expected = _workflow_id(target, task_queue)
    created = target.version.created_at if target.version else None
    for run in (target.version.gate_runs if target.version else None) or ():
        # a run from before the version was registered tested another version of the same name
        counts = run.started_at is None or created is None or run.started_at >= created
        if counts and run.task_queue == task_queue and run.workflow_id == expected:
            return run
    return None


def _workflow_id(target: Target, task_queue: str) -> str:
    return gate_workflow_id(target.spec.worker_deployment, target.build_id, task_queue, gate_attempt(target))
