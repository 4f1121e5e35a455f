"""The gates: which workflows must have completed on the target, which to start, and what failed."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from twgen.model.plan import GateStart
from twgen.model.spec import RolloutStep
from twgen.model.temporal import GateRun, GateStatus
from twgen.model.values import dataclass
from twgen.planning.routing.target import Target
from twgen.planning.sentences import listed, plain_percentage
from twgen.versioning.names import GATE_ATTEMPT

GATE_TIMEOUT = timedelta(hours=1)
"""How long a gate may run before Temporal ends it."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A workflow that must complete on every workflow task queue of the target before traffic moves."""

    workflow_type: str
    percentage: float | None = None
    """Of the step that it stands before, by the policy; None: it is the spec's, before all of them."""

    def workflow_id(self, target: Target, task_queue: str) -> str:
        """The ID of its run on one task queue: the controller's own for the gate of a spec."""
        # no name of a namespace holds an @
        at_step = f"@{plain_percentage(self.percentage)}" if self.percentage is not None else ""
        first = f"test{at_step}-{target.spec.worker_deployment}:{target.build_id}-{task_queue}"
        attempt = gate_attempt(target)
        return first if attempt == 1 else f"{first}-{attempt}"

    def __str__(self) -> str:
        """As a sentence names it."""
        if self.percentage is None:
            return "gate"
        return f"gate {self.workflow_type} before {plain_percentage(self.percentage)} %"


@dataclass(frozen=True, slots=True)
class GateOnQueue:
    """A gate on one workflow task queue of the target."""

    gate: Gate
    task_queue: str
    workflow_id: str
    run: GateRun | None
    """The one that counts; None: it has not started."""

    @property
    def has_failed(self) -> bool:
        """It has ended without completing."""
        return self.run is not None and self.run.status.has_failed

    @property
    def has_passed(self) -> bool:
        """It has completed."""
        return self.run is not None and self.run.status is GateStatus.COMPLETED


def gate_attempt(target: Target) -> int:
    """The attempt that counts: `retry` asks for another one; attempts count from 1."""
    attempt = (target.version.metadata or {}).get(GATE_ATTEMPT, 1) if target.version else 1
    return attempt if isinstance(attempt, int) and attempt > 0 else 1


def possible_gates(target: Target) -> tuple[Gate, ...]:
    """The gates of what may come next, whether that is due or not."""
    following = target.following_step
    return (*_of_spec(target), *(_of_step(target, following) if following else ()))


def asked_gates(target: Target) -> tuple[Gate, ...]:
    """The gates without which nothing moves now: a step's only once the pause before it is over."""
    if target.is_current or target.is_rollback:
        return ()
    due = target.due_step
    return (*_of_spec(target), *(_of_step(target, due) if due else ()))


def skipped_gates(target: Target, *, full: bool) -> tuple[Gate, ...]:
    """The gates that the next step, or with `full` all steps that are left, should have waited for."""
    if target.is_current or target.is_rollback:
        return ()
    left = [target.following_step] if not full else target.steps_left
    return (*_of_spec(target), *(gate for step in left if step for gate in _of_step(target, step)))


def on_queues(target: Target, gates: Iterable[Gate]) -> Iterator[GateOnQueue]:
    """How far the gates are, on each workflow task queue that is known."""
    created = target.version.created_at if target.version else None
    found: dict[tuple[str, str], list[GateRun]] = {}
    for run in (target.version.gate_runs if target.version else None) or ():
        # a run from before the version was registered tested another version of the same name
        if run.started_at is None or created is None or run.started_at >= created:
            found.setdefault((run.task_queue, run.workflow_id), []).append(run)
    for gate in gates:
        for queue in target.workflow_task_queues:
            name = gate.workflow_id(target, queue)
            yield GateOnQueue(gate, queue, name, worst(found.get((queue, name), ())))


def worst(runs: Iterable[GateRun]) -> GateRun | None:
    """Of several runs one that failed, else one that still runs: nothing tells which of them is meant."""
    is_better = {GateStatus.RUNNING: 1, GateStatus.COMPLETED: 2}
    return min(runs, key=lambda run: is_better.get(run.status, 0), default=None)


def gates_to_start(target: Target) -> tuple[GateStart, ...]:
    """The workflows of gates that have no run yet, by task queue."""
    created = target.version.created_at if target.version else None
    # a server moves the time by milliseconds from one answer to the next
    registered = f"{created:%Y-%m-%dT%H:%MZ}" if created else ""
    return tuple(
        GateStart(
            task_queue=one.task_queue,
            workflow_id=one.workflow_id,
            workflow_type=one.gate.workflow_type,
            request_id=f"{one.workflow_id}@{registered}",
            has_input=one.gate.percentage is None,
        )
        for one in on_queues(target, asked_gates(target))
        if not one.run and not _may_be_forgotten(target, one.gate)
    )


def gate_failures(target: Target) -> list[GateOnQueue]:
    """The gates that ended without completing, those of the spec first."""
    return [one for one in on_queues(target, asked_gates(target)) if one.has_failed]


def failed_gate_told(target: Target) -> str:
    """What became of the last gate that failed; there must be one."""
    failed = gate_failures(target)[-1]
    ended = failed.run.status if failed.run else ""
    return f"the {failed.gate} on task queue {failed.task_queue} ended as {ended}: {failed.workflow_id}"


def open_gate_told(target: Target) -> str:
    """Which gate has not completed yet, where, and what runs for it."""
    gate = first_not_passed(target, asked_gates(target))
    names = target.workflow_task_queues
    on = f"task queue {names[0]}" if len(names) == 1 else f"every task queue ({listed(names)})"
    runs = [one.run for one in on_queues(target, [gate] if gate else [])]
    going = [run.workflow_id for run in runs if run and run.status is GateStatus.RUNNING]
    told = f"the {gate} has not completed on {on}"
    return f"{told}; {listed(going)} {'is' if len(going) == 1 else 'are'} running" if going else told


def first_not_passed(target: Target, gates: Iterable[Gate]) -> Gate | None:
    """The first gate that has not completed on every workflow task queue, of which one at least is known."""
    for gate in gates:
        runs = list(on_queues(target, [gate]))
        if _may_be_forgotten(target, gate):
            if any(one.run and not one.has_passed for one in runs):
                return gate
        elif not runs or not all(one.has_passed for one in runs):
            return gate
    return None


def _of_spec(target: Target) -> tuple[Gate, ...]:
    gate = target.spec.rollout.gate
    return (Gate(gate.workflow_type),) if gate and not target.skips_gate else ()


def _of_step(target: Target, step: RolloutStep) -> tuple[Gate, ...]:
    told = target.spec.policy.step(step.percentage)
    return (Gate(told.gate, step.percentage),) if told and told.gate else ()


def _may_be_forgotten(target: Target, gate: Gate) -> bool:
    """It has passed before the target took its share, and Temporal keeps no run for ever."""
    return gate.percentage is None and target.was_moved_to
