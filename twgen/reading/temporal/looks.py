"""Looks at many workers, again and again: only what may have changed is read, and silent servers are left."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.spec import InTemporal
from twgen.model.temporal import UpdateState, VersionStatus, WorkerDeployment

_ALL_AGAIN = 10
"""One look of so many describes every worker: a list tells neither of managers nor of most versions."""
_STILL = {VersionStatus.INACTIVE, VersionStatus.RAMPING, VersionStatus.CURRENT, VersionStatus.DRAINED}
"""Versions that change only with what a list tells, or with what each look counts."""

Place = tuple[str, str]
"""The address of a server, and a Temporal namespace."""
Answer = TypeVar("Answer")
Key = TypeVar("Key")
Question = tuple[str, str]
"""The address of a server, and a method: a server that lacks its index still describes its workers."""

Described = dict[tuple[Place, str], tuple[bytes, WorkerDeployment]]
"""The description of each worker, after its summary in the list of its namespace before that."""

_MOST_MISSED = 3
"""Time-outs of one question, without an answer in between."""


async def shared(
    tasks: dict[Key, asyncio.Task[Answer]], key: Key, ask: Callable[[], Coroutine[Any, Any, Answer]]
) -> Answer:
    """The answer that several workers wait for; the first of them asks for it."""
    if key not in tasks:
        tasks[key] = asyncio.create_task(ask())
    # a worker that is cancelled must not cancel the answer for the others
    return await asyncio.shield(tasks[key])


def place_of(spec: InTemporal) -> Place:
    """Where a worker is."""
    return spec.connection.host_port, spec.temporal_namespace


class Memory:
    """The descriptions of workers, each with what the list of its namespace said before it was made."""

    def __init__(self) -> None:
        self._described: Described = {}
        self._looks = 0

    def look(self) -> "Look":
        """The next look."""
        if self._looks % _ALL_AGAIN == 0:
            self._described.clear()
        self._looks += 1
        return Look(self._described)


class Look:
    """One look, in as many readings as it takes; without a memory every worker is described."""

    def __init__(self, described: Described | None = None) -> None:
        self.silences = Silences()
        self.described = described
        """The memory."""
        self.lists: dict[Place, asyncio.Task[Mapping[str, bytes]]] = {}
        """What the list of each Temporal namespace says of its workers, by name."""

    def remember(self, key: tuple[Place, str], summary: bytes, answer: WorkerDeployment | None) -> None:
        """Keep the description of a worker until its summary changes, if nothing else of it can change."""
        if self.described is None:
            return
        self.described.pop(key, None)
        if not answer or not summary or answer.routing.update_state is UpdateState.IN_PROGRESS:
            return
        if all(version.status in _STILL for version in answer.versions):
            self.described[key] = summary, answer


class Silences:
    """The time-outs of each question in one look, for all of its readings."""

    def __init__(self) -> None:
        self._answered: Counter[Question] = Counter()
        self._missed: Counter[Question] = Counter()
        self._given_up: dict[Question, str] = {}
        """Why a question is not asked any more."""
        self._waiting: defaultdict[Question, set[asyncio.Timeout]] = defaultdict(set)

    async def unless_silent(self, question: Question, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of a server; OutOfTime, at once, if the server is known not to answer."""
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
            # if others were answered meanwhile, only what was asked about hangs
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
