"""What a policy does to the workflows of a version is begun once, wherever who begins it is killed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.executing.test_tick import Servers, worker
from tests.planning.draining.test_actions import DRAINS, draining, world_of
from tests.planning.situations import live, situation
from tests.planning.times import DAY, HOUR
from tests.strategies import NOW
from twgen.clients.temporal import OneAtATime
from twgen.executing.temporal import begin
from twgen.executing.tick import Tick
from twgen.model.draining import Batch, BatchState
from twgen.model.operator import TickSettings
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import World
from twgen.planning.draining.actions import due_actions
from twgen.planning.plan import worker_world
from twgen.planning.reads import Unread
from twgen.planning.routing.target import Target

ENDED = BatchState(is_running=False, has_failed=False, total=0, done=0, failed=0, started_at=NOW)


class Killed(Exception):
    """Nobody goes on after it."""


@dataclass
class Server:
    """Workflows of one version, and who does what to them; it is killed after so many calls."""

    workflows: int = 5
    calls: int = 99
    metadata: dict[str, Any] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    counts: int = 0
    is_busy: bool = False

    def _called(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise Killed

    async def batch(self, job_id: str) -> BatchState | None:
        self._called()
        total = self.batches.get(job_id)
        return None if total is None else replace(ENDED, total=total, done=total)

    async def count(self, query: str) -> int:
        self._called()
        assert query.endswith(" AND CloseTime IS NULL")
        self.counts += 1
        return self.workflows

    async def start_batch(self, batch: Batch, reason: str) -> None:
        assert reason == "twgen, by its RolloutPolicy: send signal stop to 5 workflows of v1"
        assert batch.job_id not in self.batches, "it would be done twice"
        if self.is_busy:
            raise OneAtATime
        self._called()
        self.batches[batch.job_id] = self.workflows

    async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        assert build_id == "v1"
        self._called()
        self.metadata |= marks

    def target(self, moved: timedelta) -> Target:
        says = world_of(draining(DAY + HOUR + moved, self.metadata))
        return Target(DRAINS, worker_world(DRAINS, situation(says, [live("v3")])), NOW, "me")

    def look(self, moved: timedelta = timedelta()) -> None:
        """One look, as far as it gets; the version drains for that much longer than at noon."""

        async def story() -> None:
            target = self.target(moved)
            for scheduled_action in due_actions(target):
                await begin(target, scheduled_action, self, self, self.said.append)

        asyncio.run(story())


@pytest.mark.parametrize("killed_after", range(6))
def test_who_is_killed_anywhere_and_begins_again_does_nothing_twice(killed_after: int) -> None:
    server = Server(calls=killed_after)
    if killed_after < 5:
        with pytest.raises(Killed):
            server.look()
    for moved in (1, 2, 3):
        server.calls = 99
        # what a server says of one moment is another minute in the next answer
        server.look(moved * timedelta(milliseconds=1))
    assert list(server.batches.values()) == [5]
    [mark] = server.metadata["twgen.io/drained-by"].values()
    assert (mark["workflows"], mark["action"], mark["job"]) == (5, "Signal", *server.batches)
    [said] = server.said
    assert said.startswith("shop/payments: started to send signal stop to 5 workflows of v1, as its Rollout")
    assert said.endswith(f"(batch {mark['job']})")


def test_server_that_runs_another_batch_operation_is_asked_again_at_the_next_look() -> None:
    server = Server(is_busy=True)
    server.look()
    [announced] = server.metadata["twgen.io/drained-by"].values()
    assert (server.batches, "at" in announced) == ({}, False)
    [said] = server.said
    assert said.startswith(
        "shop/payments: will send signal stop to 5 workflows of v1 when the running batch operation"
    )
    server.is_busy = False
    server.look()
    assert list(server.batches) == [announced["job"]]


def test_entry_that_finds_nobody_is_behind_its_version() -> None:
    server = Server(workflows=0)
    server.look()
    server.look()
    assert (server.batches, server.said, server.counts) == ({}, [], 1)


def test_tick_reads_more_only_for_what_was_not_begun_and_only_where_it_may() -> None:
    reads: list[bool] = []
    temporal = Server()

    class Reading(Servers):
        async def read(self, specs: Any, *, for_routing: bool) -> tuple[World, list[Unread]]:
            reads.append(for_routing)
            return await super().read(specs, for_routing=for_routing)

        def of(self, _: WorkerSpec) -> Any:
            return SimpleNamespace(batches=lambda _: temporal, temporal=lambda _: temporal)

    tick = Tick(Reading(print), print, TickSettings(), goes_on=True)

    def look(says: WorkerDeployment, *, may: bool = True, paused: bool = False) -> list[bool]:
        def read(specs: Any) -> tuple[World, list[Unread]]:
            [known] = situation(says, [live("v3")]).workers.values()
            return World(NOW, {each.key: known for each in specs}), []

        reads.clear()
        tick.servers, tick.allowed = Reading(read), TickSettings(drains=may)
        known = worker("shop", spec=spec)
        known = known._replace(intent=replace(known.intent, is_paused=paused))
        assert asyncio.run(tick.act([known])).failures == []
        return reads

    spec: WorkerSpec = DRAINS
    due = world_of(draining(DAY + HOUR))
    assert look(due, may=False) == look(due, paused=True) == [False]
    assert look(world_of(draining(HOUR))) == [False]
    assert look(replace(due, manager_identity="somebody")) == [False]
    assert look(due) == [False, True]
    assert len(temporal.batches) == 1
    assert look(due) == [False], "what was begun is not asked for again"
    assert len(temporal.batches) == 1
    [job_id] = tick.begun["shop/payments"]
    tick.begun["shop/payments"][job_id] = NOW
    assert look(due) == [False, True], "it may be to be begun again"
