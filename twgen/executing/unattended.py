"""A rollout without a person: it waits while others fix problems, and reports its state in its cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, Self

from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.executing.adjustments import Adjustments
from twgen.executing.cluster import ClusterWriter
from twgen.executing.journal import Journal
from twgen.executing.rollout import WorkerRollout, roll_out
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.policy import OwnerReferences
from twgen.model.reasons.routing import RoutingReason
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.values import dataclass
from twgen.model.world import World
from twgen.planning.attached_status import AttachedRead, attached_to_read
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.planning.rollout import FAILED_LOOK
from twgen.planning.sentences import spoken
from twgen.planning.worker_status import make_status
from twgen.records.intent import Intent, UnusableIntent

_LAST_TRIES = 12
"""How often the end of a rollout is written to a cluster that does not take it."""


class Ways(NamedTuple):
    """The ways of one intent to what is read for it; every one raises StateUnavailable or OutOfTime."""

    rollout: WorkerRollout
    """As one that somebody watches has them, to Temporal and to a log."""
    state: Callable[[], Awaitable[RolloutInCluster]]
    """Whether it may go on, by the word of its cluster."""
    attached: Callable[[], Awaitable[list[AttachedInCluster]]]
    """The live objects that twgen attached to the worker's versions."""


@dataclass(frozen=True, slots=True)
class Unattended:
    """Whoever carries out intents that nobody watches, and the ways to their cluster."""

    name: str
    """Of the intent, for people."""
    read_intent: Callable[[str], Awaitable[Intent | None]]
    """The intent of that hash (empty: any); None: it is not there any more. Raises UnusableIntent too."""
    read_status: Callable[[Intent], Awaitable[RolloutStatus | None]]
    """What the rollouts of the intent's worker left to read; None: nothing yet."""
    ways: Callable[[Intent], Ways]
    """Raises UnusableIntent."""
    writer: Callable[[Intent], ClusterWriter]
    clock: Callable[[], datetime]
    sleep: Callable[[timedelta], Awaitable[None]]
    say: Callable[[str], None]
    """Gets every change that was made, and every failure."""


class _Limit(NamedTuple):
    """When a rollout is given up."""

    ends: float | None
    """On the event loop's clock; None: never."""
    told: str

    @classmethod
    def of(cls, within: float | None) -> Self:
        """So many seconds from now on."""
        if within is None:
            return cls(None, "")
        ends = asyncio.get_running_loop().time() + within
        return cls(ends, f"within {spoken(timedelta(seconds=within))}")


class _Attached:
    """What one look reads of the attached objects, for the status and for what it changes."""

    def __init__(self, read: Callable[[], Awaitable[list[AttachedInCluster]]], spec: WorkerSpec) -> None:
        self._read, self._spec = read, spec
        self._known: list[AttachedInCluster] | None = None

    async def look(self, plan: Plan) -> Mapping[str, AttachedRead]:
        """Read them if there can be any; empty: they were not read."""
        self._known = None
        may_list = self._spec.policy.owner_references is OwnerReferences.RENDER
        if may_list and attached_to_read(worker.versions for worker in plan.workers):
            with suppress(StateUnavailable, OutOfTime):
                self._known = await self._read()
        return {} if self._known is None else {self._spec.namespace: AttachedRead(tuple(self._known))}

    async def of_look(self) -> list[AttachedInCluster]:
        """What that look read; raises where it read nothing and nothing can be read now."""
        return await self._read() if self._known is None else self._known


async def carry_out(unattended: Unattended, intent_hash: str, within: float | None) -> WorkerPlan | None:
    """Roll out the intent of that hash (empty: any), within so many seconds (None: however long it takes).

    The last plan; None: the intent is not there any more. Raises as `roll_out` does, but waits for what
    somebody else can mend, and leaves what ended it in the cluster.
    """
    limit = _Limit.of(within)
    journal = None
    try:
        plan: WorkerPlan | None = None
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
        refused = Journal(unattended.writer(error.intent), error.intent, unattended.say)
        await refused.refuse(str(error), unattended.clock())
        raise
    except Exception as error:
        # nothing is written after SIGTERM, not even this: whoever reads a status asks for its Jobs too
        if journal and await _is_current(unattended, journal.intent):
            is_bug = not isinstance(error, TwgenError)
            why = f"a bug ended it ({type(error).__name__})" if is_bug else str(error)
            await journal.leave(why, unattended.clock())
        raise


async def _intent(unattended: Unattended, intent_hash: str, limit: _Limit) -> Intent | None:
    """The intent, as soon as an API server returns it; None: it no longer exists."""
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
        raise OutOfTime(f"{unattended.name} is not settled {limit.told}: {failure}") from None


async def _roll_out(unattended: Unattended, journal: Journal, limit: _Limit) -> WorkerPlan:
    intent = journal.intent
    usual, state_in_cluster, attached = unattended.ways(intent)
    spec = usual.spec

    async def read() -> World:
        with journal.asking(unattended.clock()):
            world = await usual.read()
            # last of all: what is written next is justified by it
            state = await state_in_cluster()
        return world.with_rollout(spec.key, state)

    async def conflict_token() -> str:
        with journal.asking(unattended.clock()):
            token, state = await usual.conflict_token(), await state_in_cluster()
        return "" if state.is_superseded or state.is_paused else token

    objects = _Attached(attached, spec)

    async def show(plan: Plan, world: World) -> None:
        await usual.show(plan, world)
        await journal.record(make_status(plan, world, usual.caller, await objects.look(plan)))

    async def tell_failure(failure: str, reason: RoutingReason = RoutingReason.LOOK_FAILED) -> None:
        is_current, kept = partial(_is_current, unattended, intent), partial(unattended.read_status, intent)
        await journal.fail(failure, reason, unattended.clock(), is_current, kept)

    writer, is_applying = unattended.writer(intent), intent.applies_autoscalers
    adjustments = Adjustments(writer, objects.of_look, unattended.say, tell_failure, has_hook=is_applying)
    with suppress(TwgenError):
        journal.go_on_from(await unattended.read_status(intent))
    await journal.warn(intent.warnings, unattended.clock())
    rollout = replace(
        usual,
        read=read,
        conflict_token=conflict_token,
        show=show,
        adjust=adjustments.make,
        tell_failure=tell_failure,
        cause={"intent": intent.hash, "application": intent.application},
        is_unattended=True,
    )
    try:
        async with asyncio.timeout_at(limit.ends):
            plan = await roll_out(rollout, once=False)
    except TimeoutError as error:
        # a settled rollout only waits until the server reports that every task queue knows the change
        if not (settled := journal.settled):
            last_state = journal.last_state(unattended.clock())
            raise OutOfTime(f"{spec.worker_deployment} is not settled {limit.told}: {last_state}") from error
        plan = settled
    # a client that waits for the end by its status would wait forever
    for _ in range(_LAST_TRIES):
        if not journal.unwritten:
            return plan
        await unattended.sleep(FAILED_LOOK)
        await journal.record(journal.unwritten)
    if journal.unwritten:
        raise StateUnavailable(f"{spec.worker_deployment}: its final status could not be written")
    return plan


async def _is_current(unattended: Unattended, intent: Intent) -> bool:
    """Nobody has superseded it, as far as can be read: a look that failed may not have asked that."""
    with suppress(TwgenError):
        found = await unattended.read_intent(intent.hash)
        return found is not None and found.uid == intent.uid
    return False
