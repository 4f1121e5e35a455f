"""Rolls out one worker: read, plan, make the one wanted change, and read again."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from twgen.clients.kubernetes import Conflict
from twgen.errors import OutOfTime, TwgenError
from twgen.executing.temporal import TemporalWriter
from twgen.model.operator import Caller
from twgen.model.plan import GateStart, Plan, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons.routing import RoutingReason
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import WorkerDeployment
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
_BETWEEN_REQUESTS = timedelta(seconds=4)
"""A person who requests something waits for at most 5 seconds until it is taken."""
Glance = Callable[[], Awaitable[WorkerDeployment | None]]
"""Reads the traffic and the conflict token, which changes with it, by few calls; None: the rollout may not
continue."""


@dataclass(frozen=True, slots=True)
class WorkerRollout:
    """One worker's rollout, with its functions that read and write."""

    spec: WorkerSpec
    caller: Caller
    clock: Callable[[], datetime]
    sleep: Callable[[timedelta], Awaitable[None]]
    read: Callable[[], Awaitable[World]]
    """Reads the state of the worker; raises TwgenError."""
    glance: Glance
    writer: Callable[[str], TemporalWriter]
    """Makes changes as a manager identity."""
    gate_input: Callable[[], Awaitable[bytes | None]]
    """The input of the gate, read when it starts; None: it has none."""
    show: Callable[[Plan, World], Awaitable[None]]
    """Gets every state that was read, and its plan; raises no TwgenError."""
    say: Callable[[str], None]
    """Gets every change that was made, and every failure."""
    adjust: Callable[[WorkerPlan, RolloutInCluster], Awaitable[bool]] | None = None
    """Makes the changes in the cluster; False: another read is due soon."""
    report_failure: Callable[[str, RoutingReason], Awaitable[None]] | None = None
    """Gets every failure, each time, and its reason; raises no TwgenError."""
    is_asked: Callable[[], Awaitable[bool]] | None = None
    """Whether a person requests something of it; one cheap call, which raises no TwgenError."""
    answer: Callable[[World], Awaitable[bool]] | None = None
    """Answers such a request, by what was just read; True: look again."""
    cause: Mapping[str, str] = field(default_factory=dict)
    """The origin of the rollout, recorded with every change; an empty text: not known."""
    is_unattended: bool = False
    """No person watches it: it waits for problems that others can fix, including unreachable servers."""


async def roll_out(rollout: WorkerRollout, *, once: bool) -> WorkerPlan:
    """Roll out until nothing is left to do or a person is needed; the last plan.

    `once` changes once; becoming the manager and marking a version do not count as the change. A failure of
    the only read, or of the first, is raised; a later one is reported, and another read follows.
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
            worker, is_first = worker_world(rollout.spec, world), False
            if await _answered(rollout, plan, world):
                await rollout.sleep(_AFTER_A_CHANGE)
                continue
            is_done = takes_back(plan) or not rollout.adjust or await rollout.adjust(plan, worker.rollout)
            temporal = worker.temporal
            due = next_write(plan) if temporal else None
            # showing, answering and adjusting may have taken minutes
            if temporal and due and not await _still_stands(rollout, temporal):
                await rollout.sleep(_AFTER_A_CHANGE)
                continue
            if temporal and (write := due):
                await _make(rollout, write, plan.identity, temporal.conflict_token)
            failure = ""
            if not isinstance(write, Claim | Mark) and (
                once or (is_done and is_over(plan, worker, now, is_unattended=rollout.is_unattended))
            ):
                return plan
            if write or not is_done:
                await rollout.sleep(_AFTER_A_CHANGE)
            else:
                await _wait(rollout, plan, worker, now)
        except TwgenError as error:
            if once or (is_first and not rollout.is_unattended):
                raise
            # it is also unknown whether a change that timed out was made: the next read shows it
            await _report(rollout, str(error), failure, write)
            failure = str(error)
            await rollout.sleep(FAILED_LOOK)


async def _report(rollout: WorkerRollout, failure: str, before: str, write: Write | None) -> None:
    """Report a failure of a read or of that write; the log gets it only if it is another one than before."""
    if failure != before:
        rollout.say(f"{failure}; trying again")
    if rollout.report_failure:
        is_claim = isinstance(write, Claim)
        reason = RoutingReason.CLAIM_FAILED if is_claim else RoutingReason.LOOK_FAILED
        await rollout.report_failure(failure, reason)


async def _answered(rollout: WorkerRollout, plan: WorkerPlan, world: World) -> bool:
    """Answer the request that there is; True: look again.

    A failure stops the rollout, since it may be an abort that failed, but nothing that takes a share back.
    """
    try:
        return rollout.answer is not None and await rollout.answer(world)
    except Conflict:
        # another request came meanwhile, possibly an abort
        return not takes_back(plan)
    except TwgenError as error:
        if not takes_back(plan):
            raise
        rollout.say(f"a request could not be answered: {error}")
        return False


async def _still_stands(rollout: WorkerRollout, temporal: WorkerDeployment) -> bool:
    """Nothing that forbids the next write has changed since that was read."""
    seen = await rollout.glance()
    return seen is not None and seen.conflict_token == temporal.conflict_token


async def _make(rollout: WorkerRollout, write: Write, identity: str, conflict_token: str) -> None:
    """Make a change and report it; a change of traffic is recorded with its version."""
    name, writer = rollout.spec.worker_deployment, rollout.writer(identity)
    match write:
        case GateStart():
            await writer.start_gate(write, await rollout.gate_input() if write.has_input else None)
            rollout.say(f"{name}: started the gate {write.workflow_id} on task queue {write.task_queue}")
        case Claim():
            # the token in the answer is not used for a change of traffic: if another process with the same
            # identity has made the claim, the server returns the newest token, after changes not seen here
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
            rollout.say(f"{name}: {_change_sentence(write)} ({write.because})")
            moved = partial(moved_mark, write, rollout.spec, identity, rollout.clock(), rollout.cause)
            await _record(writer, write, rollout.glance, moved, rollout.say)


async def _record(
    writer: TemporalWriter,
    change: RoutingPlan,
    glance: Glance,
    marks: Callable[[WorkerDeployment], Mapping[str, Any]],
    say: Callable[[str], None],
) -> None:
    """Write the marks about a change, by the traffic after it; a failure does not undo the change."""
    if not change.build_id:
        return
    # without the record the gates run again; to write it a second time changes nothing
    for _ in range(2):
        failure = "its traffic or its intent has changed since"
        try:
            after = await glance()
            if after and (known := marks(after)):
                await writer.mark(change.build_id, known)
                return
        except TwgenError as error:
            failure = str(error)
    say(f"could not record what moved {change.build_id}: {failure}")


async def _wait(rollout: WorkerRollout, plan: WorkerPlan, world: WorkerWorld, now: datetime) -> None:
    """Sleep until the plan can change; while only time has to pass, read only the token."""
    until = only_time_passes_until(plan, now)
    if not until or not world.temporal:
        await _sleep(rollout, until_next_look(plan, now))
        return
    rest = until - now
    while rest > timedelta():
        part = until_next_look(plan, until - rest)
        if await _sleep(rollout, part):
            break
        # the clock may be set back in the meantime
        rest = min(rest - part, until - rollout.clock())
        if rest > timedelta() and not await _still_stands(rollout, world.temporal):
            break


async def _sleep(rollout: WorkerRollout, length: timedelta) -> bool:
    """Sleep for this long, or until a request comes; return whether a request ended the sleep."""
    if not rollout.is_asked:
        await rollout.sleep(length)
        return False
    ends, rest = rollout.clock() + length, length
    while rest > timedelta():
        part = min(rest, _BETWEEN_REQUESTS)
        await rollout.sleep(part)
        if await rollout.is_asked():
            return True
        # the clock may be set back in the meantime
        rest = min(rest - part, ends - rollout.clock())
    return False


async def intervene(
    read_target: Callable[[], Awaitable[Target]],
    decide: Callable[[Target], Intervention],
    writer: Callable[[str], TemporalWriter],
    glance: Glance,
    say: Callable[[str], None],
) -> Intervention:
    """Announce and make the changes of a person's command; raises as deciding and writing do.

    `glance` is as in a WorkerRollout.
    """
    target = await read_target()
    intervention = decide(target)
    say(f"{target.spec.worker_deployment}: will {intervention.will}")
    change, temporal_writer, done = intervention.change, writer(target.identity), list[str]()
    try:
        for workflow_id in intervention.ends:
            await temporal_writer.end_gate(workflow_id)
            done.append(f"{workflow_id} was terminated")
        if intervention.first_marks:
            await temporal_writer.mark(target.build_id, intervention.first_marks)
            done.append(f"{target.build_id} was marked ({', '.join(intervention.first_marks)})")
        if change and change.claim_manager:
            await temporal_writer.set_manager(target.identity, target.temporal.conflict_token)
            done.append(f"{target.identity} became the manager")
            # as in a rollout: the token in the answer of a claim is not used
            decided_on, target = target, await read_target()
            refuse_other_traffic(decided_on, target)
        if change and await glance() is None:
            raise OutOfTime(f"{target.spec.worker_deployment}: its intent changed while this was carried out")
        if change:
            await temporal_writer.route(change, target.temporal.conflict_token)
    except TwgenError as error:
        # it may have been done, and is not repeated
        if not isinstance(error, OutOfTime) or not is_done(await read_target(), intervention):
            before = " and ".join(done)
            raise type(error)("; before that, ".join(filter(None, (str(error), before)))) from error

    def marks(after: WorkerDeployment) -> Mapping[str, Any]:
        moved = moved_mark(change, target.spec, target.identity, target.now, {}, after) if change else {}
        return {**moved, **intervention.last_marks} if moved else {}

    if change:
        await _record(temporal_writer, change, glance, marks, say)
    return intervention


def _change_sentence(change: RoutingPlan) -> str:
    if change.action is RoutingAction.SET_CURRENT:
        return f"{change.build_id or 'no version'} is current now"
    if change.action is RoutingAction.SET_RAMP:
        return f"{plain_percentage(change.percentage or 0)}% of new workflows go to {change.build_id} now"
    return "the ramp has ended"
