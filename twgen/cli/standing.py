"""Where the rollouts stand that a command follows, and for how long it follows them."""

from collections.abc import Sequence
from datetime import timedelta
from math import inf
from time import monotonic
from typing import NamedTuple, Self

from twgen.errors import NegativeAnswer, OutOfTime
from twgen.model.plan import Phase, WorkerPlan
from twgen.planning.sentences import spoken


class Standing(NamedTuple):
    """A worker, the phase of its rollout, and why it is in it; its text is a clause of a sentence."""

    worker: str
    phase: Phase
    because: str

    @classmethod
    def of(cls, plan: WorkerPlan) -> Self:
        """That of a plan."""
        return cls(plan.spec.worker_deployment, plan.routing.phase, plan.routing.because)

    def __str__(self) -> str:
        return f"{self.worker} is {self.phase}, because {self.because}"


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

    def goes_on(self, rollouts: Sequence[Standing]) -> bool:
        """Some of these rollouts goes on by itself.

        Raises OutOfTime where that takes too long, and NegativeAnswer where none does and one is blocked.
        """
        if going := [str(rollout) for rollout in rollouts if rollout.phase.goes_on]:
            if monotonic() >= self._end:
                raise OutOfTime(not_settled(self._seconds, going))
            return True
        if blocked := [str(rollout) for rollout in rollouts if rollout.phase is Phase.BLOCKED]:
            raise NegativeAnswer("; ".join(blocked))
        return False


def not_settled(seconds: float, rollouts: Sequence[str]) -> str:
    """That these rollouts, which are clauses, have not ended within their time."""
    return f"not settled within {spoken(timedelta(seconds=seconds))}: {'; '.join(rollouts)}"
