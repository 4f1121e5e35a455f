"""Servers that do not answer: after some time-outs, one look asks such a server nothing more."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from twgen.errors import OutOfTime

Answer = TypeVar("Answer")

_MOST_MISSED = 3
"""Time-outs of one address, without an answer in between."""


class Silences:
    """The time-outs of each address in one look, for all of its readings."""

    def __init__(self) -> None:
        self._missed: Counter[str] = Counter()
        self._given_up: dict[str, str] = {}
        """Why an address is not asked any more."""
        self._waiting: defaultdict[str, set[asyncio.Timeout]] = defaultdict(set)

    async def unless_silent(self, address: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of a server; OutOfTime, at once, if the server is known not to answer."""
        if why := self._given_up.get(address):
            raise OutOfTime(why)
        try:
            async with asyncio.timeout(None) as limit:
                self._waiting[address].add(limit)
                try:
                    answer = await ask()
                finally:
                    self._waiting[address].discard(limit)
        except OutOfTime as error:
            self._missed[address] += 1
            if self._missed[address] >= _MOST_MISSED:
                self._give_up(address, str(error))
            raise
        except TimeoutError:
            if not limit.expired():
                raise
            raise OutOfTime(self._given_up[address]) from None
        self._missed[address] = 0
        return answer

    def _give_up(self, address: str, why: str) -> None:
        self._given_up.setdefault(address, why)
        now = asyncio.get_running_loop().time()
        for limit in self._waiting.pop(address, ()):
            limit.reschedule(now)
