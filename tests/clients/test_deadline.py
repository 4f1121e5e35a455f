import asyncio
import time
from threading import Event

import pytest

from twgen.clients.deadline import AnswerDeadline, Deadline, in_thread
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


def test_deadline_of_an_answer_stands_still_until_its_turn_comes() -> None:
    shared = AnswerDeadline(0.2)

    async def answer(deadline: Deadline, seconds: float) -> str:
        await deadline.turn(asyncio.sleep(0.4))
        await asyncio.sleep(seconds)
        return "answered"

    async def ask(seconds: float) -> str:
        deadline = shared.for_answer()
        return await deadline.bound("the server", answer(deadline, seconds))

    async def story() -> list[str | BaseException]:
        await asyncio.sleep(0.3)
        return await asyncio.gather(*map(ask, (0, 60)), return_exceptions=True)

    in_time, late = asyncio.run(asyncio.wait_for(story(), 30))
    assert in_time == "answered"
    assert isinstance(late, OutOfTime)


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
