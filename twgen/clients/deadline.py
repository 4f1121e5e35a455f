"""One deadline for all requests of one reading."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from math import inf
from threading import Thread
from typing import TypeVar

from twgen.errors import OutOfTime, TwgenError

Answer = TypeVar("Answer")


def monotonic() -> float:
    """Seconds since some moment, including the time that the machine slept if it counts that."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Deadline:
    """A moment on the monotonic clock, `timeout` seconds after this was made."""

    most_refusals: float = inf
    """How often a server may refuse a call for its rate limit before it is asked no more."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        """Seconds from the start to the deadline."""
        self._at = time.monotonic() + timeout
        self._limit: asyncio.Timeout | None = None

    @property
    def remaining(self) -> float:
        """Seconds until the deadline; zero or negative: it has passed."""
        return self._at - time.monotonic()

    def for_answer(self) -> "Deadline":
        """The deadline of one answer: the same for all."""
        return self

    async def turn(self, waiting: Awaitable[object]) -> None:
        """Wait until the bounded work may continue."""
        await waiting

    async def uncounted(self, work: Awaitable[Answer]) -> Answer:
        """The result of work that no server has to do, such as a login: the deadline is later by its time."""
        left = self.remaining
        try:
            return await work
        finally:
            # several readers may wait for the same work
            self._at = max(self._at, time.monotonic() + left)

    async def bound(self, subject: str, work: Awaitable[Answer]) -> Answer:
        """The result of the work; OutOfTime, which names the `subject`, if it takes longer."""
        try:
            async with asyncio.timeout(self.remaining) as limit:
                self._limit = limit
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            raise self.missed(subject) from None

    def missed(self, subject: str) -> TwgenError:
        """The error for an answer that did not come in time."""
        return OutOfTime(
            f"{subject} did not answer within {self.timeout:g} s: check the server and the network, or"
            " raise --timeout"
        )


class AnswerDeadline(Deadline):
    """A deadline for each answer: all answers together may take as long as a server's rate limit makes them.

    It is extended by the wait for a turn, so `most_refusals` ends the calls of a thousand workers to a server
    that is over its limit.
    """

    def __init__(self, timeout: float, most_refusals: float = 3) -> None:
        super().__init__(timeout)
        self.most_refusals = most_refusals

    def for_answer(self) -> Deadline:
        """The deadline of one answer, from now on."""
        return AnswerDeadline(self.timeout, self.most_refusals)

    async def turn(self, waiting: Awaitable[object]) -> None:
        """Wait until the bounded work may continue; the wait does not count."""
        began, limit = time.monotonic(), self._limit
        if limit:
            limit.reschedule(None)
        await waiting
        self._at += time.monotonic() - began
        if limit:
            limit.reschedule(asyncio.get_running_loop().time() + self.remaining)


async def in_thread(work: Callable[[], Answer]) -> Answer:
    """The result of blocking work; when it is cancelled, the work continues unobserved."""
    future: Future[Answer] = Future()

    def settle() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is awaited
            future.set_exception(error)

    # a daemon: the end of the program does not wait for it
    Thread(target=settle, daemon=True).start()
    return await asyncio.wrap_future(future)
