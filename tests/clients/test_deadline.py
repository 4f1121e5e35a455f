import asyncio
import time
from threading import Event

import pytest

from twgen.clients.deadline import Deadline, in_thread
from twgen.errors import OutOfTime


async def five() -> int:
    return 5


def test_work_that_is_done_in_time_gives_its_answer() -> None:
    assert asyncio.run(Deadline(10).bound("somebody", five())) == 5


@pytest.mark.parametrize("error", [KeyError, TimeoutError])
def test_work_that_fails_raises_its_own_error(error: type[Exception]) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(error):
        asyncio.run(Deadline(10).bound("somebody", fail()))


def test_work_that_hangs_is_cut_at_the_deadline() -> None:
    with pytest.raises(OutOfTime, match=r"^the server did not answer within 0\.05 s: .*--timeout"):
        asyncio.run(Deadline(0.05).bound("the server", asyncio.sleep(60)))


def test_blocking_work_that_hangs_is_left_behind() -> None:
    release = Event()
    started = time.monotonic()
    with pytest.raises(OutOfTime):
        asyncio.run(Deadline(0.05).bound("the server", in_thread(release.wait)))
    assert time.monotonic() - started < 5
    release.set()


def test_blocking_work_raises_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 // 0))
