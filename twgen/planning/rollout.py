"""The steps of a rollout: its next write, its end, the time of its next check, and its status."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.reasons import Until
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.temporal import Routing, Version, VersionStatus, WorkerDeployment
from twgen.model.times import format_time
from twgen.model.values import dataclass
from twgen.model.world import WorkerWorld
from twgen.planning.routing.gates import gates_before
from twgen.planning.routing.table import is_updating
from twgen.planning.sentences import rounded_percentage, untimed
from twgen.planning.version_status import ALL_TRAFFIC, stay_began
from twgen.versioning.names import Mark, MarkKey, write_mark

FAILED_LOOK = timedelta(seconds=5)
"""The time between a failed check and the next check."""

_SHORTEST = timedelta(seconds=1)
_LONGEST = timedelta(seconds=30)
LONGEST_BLIND = timedelta(minutes=5)
"""The longest time without a full check during a pause, because the conflict token does not show every
change."""
_UNTIL_READY = timedelta(seconds=10)
_OVERDUE = timedelta(minutes=5)
"""A running rollout needs less time than this to check, make a change and write its status."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The rollout claims a worker and becomes its manager."""

    manager: str


@dataclass(frozen=True, slots=True)
class WriteMarks:
    """The rollout writes a decision into a version's metadata. The next check acts on the decision."""

    build_id: str
    marks: Mapping[str, Any]
    because: str


Write = GateStart | Claim | WriteMarks | RoutingPlan
"""One call that changes Temporal. Everything is read again after the call."""


def next_write(plan: WorkerPlan) -> Write | None:
    """The next change of a rollout, or None if it waits or has nothing left to do.

    A gate starts before the worker is claimed, so that the manager stays the same if the gate fails. A change
    that takes back a share does not wait for a gate, because the gate might be unable to start.
    """
    if plan.gates and not takes_back(plan):
        return plan.gates[0]
    if plan.routing.claim_manager:
        return Claim(plan.identity)
    if plan.routing.marks:
        return WriteMarks(plan.spec.build_id, plan.routing.marks, plan.routing.because)
    return plan.routing if plan.routing.action is not RoutingAction.NONE else None


def takes_back(plan: WorkerPlan) -> bool:
    """Whether a version loses its share or gets no further traffic. Such a change is never delayed."""
    routing = plan.routing
    is_back = routing.action is RoutingAction.CLEAR_RAMP or routing.reason is Reason.ROLLBACK
    return is_back or bool(routing.marks)


def is_made(change: RoutingPlan, routing: Routing) -> bool:
    """Whether the routing already has the result of the change."""
    current, ramp = routing.current, routing.ramping
    match change.action:
        case RoutingAction.SET_CURRENT:
            return (current.build_id if current else "") == change.build_id
        case RoutingAction.SET_RAMP:
            live = (ramp.build_id, rounded_percentage(ramp.percentage)) if ramp else None
            return live == (change.build_id, change.percentage)
    return ramp is None


def moved_mark(  # noqa: PLR0913, PLR0917 - each is an entry of the mark
    change: RoutingPlan,
    spec: WorkerSpec,
    by: str,
    at: datetime,
    cause: Mapping[str, str],
    after: WorkerDeployment,
) -> Mapping[str, Any]:
    """The metadata about a change of a version's share: who made it, why, the passed gates and the period.

    `after` is the worker as read after the change. If `after` shows other traffic, the version's period in
    the routing is unknown, and there is no metadata. Empty texts in `cause` are left out.
    """
    if not is_made(change, after.routing):
        return {}
    build_id = change.build_id or ""
    listed = (version for version in after.versions if version.build_id == build_id)
    stay = stay_began(next(listed, Version(build_id, VersionStatus.UNSPECIFIED)), after)
    share = ALL_TRAFFIC if change.percentage is None else change.percentage
    gates = [gate.name for gate in gates_before(spec, share)]
    known_causes = {name: text for name, text in cause.items() if text}
    details = {**known_causes, "percentage": share, **({"gates": gates} if gates else {})}
    mark = Mark(MarkKey.MOVED_BY, by, at, stay=stay, details=details)
    return {mark.key.value: write_mark(mark)}


def needs_a_rollout(phase: Phase, reason: str) -> bool:
    """Whether a rollout has work: it is not settled, and it has not stopped until the intent changes."""
    # an unknown reason from another release does not count as a stop
    final = {known for known in Reason if known.until is Until.ANOTHER_INTENT}
    return phase is not Phase.SETTLED and reason not in final


def left_alone(status: RolloutStatus, why: str, since: datetime) -> RolloutStatus:
    """The status of a rollout that no Job continues. The message also describes the last state."""
    last_message = untimed(status.message)
    before = "" if last_message in why else f"; before, it was {status.phase}: {last_message}"
    message = f"its traffic is not moving: {why}{before}"
    return status.restated(Phase.BLOCKED, Reason.ROLLOUT_ENDED, message, since)


def since_when(before: RolloutStatus, now: RolloutStatus) -> datetime:
    """When the phase or the reason last changed. Retrying an ended rollout does not count as a change."""
    is_same = (before.phase, before.reason) == (now.phase, now.reason)
    is_retry = before.reason == Reason.ROLLOUT_ENDED and now.phase is Phase.WAITING
    return before.since if before.intent == now.intent and (is_same or is_retry) else now.since


def brought_up_to_date(before: RolloutStatus, status: RolloutStatus) -> RolloutStatus:
    """The last status that a rollout wrote, updated with the worker's present state."""
    newer = replace(before, current=status.current, percentage=status.percentage, report=status.report)
    # while no rollout is running, the planned next change will not be made
    if before.reason in {Reason.ROLLOUT_ENDED, Reason.ROLLOUT_NOT_BEGUN, Reason.HOOK_SKIPPED}:
        return newer.restated(before.phase, before.reason, before.message, before.since)
    return newer


def not_begun(
    previous: RolloutStatus | None, worker: str, target: str, why: str, since: datetime
) -> RolloutStatus:
    """The status of a worker if no rollout has read its newest intent yet. `previous` is its last status."""
    before = f"; before, it was {previous.phase}: {untimed(previous.message)}" if previous else ""
    message = f"the rollout of {target} has not begun: {why}{before}"
    reason = Reason.ROLLOUT_NOT_BEGUN
    if not previous:
        return RolloutStatus(worker, Phase.WAITING, reason, message, target, None, None, since, None)
    now = previous.restated(Phase.WAITING, reason, message, since).with_details(target=target)
    percentage = previous.percentage if previous.target == target else None
    return replace(now, target=target, percentage=percentage)


def hook_skipped(status: RolloutStatus, sync: str, *, tick_takes_over: bool) -> RolloutStatus:
    """The status of a rollout whose hook Argo CD skipped.

    `sync` is the command that runs hooks. `tick_takes_over` says whether tick will take over the rollout.
    """
    why = "Argo CD applied this commit without its hooks"
    remedy = f"`twgen tick` takes over within minutes, or run {sync}" if tick_takes_over else f"run {sync}"
    message = f"the rollout of {status.target} has not begun: {why}; {remedy}"
    phase = Phase.WAITING if tick_takes_over else Phase.BLOCKED
    return status.restated(phase, Reason.HOOK_SKIPPED, message, status.since)


def as_expected(
    statuses: Sequence[RolloutStatus], specs: Sequence[WorkerSpec], since: datetime
) -> list[RolloutStatus]:
    """The status of each worker in these specs.

    Right after a commit, the status in the cluster still describes the previous target. The rollout of the
    new target then counts as not begun.
    """
    by_worker, expected = {status.worker: status for status in statuses}, []
    for spec in specs:
        status = by_worker.get(spec.worker_deployment)
        # intent hashes are not compared: they depend on the OperatorConfig, which CI lacks. A commit that
        # keeps the build ID does not move traffic
        if not status or status.target != spec.build_id:
            why = "these specs have not been applied yet"
            status = not_begun(status, spec.worker_deployment, spec.build_id, why, since)
        expected.append(status)
    return expected


def overdue(status: RolloutStatus, now: datetime) -> RolloutStatus:
    """The status that a rollout wrote, marked as failing if its next change has been due for too long.

    A running rollout would have written why it does not make a due change, so the rollout may have stopped.
    """
    due = status.details.waits_until if status.details else None
    if not due or now - due <= _OVERDUE or status.failing:
        return status
    at = format_time(due)
    doubt = f"its next change was due at {at}: check that its Job (or `twgen tick`) is still running"
    return replace(status, failing=doubt)


_WITHOUT_TIMES = attrgetter(
    "build_id", "action", "workflow_types", "is_begun", "workflows", "repeats", "held_by"
)
"""Reads an action on workflows without its times, which change in every check if the action is overdue."""


def is_news(before: RolloutStatus, after: RolloutStatus) -> bool:
    """Whether two statuses differ in more than the times in their sentences."""
    return _without_times(before) != _without_times(after)


def _without_times(status: RolloutStatus) -> tuple[object, ...]:
    worker = status.details
    # a message with a due time counts down to that time, and the text about a version contains its age
    message = "" if worker and worker.waits_until else status.message
    content = worker and replace(
        worker,
        because="",
        analysis=tuple(replace(judged, value=None, bound=None, because="") for judged in worker.analysis),
        draining=(),
        versions=tuple(
            # the messages of attached objects may contain counters
            replace(version, because="", attached=tuple(replace(item, says="") for item in version.attached))
            for version in worker.versions
        ),
    )
    actions = [*map(_WITHOUT_TIMES, worker.draining)] if worker else []
    head = (status.phase, status.reason, message, status.target, status.current, status.percentage)
    return head, status.intent, content, actions


def unclaimed(status: RolloutStatus, since: datetime) -> RolloutStatus:
    """The status of a rollout whose claim failed although the worker has no other manager."""
    return status.restated(Phase.WAITING, Reason.CLAIM_FAILED, status.message, since)


def since_its_hook(before: RolloutStatus, now: RolloutStatus) -> RolloutStatus | None:
    """The status of a rollout whose hook has ended. None if the worker has not changed since the end."""
    if not needs_a_rollout(now.phase, now.reason):
        return now if before.reason != now.reason else None
    if before.phase is not Phase.SETTLED or now.percentage == ALL_TRAFFIC:
        return None  # the target has all traffic: missing pods need no rollout
    moved = brought_up_to_date(before, now)
    return left_alone(moved, "its hook has ended, and only a sync restarts it", now.since)


def is_over(plan: WorkerPlan, world: WorkerWorld, now: datetime, *, is_unattended: bool = False) -> bool:
    """Whether nothing is left to do, or a person must act.

    An unattended rollout keeps running while it is Blocked, so that it continues after the person has acted.
    It ends only if the intent must change before it can continue.
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
    """The time until the next check: when the plan's wait ends, but at most half a minute."""
    # a settled rollout still waits until the change has reached every task queue
    becomes_ready = plan.routing.reason.until is Until.READINESS or plan.routing.phase is Phase.SETTLED
    longest = _UNTIL_READY if becomes_ready else _LONGEST
    if plan.routing.due_at is None:
        return longest
    # the clock counts whole seconds
    return min(longest, max(plan.routing.due_at - now, timedelta()) + _SHORTEST)


def only_time_passes_until(plan: WorkerPlan, now: datetime) -> datetime | None:
    """The time until which only a change of the conflict token can make a change due.

    None if a change may be due now. During the pause of a step, pods and pollers can come and go and people
    can write metadata, but all this can only prevent changes. twgen still checks every few minutes to keep
    the status up to date.
    """
    due = plan.routing.due_at
    # a pause that ends in the current second is not over yet, but there is no time left to sleep
    if plan.routing.reason.until is not Until.TIME or not due or due <= now or plan.gates:
        return None
    return min(due, now + LONGEST_BLIND)
