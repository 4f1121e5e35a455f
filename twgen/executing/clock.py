"""The time by which a rollout goes."""

from collections.abc import Callable
from datetime import datetime, timedelta

from twgen.clients.kubernetes import Heard
from twgen.model.times import later


class SlowestClock:
    """The slowest of the clocks that a rollout hears: its own, the API server's, and Temporal's.

    Temporal says when a step of a ramp began, and never what time it is. By a clock that is ahead of
    Temporal's the pause of a step would be over too soon; by one that is behind it only takes longer. What
    must not happen too late goes by the fastest, which is `apart` ahead.
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
        """It was no later than that, by the newest change that was seen to happen."""
        self._looked: Heard | None = None
        """The newest change of traffic that was seen, and when the look began that saw it."""

    def __call__(self) -> datetime:
        """The time, to the second."""
        return min(self._said(self._temporal)).replace(microsecond=0)

    def apart(self) -> timedelta:
        """By how much the fastest clock is ahead of this one."""
        # a change that Temporal dated is not to come
        return max(self._said(self._looked)) - self()

    def _said(self, temporal: Heard | None) -> list[datetime]:
        """What time it is by each clock, with Temporal's as it was heard."""
        passed = self._monotonic()
        heard = filter(None, (self._api_server(), temporal))
        return [self._own(), *(later(said, timedelta(seconds=passed - at)) for said, at in heard)]

    def saw(self, changed_at: datetime | None, began: float) -> None:
        """Take in when Temporal's traffic changed last, by a look that began at a monotonic time.

        What one look sees and the look before did not see came after that one began, whatever a clock says.
        The newest change counts: one clock may have been wrong once, and pauses begin with a change.
        """
        if not changed_at:
            return
        before, self._looked = self._looked, Heard(changed_at, began)
        if before and before.said < changed_at:
            self._temporal = Heard(changed_at, before.at)
