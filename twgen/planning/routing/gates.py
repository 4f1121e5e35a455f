"""The gate: which workflows must have completed on the target, which to start, and what failed."""

from collections.abc import Iterable
from datetime import timedelta

from twgen.model.plan import GateStart
from twgen.model.temporal import GateRun, GateStatus
from twgen.planning.routing.target import Target
from twgen.versioning.names import GATE_ATTEMPT

GATE_TIMEOUT = timedelta(hours=1)
"""How long a gate may run before Temporal ends it."""


def gate_workflow_id(worker_deployment: str, build_id: str, task_queue: str, attempt: int = 1) -> str:
    """The ID of the gate's run on one task queue; attempts count from 1."""
    first = f"test-{worker_deployment}:{build_id}-{task_queue}"
    return first if attempt == 1 else f"{first}-{attempt}"


def gate_attempt(target: Target) -> int:
    """The attempt that counts: `retry` asks for another one."""
    attempt = (target.version.metadata or {}).get(GATE_ATTEMPT, 1) if target.version else 1
    return attempt if isinstance(attempt, int) and attempt > 0 else 1


def gate_runs(target: Target) -> dict[str, GateRun | None]:
    """The run that counts on each workflow task queue of the target; None: it has not started.

    Empty where no gate is asked.
    """
    if not target.asks_gate:
        return {}
    created = target.version.created_at if target.version else None
    found: dict[tuple[str, str], list[GateRun]] = {}
    for run in (target.version.gate_runs if target.version else None) or ():
        # a run from before the version was registered tested another version of the same name
        if run.started_at is None or created is None or run.started_at >= created:
            found.setdefault((run.task_queue, run.workflow_id), []).append(run)
    return {
        queue: worst(found.get((queue, _workflow_id(target, queue)), ()))
        for queue in target.workflow_task_queues
    }


def worst(runs: Iterable[GateRun]) -> GateRun | None:
    """Of several runs one that failed, else one that still runs: nothing tells which of them is meant."""
    is_better = {GateStatus.RUNNING: 1, GateStatus.COMPLETED: 2}
    return min(runs, key=lambda run: is_better.get(run.status, 0), default=None)


def gates_to_start(target: Target) -> tuple[GateStart, ...]:
    """The gate's workflows that have no run yet, by task queue."""
    gate = target.spec.rollout.gate
    created = target.version.created_at if target.version else None
    # a server moves the time by milliseconds from one answer to the next
    registered = f"{created:%Y-%m-%dT%H:%MZ}" if created else ""
    return tuple(
        GateStart(queue, name := _workflow_id(target, queue), gate.workflow_type, f"{name}@{registered}")
        for queue, run in gate_runs(target).items()
        if gate and not run and not target.was_moved_to
    )


def gate_failures(target: Target) -> list[GateRun]:
    """The gate's runs that ended without completing."""
    return [run for run in gate_runs(target).values() if run and run.status.has_failed]


def gate_passed(target: Target) -> bool:
    """It completed on every workflow task queue, of which one at least is known; or nobody asks for it."""
    if not target.asks_gate:
        return True
    runs = gate_runs(target).values()
    if target.was_moved_to:
        return all(run is None or run.status is GateStatus.COMPLETED for run in runs)
    return bool(runs) and all(run is not None and run.status is GateStatus.COMPLETED for run in runs)


def _workflow_id(target: Target, task_queue: str) -> str:
    return gate_workflow_id(target.spec.worker_deployment, target.build_id, task_queue, gate_attempt(target))
