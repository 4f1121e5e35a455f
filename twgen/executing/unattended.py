"""A rollout that no person watches: it waits for others to fix problems, and reports to its cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.executing.adjustments import Adjustments
from twgen.executing.cluster import ClusterWriter, EventType
from twgen.executing.rollout import WorkerRollout, roll_out
from twgen.model.plan import Phase, Plan, WorkerPlan
from twgen.model.policy import OwnerReferences
from twgen.model.reasons.routing import RoutingReason
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus, Status
from twgen.model.values import dataclass
from twgen.model.world import World
from twgen.planning.attached_status import AttachedRead, attached_to_read
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.planning.rollout import (
    FAILED_LOOK,
    Claim,
    left_alone,
    needs_a_rollout,
    next_write,
    since_when,
    unclaimed,
)
from twgen.planning.sentences import spoken, untimed
from twgen.planning.worker_status import make_status
from twgen.records.intent import Intent, UnusableIntent
from twgen.records.rollout_status import is_of, write_rollout_status
from twgen.reporting.status.document import is_news, rollout_status

_MOST_FAILURES = 3
"""How many failures a status shows."""
_SILENCE = timedelta(seconds=5)
"""The shortest silence that is reported: every read takes a moment."""
_LAST_TRIES = 12
"""How often writing the end of a rollout is tried."""


class Journal:
    """Writes the changes from one read to the next; a failed write does not stop the rollout."""

    def __init__(self, writer: ClusterWriter, intent: Intent, say: Callable[[str], None]) -> None:
        self._writer = writer
        self.intent = intent
        """The intent that it reports on."""
        self._say = say
        self._reported: tuple[Phase, RoutingReason] | None = None
        """The state in the newest Event."""
        self._last: WorkerPlan | None = None
        self._current: RolloutStatus | None = None
        """The newest status, written or not."""
        self._earlier: RolloutStatus | None = None
        """The status that an earlier process of the same intent wrote."""
        self._written: RolloutStatus | None = None
        """The newest status that the cluster has, without failures."""
        self._failing: dict[str, RoutingReason] = {}
        """The failures since the newest read."""
        self._failed_before: dict[str, RoutingReason] = {}
        """The failures between the two newest reads."""
        self._written_failures = ""
        """The failures in the status that the cluster has."""
        self._reported_failures: set[str] = set()
        """The failures in Events."""
        self._asked_at: datetime | None = None
        """The beginning of the read that has not ended."""
        self._refusals: set[str] = set()
        self.unwritten: Status | None = None
        """The newest status, while the cluster does not have it."""

    def continue_from(self, status: RolloutStatus | None) -> None:
        """Note the status in the cluster, by an earlier process of this rollout or by another rollout."""
        self._earlier = status if status and is_of(status, self.intent) else None

    @contextmanager
    def asking(self, now: datetime) -> Iterator[None]:
        """While servers are asked: `last_state` reports it if the rollout ends before their answer."""
        self._asked_at = now
        yield
        self._asked_at = None

    def last_state(self, now: datetime) -> str:
        """The state at the last read, and why; and for how long a read since then has had no answer."""
        status = self._current if self._last else None
        state = f"{status.phase}: {untimed(status.message)}" if status else "nothing could be read yet"
        silence = now - self._asked_at if self._asked_at else timedelta()
        silent = f"the servers have not answered for {spoken(silence)}" if silence >= _SILENCE else ""
        return "; ".join(filter(None, (state, self._failures, silent)))

    @property
    def settled(self) -> WorkerPlan | None:
        """The plan of the newest read; None: something is left to do, or has failed since."""
        is_settled = self._last is not None and self._last.routing.phase is Phase.SETTLED
        return self._last if is_settled and not self._failing else None

    @property
    def _failures(self) -> str:
        """The newest three of two reads, so that a failure after each read does not come and go."""
        return "; ".join([*(self._failed_before | self._failing)][-_MOST_FAILURES:])

    async def warn(self, warnings: Iterable[str], now: datetime) -> None:
        """Repeat the warnings of the render."""
        for warning in warnings:
            await self._add_event("Warning", "RenderWarning", warning, now)

    async def fail(
        self,
        failure: str,
        reason: RoutingReason,
        now: datetime,
        is_current: Callable[[], Awaitable[bool]],
        read_status: Callable[[], Awaitable[RolloutStatus | None]],
    ) -> None:
        """Report why a read, or a change after it, failed, until the cluster has it.

        The status is written only while it is this rollout's. A rollout that has read nothing continues from
        the status in the cluster, and does not replace it while it cannot be read.
        """
        self._asked_at = None
        if failure in self._failing:  # a failure occurs once at one read, so this is another read
            self._failed_before, self._failing = self._failing, {}
        self._failing = {**self._failing, failure: reason}
        if not self._last and not self._current:
            with suppress(TwgenError):
                self._current = self._state_without_read(await read_status(), now)
        is_claim = reason is RoutingReason.CLAIM_FAILED
        if self._current and is_claim and self._current.reason != reason:
            self._current = unclaimed(self._current, now)
        if self._current and self._failures != self._written_failures and await is_current():
            await self._write(self._current)
        is_new = failure not in self._reported_failures
        if is_new and await self._add_event("Warning", reason, failure, now):
            self._reported_failures.add(failure)

    async def refuse(self, why: str, now: datetime) -> None:
        """Report why the intent cannot be carried out at all."""
        reason = RoutingReason.INVALID_INTENT
        if not self.intent.worker:
            return
        await self._add_event("Warning", reason, f"{Phase.BLOCKED}: {why}", now)
        await self._write(self._bare(Phase.BLOCKED, reason, why, now))

    async def leave(self, why: str, now: datetime) -> None:
        """Report that the rollout has stopped, unless nothing was left to do."""
        status = self._current
        if status and needs_a_rollout(status.phase, status.reason):
            self._failing = self._failed_before = {}
            # a Job that is tried again keeps the time, so that it does not seem new
            final_status = replace(left_alone(status, why, now), since=status.since)
            await self._write(final_status)
            await self._add_event("Warning", final_status.reason, final_status.message, now)

    async def record(self, status: Status) -> None:
        """Report the newest read of the one worker."""
        [worker] = status.workers
        before, self._last = self._current or self._earlier, worker.plan
        routing, self.unwritten = worker.plan.routing, None
        # after a rollout no read follows that would clear its failures
        goes_on = needs_a_rollout(routing.phase, routing.reason)
        self._failed_before, self._failing = (self._failing if goes_on else {}), {}
        self._reported_failures &= set(self._failed_before)
        if routing.reason is RoutingReason.SUPERSEDED:
            self._current = None  # the status in the cluster is another rollout's
            return
        state = routing.phase, routing.reason
        self._current = rollout_status(status, status.now, self.intent.hash)
        # until the claim is tried again: otherwise the reason would come and go with each read
        claim_failed = RoutingReason.CLAIM_FAILED in self._failed_before.values()
        if claim_failed and isinstance(next_write(worker.plan), Claim):
            self._current = unclaimed(self._current, status.now)
        if before:
            self._current = replace(self._current, since=since_when(before, self._current))
        is_written = self._failures == self._written_failures
        if not is_written or not self._written or is_news(self._written, self._current):
            self.unwritten = None if await self._write(self._current) else status
        if state != self._reported:
            is_wrong = routing.phase is Phase.BLOCKED or worker.plan.unserved or routing.marks
            why = "; ".join(filter(None, (worker.plan.unserved, routing.because)))
            kind: EventType = "Warning" if is_wrong else "Normal"
            if await self._add_event(kind, routing.reason, f"{routing.phase}: {why}", status.now):
                self._reported = state

    def _state_without_read(self, earlier: RolloutStatus | None, now: datetime) -> RolloutStatus:
        """The status of a rollout that could read nothing, from the one that an earlier process wrote."""
        phase, reason, why = Phase.WAITING, RoutingReason.LOOK_FAILED, "nothing could be read yet"
        if not earlier or not is_of(earlier, self.intent):
            return replace(self._bare(phase, reason, why, now), intent=self.intent.hash)
        since = earlier.since if (earlier.phase, earlier.reason) == (phase, reason) else now
        return earlier.restated(phase, reason, why, since)

    def _bare(self, phase: Phase, reason: RoutingReason, why: str, now: datetime) -> RolloutStatus:
        """The status of a rollout that has not read its worker."""
        worker, target = f"{self.intent.namespace}/{self.intent.worker}", self.intent.target
        return RolloutStatus(worker, phase, reason, why, target, None, None, now, {})

    async def _add_event(self, kind: EventType, reason: str, message: str, now: datetime) -> bool:
        return await self._is_written(self._writer.add_event(kind, reason, message, now))

    async def _write(self, status: RolloutStatus) -> bool:
        failures = self._failures
        message = "; ".join(filter(None, (status.message, failures)))
        document = write_rollout_status(replace(status, message=message, failing=failures))
        if is_written := await self._is_written(self._writer.record(document)):
            self._written, self._written_failures = status, failures
        return is_written

    async def _is_written(self, writing: Awaitable[None]) -> bool:
        try:
            await writing
        except (StateUnavailable, OutOfTime) as error:
            if str(error) not in self._refusals:
                self._refusals.add(str(error))
                self._say(f"the status could not be written: {error}")
            return False
        return True


class Access(NamedTuple):
    """The functions that read for one intent; each raises StateUnavailable or OutOfTime."""

    rollout: WorkerRollout
    """The rollout as at a terminal, with Temporal and a log."""
    state: Callable[[], Awaitable[RolloutInCluster]]
    """Reads whether it may continue, from its cluster."""
    attached: Callable[[], Awaitable[list[AttachedInCluster]]]
    """Reads the objects that twgen attached to the worker's versions."""


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
        refused = Journal(unattended.writer(error.intent), error.intent, unattended.say)
        await refused.refuse(str(error), unattended.clock())
        raise
    except Exception as error:
        # nothing is written after SIGTERM: a reader of a status also reads its Jobs
        if journal and await _is_current(unattended, journal.intent):
            is_bug = not isinstance(error, TwgenError)
            why = f"a bug ended it ({type(error).__name__})" if is_bug else str(error)
            await journal.leave(why, unattended.clock())
        raise


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


async def _roll_out(unattended: Unattended, journal: Journal, limit: _Limit) -> WorkerPlan:
    intent = journal.intent
    attended, state_in_cluster, attached = unattended.access(intent)
    spec = attended.spec

    async def read() -> World:
        with journal.asking(unattended.clock()):
            world = await attended.read()
            # read last, since it permits the next write
            state = await state_in_cluster()
        return world.with_rollout(spec.key, state)

    async def conflict_token() -> str:
        with journal.asking(unattended.clock()):
            token, state = await attended.conflict_token(), await state_in_cluster()
        return "" if state.is_superseded or state.is_paused else token

    objects = _Attached(attached, spec)

    async def show(plan: Plan, world: World) -> None:
        await attended.show(plan, world)
        await journal.record(make_status(plan, world, attended.caller, await objects.read(plan)))

    async def report_failure(failure: str, reason: RoutingReason = RoutingReason.LOOK_FAILED) -> None:
        is_current, status = partial(_is_current, unattended, intent), partial(unattended.read_status, intent)
        await journal.fail(failure, reason, unattended.clock(), is_current, status)

    writer, is_applying = unattended.writer(intent), intent.applies_autoscalers
    adjustments = Adjustments(writer, objects.last_read, unattended.say, report_failure, has_hook=is_applying)
    with suppress(TwgenError):
        journal.continue_from(await unattended.read_status(intent))
    await journal.warn(intent.warnings, unattended.clock())
    rollout = replace(
        attended,
        read=read,
        conflict_token=conflict_token,
        show=show,
        adjust=adjustments.make,
        report_failure=report_failure,
        cause={"intent": intent.hash, "application": intent.application},
        is_unattended=True,
    )
    try:
        async with asyncio.timeout_at(limit.ends):
            plan = await roll_out(rollout, once=False)
    except TimeoutError as error:
        # a settled rollout only waits until the change has reached every task queue
        if not (settled := journal.settled):
            last_state = journal.last_state(unattended.clock())
            raise OutOfTime(f"{spec.worker_deployment} is not settled {limit.text}: {last_state}") from error
        plan = settled
    # a reader of the status would wait for the end for ever
    for _ in range(_LAST_TRIES):
        if not journal.unwritten:
            return plan
        await unattended.sleep(FAILED_LOOK)
        await journal.record(journal.unwritten)
    if journal.unwritten:
        raise StateUnavailable(f"{spec.worker_deployment}: its final status could not be written")
    return plan


async def _is_current(unattended: Unattended, intent: Intent) -> bool:
    """The intent can be read and is not superseded; a failed read might not have read it."""
    with suppress(TwgenError):
        current = await unattended.read_intent(intent.hash)
        return current is not None and current.uid == intent.uid
    return False
