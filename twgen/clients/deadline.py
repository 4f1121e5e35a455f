"""One deadline for all that is read."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from twgen.errors import OutOfTime

Answer = TypeVar("Answer")


class Deadline:
    """A moment so many seconds after it was made, on the monotonic clock."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.at = time.monotonic() + timeout

    @property
    def remaining(self) -> float:
        """Seconds until it; none or fewer: it has passed."""
        return self.at - time.monotonic()

    def missed(self, who: str) -> OutOfTime:
        """The error of somebody who did not answer in time."""
        return OutOfTime(
            f"{who} did not answer within {self.timeout:g} s: check it and the network, or raise --timeout"
        )

    def cut(self, who: str, work: Callable[[], Answer]) -> Answer:
        """What the work returns or raises; OutOfTime when it takes longer, and then it is left behind."""
        future: Future[Answer] = Future()
        # a daemon: the end of the program does not wait for it
        Thread(target=_settle, args=(future, work), daemon=True).start()
        try:
            return future.result(max(self.remaining, 0.0))
        except TimeoutError as error:
            if future.done():
                raise
            raise self.missed(who) from error


def _settle(future: Future[Answer], work: Callable[[], Answer]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is raised again where the result is asked for
        future.set_exception(error)
