"""Makes repeated checks of many workers cheap: keeps unchanged descriptions, skips unresponsive servers."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.spec import InTemporal
from twgen.model.temporal import UpdateState, VersionStatus, WorkerDeployment

_ALL_AGAIN = 10
"""After this many checks, all workers are described again, because the list contains neither the manager
identities nor most versions."""
_STILL = {VersionStatus.INACTIVE, VersionStatus.RAMPING, VersionStatus.CURRENT, VersionStatus.DRAINED}
"""A change to a version with one of these statuses is visible in the list or in the counts of each check."""

Place = tuple[str, str]
"""A server's address and a Temporal namespace."""
Answer = TypeVar("Answer")
Key = TypeVar("Key")
Question = tuple[str, str]
"""A server's address and an API method. Timeouts are counted per method, because a server whose visibility
store has failed can still describe workers."""

Described = dict[tuple[Place, str], tuple[bytes, WorkerDeployment]]
"""For each worker, its entry in the namespace's list and its description, which was read after the list."""

_MOST_MISSED = 3
"""The number of successive timeouts after which a question is not asked again in the same check."""


async def shared(
    tasks: dict[Key, asyncio.Task[Answer]], key: Key, ask: Callable[[], Coroutine[Any, Any, Answer]]
) -> Answer:
    """Share one read between all workers that need its result. The first of these workers starts the read."""
    if key not in tasks:
        tasks[key] = asyncio.create_task(ask())
    # shielded, because other workers still need the answer if one worker's reads are canceled
    return await asyncio.shield(tasks[key])


def place_of(spec: InTemporal) -> Place:
    """The worker's server and Temporal namespace."""
    return spec.connection.host_port, spec.temporal_namespace


class Checks:
    """Keeps the workers' descriptions between checks."""

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
    """One check, which may need several reads. A check that `Checks` did not make describes every worker."""

    def __init__(self, described: Described | None = None) -> None:
        self.silences = Silences()
        self.described = described
        """The descriptions from earlier checks, or None if there are none to reuse."""
        self.lists: dict[Place, asyncio.Task[Mapping[str, bytes]]] = {}
        """The workers' entries in each namespace's list, by the worker's name."""

    def remember(self, key: tuple[Place, str], summary: bytes, answer: WorkerDeployment | None) -> None:
        """Keep a worker's description until its list entry changes, if the entry reveals all changes."""
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
        """The questions that are not asked again, each with its last error."""
        self._waiting: defaultdict[Question, set[asyncio.Timeout]] = defaultdict(set)

    async def unless_silent(self, question: Question, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask a server. Raises OutOfTime immediately after too many timeouts of this question."""
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
            # if the server answered the question for another worker meanwhile, the timeout does not count
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
