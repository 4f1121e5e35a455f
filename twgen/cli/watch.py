"""`twgen status --watch`: reading again and again, and showing what was read."""

import gc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from math import inf
from time import monotonic, sleep

from twgen.cli.display import FRAME_SECONDS, Log, display
from twgen.cli.observer import Observer
from twgen.cli.settings import Settings
from twgen.errors import InvalidDocuments, NegativeAnswer, OutOfTime, TwgenError
from twgen.model.plan import Phase
from twgen.planning.sentences import listed, spoken


class Patience:
    """How long rollouts are followed that go on by themselves: so many seconds; None: without end."""

    def __init__(self, seconds: float | None, interval: float) -> None:
        self._seconds, self._interval = seconds or inf, interval
        self._end = monotonic() + self._seconds

    @property
    def has_end(self) -> bool:
        """They are not followed for ever."""
        return self._end < inf

    def next_read(self) -> float:
        """When to read again, the last time at the end, by the clock of `monotonic`."""
        return min(monotonic() + self._interval, self._end)

    def goes_on(self, phases: Sequence[tuple[str, Phase]]) -> bool:
        """Some rollout of these workers goes on by itself.

        Raises OutOfTime where that takes too long, and NegativeAnswer where none does and one is blocked.
        """
        if going := [worker for worker, phase in phases if phase.goes_on]:
            if monotonic() >= self._end:
                raise OutOfTime(
                    f"not settled within {spoken(timedelta(seconds=self._seconds))}: {listed(going)}"
                )
            return True
        if blocked := [worker for worker, phase in phases if phase is Phase.BLOCKED]:
            raise NegativeAnswer(f"blocked: {listed(blocked)}")
        return False


def watch_status(settings: Settings, output: str, color: str, patience: Patience) -> None:
    """Show what changes until no rollout goes on by itself; on a terminal without --within: until Ctrl-C.

    Raises as `Patience.goes_on` does, and as reading does when the first read fails.
    """
    gc.enable()  # what a render leaves to the end of the process would add up here
    pool = ThreadPoolExecutor(1)
    # without a worker all would be settled at once, and a script would go on after a rollout that never was
    with Observer(settings, needs_worker=True) as observer, display(output, color) as shown:
        observation, failure = observer.observe(), ""
        try:
            while True:
                due = patience.next_read()
                shown.show(observation, failure)
                plans = observation.plan.workers
                phases = [(plan.spec.worker_deployment, plan.routing.phase) for plan in plans]
                if (isinstance(shown, Log) or patience.has_end) and not patience.goes_on(phases):
                    return
                while (left := due - monotonic()) > 0:
                    sleep(min(FRAME_SECONDS, left))
                    shown.repaint()
                reading = pool.submit(observer.observe)
                while not wait([reading], FRAME_SECONDS).done:
                    shown.repaint()
                try:
                    observation, failure = reading.result(), ""
                except InvalidDocuments as error:
                    more = len(error.problems) - 1
                    failure = error.problems[0] + (f" and {more} more" if more else "")
                except TwgenError as error:
                    failure = str(error)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
