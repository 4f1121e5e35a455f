"""What a rollout writes next, when it is over, and when its plan can have become another one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from twgen.model.marks import Mark as VersionMark
from twgen.model.marks import MarkKey, write_mark
from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons.routing import RoutingReason as Reason
from twgen.model.reasons.routing import Until
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.values import dataclass
from twgen.model.world import WorkerWorld
from twgen.planning.routing.gates import gates_before
from twgen.planning.routing.table import is_updating
from twgen.planning.sentences import untimed

FAILED_LOOK = timedelta(seconds=5)
"""Until it is looked again after a look that failed."""

_SHORTEST = timedelta(seconds=1)
_LONGEST = timedelta(seconds=30)
LONGEST_BLIND = timedelta(minutes=5)
"""How long a pause goes on without a look at what neither changes traffic nor moves the conflict token."""
_UNTIL_READY = timedelta(seconds=10)
_ALL = 100
"""Percent."""


@dataclass(frozen=True, slots=True)
class Claim:
    """To become the manager of a worker, and no more."""

    manager: str


@dataclass(frozen=True, slots=True)
class Mark:
    """To say in the metadata of a version what is decided about it; a later look acts on it."""

    build_id: str
    marks: Mapping[str, Any]
    because: str


Write = GateStart | Claim | Mark | RoutingPlan
"""One call that changes Temporal; after it everything is looked at again."""


def next_write(plan: WorkerPlan) -> Write | None:
    """What a rollout changes now; None: it waits, or has nothing left to do.

    A gate needs no manager: one that fails leaves the present manager in place. What takes a share back
    waits for no gate, which may be one that cannot start.
    """
    if plan.gates and not takes_back(plan):
        return plan.gates[0]
    if plan.routing.claim_manager:
        return Claim(plan.identity)
    if plan.routing.marks:
        return Mark(plan.spec.build_id, plan.routing.marks, plan.routing.because)
    return plan.routing if plan.routing.action is not RoutingAction.NONE else None


def takes_back(plan: WorkerPlan) -> bool:
    """A version loses its share, or is kept from more: that waits for nothing that the target lacks."""
    routing = plan.routing
    is_back = routing.action is RoutingAction.CLEAR_RAMP or routing.reason is Reason.ROLLBACK
    return is_back or bool(routing.marks)


def moved_mark(
    change: RoutingPlan, spec: WorkerSpec, by: str, at: datetime, cause: Mapping[str, str]
) -> Mapping[str, Any]:
    """The mark about the identity that gave a version its share, the cause, and the gates before it.

    An empty text of the cause is not known, and left out.
    """
    share = _ALL if change.percentage is None else change.percentage
    gates = [gate.name for gate in gates_before(spec, share)]
    known = {name: text for name, text in cause.items() if text}
    details = {**known, "percentage": share, **({"gates": gates} if gates else {})}
    return {MarkKey.MOVED_BY.value: write_mark(VersionMark(MarkKey.MOVED_BY, by, at, details=details))}


def needs_a_rollout(phase: Phase, reason: str) -> bool:
    """A rollout has work: it is not settled, and not at an end that only a person changes."""
    # a word that only another release knows is none of them
    ends = {known for known in Reason if known.until is Until.ANOTHER_INTENT}
    return phase is not Phase.SETTLED and reason not in ends


def left_alone(status: RolloutStatus, why: str, since: datetime) -> RolloutStatus:
    """The same once nothing works on it any more; the message keeps its last state."""
    stood = untimed(status.message)
    before = "" if stood in why else f"; before, it was {status.phase}: {stood}"
    message = f"nothing moves its traffic: {why}{before}"
    return status.restated(Phase.BLOCKED, Reason.ROLLOUT_ENDED, message, since)


def since_when(before: RolloutStatus, now: RolloutStatus) -> datetime:
    """When phase or reason changed last; a rollout that ended and is tried again has not got on."""
    is_same = (before.phase, before.reason) == (now.phase, now.reason)
    is_retry = before.reason == Reason.ROLLOUT_ENDED and now.phase is Phase.WAITING
    return before.since if before.intent == now.intent and (is_same or is_retry) else now.since


def brought_up_to_date(told: RolloutStatus, now: RolloutStatus) -> RolloutStatus:
    """What a rollout left to read, with what its worker has become since."""
    newer = replace(told, current=now.current, percentage=now.percentage, document=now.document)
    if told.reason in {Reason.ROLLOUT_ENDED, Reason.ROLLOUT_NOT_BEGUN}:  # nothing waits for what comes next
        return newer.restated(told.phase, told.reason, told.message, told.since)
    return newer


def not_begun(
    told: RolloutStatus | None, worker: str, target: str, why: str, since: datetime
) -> RolloutStatus:
    """The status of a worker whose newest intent no rollout has read; `told` is of an older one, if any."""
    before = f"; before, it was {told.phase}: {untimed(told.message)}" if told else ""
    message = f"the rollout of {target} has not begun: {why}{before}"
    reason = Reason.ROLLOUT_NOT_BEGUN
    if not told:
        return RolloutStatus(worker, Phase.WAITING, reason, message, target, None, None, since, {})
    now = told.restated(Phase.WAITING, reason, message, since)
    workers = [{**one, "targetBuildID": target} for one in now.document.get("workers", ())]
    document = {**now.document, "workers": workers} if workers else now.document
    percentage = told.percentage if told.target == target else None
    return replace(now, target=target, percentage=percentage, document=document)


def as_expected(
    told: Sequence[RolloutStatus], specs: Sequence[WorkerSpec], since: datetime
) -> list[RolloutStatus]:
    """The status of each worker of these specs: a rollout with another target has not begun.

    A status is about its own target: right after a commit, that is still the previous one.
    """
    left, found = {status.worker: status for status in told}, []
    for spec in specs:
        status = left.get(spec.worker_deployment)
        # not by the hash of an intent: CI has only the commit, without the operator's configuration; and a
        # commit that keeps the build ID moves no traffic
        if not status or status.target != spec.build_id:
            why = "these specs have not been applied yet"
            status = not_begun(status, spec.worker_deployment, spec.build_id, why, since)
        found.append(status)
    return found


def unclaimed(status: RolloutStatus, since: datetime) -> RolloutStatus:
    """The same while it cannot become the manager, for another cause than another manager."""
    return status.restated(Phase.WAITING, Reason.CLAIM_FAILED, status.message, since)


def since_its_hook(told: RolloutStatus, now: RolloutStatus) -> RolloutStatus | None:
    """The status of a rollout whose hook has ended, if it changed since; None: it did not."""
    if not needs_a_rollout(now.phase, now.reason):
        return now if told.reason != now.reason else None
    if told.phase is not Phase.SETTLED or now.percentage == _ALL:
        return None  # pods that are away for a moment are no work for a rollout
    moved = brought_up_to_date(told, now)
    return left_alone(moved, "its hook has ended, and only a sync starts it again", now.since)


def is_over(plan: WorkerPlan, world: WorkerWorld, now: datetime, *, is_unattended: bool = False) -> bool:
    """Nothing is left to do, or a person has to do it.

    An unattended rollout continues by itself once that person has acted: only a few blocks end it.
    """
    if plan.routing.reason is Reason.SUPERSEDED:
        return True
    if is_unattended and plan.routing.phase is Phase.BLOCKED:
        return plan.routing.reason.until is Until.ANOTHER_INTENT
    if plan.routing.phase is Phase.SETTLED:
        # a server reports a change before it has reached every task queue
        return not (world.temporal and is_updating(world.temporal.routing, now))
    return plan.routing.phase is Phase.BLOCKED


def until_next_look(plan: WorkerPlan, now: datetime) -> timedelta:
    """How long to leave the plan alone: until its wait is over, and at most half a minute."""
    # a settled rollout still waits until the change has reached every task queue
    becomes_ready = plan.routing.reason.until is Until.READINESS or plan.routing.phase is Phase.SETTLED
    longest = _UNTIL_READY if becomes_ready else _LONGEST
    if plan.routing.due_at is None:
        return longest
    # the clock counts whole seconds
    return min(longest, max(plan.routing.due_at - now, timedelta()) + _SHORTEST)


def only_time_passes_until(plan: WorkerPlan, now: datetime) -> datetime | None:
    """Until when no change is wanted unless the conflict token moves; None: one may be at any moment.

    Pods and pollers may come and go during a step's pause, and people leave marks: all that stops a change,
    and makes none. Every few minutes it is looked at all the same, for who reads what is shown.
    """
    due = plan.routing.due_at
    # a pause that ends this very second still holds, and there is nothing to sleep through
    if plan.routing.reason.until is not Until.TIME or not due or due <= now or plan.gates:
        return None
    return min(due, now + LONGEST_BLIND)
