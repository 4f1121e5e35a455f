"""Rolls out one worker: reads the state, plans, makes one change, and reads the state again."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from twgen.clients.kubernetes import Conflict
from twgen.errors import OutOfTime, TwgenError
from twgen.executing.ports import RolloutView, ServersOfWorker
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


class RolloutLoop:
    """The rollout loop of one worker, for a person or CI. `IntentRollout` is the loop in a cluster."""

    is_unattended = False
    """Whether the loop runs unattended. An unattended loop does not end because of a problem, such as an
    unreachable server, but waits until the problem is fixed."""
    cause: Mapping[str, str] = {}
    """The rollout's intent and application, to record with every routing change. Empty outside a cluster."""

    def __init__(self, servers: ServersOfWorker, caller: Caller, view: RolloutView) -> None:
        self.servers, self.caller, self.view = servers, caller, view
        self.spec = servers.spec
        self._unrecorded: tuple[RoutingPlan, str, partial[Mapping[str, Any]]] | None = None
        """The last routing change, the identity that made it, and the metadata that records it. This value is
        kept until the change is confirmed and recorded."""
        self._said: RoutingPlan | None = None
        """The last routing change that was reported."""

    async def read(self) -> World:
        """Read the worker's state, including whether the rollout is allowed to continue."""
        return await self.servers.read()

    async def read_routing(self) -> WorkerDeployment | None:
        """Read only the routing, with few calls. Returns None if the rollout must not continue."""
        return await self.servers.read_routing()

    async def show(self, plan: Plan, world: World) -> None:
        """Show the state that was read and the plan for it. Never raises a TwgenError."""
        self.view.show(plan, world, self.caller)

    async def fail(self, failure: str, reason: RoutingReason) -> None:  # noqa: ARG002 - used in a cluster
        """Report a failure, even if it was reported before. Never raises a TwgenError."""
        self.view.fail(self.spec, failure)

    async def is_asked(self) -> bool:
        """Check whether a person has sent a request, with one cheap call. Never raises a TwgenError."""
        return False

    async def answer(self, target: Target) -> bool:  # noqa: ARG002 - used in a cluster
        """Answer a pending request, based on the last read. Returns whether the state must be read again."""
        return False

    async def adjust(self, plan: WorkerPlan, state: RolloutInCluster) -> bool:  # noqa: ARG002 - used in a cluster
        """Make the planned changes in the cluster. Returns False if another read is due soon."""
        return True

    def target_of(self, world: World) -> Target:
        """The target version, based on the state that was read."""
        worker = worker_world(self.spec, world)
        identity = acting_identity(self.spec, worker, self.caller)
        return Target(self.spec, worker, self.servers.now(), identity)

    async def run(self, *, once: bool) -> WorkerPlan:
        """Roll out until the worker is Settled or Blocked. Returns the last plan.

        With `once`, stop after one change. Claiming the worker and writing metadata do not count as changes.
        A failure is raised if `once` is set. In an attended loop, a failure before the first plan is raised
        too. Any other failure is reported, and the loop reads the state again.
        """
        is_first, failure = True, ""
        while True:
            write: Write | None = None
            try:
                world = await self.read()
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
                # the routing may have changed: answering and the changes in the cluster can take minutes
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
                # if a change timed out, the next read shows whether it was made
                if str(error) != failure:
                    failure = str(error)
                    self.view.say(f"{failure}; trying again")
                is_claim = isinstance(write, Claim)
                reason = RoutingReason.CLAIM_FAILED if is_claim else RoutingReason.LOOK_FAILED
                await self.fail(failure, reason)
                await self.servers.sleep(FAILED_LOOK)

    async def _answered(self, plan: WorkerPlan, world: World) -> bool:
        """Answer a pending request. Returns whether the state must be read again.

        If answering fails, no routing change is made, because the request may be an abort. However, a change
        that takes traffic back from a version is still made.
        """
        try:
            return await self.answer(self.target_of(world))
        except Conflict:
            # another request has arrived, which may be an abort
            return not takes_back(plan)
        except TwgenError as error:
            if not takes_back(plan):
                raise
            self.view.say(f"a request could not be answered: {error}")
            return False

    async def _is_unchanged(self, temporal: WorkerDeployment) -> bool:
        """Whether the routing is unchanged since the last read, and the rollout is allowed to continue."""
        seen = await self.read_routing()
        return seen is not None and seen.conflict_token == temporal.conflict_token

    async def _make(self, write: Write, identity: str, conflict_token: str) -> None:
        """Make a change and report it. A routing change is also recorded in the version's metadata."""
        name, writer, say = self.spec.worker_deployment, self.servers.temporal(identity), self.view.say
        match write:
            case GateStart():
                await writer.start_gate(write, await self.servers.gate_input() if write.has_input else None)
                say(f"{name}: started the gate {write.workflow_id} on task queue {write.task_queue}")
            case Claim():
                # the conflict token in the response must not be used to change the routing. If another
                # process with the same identity has already claimed the worker, the server returns the
                # newest token, and this process might not have read all changes up to that token
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
        """Report and record a routing change that was made although its response or its record was lost.

        Returns whether the state must be read again.
        """
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
        """Record a routing change in the version's metadata, together with the entries in `also`.

        Returns False if the record could not be written. The routing change itself is not undone.
        """
        if not build_id:
            return True
        failure = "its routing or its intent has changed since then"
        # retried, because without the record, the gates would run again. Writing the record twice is harmless
        for is_last in (False, True):
            try:
                after = await self.read_routing()
                if after and (mark := moved(after)):
                    await writer.mark(build_id, {**mark, **also})
                    return True
            except TwgenError as error:
                failure = str(error)
            if not is_last:
                # the oldest supported server briefly does not find the worker after a change
                await self.servers.sleep(_AFTER_A_CHANGE)
        self.view.say(f"could not record the routing change for {build_id}: {failure}")
        return False

    async def _wait(self, plan: WorkerPlan, world: WorkerWorld, now: datetime) -> None:
        """Sleep until the plan can change. While only time must pass, check only the conflict token."""
        until = only_time_passes_until(plan, now)
        if not until or not world.temporal:
            await self._sleep(until_next_look(plan, now))
            return
        rest = until - now
        while rest > timedelta():
            part = until_next_look(plan, until - rest)
            if await self._sleep(part):
                break
            # the clock may have been set back
            rest = min(rest - part, until - self.servers.now())
            if rest > timedelta() and not await self._is_unchanged(world.temporal):
                break

    async def _sleep(self, length: timedelta) -> bool:
        """Sleep for this long, or until a request arrives. Returns whether a request ended the sleep."""
        ends, rest = self.servers.now() + length, length
        while rest > timedelta():
            # short enough to notice a request within 5 seconds
            part = min(rest, timedelta(seconds=4)) if self.is_unattended else rest
            await self.servers.sleep(part)
            if await self.is_asked():
                return True
            # the clock may have been set back
            rest = min(rest - part, ends - self.servers.now())
        return False

    async def intervene(self, target: Target, intervention: Intervention) -> None:
        """Announce and make the changes that a person's command requests."""
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
                # the state is read again, because the conflict token in the response to a claim must not be
                # used
                decided_on, target = target, self.target_of(await self.read())
                refuse_other_traffic(decided_on, target)
            if change:
                if await self.read_routing() is None:
                    why = "while this was carried out, the worker was deleted or its intent changed"
                    raise OutOfTime(f"{self.spec.worker_deployment}: {why}")
                await writer.route(change, target.temporal.conflict_token)
        except TwgenError as error:
            was_done = False
            if isinstance(error, OutOfTime):
                # the change may have been made although the call timed out
                with suppress(TwgenError):
                    was_done = is_done(self.target_of(await self.read()), intervention)
            if not was_done:
                before = " and ".join(done)
                raise type(error)("; before that, ".join(filter(None, (str(error), before)))) from error
        if change:
            moved = partial(moved_mark, change, self.spec, target.identity, target.now, {})
            await self._record(writer, change.build_id, moved, intervention.last_marks)
