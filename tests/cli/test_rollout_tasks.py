"""Rollouts side by side in one process: which of them run, and when one begins again."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.planning.situations import NOW
from twgen.cli.live import Connections
from twgen.cli.rollouts_by_tick import RolloutsByTick
from twgen.errors import StateUnavailable
from twgen.model.rollout import RolloutMetadata

V1 = RolloutMetadata("shop", "pay-rollout", "hash-1", "uid", request="")
V2 = V1._replace(intent_hash="hash-2")
OTHER = V1._replace(name="mail-rollout")


class Rollouts(RolloutsByTick):
    """Rollouts that go on until they are told to end, and what became of them."""

    def __init__(self) -> None:
        self.said: list[str] = []
        unused: Any = None
        settings: Any = SimpleNamespace(shard=0, shards=1)
        opened = Connections(settings, unused, unused, unused, unused)
        super().__init__(unused, opened, self.said.append, self.note)
        self._steady = lambda: NOW
        self.begun: list[str] = []
        self.held: dict[str, asyncio.Event] = {}
        self.bugs: list[tuple[str, Exception]] = []
        self.ending: Exception | None = None

    def note(self, subject: str, error: Exception) -> None:
        self.bugs.append((subject, error))

    async def carry_out(self, metadata: RolloutMetadata) -> None:
        key = f"{metadata.name} {metadata.intent_hash}"
        assert key not in self.held, "one at a time"
        self.begun.append(key)
        self.held[key] = asyncio.Event()
        try:
            await self.held[key].wait()
            if self.ending:
                raise self.ending
        finally:
            del self.held[key]

    async def end(self, key: str) -> None:
        self.held[key].set()
        await settle()

    async def seeing(self, *listed: RolloutMetadata) -> None:
        self.see(listed)
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def story(tell: Callable[[Rollouts], Awaitable[None]]) -> Rollouts:
    async def told() -> Rollouts:
        rollouts = Rollouts()
        await tell(rollouts)
        return rollouts

    return asyncio.run(told())


def test_each_intent_is_carried_out_once() -> None:
    async def tell(rollouts: Rollouts) -> None:
        for _ in range(3):
            await rollouts.seeing(V1, OTHER)
        await rollouts.end("pay-rollout hash-1")
        await rollouts.seeing(V1, OTHER)
        assert rollouts.ended_at(V1) == NOW
        assert rollouts.ended_at(OTHER) is None

    assert story(tell).begun == ["pay-rollout hash-1", "mail-rollout hash-1"]


def test_next_intent_waits_until_the_rollout_of_the_one_before_has_ended() -> None:
    async def tell(rollouts: Rollouts) -> None:
        await rollouts.seeing(V1)
        await rollouts.seeing(V2)
        assert rollouts.is_asked(V1), "it is to look at once, and finds another intent"
        assert rollouts.begun == ["pay-rollout hash-1"]
        await rollouts.end("pay-rollout hash-1")
        assert rollouts.ended_at(V2) is None
        await rollouts.seeing(V2)

    assert story(tell).begun == ["pay-rollout hash-1", "pay-rollout hash-2"]


def test_intent_that_was_deleted_and_made_again_is_carried_out_again() -> None:
    async def tell(rollouts: Rollouts) -> None:
        await rollouts.seeing(V1)
        await rollouts.end("pay-rollout hash-1")
        await rollouts.seeing()
        await rollouts.seeing(V1)
        await rollouts.end("pay-rollout hash-1")
        await rollouts.seeing(V1._replace(uid="another"))

    assert len(story(tell).begun) == 3


def test_intent_that_an_earlier_process_has_carried_out_is_left_alone() -> None:
    async def tell(rollouts: Rollouts) -> None:
        rollouts.note_end(V1, NOW - timedelta(hours=1))
        await rollouts.seeing(V1)
        assert rollouts.begun == []
        rollouts.note_end(V1, NOW)
        assert rollouts.ended_at(V1) == NOW - timedelta(hours=1)
        await rollouts.seeing(V2)

    assert story(tell).begun == ["pay-rollout hash-2"]


def test_rollout_that_has_ended_begins_again_for_a_request_or_when_told() -> None:
    async def tell(rollouts: Rollouts) -> None:
        await rollouts.seeing(V1)
        assert not rollouts.is_asked(V1)
        await rollouts.end("pay-rollout hash-1")
        await rollouts.seeing(V1._replace(request="retry"))
        assert rollouts.is_asked(V1)
        await rollouts.end("pay-rollout hash-1")
        rollouts.begin_again(V1)
        rollouts.begin_again(V1)
        await settle()

    assert len(story(tell).begun) == 3


def test_rollout_that_has_ended_begins_once_for_each_request_however_long_it_waits() -> None:
    async def tell(rollouts: Rollouts) -> None:
        asked = V1._replace(request="retry")
        for metadata in (asked, asked, asked, V1, asked, asked, asked._replace(request="abort")):
            await rollouts.seeing(metadata)
            for key in list(rollouts.held):
                await rollouts.end(key)

    assert len(story(tell).begun) == 3, "for the first, when it came back, and for another one"


def test_rollout_whose_intent_was_made_again_or_is_gone_is_not_woken_for_ever() -> None:
    async def tell(rollouts: Rollouts) -> None:
        new = V1._replace(uid="another")
        for seen in ((V1,), (new,), ()):
            await rollouts.seeing(*seen)
            assert not rollouts.is_asked(V1)
        await rollouts.seeing(new._replace(request="abort"))
        assert rollouts.is_asked(V1)

    assert len(story(tell).begun) == 1


def test_failure_of_one_rollout_is_told_and_ends_no_other() -> None:
    async def tell(rollouts: Rollouts) -> None:
        await rollouts.seeing(V1, OTHER)
        rollouts.ending = StateUnavailable("the end could not be written")
        await rollouts.end("pay-rollout hash-1")
        rollouts.ending = ZeroDivisionError()
        await rollouts.seeing(V2, OTHER)
        await rollouts.end("pay-rollout hash-2")
        assert list(rollouts.held) == ["mail-rollout hash-1"]

    rollouts = story(tell)
    assert rollouts.said == ["shop/pay-rollout: its rollout has ended: the end could not be written"]
    [(subject, bug)] = rollouts.bugs
    assert (subject, type(bug)) == ("shop/pay-rollout", ZeroDivisionError)


def test_rollouts_that_were_stopped_begin_again() -> None:
    async def tell(rollouts: Rollouts) -> None:
        await rollouts.seeing(V1, OTHER)
        await rollouts.end("pay-rollout hash-1")
        rollouts.stop()
        await rollouts.seeing(V1, OTHER)
        await rollouts.seeing(V1, OTHER)

    assert story(tell).begun == ["pay-rollout hash-1", "mail-rollout hash-1", "mail-rollout hash-1"]


def test_rollout_that_is_stopped_before_its_first_step_begins_again() -> None:
    async def tell(rollouts: Rollouts) -> None:
        rollouts.begin_again(V1)
        rollouts.stop()
        await settle()
        assert rollouts.begun == []
        await rollouts.seeing(V1)

    assert story(tell).begun == ["pay-rollout hash-1"]


@given(
    st.lists(st.sampled_from(["see 1", "see 2", "gone", "end", "again 1", "again 2", "asked"]), max_size=30)
)
def test_whatever_is_seen_a_worker_has_one_rollout_and_the_newest_intent_is_not_forgotten(
    deeds: list[str],
) -> None:
    async def tell(rollouts: Rollouts) -> None:
        seen = {"see 1": [V1], "see 2": [V2], "gone": [], "asked": [V2._replace(request="retry")]}
        newest: list[RolloutMetadata] = []
        for deed in deeds:
            if deed in seen:
                newest = seen[deed]
                await rollouts.seeing(*newest)
            elif deed == "end":
                for key in list(rollouts.held):
                    await rollouts.end(key)
            else:
                rollouts.begin_again(V1 if deed == "again 1" else V2)
                await settle()
            assert len(rollouts.held) <= 1
        for metadata in newest:
            for key in list(rollouts.held):
                await rollouts.end(key)
            await rollouts.seeing(metadata._replace(request=""))
            key = f"{metadata.name} {metadata.intent_hash}"
            assert key in rollouts.begun

    story(tell)
