"""Rolling out one worker: look, plan, make the one change that is wanted, and look again."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, Protocol

from twgen.errors import OutOfTime, TwgenError
from twgen.model.operator import Caller
from twgen.model.plan import GateStart, Plan, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons.routing import RoutingReason
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.values import dataclass
from twgen.model.world import WorkerWorld, World
from twgen.planning.interventions import Intervention, is_done, refuse_other_traffic
from twgen.planning.plan import make_plan, worker_world
from twgen.planning.rollout import (
    FAILED_LOOK,
    Claim,
    Mark,
    Write,
    is_over,
    moved_mark,
    next_write,
    only_time_passes_until,
    takes_back,
    until_next_look,
)
from twgen.planning.routing.target import Target
from twgen.planning.sentences import plain_percentage

_AFTER_A_CHANGE = timedelta(seconds=1)


class Writer(Protocol):
    """What may be changed; each method is one call that is made once."""

    async def set_manager(self, manager: str, conflict_token: str) -> None:
        """Make somebody the manager of the worker, or nobody; what follows needs a look of its own."""

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        """Make a plan's change of traffic."""

    async def start_gate(self, gate: GateStart, gate_input: bytes | None) -> None:
        """Start a gate workflow on the target, with the input of the spec's gate; None: without."""

    async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        """Write entries of a version's metadata, as JSON."""


@dataclass(frozen=True, slots=True)
class WorkerRollout:
    """One worker's rollout, and its ways to the world."""

    spec: WorkerSpec
    caller: Caller
    clock: Callable[[], datetime]
    sleep: Callable[[timedelta], Awaitable[None]]
    read: Callable[[], Awaitable[World]]
    """What is known of the worker right now; raises TwgenError."""
    conflict_token: Callable[[], Awaitable[str]]
    """The worker's conflict token, by as few calls as can be; it changes with the traffic and its manager."""
    writer: Callable[[str], Writer]
    """The changes that a manager identity may make."""
    gate_input: Callable[[], Awaitable[bytes | None]]
    """The input of the gate, read when it starts; None: it has none."""
    show: Callable[[Plan, World], Awaitable[None]]
    """Gets every look, and the plan that is acted on; raises nothing that is expected."""
    say: Callable[[str], None]
    """Gets every change that was made, and every failure."""
    adjust: Callable[[WorkerPlan, RolloutInCluster], Awaitable[bool]] | None = None
    """Changes what is wanted in the cluster beside the traffic; not all is done: it is looked again soon."""
    tell_failure: Callable[[str, RoutingReason], Awaitable[None]] | None = None
    """Gets every failure too, each time, and its reason; raises nothing that is expected."""
    cause: Mapping[str, str] = field(default_factory=dict)
    """For the record of every change: what it is carried out for; an empty text: not known."""
    is_unattended: bool = False
    """Nobody watches it: it outlasts what somebody else can mend, servers that are away included."""


async def roll_out(rollout: WorkerRollout, *, once: bool) -> WorkerPlan:
    """Roll out until nothing is left to do or a person is needed; the last plan.

    `once` looks, and changes, once; to become the manager, or to mark a version, is not yet a change. A
    failure of the only look, or of the first, is raised; a later one is said, and looked at again.
    """
    is_first, failure = True, ""
    while True:
        write: Write | None = None
        try:
            world = await rollout.read()
            now = rollout.clock()
            planned = make_plan([rollout.spec], world, now, rollout.caller)
            await rollout.show(planned, world)
            [plan] = planned.workers
            found, is_first = worker_world(rollout.spec, world), False
            is_done = takes_back(plan) or not rollout.adjust or await rollout.adjust(plan, found.rollout)
            temporal = found.temporal
            write = next_write(plan) if temporal else None
            if temporal and write:
                await _make(rollout, write, plan.identity, temporal.conflict_token)
            failure = ""
            if not isinstance(write, Claim | Mark) and (
                once or (is_done and is_over(plan, found, now, is_unattended=rollout.is_unattended))
            ):
                return plan
            if write or not is_done:
                await rollout.sleep(_AFTER_A_CHANGE)
            else:
                await _wait(rollout, plan, found, now)
        except TwgenError as error:
            if once or (is_first and not rollout.is_unattended):
                raise
            # it is also unknown whether a change that timed out was made: the next look shows it
            if str(error) != failure:
                failure = str(error)
                rollout.say(f"{failure}; trying again")
            if rollout.tell_failure:
                is_claim = isinstance(write, Claim)
                reason = RoutingReason.CLAIM_FAILED if is_claim else RoutingReason.LOOK_FAILED
                await rollout.tell_failure(failure, reason)
            await rollout.sleep(FAILED_LOOK)


async def _make(rollout: WorkerRollout, write: Write, identity: str, conflict_token: str) -> None:
    """Make a change and say it; a change of traffic is recorded with its version."""
    name, writer = rollout.spec.worker_deployment, rollout.writer(identity)
    match write:
        case GateStart():
            await writer.start_gate(write, await rollout.gate_input() if write.has_input else None)
            rollout.say(f"{name}: started the gate {write.workflow_id} on task queue {write.task_queue}")
        case Claim():
            # the token of that answer is not used for a change of traffic: if another process has claimed the
            # worker under the same name, the server returns the newest token, which may include changes
            # that were not read here
            try:
                await writer.set_manager(write.manager, conflict_token)
            except TwgenError as error:
                raise type(error)(f"{write.manager} could not become the manager: {error}") from error
            rollout.say(f"{name}: its manager is now {write.manager}")
        case Mark():
            await writer.mark(write.build_id, write.marks)
            rollout.say(f"{name}: marked {write.build_id} ({write.because})")
        case RoutingPlan():
            await writer.route(write, conflict_token)
            rollout.say(f"{name}: {_done(write)} ({write.because})")
            moved = moved_mark(write, rollout.spec, identity, rollout.clock(), rollout.cause)
            await _record(writer, write, moved, rollout.say)


async def _record(
    writer: Writer, change: RoutingPlan, moved: Mapping[str, Any], say: Callable[[str], None]
) -> None:
    """Write into a version's metadata what moved it; if that fails, the change remains."""
    if not change.build_id:
        return
    try:
        await writer.mark(change.build_id, moved)
    except TwgenError as error:
        say(f"could not record what moved {change.build_id}: {error}")


async def _wait(rollout: WorkerRollout, plan: WorkerPlan, world: WorkerWorld, now: datetime) -> None:
    """Sleep until the plan can be another one, asking only for the token while only time has to pass."""
    until = only_time_passes_until(plan, now)
    if not until or not world.temporal:
        return await rollout.sleep(until_next_look(plan, now))
    token = world.temporal.conflict_token
    while (now := rollout.clock()) < until:
        await rollout.sleep(until_next_look(plan, now))
        if rollout.clock() < until and await rollout.conflict_token() != token:
            return None
    return None


async def intervene(
    look: Callable[[], Awaitable[Target]],
    decide: Callable[[Target], Intervention],
    writer: Callable[[str], Writer],
    say: Callable[[str], None],
) -> Intervention:
    """Say what a person's command does to the target, and do it; raises as deciding and writing do.

    The marks come first, so that no rollout undoes the change of traffic.
    """
    target = await look()
    intervention = decide(target)
    say(f"{target.spec.worker_deployment}: will {intervention.will}")
    writes = writer(target.identity)
    try:
        if intervention.marks:
            await writes.mark(target.build_id, intervention.marks)
        if change := intervention.change:
            if change.claim_manager:
                await writes.set_manager(target.identity, target.temporal.conflict_token)
                # as in a rollout: what a claim answers goes with no change of traffic
                decided_on, target = target, await look()
                refuse_other_traffic(decided_on, target)
            await writes.route(change, target.temporal.conflict_token)
            moved = moved_mark(change, target.spec, target.identity, target.now, {})
            await _record(writes, change, moved, say)
    except OutOfTime:
        # it may have been done all the same, and is not repeated
        if not is_done(await look(), intervention):
            raise
    return intervention


def _done(change: RoutingPlan) -> str:
    match change.action:
        case RoutingAction.SET_CURRENT:
            return f"{change.build_id or 'no version'} is current now"
        case RoutingAction.SET_RAMP:
            return f"{plain_percentage(change.percentage or 0)}% of new workflows go to {change.build_id} now"
    return "the ramp has ended"
