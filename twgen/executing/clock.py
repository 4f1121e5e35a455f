"""The times that rollouts and `tick` use."""

from collections.abc import Callable
from datetime import datetime, timedelta

from twgen.clients.kubernetes import Heard
from twgen.model.times import later


class SteadyClock:
    """The time since it was made, as a moment: it goes on evenly when people or NTP set the machine's clock.

    Pauses of one process are measured by it.
    """

    def __init__(self, own: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began, self._at = own(), monotonic()

    def __call__(self) -> datetime:
        """The moment."""
        return later(self._began, timedelta(seconds=self._monotonic() - self._at))


class SlowestClock:
    """The slowest clock that a rollout knows: its own, the API server's, or Temporal's.

    Temporal says when a step of a ramp began, but not the time. With a clock ahead of Temporal's, the pause
    of a step would end too soon; with a clock behind it, the pause only takes longer. Whatever must not be
    late uses the fastest clock, which is `apart` ahead.
    """

    def __init__(
        self,
        own: Callable[[], datetime],
        monotonic: Callable[[], float],
        api_server: Callable[[], Heard | None],
    ) -> None:
        self._own = own
        self._monotonic = monotonic
        self._api_server = api_server
        self._temporal: Heard | None = None
        """An upper limit of Temporal's time, from the newest change that happened between two reads."""
        self._newest_change: Heard | None = None
        """The newest change of traffic, and when the read that showed it began."""

    def __call__(self) -> datetime:
        """The time, to the second."""
        return min(self._times(self._temporal)).replace(microsecond=0)

    def apart(self) -> timedelta:
        """How far the fastest clock is ahead of this one."""
        # a change that Temporal has dated is in the past
        return max(self._times(self._newest_change)) - self()

    def _times(self, temporal: Heard | None) -> list[datetime]:
        """The time by each clock."""
        now, heard = self._monotonic(), filter(None, (self._api_server(), temporal))
        return [self._own(), *(later(time, timedelta(seconds=now - at)) for time, at in heard)]

    def saw(self, changed_at: datetime | None, began: float) -> None:
        """Note when Temporal's traffic changed last, by a read that began at a monotonic time.

        A change that one read shows and the read before did not show came after that one began, whatever any
        clock says. The newest change counts: a clock may have been wrong before, and pauses begin with a
        change.
        """
        if not changed_at:
            return
        before, self._newest_change = self._newest_change, Heard(changed_at, began)
        if before and before.server_time < changed_at:
            self._temporal = Heard(changed_at, before.at)
