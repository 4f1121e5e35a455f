"""Repeated checks of many workers: unchanged descriptions are reused, and silent servers are skipped."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.spec import InTemporal
from twgen.model.temporal import UpdateState, VersionStatus, WorkerDeployment

_ALL_AGAIN = 10
"""Every tenth check describes all workers, because the list does not show managers and most versions."""
_STILL = {VersionStatus.INACTIVE, VersionStatus.RAMPING, VersionStatus.CURRENT, VersionStatus.DRAINED}
"""Versions with these statuses change only in ways that the list shows, or that each check counts."""

Place = tuple[str, str]
"""The address of a server, and a Temporal namespace."""
Answer = TypeVar("Answer")
Key = TypeVar("Key")
Question = tuple[str, str]
"""The address of a server, and a method. They are separate because a server whose index has failed can still
describe workers."""

Described = dict[tuple[Place, str], tuple[bytes, WorkerDeployment]]
"""The description of each worker, with its entry in the namespace's list before that."""

_MOST_MISSED = 3
"""A question is given up after this many timeouts without an answer in between."""


async def shared(
    tasks: dict[Key, asyncio.Task[Answer]], key: Key, ask: Callable[[], Coroutine[Any, Any, Answer]]
) -> Answer:
    """Make a read once for all workers that need it: the first of them starts it."""
    if key not in tasks:
        tasks[key] = asyncio.create_task(ask())
    # if one worker's reads are cancelled, the others still need the answer
    return await asyncio.shield(tasks[key])


def place_of(spec: InTemporal) -> Place:
    """The server and the namespace of a worker."""
    return spec.connection.host_port, spec.temporal_namespace


class Checks:
    """Remembers the descriptions of workers from one check to the next."""

    def __init__(self) -> None:
        self._described: Described = {}
        self._number = 0

    def next_check(self) -> "Check":
        """Begin the next check."""
        if self._number % _ALL_AGAIN == 0:
            self._described.clear()
        self._number += 1
        return Check(self._described)


class Check:
    """One check, which may take several reads. Outside of `Checks`, it describes every worker."""

    def __init__(self, described: Described | None = None) -> None:
        self.silences = Silences()
        self.described = described
        """The descriptions from earlier checks; None if there are none to reuse."""
        self.lists: dict[Place, asyncio.Task[Mapping[str, bytes]]] = {}
        """For each namespace, the entries of its workers in the list, by name."""

    def remember(self, key: tuple[Place, str], summary: bytes, answer: WorkerDeployment | None) -> None:
        """Keep a worker's description until its summary changes, unless other changes are possible."""
        if self.described is None:
            return
        self.described.pop(key, None)
        if not answer or not summary or answer.routing.update_state is UpdateState.IN_PROGRESS:
            return
        if all(version.status in _STILL for version in answer.versions):
            self.described[key] = summary, answer


class Silences:
    """Counts the timeouts of each question in all reads of one check."""

    def __init__(self) -> None:
        self._answered: Counter[Question] = Counter()
        self._missed: Counter[Question] = Counter()
        self._given_up: dict[Question, str] = {}
        """The error of each question that was given up."""
        self._waiting: defaultdict[Question, set[asyncio.Timeout]] = defaultdict(set)

    async def unless_silent(self, question: Question, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask a server; raises OutOfTime immediately if the question was given up."""
        if why := self._given_up.get(question):
            raise OutOfTime(why)
        before = self._answered[question]
        try:
            async with asyncio.timeout(None) as limit:
                self._waiting[question].add(limit)
                try:
                    answer = await ask()
                finally:
                    self._waiting[question].discard(limit)
        except OutOfTime as error:
            # not counted if the server answered others meanwhile: then only this subject hangs
            self._missed[question] += self._answered[question] == before
            if self._missed[question] >= _MOST_MISSED:
                self._given_up.setdefault(question, str(error))
                now = asyncio.get_running_loop().time()
                for other in self._waiting.pop(question, ()):
                    other.reschedule(now)
            raise
        except TimeoutError:
            if not limit.expired():
                raise
            raise OutOfTime(self._given_up[question]) from None
        except StateUnavailable:
            self._is_answered(question)
            raise
        self._is_answered(question)
        return answer

    def _is_answered(self, question: Question) -> None:
        self._answered[question] += 1
        self._missed[question] = 0
