"""The time by which a rollout goes."""

from collections.abc import Callable
from datetime import datetime, timedelta

from twgen.clients.kubernetes import Heard
from twgen.model.times import later
from twgen.planning.sentences import spoken

_TOLD_FROM = timedelta(seconds=30)
"""A clock that is further ahead is told of."""


class SlowestClock:
    """The slowest of the clocks that a rollout hears: its own, the API server's, and Temporal's.

    Temporal says when a step of a ramp began, and never what time it is. By a clock that is ahead of
    Temporal's the pause of a step would be over too soon; by one that is behind it only takes longer.
    """

    def __init__(
        self,
        own: Callable[[], datetime],
        monotonic: Callable[[], float],
        api_server: Callable[[], Heard | None],
        say: Callable[[str], None],
    ) -> None:
        self._own = own
        self._monotonic = monotonic
        self._api_server = api_server
        self._say = say
        self._temporal: Heard | None = None
        """It was no later than that."""
        self._looked: Heard | None = None
        """The newest change of traffic that was seen, and when the look began that saw it."""
        self._is_told = False

    def __call__(self) -> datetime:
        """The time, to the second."""
        passed, now = self._monotonic(), self._own()
        heard = filter(None, (self._api_server(), self._temporal))
        slowest = min([now, *(later(said, timedelta(seconds=passed - at)) for said, at in heard)])
        if now - slowest > _TOLD_FROM and not self._is_told:
            self._is_told = True
            self._say(
                f"the clock of this machine is {spoken(now - slowest)} ahead of another one: the pauses of"
                " a ramp go by the slowest of its own, the API server's and Temporal's"
            )
        return slowest.replace(microsecond=0)

    def saw(self, changed_at: datetime | None, began: float) -> None:
        """Take in when Temporal's traffic changed last, by a look that began at a monotonic time.

        What one look sees and the look before did not see came after that one began, whatever a clock says.
        """
        if not changed_at:
            return
        before, self._looked = self._looked, Heard(changed_at, began)
        if not before or before.said >= changed_at:
            return
        known, found = self._temporal, Heard(changed_at, before.at)
        if not known or found.said - known.said < timedelta(seconds=found.at - known.at):
            self._temporal = found
