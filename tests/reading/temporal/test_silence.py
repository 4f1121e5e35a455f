"""Servers that do not answer: what counts as silence, and whom it stops."""

import asyncio
from collections.abc import Awaitable, Callable

from twgen.errors import OutOfTime
from twgen.reading.temporal.checks import Silences

DESCRIBE, COUNT = ("temporal:7233", "describe"), ("temporal:7233", "count")


async def hangs() -> str:
    await asyncio.sleep(0.05)
    raise OutOfTime("no answer")


async def answers() -> str:
    await asyncio.sleep(0.01)
    return "here"


def asked(story: Callable[[Silences], Awaitable[object]]) -> None:
    async def run() -> None:
        await story(Silences())

    asyncio.run(asyncio.wait_for(run(), 30))


async def at_once(
    silences: Silences, *asks: Callable[[], Awaitable[str]], question: tuple[str, str] = DESCRIBE
) -> list[str]:
    ends = await asyncio.gather(
        *(silences.unless_silent(question, ask) for ask in asks), return_exceptions=True
    )
    return [str(end) for end in ends]


def test_workers_that_hang_do_not_keep_others_of_their_address_from_their_next_read() -> None:
    async def story(silences: Silences) -> None:
        for _ in range(3):
            assert await at_once(silences, hangs, hangs, answers, hangs, hangs) == [
                *["no answer"] * 2,
                "here",
                *["no answer"] * 2,
            ]
        assert await at_once(silences, answers) == ["here"]

    asked(story)


def test_calls_of_one_kind_that_hang_stop_only_calls_of_that_kind() -> None:
    never_called: list[str] = []

    async def called() -> str:
        never_called.append("called")
        return "here"

    async def story(silences: Silences) -> None:
        await at_once(silences, hangs, hangs, hangs, question=COUNT)
        assert await at_once(silences, answers) == ["here"]
        assert await at_once(silences, called, question=COUNT) == ["no answer"]
        assert await at_once(silences, answers, question=("other:7233", "count")) == ["here"]

    asked(story)
    assert never_called == []


def test_server_that_falls_silent_later_is_asked_three_times_more() -> None:
    async def story(silences: Silences) -> None:
        assert await at_once(silences, answers) == ["here"]
        ends = await at_once(silences, hangs, hangs)
        assert ends == ["no answer"] * 2
        assert await at_once(silences, hangs, asyncio.Event().wait) == ["no answer"] * 2
        assert await at_once(silences, answers) == ["no answer"]

    asked(story)
