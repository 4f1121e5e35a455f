"""Rolls out one worker: read, plan, make the one wanted change, and read again."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from twgen.clients.kubernetes import Conflict
from twgen.errors import OutOfTime, TwgenError
from twgen.executing.ports import Servers, View
from twgen.executing.temporal import TemporalWriter
from twgen.model.operator import Caller
from twgen.model.plan import GateStart, Plan, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import RolloutInCluster
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import WorkerWorld, World
from twgen.planning.interventions import Intervention, is_done, refuse_other_traffic
from twgen.planning.ownership import acting_identity
from twgen.planning.plan import make_plan, worker_world
from twgen.planning.rollout import (
    FAILED_LOOK,
    Claim,
    Write,
    WriteMarks,
    is_made,
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


class Rollout:
    """The rollout of one worker that a person or CI runs; that of an intent overrides what differs."""

    is_unattended = False
    """No person watches it: it waits for problems that others can fix, including unreachable servers."""
    cause: Mapping[str, str] = {}
    """The origin of the rollout, recorded with every change; an empty text: not known."""

    def __init__(self, servers: Servers, caller: Caller, view: View) -> None:
        self.servers, self.caller, self.view = servers, caller, view
        self.spec = servers.spec
        self._unrecorded: tuple[RoutingPlan, str, partial[Mapping[str, Any]]] | None = None
        """The last change of traffic, its identity and its mark, until it is known and recorded."""
        self._said: RoutingPlan | None = None
        """The last change of traffic that was reported as made."""

    async def look(self) -> World:
        """Read the worker, and whether the rollout may continue."""
        return await self.servers.read()

    async def glance(self) -> WorkerDeployment | None:
        """Read the traffic by few calls; None: the rollout may not continue."""
        return await self.servers.glance()

    async def show(self, plan: Plan, world: World) -> None:
        """Show what was read and its plan; raises no TwgenError."""
        self.view.show(plan, world, self.caller)

    async def fail(self, failure: str, reason: RoutingReason) -> None:  # noqa: ARG002 - for the cluster
        """Report a failure, each time; raises no TwgenError."""
        self.view.fail(self.spec, failure)

    async def is_asked(self) -> bool:
        """A person requests something of it; one cheap call, which raises no TwgenError."""
        return False

    async def answer(self, target: Target) -> bool:  # noqa: ARG002 - nobody can request anything
        """Answer the request that there is, by what was just read; True: look again."""
        return False

    async def adjust(self, plan: WorkerPlan, state: RolloutInCluster) -> bool:  # noqa: ARG002 - no cluster
        """Make the changes in the cluster; False: another read is due soon."""
        return True

    def target_of(self, world: World) -> Target:
        """Its target in what was just read."""
        worker = worker_world(self.spec, world)
        identity = acting_identity(self.spec, worker, self.caller)
        return Target(self.spec, worker, self.servers.now(), identity)

    async def run(self, *, once: bool) -> WorkerPlan:
        """Roll out until the worker is Settled or Blocked; the last plan.

        `once` changes once; becoming the manager and marking a version do not count as the change. Then, and
        at the first read, a failure is raised; a later one is reported, and another read follows.
        """
        is_first, failure = True, ""
        while True:
            write: Write | None = None
            try:
                world = await self.look()
                worker = worker_world(self.spec, world)
                if await self._recorded_late(worker.temporal):
                    continue
                now = self.servers.now()
                planned = make_plan([self.spec], world, now, self.caller)
                await self.show(planned, world)
                [plan] = planned.workers
                is_first = False
                if await self._answered(plan, world):
                    await self.servers.sleep(_AFTER_A_CHANGE)
                    continue
                is_adjusted = takes_back(plan) or await self.adjust(plan, worker.rollout)
                temporal = worker.temporal
                due = next_write(plan) if temporal else None
                # showing, answering and adjusting may have taken minutes
                if temporal and due and not await self._is_unchanged(temporal):
                    await self.servers.sleep(_AFTER_A_CHANGE)
                    continue
                if temporal and (write := due):
                    await self._make(write, plan.identity, temporal.conflict_token)
                failure = ""
                if not isinstance(write, Claim | WriteMarks) and (
                    once or (is_adjusted and is_over(plan, worker, now, is_unattended=self.is_unattended))
                ):
                    return plan
                if write or not is_adjusted:
                    await self.servers.sleep(_AFTER_A_CHANGE)
                else:
                    await self._wait(plan, worker, now)
            except TwgenError as error:
                if once or (is_first and not self.is_unattended):
                    raise
                # it is also unknown whether a change that timed out was made: the next read shows it
                if str(error) != failure:
                    failure = str(error)
                    self.view.say(f"{failure}; trying again")
                is_claim = isinstance(write, Claim)
                reason = RoutingReason.CLAIM_FAILED if is_claim else RoutingReason.LOOK_FAILED
                await self.fail(failure, reason)
                await self.servers.sleep(FAILED_LOOK)

    async def _answered(self, plan: WorkerPlan, world: World) -> bool:
        """Answer the request that there is; True: look again.

        A failure stops the rollout, since it may be an abort that failed, but nothing that takes a share
        back.
        """
        try:
            return await self.answer(self.target_of(world))
        except Conflict:
            # another request came meanwhile, possibly an abort
            return not takes_back(plan)
        except TwgenError as error:
            if not takes_back(plan):
                raise
            self.view.say(f"a request could not be answered: {error}")
            return False

    async def _is_unchanged(self, temporal: WorkerDeployment) -> bool:
        """The traffic is as it was read, and the rollout may still change it."""
        seen = await self.glance()
        return seen is not None and seen.conflict_token == temporal.conflict_token

    async def _make(self, write: Write, identity: str, conflict_token: str) -> None:
        """Make a change and report it; a change of traffic is recorded with its version."""
        name, writer, say = self.spec.worker_deployment, self.servers.temporal(identity), self.view.say
        match write:
            case GateStart():
                await writer.start_gate(write, await self.servers.gate_input() if write.has_input else None)
                say(f"{name}: started the gate {write.workflow_id} on task queue {write.task_queue}")
            case Claim():
                # the token in the answer is not used for a change of traffic: if another process with the
                # same identity has made the claim, the server returns the newest token, after changes not
                # seen here
                try:
                    await writer.set_manager(write.manager, conflict_token)
                except TwgenError as error:
                    raise type(error)(f"{write.manager} could not become the manager: {error}") from error
                say(f"{name}: its manager is now {write.manager}")
            case WriteMarks():
                await writer.mark(write.build_id, write.marks)
                say(f"{name}: marked {write.build_id} ({write.because})")
            case RoutingPlan():
                moved = partial(moved_mark, write, self.spec, identity, self.servers.now(), self.cause)
                self._unrecorded = write, identity, moved
                await writer.route(write, conflict_token)
                self._say_made(write)
                if await self._record(writer, write.build_id, moved, {}):
                    self._unrecorded = None

    def _say_made(self, change: RoutingPlan) -> None:
        self._said, says = change, "the ramp has ended"
        if change.action is RoutingAction.SET_CURRENT:
            says = f"{change.build_id or 'no version'} is current now"
        elif change.action is RoutingAction.SET_RAMP:
            share = plain_percentage(change.percentage or 0)
            says = f"{share}% of new workflows go to {change.build_id} now"
        self.view.say(f"{self.spec.worker_deployment}: {says} ({change.because})")

    async def _recorded_late(self, temporal: WorkerDeployment | None) -> bool:
        """Report and record a change whose answer or record was lost, if it was made; True: look again."""
        unrecorded, self._unrecorded = self._unrecorded, None
        if not unrecorded or not temporal:
            return False
        change, identity, moved = unrecorded
        if not is_made(change, temporal.routing) or temporal.last_modifier_identity != identity:
            return False
        if self._said is not change:
            self._say_made(change)
        await self._record(self.servers.temporal(identity), change.build_id, moved, {})
        return True

    async def _record(
        self,
        writer: TemporalWriter,
        build_id: str | None,
        moved: Callable[[WorkerDeployment], Mapping[str, Any]],
        also: Mapping[str, Any],
    ) -> bool:
        """Write the mark about a change, by the traffic after it, and others with it; False: it failed.

        A failure does not undo the change.
        """
        if not build_id:
            return True
        failure = "its traffic or its intent has changed since"
        # without the record the gates run again; to write it a second time changes nothing
        for is_last in (False, True):
            try:
                after = await self.glance()
                if after and (mark := moved(after)):
                    await writer.mark(build_id, {**mark, **also})
                    return True
            except TwgenError as error:
                failure = str(error)
            if not is_last:
                # for a moment after a change the oldest server does not know the worker
                await self.servers.sleep(_AFTER_A_CHANGE)
        self.view.say(f"could not record what moved {build_id}: {failure}")
        return False

    async def _wait(self, plan: WorkerPlan, world: WorkerWorld, now: datetime) -> None:
        """Sleep until the plan can change; while only time has to pass, read only the token."""
        until = only_time_passes_until(plan, now)
        if not until or not world.temporal:
            await self._sleep(until_next_look(plan, now))
            return
        rest = until - now
        while rest > timedelta():
            part = until_next_look(plan, until - rest)
            if await self._sleep(part):
                break
            # the clock may be set back in the meantime
            rest = min(rest - part, until - self.servers.now())
            if rest > timedelta() and not await self._is_unchanged(world.temporal):
                break

    async def _sleep(self, length: timedelta) -> bool:
        """Sleep for this long, or until a request comes; return whether a request ended the sleep."""
        ends, rest = self.servers.now() + length, length
        while rest > timedelta():
            # a person who requests something waits for at most 5 seconds until it is taken
            part = min(rest, timedelta(seconds=4)) if self.is_unattended else rest
            await self.servers.sleep(part)
            if await self.is_asked():
                return True
            # the clock may be set back in the meantime
            rest = min(rest - part, ends - self.servers.now())
        return False

    async def intervene(self, target: Target, intervention: Intervention) -> None:
        """Announce and make the changes that a person's command means for this target."""
        self.view.say(f"{self.spec.worker_deployment}: will {intervention.will}")
        change, writer, done = intervention.change, self.servers.temporal(target.identity), list[str]()
        try:
            for workflow_id in intervention.ends:
                await writer.end_gate(workflow_id)
                done.append(f"{workflow_id} was terminated")
            if intervention.first_marks:
                await writer.mark(target.build_id, intervention.first_marks)
                done.append(f"{target.build_id} was marked ({', '.join(intervention.first_marks)})")
            if change and change.claim_manager:
                await writer.set_manager(target.identity, target.temporal.conflict_token)
                done.append(f"{target.identity} became the manager")
                # as in a rollout: the token in the answer of a claim is not used
                decided_on, target = target, self.target_of(await self.look())
                refuse_other_traffic(decided_on, target)
            if change:
                if await self.glance() is None:
                    why = "it is gone, or its intent changed, while this was carried out"
                    raise OutOfTime(f"{self.spec.worker_deployment}: {why}")
                await writer.route(change, target.temporal.conflict_token)
        except TwgenError as error:
            was_done = False
            if isinstance(error, OutOfTime):
                # it may have been done, and is not repeated
                with suppress(TwgenError):
                    was_done = is_done(self.target_of(await self.look()), intervention)
            if not was_done:
                before = " and ".join(done)
                raise type(error)("; before that, ".join(filter(None, (str(error), before)))) from error
        if change:
            moved = partial(moved_mark, change, self.spec, target.identity, target.now, {})
            await self._record(writer, change.build_id, moved, intervention.last_marks)
