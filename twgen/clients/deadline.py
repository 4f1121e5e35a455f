"""One deadline for all requests of a run."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from math import inf
from threading import Thread
from typing import TypeVar

from twgen.errors import OutOfTime, TwgenError

Result = TypeVar("Result")


def monotonic() -> float:
    """Seconds on a clock that never goes back.

    If the system supports it, the clock includes time during which the machine sleeps.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Deadline:
    """A deadline on the monotonic clock, `timeout` seconds after this object was created."""

    most_refusals: float = inf
    """How many times a server can rate-limit a call before twgen gives up."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        """The number of seconds from creation to the deadline."""
        self._at = time.monotonic() + timeout
        self._limit: asyncio.Timeout | None = None

    @property
    def remaining(self) -> float:
        """The number of seconds until the deadline, which is not positive after the deadline."""
        return self._at - time.monotonic()

    def for_answer(self) -> "Deadline":
        """The deadline for one answer. In this class, all answers share one deadline."""
        return self

    async def turn(self, waiting: Awaitable[object]) -> None:
        """Wait until a rate limit allows the next request."""
        await waiting

    async def uncounted(self, work: Awaitable[Result]) -> Result:
        """Run work that does not depend on the server, such as a login. This time extends the deadline."""
        left = self.remaining
        try:
            return await work
        finally:
            # if several readers wait for the same work, its time must count only once
            self._at = max(self._at, time.monotonic() + left)

    async def bound(self, subject: str, work: Awaitable[Result]) -> Result:
        """Wait for the work, and return its result.

        After the deadline, raises OutOfTime with the `subject`.
        """
        try:
            async with asyncio.timeout(self.remaining) as limit:
                self._limit = limit
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            raise self.missed(subject) from None

    def missed(self, subject: str) -> TwgenError:
        """The error for an answer that did not arrive in time."""
        return OutOfTime(
            f"{subject} did not answer within {self.timeout:g} s: check the server and the network, or"
            " raise --timeout"
        )


class AnswerDeadline(Deadline):
    """A separate deadline for each answer.

    Under a rate limit, all answers together may take longer than `timeout`. Waiting for a rate limit extends
    the deadline. With a thousand workers and a server that keeps rejecting calls, the deadlines would not end
    the run, so `most_refusals` ends the run.
    """

    def __init__(self, timeout: float, most_refusals: float = 3) -> None:
        super().__init__(timeout)
        self.most_refusals = most_refusals

    def for_answer(self) -> Deadline:
        """A new deadline for one answer, counted from now."""
        return AnswerDeadline(self.timeout, self.most_refusals)

    async def turn(self, waiting: Awaitable[object]) -> None:
        """Wait until a rate limit allows the next request. The wait does not count towards the deadline."""
        began, limit = time.monotonic(), self._limit
        if limit:
            limit.reschedule(None)
        await waiting
        self._at += time.monotonic() - began
        if limit:
            limit.reschedule(asyncio.get_running_loop().time() + self.remaining)


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run blocking work in a thread. The work runs to its end even if the caller is cancelled."""
    future: Future[Result] = Future()

    def settle() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - awaiting the result raises it again
            future.set_exception(error)

    # a daemon thread, so that the program can exit before the work ends
    Thread(target=settle, daemon=True).start()
    return await asyncio.wrap_future(future)
