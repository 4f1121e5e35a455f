"""The routing table: the one change of traffic that is wanted next. The first row that fits decides.

A row that only waits or blocks wants no change. Whether a wanted change may be made (strategy Manual, another
owner) is decided afterwards, in `routing`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from twgen.model.plan import Phase, RoutingAction
from twgen.model.policy import MOST_VERSIONS
from twgen.model.spec import RolloutStep, Strategy
from twgen.model.world import UpdateState
from twgen.planning.ages import spoken
from twgen.planning.gates import gate_failures, gate_passed
from twgen.planning.rollback import is_rollback
from twgen.planning.serving import not_serving
from twgen.planning.target import Target

_UPDATE_LIMIT = timedelta(minutes=2)
_QUEUE_LIMIT = timedelta(minutes=5)
_PERCENT_DIGITS = 3
"""Percentages are float32 on the wire: 33.3 reads back as 33.2999992."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The change that is wanted, or why none is."""

    action: RoutingAction
    because: str
    phase: Phase = Phase.MOVING
    build_id: str | None = None
    percentage: float | None = None
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """When the target is so, this is wanted."""

    when: Callable[[Target], bool]
    then: Callable[[Target], Wanted]


def _set_current(because: str) -> Callable[[Target], Wanted]:
    return lambda target: Wanted(RoutingAction.SET_CURRENT, because, build_id=target.build_id)


def _wait(because: str) -> Callable[[Target], Wanted]:
    return lambda _: Wanted(RoutingAction.NONE, because, Phase.WAITING)


def _aborted(target: Target) -> Wanted:
    if target.ramp:
        return Wanted(RoutingAction.CLEAR_RAMP, "it is marked aborted", build_id="", percentage=0)
    return Wanted(
        RoutingAction.NONE, "it is marked aborted: only a retry or a new build ID goes on", Phase.BLOCKED
    )


def _clear_other_ramp(target: Target) -> Wanted:
    ramp = target.other_ramp
    other = (ramp.build_id if ramp else "") or "unversioned workers"
    because = f"it is current, and {other} must not keep a share of the traffic"
    return Wanted(RoutingAction.CLEAR_RAMP, because, build_id="", percentage=0)


def _settled(_: Target) -> Wanted:
    return Wanted(RoutingAction.NONE, "it is current and nothing ramps", Phase.SETTLED)


def _wait_for_registration(target: Target) -> Wanted:
    because = "Temporal does not know it yet: no worker of it has polled"
    if (known := len(target.temporal.versions)) >= MOST_VERSIONS:
        because = (
            f"Temporal does not know it yet, and knows {known} other versions: at its cap (by default"
            f" {MOST_VERSIONS}) it refuses the polls of a new one until one of those is deleted"
        )
    return Wanted(RoutingAction.NONE, because, Phase.WAITING)


def _wait_for_serving(target: Target) -> Wanted:
    return Wanted(RoutingAction.NONE, not_serving(target), Phase.WAITING)


def _update_in_progress(target: Target) -> bool:
    routing = target.temporal.routing
    if routing.update_state is not UpdateState.IN_PROGRESS or not routing.changed_at:
        return False
    return target.now - routing.changed_at < _UPDATE_LIMIT


def _gate(target: Target) -> Wanted:
    if failures := gate_failures(target):
        run = failures[0]
        because = f"the gate on task queue {run.task_queue} ended as {run.status}: {run.workflow_id}"
        return Wanted(RoutingAction.NONE, f"{because}; only a retry or a new build ID goes on", Phase.BLOCKED)
    if not target.workflow_task_queues:
        because = "the gate cannot start: no workflow task queue of it is known yet"
    else:
        because = f"the gate has not completed on every task queue ({', '.join(target.workflow_task_queues)})"
    return Wanted(RoutingAction.NONE, because, Phase.WAITING)


def _missing_queue(target: Target) -> str:
    current = target.temporal_version(target.current or "")
    if not current or current.task_queues is None or not target.version or target.version.task_queues is None:
        return ""
    polled = {(queue.name, queue.type) for queue in target.task_queues}
    missing = [queue for queue in current.task_queues if (queue.name, queue.type) not in polled]
    return f"{missing[0].type.lower()} task queue {missing[0].name}" if missing else ""


def _lacks_queue(target: Target) -> Wanted:
    created = target.version.created_at if target.version else None
    due = created + _QUEUE_LIMIT if created else None
    because = f"it does not poll {_missing_queue(target)}, which {target.current} does"
    if due and target.now < due:
        return Wanted(RoutingAction.NONE, because, Phase.WAITING, due_at=due)
    advice = "Temporal would refuse: deploy a worker that polls it, or retire the task queue first"
    return Wanted(RoutingAction.NONE, f"{because}; {advice}", Phase.BLOCKED)


def _starts_alone(target: Target) -> bool:
    return target.current is None and target.ramp is None


def _nobody_to_share_with(target: Target) -> bool:
    return not all(queue.unversioned_pollers for queue in target.task_queues)


def _has_no_steps(target: Target) -> bool:
    return target.spec.rollout.strategy is Strategy.ALL_AT_ONCE or not target.spec.rollout.steps


def _set_ramp(target: Target, step: RolloutStep, because: str) -> Wanted:
    return Wanted(
        RoutingAction.SET_RAMP,
        because,
        build_id=target.build_id,
        percentage=plain_percentage(step.percentage),
    )


def _first_step(target: Target) -> Wanted:
    return _set_ramp(target, target.spec.rollout.steps[0], "it can take its first share of the traffic")


def _step_index(target: Target) -> int:
    """The last step whose percentage is not above the live one; the first if none."""
    live = _rounded(target.ramp.percentage) if target.ramp else 0.0
    steps = target.spec.rollout.steps
    return max((index for index, step in enumerate(steps) if _rounded(step.percentage) <= live), default=0)


def _step(target: Target) -> RolloutStep:
    return target.spec.rollout.steps[_step_index(target)]


def _off_step(target: Target) -> bool:
    return target.ramp is not None and _rounded(target.ramp.percentage) != _rounded(_step(target).percentage)


def _back_to_step(target: Target) -> Wanted:
    live = plain_percentage(target.ramp.percentage if target.ramp else 0)
    step = _step(target)
    return _set_ramp(
        target, step, f"the live {live} % is no step's; {plain_percentage(step.percentage)} % is the nearest"
    )


def _step_ends(target: Target) -> datetime | None:
    ramp = target.ramp
    since = (ramp.percentage_changed_at or ramp.since) if ramp else None
    return since + _step(target).pause if since else None


def _in_pause(target: Target) -> bool:
    ends = _step_ends(target)
    return ends is None or target.now <= ends


def _wait_for_pause(target: Target) -> Wanted:
    ends = _step_ends(target)
    left = f"for {spoken(ends - target.now)} more" if ends else "since a time that Temporal does not tell"
    because = f"it stays at {plain_percentage(_step(target).percentage)} % {left}"
    return Wanted(RoutingAction.NONE, because, Phase.WAITING, due_at=ends)


def _next_step(target: Target) -> Wanted:
    steps, index = target.spec.rollout.steps, _step_index(target)
    over = f"its {spoken(steps[index].pause)} at {plain_percentage(steps[index].percentage)} % are over"
    if index + 1 < len(steps):
        return _set_ramp(target, steps[index + 1], over)
    return Wanted(RoutingAction.SET_CURRENT, f"{over}, the last step", build_id=target.build_id)


def _rounded(percentage: float) -> float:
    return round(percentage, _PERCENT_DIGITS)


def plain_percentage(percentage: float) -> float:
    """The percentage as people write it: whole where it is, without the noise of the wire."""
    rounded = _rounded(percentage)
    return int(rounded) if rounded == int(rounded) else rounded


TABLE: tuple[Row, ...] = (
    Row(lambda t: t.is_aborted, _aborted),
    Row(lambda t: t.is_current and t.other_ramp is not None, _clear_other_ramp),
    Row(lambda t: t.is_current, _settled),
    Row(lambda t: not t.is_registered, _wait_for_registration),
    Row(lambda t: bool(not_serving(t)), _wait_for_serving),
    Row(is_rollback, _set_current("it was current until lately: a rollback needs no gate and no steps")),
    Row(_update_in_progress, _wait("Temporal has not yet told every task queue of the last change")),
    Row(lambda t: not gate_passed(t), _gate),
    Row(lambda t: bool(_missing_queue(t)), _lacks_queue),
    Row(lambda t: _starts_alone(t) and not t.task_queues, _wait("no task queue of it is known yet")),
    Row(lambda t: _starts_alone(t) and _nobody_to_share_with(t), _set_current("there is no current version")),
    Row(_has_no_steps, _set_current("it is ready, and its strategy has no steps")),
    Row(lambda t: t.ramp is None, _first_step),
    Row(_off_step, _back_to_step),
    Row(_in_pause, _wait_for_pause),
    Row(lambda _: True, _next_step),
)


def wanted_change(target: Target) -> Wanted:
    """The change of traffic that is wanted next, or why none is."""
    return next(row for row in TABLE if row.when(target)).then(target)
