"""What the checks of one process remember: without it, a process asks and says some things again."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from datetime import datetime

from twgen.model.values import dataclass
from twgen.planning.pruning import NextTry
from twgen.planning.unread import Unread

_BUSY_LOOKS = 3
"""A server that is over its limit in as many looks in a row is reported."""


@dataclass(frozen=True, slots=True)
class TickMemory:
    """The memory of a process; each mapping is by worker, and forgets workers that are gone."""

    steady: Callable[[], datetime]
    """The clock of all times here."""
    goes_on: bool = True
    """There is a next check."""
    begun: defaultdict[str, dict[str, datetime]] = field(default_factory=lambda: defaultdict(dict))
    """Until when a batch operation that was begun has nothing more to do, by job ID."""
    kept: defaultdict[str, dict[str, NextTry]] = field(default_factory=lambda: defaultdict(dict))
    """When the deletion of an old record is tried again, by build ID."""
    _said: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _busy: dict[str, int] = field(default_factory=dict)
    """Why workers were not read although a later look may read them, and in how many looks in a row."""

    def forget_all_but(self, workers: Collection[str]) -> None:
        """Forget the workers that are gone."""
        for memory in (self.begun, self.kept, self._said):
            for worker in memory.keys() - {*workers, ""}:
                del memory[worker]

    def is_new(self, sentence: str, worker: str = "") -> bool:
        """The sentence is not said yet; from now on it is. Without a worker, the process never forgets it."""
        is_new = sentence not in self._said[worker]
        self._said[worker].add(sentence)
        return is_new

    def without_busy(self, unread: Sequence[Unread]) -> Sequence[Unread]:
        """The workers that were not read, without those whose busy server may answer the next look."""
        if not self.goes_on:
            return unread
        looks = {one.why: self._busy.get(one.why, 0) + 1 for one in unread if one.is_busy}
        self._busy.clear()
        self._busy.update(looks)
        return [one for one in unread if looks.get(one.why, _BUSY_LOOKS) >= _BUSY_LOOKS]
