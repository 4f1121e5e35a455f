"""Writes the status and the Events of an unattended rollout to its cluster."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta

from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.executing.cluster import ClusterWriter, EventType
from twgen.executing.ports import IntentPlace
from twgen.model.credentials import without_credentials
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.status import RolloutStatus, Status
from twgen.planning.rollout import (
    Claim,
    is_news,
    left_alone,
    needs_a_rollout,
    next_write,
    since_when,
    unclaimed,
)
from twgen.planning.sentences import spoken, untimed
from twgen.planning.worker_status import rollout_status
from twgen.records.intent import Intent
from twgen.records.rollout_status import is_of, write_rollout_status


async def is_current(place: IntentPlace, intent: Intent) -> bool:
    """Whether the intent still exists with the same hash and UID. Returns False if it cannot be read."""
    with suppress(TwgenError):
        current = await place.read_intent(intent.hash)
        return current is not None and current.uid == intent.uid
    return False


class Journal:
    """Reports a rollout's progress to its cluster. A failed write does not stop the rollout."""

    def __init__(self, writer: ClusterWriter, intent: Intent, say: Callable[[str], None]) -> None:
        self._writer = writer
        self.intent = intent
        self._say = say
        self._reported: tuple[Phase, RoutingReason] | None = None
        """The phase and the reason that the newest Event reports."""
        self._last: WorkerPlan | None = None
        self._current: RolloutStatus | None = None
        """The newest status, even if it has not been written to the cluster yet."""
        self._earlier: RolloutStatus | None = None
        """The status that an earlier process wrote for the same intent."""
        self._written: RolloutStatus | None = None
        """The newest status that was written to the cluster, without its failures."""
        self._entries: Mapping[str, str] = {}
        """The data entries that were last written to the status ConfigMap."""
        self._failing: dict[str, RoutingReason] = {}
        """The failures since the last read."""
        self._failed_before: dict[str, RoutingReason] = {}
        """The failures between the last two reads."""
        self._written_failures = ""
        """The failures in the status that was last written to the cluster."""
        self._reported_failures: set[str] = set()
        """The failures that an Event has already reported."""
        self._asked_at: datetime | None = None
        """When the current read began, or None if no read is in progress."""
        self._refusals: set[str] = set()
        self.unwritten: tuple[WorkerPlan, Status] | None = None
        """The newest plan and status if they have not been written to the cluster yet."""

    def continue_from(self, status: RolloutStatus | None) -> None:
        """Continue from the status in the cluster, if an earlier process of this rollout wrote it."""
        self._earlier = status if is_of(status, self.intent) else None

    @contextmanager
    def asking(self, now: datetime) -> Iterator[None]:
        """Wrap a read. If the rollout ends before the servers respond, `last_state` reports the delay."""
        self._asked_at = now
        yield
        self._asked_at = None

    def last_state(self, now: datetime) -> str:
        """Describe the state at the last read, and how long the current read has been waiting for servers."""
        status = self._current if self._last else None
        state = f"{status.phase}: {untimed(status.message)}" if status else "nothing could be read yet"
        silence = now - self._asked_at if self._asked_at else timedelta()
        # a normal read takes less time
        is_long = silence >= timedelta(seconds=5)
        silent = f"the servers have not answered for {spoken(silence)}" if is_long else ""
        return "; ".join(filter(None, (state, self._failures, silent)))

    @property
    def settled(self) -> WorkerPlan | None:
        """The newest plan, or None if it is not settled or if anything has failed since."""
        is_settled = self._last is not None and self._last.routing.phase is Phase.SETTLED
        return self._last if is_settled and not self._failing else None

    @property
    def _failures(self) -> str:
        """The last three failures since the second-to-last read.

        With one read only, a failure that recurs after each read would disappear from time to time.
        """
        return "; ".join([*(self._failed_before | self._failing)][-3:])

    async def warn(self, warnings: Iterable[str], now: datetime) -> None:
        """Report the render's warnings as Events."""
        for warning in warnings:
            await self._add_event("Warning", "RenderWarning", warning, now)

    async def fail(self, failure: str, reason: RoutingReason, place: IntentPlace) -> None:
        """Report that a read failed, or that a change after a read failed.

        The status is written only while this rollout owns it. A rollout that could not read anything yet
        continues from the status in the cluster. If this status cannot be read, it is not replaced.
        """
        self._asked_at, now = None, place.now()
        if failure in self._failing:  # a read reports each failure only once, so a new read has begun
            self._failed_before, self._failing = self._failing, {}
        self._failing = {**self._failing, failure: reason}
        if not self._last and not self._current:
            with suppress(TwgenError):
                self._current = self._state_without_read(await place.read_status(self.intent), now)
        is_claim = reason is RoutingReason.CLAIM_FAILED
        if self._current and is_claim and self._current.reason != reason:
            self._current = unclaimed(self._current, now)
        is_other = self._failures != self._written_failures
        if self._current and is_other and await is_current(place, self.intent):
            await self._write(self._current)
        is_new = failure not in self._reported_failures
        if is_new and await self._add_event("Warning", reason, failure, now):
            self._reported_failures.add(failure)

    async def restore(self, entries: Mapping[str, str], place: IntentPlace) -> None:
        """Write the newest status again if the `entries` in the cluster differ from the written entries."""
        is_lost = any(entries.get(name) != text for name, text in self._entries.items())
        # if a newer rollout owns the status now, the newer rollout's entries are kept
        if self._current and is_lost and await is_current(place, self.intent):
            await self._write(self._current)

    async def refuse(self, why: str, now: datetime) -> None:
        """Report that the intent cannot be carried out."""
        reason = RoutingReason.INVALID_INTENT
        if not self.intent.worker:
            return
        await self._add_event("Warning", reason, f"{Phase.BLOCKED}: {why}", now)
        await self._write(self._bare(Phase.BLOCKED, reason, why, now))

    async def leave(self, why: str, now: datetime) -> None:
        """Report that the rollout has stopped, unless the rollout was complete."""
        status = self._current
        if status and needs_a_rollout(status.phase, status.reason):
            self._failing = self._failed_before = {}
            # `since` is kept, so that the problem does not look new after each retry of the Job
            final_status = replace(left_alone(status, why, now), since=status.since)
            await self._write(final_status)
            await self._add_event("Warning", final_status.reason, final_status.message, now)

    async def record(self, plan: WorkerPlan, status: Status) -> None:
        """Report the plan and the status after a read."""
        before, self._last = self._current or self._earlier, plan
        routing, self.unwritten = plan.routing, None
        # the failures of a complete rollout are dropped, because no later read would clear them
        goes_on = needs_a_rollout(routing.phase, routing.reason)
        self._failed_before, self._failing = (self._failing if goes_on else {}), {}
        self._reported_failures &= set(self._failed_before)
        if routing.reason is RoutingReason.SUPERSEDED:
            self._current = None  # another rollout owns the status now
            return
        state = routing.phase, routing.reason
        self._current = rollout_status(status, status.now, self.intent.hash)
        # CLAIM_FAILED is kept until the claim is retried: otherwise, each read would briefly remove it
        claim_failed = RoutingReason.CLAIM_FAILED in self._failed_before.values()
        if claim_failed and isinstance(next_write(plan), Claim):
            self._current = unclaimed(self._current, status.now)
        if before:
            self._current = replace(self._current, since=since_when(before, self._current))
        is_written = self._failures == self._written_failures
        if not is_written or not self._written or is_news(self._written, self._current):
            self.unwritten = None if await self._write(self._current) else (plan, status)
        if state != self._reported:
            is_wrong = routing.phase is Phase.BLOCKED or plan.unserved or routing.marks
            why = "; ".join(filter(None, (plan.unserved, routing.because)))
            kind: EventType = "Warning" if is_wrong else "Normal"
            if await self._add_event(kind, routing.reason, f"{routing.phase}: {why}", status.now):
                self._reported = state

    def _state_without_read(self, earlier: RolloutStatus | None, now: datetime) -> RolloutStatus:
        """The status of a rollout that could not read anything yet, based on an earlier process's status."""
        phase, reason, why = Phase.WAITING, RoutingReason.LOOK_FAILED, "nothing could be read yet"
        if not is_of(earlier, self.intent):
            return replace(self._bare(phase, reason, why, now), intent=self.intent.hash)
        since = earlier.since if (earlier.phase, earlier.reason) == (phase, reason) else now
        return earlier.restated(phase, reason, why, since)

    def _bare(self, phase: Phase, reason: RoutingReason, why: str, now: datetime) -> RolloutStatus:
        worker, target = f"{self.intent.namespace}/{self.intent.worker}", self.intent.target
        return RolloutStatus(worker, phase, reason, why, target, None, None, now, None)

    async def _add_event(self, kind: EventType, reason: str, message: str, now: datetime) -> bool:
        return await self._is_written(self._writer.add_event(kind, reason, message, now))

    async def _write(self, status: RolloutStatus) -> bool:
        failures = self._failures
        message = "; ".join(filter(None, (status.message, failures)))
        permits = self.intent.requests
        complete = replace(status, message=message, failing=failures, permits=permits)
        document = write_rollout_status(complete)
        if is_written := await self._is_written(self._writer.record(document)):
            self._written, self._written_failures = status, failures
            self._entries = {name: without_credentials(text) for name, text in document.items()}
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
