"""What a rollout leaves in its cluster to read: its status, and an Event for each change of state."""

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Literal

from twgen.errors import OutOfTime, StateUnavailable
from twgen.executing.cluster import ClusterWriter, Event
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.status import Status
from twgen.planning.rollout import needs_a_rollout
from twgen.records.intent import Intent
from twgen.records.rollout_status import RolloutStatus, left_alone, write_rollout_status
from twgen.reporting.status.document import rollout_status
from twgen.reporting.status.lines import StatusLine, news, status_lines


class Journal:
    """Writes what changed from one look to the next; a cluster that does not take it stops no rollout."""

    def __init__(self, writer: ClusterWriter, intent: Intent, say: Callable[[str], None]) -> None:
        self._writer = writer
        self.intent = intent
        """What it tells about."""
        self._say = say
        self._recorded: list[StatusLine] = []
        self._told: tuple[Phase, RoutingReason] | None = None
        self._last: WorkerPlan | None = None
        self._seen: Status | None = None
        self._since: datetime | None = None
        self._failed_look = ""
        self._failures: set[str] = set()
        self.unwritten: Status | None = None
        """The newest status, while the cluster has not taken it."""

    @property
    def last_state(self) -> str:
        """Where the rollout stood when it was looked at last, and why."""
        routing = self._last.routing if self._last else None
        stood = f"{routing.phase}: {routing.because}" if routing else "nothing could be read"
        return "; ".join(filter(None, (stood, self._failed_look)))

    async def warn(self, warnings: Iterable[str], now: datetime) -> None:
        """Repeat what the render warned of."""
        for warning in warnings:
            await self._is_written(self._writer.tell(Event("Warning", "RenderWarning", warning, now)))

    async def fail(self, failure: str, now: datetime) -> None:
        """Tell why a look, or a change after it, failed."""
        self._failed_look = failure
        await self._is_written(self._writer.tell(Event("Warning", "LookFailed", failure, now)))

    async def refuse(self, why: str, now: datetime) -> None:
        """Tell why the intent cannot be carried out at all."""
        intent, reason = self.intent, RoutingReason.INVALID_INTENT
        if not intent.worker:
            return
        worker = f"{intent.namespace}/{intent.worker}"
        told = RolloutStatus(
            worker,
            Phase.BLOCKED,
            reason,
            why,
            intent.target,
            current="",
            percentage=0,
            since=now,
            document={},
        )
        await self._is_written(self._writer.tell(Event("Warning", reason, f"{told.phase}: {why}", now)))
        await self._is_written(self._writer.record(write_rollout_status(told)))

    async def leave(self, why: str, now: datetime) -> None:
        """Tell that the rollout goes on no more, unless it has ended as it should."""
        if not self._seen:
            return
        told = rollout_status(self._seen, now, self.intent.hash)
        if needs_a_rollout(told.phase, told.reason):
            left = left_alone(told, why, now)
            await self._is_written(self._writer.record(write_rollout_status(left)))
            await self._is_written(self._writer.tell(Event("Warning", left.reason, left.message, now)))

    async def record(self, status: Status) -> None:
        """Take in what the newest look says of the one worker."""
        [worker] = status.workers
        before, self._last, self._failed_look = self._last, worker.plan, ""
        routing, lines, self.unwritten = worker.plan.routing, status_lines(status), None
        if routing.reason is RoutingReason.SUPERSEDED:
            self._seen = None  # what is left to read is another rollout's
            return
        self._seen = status
        state = routing.phase, routing.reason
        if not self._since or not before or (before.routing.phase, before.routing.reason) != state:
            self._since = status.now
        if not self._recorded or news(self._recorded, lines):
            told = write_rollout_status(rollout_status(status, self._since, self.intent.hash))
            if await self._is_written(self._writer.record(told)):
                self._recorded = lines
            else:
                self.unwritten = status
        if state != self._told:
            is_wrong = routing.phase is Phase.BLOCKED or worker.plan.unserved
            said = "; ".join(filter(None, (worker.plan.unserved, routing.because)))
            kind: Literal["Normal", "Warning"] = "Warning" if is_wrong else "Normal"
            event = Event(kind, routing.reason, f"{routing.phase}: {said}", status.now)
            if await self._is_written(self._writer.tell(event)):
                self._told = state

    async def _is_written(self, writing: Awaitable[None]) -> bool:
        try:
            await writing
        except (StateUnavailable, OutOfTime) as error:
            if str(error) not in self._failures:
                self._failures.add(str(error))
                self._say(f"the status could not be written: {error}")
            return False
        return True
