"""Reads and writes one worker's servers, for commands and for rollouts."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from twgen.cli.live import Connections
from twgen.cli.settings import clock
from twgen.clients.deadline import monotonic
from twgen.clients.kubernetes import Heard
from twgen.executing.ports import Clock, ServersOfWorker
from twgen.executing.temporal import TemporalWriter
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import WorkerDeployment
from twgen.model.times import later
from twgen.model.world import World
from twgen.planning.forgetting import OldRecord, without_workflows
from twgen.planning.plan import worker_world
from twgen.reading.kubernetes import read_gate_input
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.temporal.workflows import Draining


async def sleep(length: timedelta) -> None:
    """Wait for this length of time."""
    await asyncio.sleep(length.total_seconds())


class SlowestClock:
    """The slowest of three clocks: this machine's, the API server's, and Temporal's.

    Temporal reports when a step of a ramp began, but not the current time. With a clock that is ahead of
    Temporal's, a step's pause would end too early. With a clock that is behind, the pause only takes longer.
    Actions that must not be late use the fastest clock instead, which is `apart()` ahead of this clock.
    """

    def __init__(
        self,
        own: Callable[[], datetime],
        monotonic: Callable[[], float],
        api_server: Callable[[], Heard | None],
    ) -> None:
        self._own = own
        self._monotonic = monotonic
        self._api_server = api_server
        self._temporal: Heard | None = None
        """An upper limit for Temporal's time, from the newest change that happened between two reads."""
        self._newest_change: Heard | None = None
        """The time of the newest routing change, and when the read that showed this change began."""

    def __call__(self) -> datetime:
        """The current time, without fractions of a second."""
        return min(self._times(self._temporal)).replace(microsecond=0)

    def apart(self) -> timedelta:
        """How far the fastest clock is ahead of the slowest."""
        # Temporal's clock has passed the time of the newest change
        return max(self._times(self._newest_change)) - self()

    def _times(self, temporal: Heard | None) -> list[datetime]:
        """The current time on each clock."""
        now, heard = self._monotonic(), filter(None, (self._api_server(), temporal))
        return [self._own(), *(later(time, timedelta(seconds=now - at)) for time, at in heard)]

    def saw(self, changed_at: datetime | None, began: float) -> None:
        """Note the time of the last routing change. `began` is the monotonic time when the read began.

        If a read shows a change that the previous read did not show, the change happened after the previous
        read began, whatever the clocks say. The newest change replaces older ones, because a clock may
        have been wrong before, and because pauses begin with a change.
        """
        if not changed_at:
            return
        before, self._newest_change = self._newest_change, Heard(changed_at, began)
        if before and before.server_time < changed_at:
            self._temporal = Heard(changed_at, before.at)


class LocalClock(Clock):
    """This machine's clock."""

    def now(self) -> datetime:
        return clock()

    async def sleep(self, length: timedelta) -> None:
        await sleep(length)


class WorkerServers(LocalClock, ServersOfWorker):
    """Access to one worker's servers, for a command that a user runs."""

    def __init__(self, spec: WorkerSpec, opened: Connections) -> None:
        self.spec, self.opened = spec, opened

    async def read(self, *, for_routing: bool = True) -> World:
        return await self.opened.read([self.spec], for_routing=for_routing)

    async def read_routing(self) -> WorkerDeployment | None:
        deadline = self.opened.settings.reading_deadline()
        return await TemporalReader(self.opened.temporal, deadline).deployment(self.spec)

    def temporal(self, identity: str) -> TemporalWriter:
        return TemporalWriter(self.spec, identity, self.opened.temporal, self.opened.settings.timeout)

    def shared(self) -> TemporalReader:
        """A reader of Temporal, with one deadline for all responses."""
        return TemporalReader(self.opened.temporal, self.opened.deadline())

    def batches(self, now: datetime) -> Draining:
        """A reader of workflows and batch operations, with one deadline for all responses."""
        return Draining(self.spec, self.shared(), now, timedelta())

    async def without_open_workflows(self, records: Sequence[OldRecord]) -> tuple[OldRecord, ...]:
        """The records of versions that have no open workflows now."""
        build_ids = [record.build_id for record in records]
        return without_workflows(records, await self.shared().open_workflows(self.spec, build_ids))

    async def gate_input(self) -> bytes | None:
        return await read_gate_input(self.spec, self.opened.kubernetes, self.opened.deadline())


class RolloutServers(WorkerServers):
    """Access to one worker's servers, for a rollout.

    A rollout uses the slowest clock. It continues if a read fails that is needed only for explanations.
    """

    def __init__(self, spec: WorkerSpec, opened: Connections) -> None:
        super().__init__(spec, opened)
        cluster = opened.kubernetes
        self._slowest = SlowestClock(clock, monotonic, lambda: cluster.heard if cluster else None)

    def now(self) -> datetime:
        return self._slowest()

    async def read(self, *, for_routing: bool = True) -> World:
        began = monotonic()
        world = await self.opened.read([self.spec], for_routing=for_routing, goes_on=True)
        worker = worker_world(self.spec, world)
        self._saw(worker.temporal, began)
        # leave out other objects in the cluster: they belong to workers in other specs and intents
        return World(self.now(), {self.spec.key: replace(worker, clocks_apart=self._slowest.apart())})

    async def read_routing(self) -> WorkerDeployment | None:
        began = monotonic()
        temporal = await super().read_routing()
        self._saw(temporal, began)
        return temporal

    def _saw(self, temporal: WorkerDeployment | None, began: float) -> None:
        self._slowest.saw(temporal.routing.changed_at if temporal else None, began)
