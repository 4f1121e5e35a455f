"""What a rollout leaves in its cluster to read: its status, and an Event for each change of state."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Literal

from twgen.errors import OutOfTime, StateUnavailable
from twgen.executing.cluster import ClusterWriter, Event
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.status import Status
from twgen.reporting.status.document import status_data
from twgen.reporting.status.lines import StatusLine, news, status_lines


class Journal:
    """Writes what changed from one look to the next; a cluster that does not take it stops no rollout."""

    def __init__(self, writer: ClusterWriter, say: Callable[[str], None]) -> None:
        self._writer = writer
        self._say = say
        self._recorded: list[StatusLine] = []
        self._last: WorkerPlan | None = None
        self._since: datetime | None = None
        self._failure = ""

    @property
    def last_state(self) -> str:
        """Where the rollout stood when it was looked at last, and why."""
        routing = self._last.routing if self._last else None
        return f"{routing.phase}: {routing.because}" if routing else "nothing could be read"

    async def warn(self, warnings: Iterable[str], now: datetime) -> None:
        """Repeat what the render warned of."""
        try:
            for warning in warnings:
                await self._writer.tell(Event("Warning", "RenderWarning", warning, now))
        except (StateUnavailable, OutOfTime) as error:
            self._not_written(error)

    async def record(self, status: Status) -> None:
        """Take in what the newest look says of the one worker."""
        [worker] = status.workers
        before, self._last = self._last, worker.plan
        routing, lines = worker.plan.routing, status_lines(status)
        if routing.reason is RoutingReason.SUPERSEDED or (self._recorded and not news(self._recorded, lines)):
            return
        then = (before.routing.phase, before.routing.reason) if before else None
        is_change = then != (routing.phase, routing.reason)
        if is_change or not self._since:
            self._since = status.now
        try:
            await self._writer.record(status_data(status, self._since))
            if is_change:
                is_wrong = routing.phase is Phase.BLOCKED or worker.plan.unserved
                said = "; ".join(filter(None, (worker.plan.unserved, routing.because)))
                kind: Literal["Normal", "Warning"] = "Warning" if is_wrong else "Normal"
                told = f"{routing.phase}: {said}"
                await self._writer.tell(Event(kind, routing.reason, told, status.now))
            self._recorded, self._failure = lines, ""
        except (StateUnavailable, OutOfTime) as error:
            self._not_written(error)

    def _not_written(self, error: Exception) -> None:
        if str(error) != self._failure:
            self._failure = str(error)
            self._say(f"the status could not be written: {error}")
