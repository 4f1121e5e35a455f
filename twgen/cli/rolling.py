"""The servers of a worker, as a command and as a rollout uses them, and the exit code after rollouts."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from twgen.cli.following import RolloutState
from twgen.cli.live import Connections
from twgen.cli.settings import clock
from twgen.clients.deadline import monotonic
from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.executing.clock import SlowestClock
from twgen.executing.ports import Clock, Servers
from twgen.executing.temporal import TemporalWriter
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.reasons.routing import RoutingReason
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import World
from twgen.planning.plan import worker_world
from twgen.planning.pruning import OldRecord, without_workflows
from twgen.reading.kubernetes import read_gate_input
from twgen.reading.temporal.pinned_workflows import Draining
from twgen.reading.temporal.reader import TemporalReader


async def sleep(length: timedelta) -> None:
    """Let a length of time pass."""
    await asyncio.sleep(length.total_seconds())


class LocalClock(Clock):
    """The clock of this machine."""

    def now(self) -> datetime:
        return clock()

    async def sleep(self, length: timedelta) -> None:
        await sleep(length)


class WorkerServers(LocalClock, Servers):
    """The servers of one worker, for a person's command."""

    def __init__(self, spec: WorkerSpec, opened: Connections) -> None:
        self.spec, self.opened = spec, opened

    async def read(self, *, for_routing: bool = True) -> World:
        return await self.opened.read([self.spec], for_routing=for_routing)

    async def glance(self) -> WorkerDeployment | None:
        deadline = self.opened.settings.reading_deadline()
        return await TemporalReader(self.opened.temporal, deadline).deployment(self.spec)

    def temporal(self, identity: str) -> TemporalWriter:
        return TemporalWriter(self.spec, identity, self.opened.temporal, self.opened.settings.timeout)

    def shared(self) -> TemporalReader:
        """Reads Temporal, with one deadline for all answers."""
        return TemporalReader(self.opened.temporal, self.opened.deadline())

    def batches(self, now: datetime) -> Draining:
        """Reads workflows, and batch operations on them, with one deadline."""
        return Draining(self.spec, self.shared(), now, timedelta())

    async def without_open_workflows(self, records: Sequence[OldRecord]) -> tuple[OldRecord, ...]:
        """The records on which no workflow is open now."""
        build_ids = [record.build_id for record in records]
        return without_workflows(records, await self.shared().open_workflows(self.spec, build_ids))

    async def gate_input(self) -> bytes | None:
        return await read_gate_input(self.spec, self.opened.kubernetes, self.opened.deadline())


class RolloutServers(WorkerServers):
    """The same for a rollout: it uses the slowest clock, and goes on if a read that only explains fails."""

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
        # other objects in the cluster belong to workers that other specs and intents name
        return World(self.now(), {self.spec.key: replace(worker, clocks_apart=self._slowest.apart())})

    async def glance(self) -> WorkerDeployment | None:
        began = monotonic()
        temporal = await super().glance()
        self._saw(temporal, began)
        return temporal

    def _saw(self, temporal: WorkerDeployment | None, began: float) -> None:
        self._slowest.saw(temporal.routing.changed_at if temporal else None, began)


def judge(outcomes: Sequence[WorkerPlan | BaseException]) -> None:
    """Raise the reason why rollouts have not succeeded, if any."""
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    plans = [plan for plan in outcomes if isinstance(plan, WorkerPlan)]
    blocked = [plan for plan in plans if plan.routing.phase is Phase.BLOCKED]
    sentence = "; ".join(str(RolloutState.of(plan)) for plan in blocked)
    if any(plan.routing.reason is RoutingReason.FOREIGN_MANAGER for plan in blocked):
        raise OwnedBySomebodyElse(sentence)
    if blocked:
        raise NegativeAnswer(sentence)
