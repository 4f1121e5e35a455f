"""The reports of a rollout in its cluster: its status, and an Event for each change of state."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta

from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.executing.cluster import ClusterWriter, EventType, KubernetesEvent
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.reasons.routing import RoutingReason
from twgen.model.status import RolloutStatus, Status
from twgen.planning.rollout import Claim, left_alone, needs_a_rollout, next_write, since_when, unclaimed
from twgen.planning.sentences import spoken, untimed
from twgen.records.intent import Intent
from twgen.records.rollout_status import is_of, write_rollout_status
from twgen.reporting.status.document import is_news, rollout_status

_MOST_FAILURES = 3
"""In a status."""
_SILENCE = timedelta(seconds=5)
"""The shortest silence that is reported: every look takes a moment."""


class Journal:
    """Writes what changed from one look to the next; a cluster that does not take it stops no rollout."""

    def __init__(self, writer: ClusterWriter, intent: Intent, say: Callable[[str], None]) -> None:
        self._writer = writer
        self.intent = intent
        """What it tells about."""
        self._say = say
        self._told: tuple[Phase, RoutingReason] | None = None
        self._last: WorkerPlan | None = None
        self._standing: RolloutStatus | None = None
        """What is left to read, be it written or not."""
        self._left: RolloutStatus | None = None
        """What an earlier process of the same intent left to read."""
        self._written: RolloutStatus | None = None
        """The newest of them that the cluster has taken, without what fails."""
        self._failing: dict[str, RoutingReason] = {}
        """What has failed since the newest look."""
        self._failed_before: dict[str, RoutingReason] = {}
        """What had failed until then, after the look before."""
        self._written_failures = ""
        """As the status tells them that the cluster has taken."""
        self._told_failures: set[str] = set()
        """By Events."""
        self._asked_at: datetime | None = None
        """When the look began that has yet to end."""
        self._refusals: set[str] = set()
        self.unwritten: Status | None = None
        """The newest status, while the cluster has not taken it."""

    def go_on_from(self, kept: RolloutStatus | None) -> None:
        """Take in what is left to read, by an earlier process of this rollout or by another one."""
        self._left = kept if kept and is_of(kept, self.intent) else None

    @contextmanager
    def asking(self, now: datetime) -> Iterator[None]:
        """What servers are asked meanwhile; `last_state` tells of it where it is ended without an answer."""
        self._asked_at = now
        yield
        self._asked_at = None

    def last_state(self, now: datetime) -> str:
        """The state of the rollout at the last look, its reason, and how long no server answered since."""
        told = self._standing if self._last else None
        stood = f"{told.phase}: {untimed(told.message)}" if told else "nothing could be read yet"
        silence = now - self._asked_at if self._asked_at else timedelta()
        silent = f"the servers have not answered for {spoken(silence)}" if silence >= _SILENCE else ""
        return "; ".join(filter(None, (stood, self._failures, silent)))

    @property
    def settled(self) -> WorkerPlan | None:
        """The plan of the newest look; None: by it something is left to do, or something has failed since."""
        is_settled = self._last is not None and self._last.routing.phase is Phase.SETTLED
        return self._last if is_settled and not self._failing else None

    @property
    def _failures(self) -> str:
        """Those of two looks, so that what fails after each look does not come and go; the newest three."""
        return "; ".join([*(self._failed_before | self._failing)][-_MOST_FAILURES:])

    async def warn(self, warnings: Iterable[str], now: datetime) -> None:
        """Repeat what the render warned of."""
        for warning in warnings:
            await self._tell("Warning", "RenderWarning", warning, now)

    async def fail(
        self,
        failure: str,
        reason: RoutingReason,
        now: datetime,
        is_current: Callable[[], Awaitable[bool]],
        kept: Callable[[], Awaitable[RolloutStatus | None]],
    ) -> None:
        """Tell why a look, or a change after it, failed: each time that it does, until the cluster has it.

        In the status only while that is this rollout's; one that has seen nothing yet goes on from what the
        cluster has `kept`, and leaves that alone while it cannot be read.
        """
        self._asked_at = None
        if failure in self._failing:  # nothing fails twice at one look: another one has failed
            self._failed_before, self._failing = self._failing, {}
        self._failing = {**self._failing, failure: reason}
        if not self._last and not self._standing:
            with suppress(TwgenError):
                self._standing = self._begun(await kept(), now)
        is_claim = reason is RoutingReason.CLAIM_FAILED
        if self._standing and is_claim and self._standing.reason != reason:
            self._standing = unclaimed(self._standing, now)
        if self._standing and self._failures != self._written_failures and await is_current():
            await self._write(self._standing)
        is_untold = failure not in self._told_failures
        if is_untold and await self._tell("Warning", reason, failure, now):
            self._told_failures.add(failure)

    async def refuse(self, why: str, now: datetime) -> None:
        """Tell why the intent cannot be carried out at all."""
        reason = RoutingReason.INVALID_INTENT
        if not self.intent.worker:
            return
        told = self._bare(Phase.BLOCKED, reason, why, now)
        await self._tell("Warning", reason, f"{told.phase}: {why}", now)
        await self._write(told)

    async def leave(self, why: str, now: datetime) -> None:
        """Tell that the rollout goes on no more, unless it has ended as it should."""
        told = self._standing
        if told and needs_a_rollout(told.phase, told.reason):
            self._failing = self._failed_before = {}
            left = left_alone(told, why, now)
            left = replace(left, since=told.since)  # so that one which is tried again does not seem new
            await self._write(left)
            await self._tell("Warning", left.reason, left.message, now)

    async def record(self, status: Status) -> None:
        """Take in what the newest look says of the one worker."""
        [worker] = status.workers
        before, self._last = self._standing or self._left, worker.plan
        routing, self.unwritten = worker.plan.routing, None
        # no look may follow that would take back what is over
        goes_on = needs_a_rollout(routing.phase, routing.reason)
        self._failed_before, self._failing = (self._failing if goes_on else {}), {}
        self._told_failures &= set(self._failed_before)
        if routing.reason is RoutingReason.SUPERSEDED:
            self._standing = None  # what is left to read is another rollout's
            return
        state = routing.phase, routing.reason
        self._standing = rollout_status(status, status.now, self.intent.hash)
        # until it has been tried again: else the reason would come and go with each look
        claim_failed = RoutingReason.CLAIM_FAILED in self._failed_before.values()
        if claim_failed and isinstance(next_write(worker.plan), Claim):
            self._standing = unclaimed(self._standing, status.now)
        if before:
            self._standing = replace(self._standing, since=since_when(before, self._standing))
        is_told = self._failures == self._written_failures
        if not is_told or not self._written or is_news(self._written, self._standing):
            self.unwritten = None if await self._write(self._standing) else status
        if state != self._told:
            is_wrong = routing.phase is Phase.BLOCKED or worker.plan.unserved or routing.marks
            said = "; ".join(filter(None, (worker.plan.unserved, routing.because)))
            kind: EventType = "Warning" if is_wrong else "Normal"
            if await self._tell(kind, routing.reason, f"{routing.phase}: {said}", status.now):
                self._told = state

    def _begun(self, kept: RolloutStatus | None, now: datetime) -> RolloutStatus:
        """The status of a rollout that could read nothing yet, based on that of an earlier process."""
        phase, reason, why = Phase.WAITING, RoutingReason.LOOK_FAILED, "nothing could be read yet"
        if not kept or not is_of(kept, self.intent):
            return replace(self._bare(phase, reason, why, now), intent=self.intent.hash)
        since = kept.since if (kept.phase, kept.reason) == (phase, reason) else now
        return kept.restated(phase, reason, why, since)

    def _bare(self, phase: Phase, reason: RoutingReason, why: str, now: datetime) -> RolloutStatus:
        """How a rollout stands that knows nothing of its worker yet."""
        worker, target = f"{self.intent.namespace}/{self.intent.worker}", self.intent.target
        return RolloutStatus(worker, phase, reason, why, target, None, None, now, {})

    async def _tell(self, kind: EventType, reason: str, message: str, now: datetime) -> bool:
        return await self._is_written(self._writer.tell(KubernetesEvent(kind, reason, message, now)))

    async def _write(self, status: RolloutStatus) -> bool:
        failures = self._failures
        message = "; ".join(filter(None, (status.message, failures)))
        told = replace(status, message=message, failing=failures)
        if is_written := await self._is_written(self._writer.record(write_rollout_status(told))):
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
