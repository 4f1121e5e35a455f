"""One look at all rollouts of a cluster: which renders are outdated, and which Jobs are to run again."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from twgen.errors import TwgenError
from twgen.model.operator import Caller
from twgen.model.plan import Plan, WorkerVersions
from twgen.model.rollout import EndedJob, JobReference
from twgen.model.spec import WorkerSpec
from twgen.model.world import Routing, World
from twgen.planning.plan import make_plan, plan_versions, worker_world
from twgen.planning.refresh import Rendered, plan_hash, runs_again
from twgen.planning.worker_status import make_status
from twgen.records.intent import Intent
from twgen.records.rollout_status import RolloutStatus
from twgen.reporting.status.document import is_news, rollout_status

_AT_ONCE = 8
"""Namespaces: with those of a server that never answers, the others still have their turn."""


class Worker(NamedTuple):
    """A worker whose rollout a cluster carries out."""

    intent: Intent
    spec: WorkerSpec
    ended: EndedJob | None
    """The newest Job of its intent, where that has ended."""
    told: RolloutStatus | None = None
    """The status that the cluster keeps of it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look found."""

    applications: defaultdict[str, list[Rendered]] = field(default_factory=lambda: defaultdict(list))
    """What each has rendered last."""
    statuses: dict[str, RolloutStatus] = field(default_factory=dict)
    """How each worker stands now."""
    kept: dict[str, RolloutStatus] = field(default_factory=dict)
    """The statuses of those whose traffic nothing in the cluster moves."""
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def whatever_fails(self) -> Iterator[None]:
        """What fails of one worker is no failure of the others."""
        try:
            yield
        except TwgenError as error:
            self.failures.append(str(error))

    def newer(self, told: Iterable[RolloutStatus]) -> list[RolloutStatus]:
        """What rollouts left to read, with what their workers have become since.

        Phase and reason stay the rollout's own word: most looks read neither task queues nor gates.
        """
        found = {status.worker: status for status in told}
        for worker in found.keys() & self.statuses.keys():
            now = self.statuses[worker]
            found[worker] = replace(found[worker], percentage=now.percentage, document=now.document)
        return [status for _, status in sorted((found | self.kept).items())]


class ReadWorkers(Protocol):
    """What is known right now of those workers that can be read, and why the others cannot be."""

    async def __call__(
        self, workers: Sequence[WorkerSpec], /, *, for_routing: bool
    ) -> tuple[World, Sequence[str]]:
        """With `for_routing`, also what decides on traffic."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One look, and its ways to the world."""

    read: ReadWorkers
    delete: Callable[[Intent, JobReference], Awaitable[None]]
    record: Callable[[Intent, RolloutStatus], Awaitable[None]]
    """Keeps the status of a worker in the cluster."""
    say: Callable[[str], None]
    """Gets every change that was made."""
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def act(self, workers: Sequence[Worker]) -> Seen:
        """Delete the Jobs that are to run again, keep the statuses that no Job keeps; what was seen."""
        seen = Seen()
        by_namespace: defaultdict[str, list[Worker]] = defaultdict(list)
        for worker in workers:
            by_namespace[worker.intent.namespace].append(worker)

        async def look_at(group: Sequence[Worker]) -> None:
            async with self._turns:
                found = await self._read(group, seen)
                unsettled = []
                for worker, world in found:
                    with seen.whatever_fails():
                        _note(worker, world, seen)
                        # what decides on traffic is only read where there may be something to do
                        if _moves(worker, world) and (worker.ended or worker.intent.is_rolled_out_by_hand):
                            unsettled.append(worker)
                        elif worker.intent.is_rolled_out_by_hand:
                            await self._keep(worker, world, seen)
                if unsettled:
                    for worker, world in await self._read(unsettled, seen, for_routing=True):
                        with seen.whatever_fails():
                            if worker.intent.is_rolled_out_by_hand:
                                await self._keep(worker, world, seen)
                            else:
                                await self._run_again(worker, world)

        await asyncio.gather(*map(look_at, by_namespace.values()))
        return seen

    async def _read(
        self, workers: Sequence[Worker], seen: Seen, *, for_routing: bool = False
    ) -> list[tuple[Worker, World]]:
        """Those that can be read, each with what is known of it alone."""
        world, failures = await self.read([worker.spec for worker in workers], for_routing=for_routing)
        seen.failures.extend(failures)
        return [
            (worker, replace(world, workers={key: world.workers[key]}))
            for worker in workers
            if (key := worker.spec.key) in world.workers
        ]

    async def _keep(self, worker: Worker, world: World, seen: Seen) -> None:
        """Write the status of a worker whose traffic nothing in the cluster moves, where there is news."""
        now, told = _status(worker, world, _plan(worker, world)), worker.told
        if told and (told.phase, told.reason) == (now.phase, now.reason):
            now = replace(now, since=told.since)
        # a Job may have taken over since
        now = replace(now, resource_version=told.resource_version if told else "")
        seen.kept[now.worker] = now
        if not told or is_news(told, now):
            await self.record(worker.intent, now)

    async def _run_again(self, worker: Worker, world: World) -> None:
        """Delete a Job that has ended and has something to do again."""
        job, now = worker.ended, world.taken_at
        [plan] = _plan(worker, world).workers
        if job and runs_again(plan, job.ended_at, now):
            await self.delete(worker.intent, JobReference(job.name, job.uid))
            because = plan.routing.because
            self.say(f"{worker.spec.worker_deployment}: deleted Job {job.name}, which has ended: {because}")


def _note(worker: Worker, world: World, seen: Seen) -> None:
    """How it stands, and whether it is rendered as it would be now."""
    plan, application = _plan(worker, world), worker.intent.application
    seen.statuses[worker.spec.worker_deployment] = _status(worker, world, plan)
    if application:
        seen.applications[application].append(_rendered(worker, plan, world))


def _plan(worker: Worker, world: World) -> Plan:
    return make_plan([worker.spec], world, world.taken_at, _caller(worker))


def _status(worker: Worker, world: World, plan: Plan) -> RolloutStatus:
    status = make_status(plan, world, _caller(worker))
    return rollout_status(status, world.taken_at, worker.intent.hash)


def _moves(worker: Worker, world: World) -> bool:
    """Its target has not all of the traffic."""
    temporal = worker_world(worker.spec, world).temporal
    routing = temporal.routing if temporal else Routing()
    return bool(routing.ramping or not routing.current or routing.current.build_id != worker.spec.build_id)


def _caller(worker: Worker) -> Caller:
    """As whom its rollout is carried out."""
    return replace(worker.intent.caller, drives=not worker.intent.is_rolled_out_by_hand)


def _rendered(worker: Worker, plan: Plan, world: World) -> Rendered:
    """What is applied of it, beside what a render would say now."""
    intent, renders = worker.intent, _possible_renders(worker, plan, world)
    wanted = frozenset(map(plan_hash, renders))
    return Rendered(worker.spec.worker_deployment, intent.application, intent.plan_hash, wanted)


def _possible_renders(worker: Worker, plan: Plan, world: World) -> Iterator[WorkerVersions]:
    """One that reads the cluster, and one that does not; each may have a ledger of what is live."""
    yield plan.workers[0].versions
    [(key, found)] = world.workers.items()
    applied = {live.build_id: live.recorded for live in found.deployments or ()}
    for deployments, ledger in ((found.deployments, applied), (None, {}), (None, applied)):
        render = replace(world, workers={key: replace(found, deployments=deployments, ledger=ledger)})
        yield from plan_versions([worker.spec], render, world.taken_at, _caller(worker)).workers
