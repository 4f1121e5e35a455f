"""A rollout that no person watches: it waits for others to fix problems, and reports to its cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.executing.adjustments import Adjustments
from twgen.executing.cluster import ClusterWriter
from twgen.executing.journal import Journal
from twgen.executing.requests import Requests
from twgen.executing.rollout import WorkerRollout, roll_out
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.policy import OwnerReferences
from twgen.model.reasons.routing import RoutingReason
from twgen.model.requests import Answer, AnswerState, PendingRequest
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.temporal import WorkerDeployment
from twgen.model.values import dataclass
from twgen.model.world import World
from twgen.planning.attached_status import AttachedRead, attached_to_read
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.planning.plan import worker_world
from twgen.planning.rollout import (
    FAILED_LOOK,
)
from twgen.planning.routing.target import Target
from twgen.planning.sentences import spoken
from twgen.planning.worker_status import make_status
from twgen.records.intent import Intent, UnusableIntent

_LAST_TRIES = 12
"""How often writing the end of a rollout is tried."""


class Access(NamedTuple):
    """The functions that read for one intent; each raises StateUnavailable or OutOfTime."""

    rollout: WorkerRollout
    """The rollout as at a terminal, with Temporal and a log."""
    state: Callable[[], Awaitable[RolloutInCluster]]
    """Reads whether it may continue, from its cluster."""
    attached: Callable[[], Awaitable[list[AttachedInCluster]]]
    """Reads the objects that twgen attached to the worker's versions."""
    pending: Callable[[], Awaitable[Sequence[PendingRequest]]]
    """Reads what people request of the rollout, in the order in which that is answered."""
    is_asked: Callable[[], Awaitable[bool]]
    """Whether there may be a request, or another intent; one cheap call, or none."""
    replay_again: Callable[[], Awaitable[str]]
    """Starts its replay again; what was done or is left to do."""


@dataclass(frozen=True, slots=True)
class Unattended:
    """The functions with which intents are carried out in their cluster."""

    name: str
    """Of the intent, for people."""
    read_intent: Callable[[str], Awaitable[Intent | None]]
    """Reads the intent of that hash (empty: any); None: it no longer exists. Also raises UnusableIntent."""
    read_status: Callable[[Intent], Awaitable[RolloutStatus | None]]
    """Reads the status that rollouts of the worker wrote; None: none yet."""
    access: Callable[[Intent], Access]
    """Raises UnusableIntent."""
    writer: Callable[[Intent], ClusterWriter]
    clock: Callable[[], datetime]
    sleep: Callable[[timedelta], Awaitable[None]]
    say: Callable[[str], None]
    """Gets every change that was made, and every failure."""


class _Limit(NamedTuple):
    """When a rollout is given up, on the event loop's clock (None: never), and how that is said."""

    ends: float | None
    text: str


class _Attached:
    """The attached objects in one read of a rollout, for the status and for its changes."""

    def __init__(self, objects: Callable[[], Awaitable[list[AttachedInCluster]]], spec: WorkerSpec) -> None:
        self._objects, self._spec = objects, spec
        self._known: list[AttachedInCluster] | None = None

    async def read(self, plan: Plan) -> Mapping[str, AttachedRead]:
        """Read them if there can be any; empty: they were not read."""
        self._known = None
        may_list = self._spec.policy.owner_references is OwnerReferences.RENDER
        if may_list and attached_to_read(worker.versions for worker in plan.workers):
            with suppress(StateUnavailable, OutOfTime):
                self._known = await self._objects()
        return {} if self._known is None else {self._spec.namespace: AttachedRead(tuple(self._known))}

    async def last_read(self) -> list[AttachedInCluster]:
        """The objects of the last `read`; raises if they were not read then and cannot be read now."""
        return await self._objects() if self._known is None else self._known


async def carry_out(unattended: Unattended, intent_hash: str, within: float | None) -> WorkerPlan | None:
    """Roll out the intent of that hash (empty: any), within this number of seconds (None: no limit).

    The last plan; None: the intent no longer exists. Raises as `roll_out` does, but waits for problems that
    others can fix, and writes the reason of its end into the cluster.
    """
    limit = _Limit(None, "")
    if within is not None:
        ends = asyncio.get_running_loop().time() + within
        limit = _Limit(ends, f"within {spoken(timedelta(seconds=within))}")
    journal = None
    plan: WorkerPlan | None = None
    try:
        while True:
            intent = await _intent(unattended, journal.intent.hash if journal else intent_hash, limit)
            if not intent or (journal and intent.uid == journal.intent.uid):
                return plan
            journal = Journal(unattended.writer(intent), intent, unattended.say)
            plan = await _roll_out(unattended, journal, limit)
            # an intent that was deleted and made again may be the same in all but its UID
            if plan.routing.reason is not RoutingReason.SUPERSEDED:
                return plan
    except UnusableIntent as error:
        await _refuse(unattended, error)
        raise
    except Exception as error:
        # nothing is written after SIGTERM: a reader of a status also reads its Jobs
        if journal and await _is_current(unattended, journal.intent):
            is_bug = not isinstance(error, TwgenError)
            why = f"a bug ended it ({type(error).__name__})" if is_bug else str(error)
            await journal.leave(why, unattended.clock())
        raise


async def _refuse(unattended: Unattended, error: UnusableIntent) -> None:
    """Report once that an intent cannot be carried out, and refuse the requests that wait for it."""
    intent, status = error.intent, None
    writer, why = unattended.writer(intent), str(error)
    with suppress(TwgenError):
        status = await unattended.read_status(intent)
    is_said = status and (status.reason, status.message) == (RoutingReason.INVALID_INTENT, why)
    if not is_said:
        await Journal(writer, intent, unattended.say).refuse(why, unattended.clock())
    said = ""
    for _ in range(_LAST_TRIES):
        try:
            status = await unattended.read_status(intent)
            answers = [
                (pending, Answer(request, AnswerState.REFUSED, why) if (request := pending.waiting) else None)
                for pending in (status.pending if status else ())
                if not pending.is_ignored
            ]
            if answers:
                await writer.answer(*answers)
        except TwgenError as failure:
            if str(failure) != said:
                said = str(failure)
                unattended.say(f"{unattended.name}: its requests could not be answered: {said}")
            await unattended.sleep(FAILED_LOOK)
        else:
            return


async def _intent(unattended: Unattended, intent_hash: str, limit: _Limit) -> Intent | None:
    """The intent, as soon as it can be read; None: it no longer exists."""
    failure = ""
    try:
        async with asyncio.timeout_at(limit.ends):
            while True:
                try:
                    return await unattended.read_intent(intent_hash)
                except (StateUnavailable, OutOfTime) as error:
                    if str(error) != failure:
                        failure = str(error)
                        unattended.say(f"{failure}; trying again")
                    await unattended.sleep(FAILED_LOOK)
    except TimeoutError:
        raise OutOfTime(f"{unattended.name} is not settled {limit.text}: {failure}") from None


class _Reads:
    """What one rollout reads at its looks, and in between."""

    def __init__(self, unattended: Unattended, journal: Journal, access: Access) -> None:
        self._now, self._journal, self._access = unattended.clock, journal, access
        self._rollout = access.rollout

    async def world(self) -> World:
        """All of its worker, and whether it may continue."""
        with self._journal.asking(self._now()):
            world = await self._rollout.read()
            # read last, since it permits the next write
            state = await self._access.state()
        return world.with_rollout(self._rollout.spec.key, state)

    async def glance(self) -> WorkerDeployment | None:
        """Its traffic; None: it may not continue."""
        with self._journal.asking(self._now()):
            temporal, state = await self._rollout.glance(), await self._access.state()
        return None if state.is_stopped else temporal

    async def target(self) -> Target:
        """Its target by a new look."""
        return self.target_of(await self.world())

    def target_of(self, world: World) -> Target:
        """Its target by that look."""
        spec, identity = self._rollout.spec, self._journal.intent.identity
        return Target(spec, worker_world(spec, world), self._rollout.clock(), identity, not_created="")

    async def is_asked(self) -> bool:
        """There is a request; if it cannot be read, the next look reports that."""
        with suppress(TwgenError):
            return await self._access.is_asked()
        return False


async def _roll_out(unattended: Unattended, journal: Journal, limit: _Limit) -> WorkerPlan:
    intent, access = journal.intent, unattended.access(journal.intent)
    usual, reads, writer = access.rollout, _Reads(unattended, journal, access), unattended.writer(intent)
    objects = _Attached(access.attached, usual.spec)

    async def show(plan: Plan, world: World) -> None:
        await usual.show(plan, world)
        await journal.record(
            plan.workers[0], make_status(plan, world, usual.caller, await objects.read(plan))
        )

    async def report_failure(failure: str, reason: RoutingReason = RoutingReason.LOOK_FAILED) -> None:
        is_current, status = partial(_is_current, unattended, intent), partial(unattended.read_status, intent)
        await journal.fail(failure, reason, unattended.clock(), is_current, status)

    adjustments = Adjustments(
        writer, objects.last_read, unattended.say, report_failure, has_hook=intent.applies_autoscalers
    )
    requests = Requests(
        permitted=intent.requests,
        pending=access.pending,
        cluster=writer,
        temporal=usual.writer,
        look=reads.target,
        glance=reads.glance,
        replay_again=access.replay_again,
        say=unattended.say,
    )
    with suppress(TwgenError):
        journal.continue_from(await unattended.read_status(intent))
    await journal.warn(intent.warnings, unattended.clock())
    rollout = replace(
        usual,
        read=reads.world,
        glance=reads.glance,
        show=show,
        adjust=adjustments.make,
        report_failure=report_failure,
        is_asked=reads.is_asked,
        answer=lambda world: requests.answer(reads.target_of(world)),
        cause={"intent": intent.hash, "application": intent.application},
        is_unattended=True,
    )
    try:
        async with asyncio.timeout_at(limit.ends):
            plan = await roll_out(rollout, once=False)
    except TimeoutError as error:
        # a settled rollout only waits until the change has reached every task queue
        if not (settled := journal.settled):
            worker, last_state = usual.spec.worker_deployment, journal.last_state(unattended.clock())
            raise OutOfTime(f"{worker} is not settled {limit.text}: {last_state}") from error
        plan = settled
    await _write_the_end(unattended, journal, plan)
    return plan


async def _write_the_end(unattended: Unattended, journal: Journal, plan: WorkerPlan) -> None:
    """Write the final status, for which a reader of it would wait for ever."""
    for _ in range(_LAST_TRIES):
        if not journal.unwritten:
            return
        await unattended.sleep(FAILED_LOOK)
        await journal.record(*journal.unwritten)
    if journal.unwritten:
        raise StateUnavailable(f"{plan.spec.worker_deployment}: its final status could not be written")


async def _is_current(unattended: Unattended, intent: Intent) -> bool:
    """The intent can be read and is not superseded; a failed read might not have read it."""
    with suppress(TwgenError):
        current = await unattended.read_intent(intent.hash)
        return current is not None and current.uid == intent.uid
    return False
