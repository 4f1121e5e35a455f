"""Servers that do not answer: after some time-outs of a call, one look makes no more such calls there."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from twgen.errors import OutOfTime, StateUnavailable

Answer = TypeVar("Answer")
Question = tuple[str, str]
"""The address of a server, and a method: a server that lacks its index still describes its workers."""

_MOST_MISSED = 3
"""Time-outs of one question, without an answer in between."""


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
                self._give_up(question, str(error))
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

    def _give_up(self, question: Question, why: str) -> None:
        self._given_up.setdefault(question, why)
        now = asyncio.get_running_loop().time()
        for limit in self._waiting.pop(question, ()):
            limit.reschedule(now)
