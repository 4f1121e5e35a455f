"""Reads and shows rollouts repeatedly, until none can continue by itself."""

import gc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from math import inf
from time import monotonic, sleep
from typing import NamedTuple, Protocol, Self, TypeVar

from twgen.cli.display import FRAME_SECONDS, Screen
from twgen.errors import InvalidDocuments, NegativeAnswer, OutOfTime, TwgenError
from twgen.model.plan import Phase, WorkerPlan
from twgen.planning.sentences import spoken

Item = TypeVar("Item")
ShownItem_contra = TypeVar("ShownItem_contra", contravariant=True)


class RolloutState(NamedTuple):
    """A worker, the phase of its rollout, and the reason. `str()` returns them as a clause of a sentence."""

    worker: str
    phase: Phase
    because: str

    @classmethod
    def of(cls, plan: WorkerPlan) -> Self:
        """The rollout state in a worker's plan."""
        return cls(plan.spec.worker_deployment, plan.routing.phase, plan.routing.because)

    def __str__(self) -> str:
        return f"{self.worker} is {self.phase}, because {self.because}"


class Patience:
    """The time limit for following rollouts that continue by themselves. None means no limit."""

    def __init__(self, seconds: float | None, interval: float) -> None:
        self._seconds, self._interval = seconds or inf, interval
        self._end = monotonic() + self._seconds

    @property
    def has_end(self) -> bool:
        """Whether there is a time limit."""
        return self._end < inf

    def next_read(self) -> float:
        """The `monotonic` time of the next read. The last read is at the time limit."""
        return min(monotonic() + self._interval, self._end)

    def goes_on(self, rollouts: Sequence[RolloutState]) -> bool:
        """Whether at least one of these rollouts continues by itself.

        Raises OutOfTime if one continues after the time limit. Raises NegativeAnswer if no rollout continues,
        and at least one is blocked.
        """
        if unfinished := [str(rollout) for rollout in rollouts if rollout.phase.goes_on]:
            if monotonic() >= self._end:
                raise OutOfTime(not_settled(self._seconds, unfinished))
            return True
        if blocked := [str(rollout) for rollout in rollouts if rollout.phase is Phase.BLOCKED]:
            raise NegativeAnswer("; ".join(blocked))
        return False


class View(Protocol[ShownItem_contra]):
    """Shows the result of a read, on a repainted terminal or as lines."""

    def show(self, item: ShownItem_contra, failure: str, /) -> None:
        """Show the last successful read. `failure` is the error of a newer read, or empty."""

    def repaint(self) -> None:
        """Show the last read again, with updated ages."""


def follow(
    item: Item,
    read: Callable[[], Item],
    view: View[Item],
    patience: Patience,
    states: Callable[[Item], Sequence[RolloutState]],
) -> None:
    """Show the `item`, then each new read, until no rollout continues by itself.

    On a terminal without --within, it continues until Ctrl-C. Raises the same errors as `Patience.goes_on`.
    """
    gc.enable()  # this may run for hours
    pool, failure = ThreadPoolExecutor(1), ""
    try:
        while True:
            due = patience.next_read()
            view.show(item, failure)
            has_end = patience.has_end or not isinstance(view, Screen)
            if has_end and not patience.goes_on(states(item)):
                return
            while (remaining := due - monotonic()) > 0:
                sleep(min(FRAME_SECONDS, remaining))
                view.repaint()
            reading = pool.submit(read)
            while not wait([reading], FRAME_SECONDS).done:
                view.repaint()
            try:
                item, failure = reading.result(), ""
            except InvalidDocuments as error:
                more = len(error.problems) - 1
                failure = error.problems[0] + (f" and {more} more" if more else "")
            except TwgenError as error:
                failure = str(error)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def not_settled(seconds: float, rollouts: Sequence[str]) -> str:
    """The message that these rollouts, each given as a clause, have not settled in time."""
    return f"not settled within {spoken(timedelta(seconds=seconds))}: {'; '.join(rollouts)}"
