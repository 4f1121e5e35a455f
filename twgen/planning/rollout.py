"""What a rollout writes next, when it is over, and when its plan can have become another one."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons.routing import RoutingReason as Reason
from twgen.model.reasons.routing import Until
from twgen.model.status import RolloutStatus
from twgen.model.values import dataclass
from twgen.model.world import WorkerWorld
from twgen.planning.routing.table import is_updating

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

    A gate asks for no manager, and one that fails leaves the worker to whoever manages it.
    """
    if plan.gates:
        return plan.gates[0]
    if plan.routing.claim_manager:
        return Claim(plan.identity)
    if plan.routing.marks:
        return Mark(plan.spec.build_id, plan.routing.marks, plan.routing.because)
    return plan.routing if plan.routing.action is not RoutingAction.NONE else None


def needs_a_rollout(phase: Phase, reason: str) -> bool:
    """Somebody has to work on it: it is not settled, and not at an end that only a person changes."""
    # a word that only another release knows is none of them
    ends = {known for known in Reason if known.until is Until.ANOTHER_INTENT}
    return phase is not Phase.SETTLED and reason not in ends


def left_alone(status: RolloutStatus, why: str, since: datetime) -> RolloutStatus:
    """The same once nobody works on it any more; the message keeps where it stood."""
    message = f"nobody moves its traffic: {why}; before, it was {status.phase}: {status.message}"
    return status.restated(Phase.BLOCKED, Reason.ROLLOUT_ENDED, message, since)


def not_begun(
    told: RolloutStatus | None, worker: str, target: str, why: str, since: datetime
) -> RolloutStatus:
    """How a worker stands whose newest intent nobody has looked at; `told` is of an older one, if any is."""
    before = f"; before, it was {told.phase}: {told.message}" if told else ""
    message = f"the rollout of {target} has not begun: {why}{before}"
    reason = Reason.ROLLOUT_NOT_BEGUN
    if not told:
        return RolloutStatus(worker, Phase.WAITING, reason, message, target, "", 0, since, {})
    now = told.restated(Phase.WAITING, reason, message, since)
    workers = [{**one, "targetBuildID": target} for one in now.document.get("workers", ())]
    document = {**now.document, "workers": workers} if workers else now.document
    return replace(now, target=target, percentage=0, document=document)


def unclaimed(status: RolloutStatus, since: datetime) -> RolloutStatus:
    """The same while it cannot become the manager, for another cause than that somebody else is."""
    return status.restated(Phase.WAITING, Reason.CLAIM_FAILED, status.message, since)


def since_its_hook(told: RolloutStatus, now: RolloutStatus) -> RolloutStatus | None:
    """How a rollout stands whose hook has ended, where that is no longer what the hook told; None: it is."""
    if not needs_a_rollout(now.phase, now.reason):
        return now if told.reason == Reason.ROLLOUT_ENDED else None
    if told.phase is not Phase.SETTLED or now.percentage == _ALL:
        return None  # pods that are away for a moment are no work for a rollout
    moved = replace(told, percentage=now.percentage, document=now.document)
    return left_alone(moved, "its hook has ended, and only a sync makes it again", now.since)


def is_over(plan: WorkerPlan, world: WorkerWorld, now: datetime, *, is_unattended: bool = False) -> bool:
    """Nothing is left to do, or a person has to do it.

    A rollout that nobody watches goes on by itself once that person has: only a few blocks end it.
    """
    if plan.routing.reason is Reason.SUPERSEDED:
        return True
    if is_unattended and plan.routing.phase is Phase.BLOCKED:
        return plan.routing.reason.until is Until.ANOTHER_INTENT
    if plan.routing.phase is Phase.SETTLED:
        # a server tells of a change before every task queue has heard of it
        return not (world.temporal and is_updating(world.temporal.routing, now))
    return plan.routing.phase is Phase.BLOCKED


def until_next_look(plan: WorkerPlan, now: datetime) -> timedelta:
    """How long to leave the plan alone: until its wait is over, and at most half a minute."""
    # whoever waits though it is settled waits for task queues that have yet to hear of it
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
