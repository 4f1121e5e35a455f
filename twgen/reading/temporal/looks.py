"""Looks at many workers, again and again: only what may have changed is read, and silent servers are left."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
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
Question = tuple[str, str]
"""The address of a server, and a method: a server that lacks its index still describes its workers."""

_MOST_MISSED = 3
"""Time-outs of one question, without an answer in between."""


def place_of(spec: InTemporal) -> Place:
    """Where a worker is."""
    return spec.connection.host_port, spec.temporal_namespace


class Memory:
    """The descriptions of workers, each with what the list of its namespace said before it was made."""

    def __init__(self) -> None:
        self._described: dict[tuple[Place, str], tuple[bytes, WorkerDeployment]] = {}
        self._looks = 0

    def look(self) -> "Look":
        """The next look."""
        if self._looks % _ALL_AGAIN == 0:
            self._described.clear()
        self._looks += 1
        return Look(self._described)


class Look:
    """One look, in as many readings as it takes; without a memory every worker is described."""

    def __init__(
        self, described: dict[tuple[Place, str], tuple[bytes, WorkerDeployment]] | None = None
    ) -> None:
        self.silences = Silences()
        self._described = described
        self._lists: dict[Place, asyncio.Task[Mapping[str, bytes]]] = {}

    async def deployment(
        self,
        spec: InTemporal,
        list_all: Callable[[], Coroutine[Any, Any, Mapping[str, bytes]]],
        describe: Callable[[], Awaitable[WorkerDeployment | None]],
        *,
        for_routing: bool,
    ) -> WorkerDeployment | None:
        """The worker as Temporal describes it: now if it decides on traffic, else when it last changed."""
        place = place_of(spec)
        key = place, spec.worker_deployment
        summary, memory = b"", self._described
        if memory is not None and not for_routing:
            if place not in self._lists:
                self._lists[place] = asyncio.create_task(list_all())
            # nothing without the right to list, or without an answer
            with suppress(StateUnavailable, OutOfTime):
                # a worker that is cancelled must not cancel the list for the others
                summary = (await asyncio.shield(self._lists[place])).get(spec.worker_deployment, b"")
            before, answer = memory.get(key, (b"", None))
            if summary and summary == before:
                return answer
        described = await describe()
        if memory is not None:
            memory.pop(key, None)
            if (
                described
                and summary
                and described.routing.update_state is not UpdateState.IN_PROGRESS
                and all(version.status in _STILL for version in described.versions)
            ):
                memory[key] = summary, described
        return described


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
