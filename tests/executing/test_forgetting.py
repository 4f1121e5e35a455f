"""Old records that tick deletes by a policy: which, how many at a time, and when again."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from tests.planning.situations import SPEC, drained, routing, situation, temporal, version
from tests.planning.times import DAY, HOUR, ago
from tests.strategies import NOW, with_policy
from twgen.errors import StateUnavailable
from twgen.executing.ports import TickServers
from twgen.executing.temporal import TemporalWriter, delete_records
from twgen.executing.tick import Tick, TickResult, Worker
from twgen.model.forgetting import ForgetReport
from twgen.model.operator import TickSettings
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import World
from twgen.planning.forgetting import OldRecord
from twgen.planning.reads import Unread
from twgen.records.intent import intent_of

KEPT = 2
OLD = [
    drained((30 + number) * HOUR, f"old{number}", created_at=ago((10 + number) * DAY)) for number in range(14)
]
LONGEST_DRAINED_FIRST = [f"old{number}" for number in range(13, 1, -1)]


class Forgetting(TickServers):
    """A tick that looks at one worker, and what it was told to delete at each look."""

    def __init__(self, *, keep: int | None = KEPT, manager: str = "twgen/me", pauses: bool = False) -> None:
        self.spec = with_policy(SPEC, keep_records=keep)
        current = version("v3", VersionStatus.CURRENT)
        of_temporal = temporal(current, *OLD, traffic=routing("v3"))
        self.world = situation(replace(of_temporal, manager_identity=manager), [])
        self.worker = Worker(replace(intent_of(self.spec, "twgen/me"), is_paused=pauses), self.spec, None)
        self.tried: list[list[str]] = []
        self.said: list[str] = []
        self.refuses: dict[str, str] = {}
        self.holds: set[str] = set()
        self.fails = self.lists_deleted = False
        self.read_for_routing = 0
        self.tick = Tick(self, self.said.append, TickSettings(forgets=True), goes_on=True)

    def look(self, after: timedelta = timedelta()) -> TickResult:
        self.world = replace(self.world, taken_at=NOW + after)
        return asyncio.run(self.tick.act([self.worker]))

    def steady(self) -> datetime:
        return self.world.taken_at

    async def read(self, _: Sequence[WorkerSpec], *, for_routing: bool) -> tuple[World, list[Unread]]:
        self.read_for_routing += for_routing
        return self.world, []

    def of(self, spec: WorkerSpec) -> Any:
        assert spec is self.spec
        return self

    async def without_open_workflows(self, records: Sequence[OldRecord]) -> Sequence[OldRecord]:
        self.tried.append([record.build_id for record in records])
        if self.fails:
            raise StateUnavailable("the server cannot count")
        return [record for record in records if record.build_id not in self.holds]

    def temporal(self, identity: str) -> Any:
        assert identity == "twgen/me"
        return self

    async def delete_version(self, build_id: str) -> None:
        if build_id in self.refuses:
            raise StateUnavailable(self.refuses[build_id])
        key, known = self.spec.key, self.world.workers[self.spec.key]
        assert known.temporal
        left = tuple(item for item in known.temporal.versions if item.build_id != build_id)
        if not self.lists_deleted:
            known = replace(known, temporal=replace(known.temporal, versions=left))
        self.world = replace(self.world, workers={key: known})


def test_records_go_ten_at_a_look_the_longest_drained_first_until_the_newest_are_left() -> None:
    tick = Forgetting()
    for _ in range(3):
        assert tick.look().failures == []
    assert tick.tried == [LONGEST_DRAINED_FIRST[:10], LONGEST_DRAINED_FIRST[10:]]
    assert tick.said[0] == "shop/payments old13: deleted its record in Temporal, as its RolloutPolicy says"
    assert len(tick.said) == len(LONGEST_DRAINED_FIRST)
    assert tick.read_for_routing == 2, "each time by facts of then, and no longer once all are gone"


@pytest.mark.parametrize(
    "tick",
    [
        Forgetting(keep=None),
        Forgetting(keep=len(OLD)),
        Forgetting(manager="ana"),
        Forgetting(manager=""),
        Forgetting(pauses=True),
    ],
    ids=["no policy", "few", "another manager", "no manager", "paused intent"],
)
def test_nothing_goes_that_the_policy_keeps_or_another_manages(tick: Forgetting) -> None:
    assert tick.look().failures == []
    assert tick.tried == []


def test_record_that_stays_is_tried_again_after_an_hour_and_then_ever_later() -> None:
    tick = Forgetting()
    tick.holds, tick.refuses = {"old13"}, {"old12": "it has pollers"}
    assert tick.look().failures == ["shop/payments: an old version was not deleted: old12: it has pollers"]
    assert tick.look(HOUR / 2).failures == []
    tick.tried.clear()
    hours = []
    for hour in range(1, 100):
        tick.look(hour * HOUR)
        if tick.tried and "old12" in tick.tried.pop():
            hours.append(hour)
    assert hours == [1, 3, 7, 15, 31, 55, 79]


def test_failure_to_count_is_no_reason_to_ask_at_every_look() -> None:
    tick = Forgetting()
    tick.fails = True
    assert tick.look().failures == ["the server cannot count"]
    tick.look()
    assert tick.tried == [LONGEST_DRAINED_FIRST[:10], LONGEST_DRAINED_FIRST[10:]]
    tick.look(HOUR / 2)
    assert len(tick.tried) == 2


def test_three_refusals_end_the_deletion() -> None:
    class Refusing:
        async def delete_version(self, build_id: str) -> None:
            if build_id != "a":
                raise StateUnavailable("it has pollers")

    records = [OldRecord(name, DAY) for name in "abcdef"]
    forgotten = asyncio.run(delete_records(cast("TemporalWriter", Refusing()), "shop/payments", records))
    refused = tuple(f"{name}: it has pollers" for name in "bcd")
    assert forgotten == ForgetReport("shop/payments", ("a",), refused)


def test_record_that_a_server_lists_after_its_deletion_is_not_deleted_at_every_look() -> None:
    tick = Forgetting()

    tick.lists_deleted = True
    for minute in range(30):
        tick.look(minute * HOUR / 60)
    assert len([name for names in tick.tried for name in names]) == len(LONGEST_DRAINED_FIRST)
