"""One look at all rollouts of a cluster: which renders are outdated, and which Jobs are to run again."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from twgen.errors import TwgenError
from twgen.model.operator import Caller
from twgen.model.spec import WorkerSpec
from twgen.model.world import EndedJob, OlderJob, Routing, World
from twgen.planning.plan import make_plan, plan_versions, worker_world
from twgen.planning.refresh import Rendered, plan_hash, runs_again
from twgen.planning.worker_status import make_status
from twgen.records.intent import Intent
from twgen.records.rollout_status import RolloutStatus
from twgen.reporting.status.document import rollout_status

_AT_ONCE = 8
"""Readings: with those of a server that never answers, the others still have their turn."""


class Worker(NamedTuple):
    """A worker whose rollout a cluster carries out."""

    intent: Intent
    spec: WorkerSpec
    ended: EndedJob | None
    """The newest Job of its intent, where that has ended."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look found."""

    applications: defaultdict[str, list[Rendered]] = field(default_factory=lambda: defaultdict(list))
    """What each has rendered last."""
    statuses: dict[str, RolloutStatus] = field(default_factory=dict)
    """How each worker stands now."""
    failures: list[str] = field(default_factory=list)

    def newer(self, status: RolloutStatus) -> RolloutStatus:
        """What a rollout left to read, with what its worker has become since.

        Phase and reason stay the rollout's own word: a look reads neither task queues nor gates.
        """
        now = self.statuses.get(status.worker)
        return replace(status, percentage=now.percentage, document=now.document) if now else status


class Read(Protocol):
    """What is known of workers right now; raises TwgenError when one of them cannot be read."""

    async def __call__(self, workers: Sequence[WorkerSpec], /, *, for_routing: bool) -> World:
        """With `for_routing`, also what decides on traffic."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One look, and its ways to the world."""

    read: Read
    delete: Callable[[Intent, OlderJob], Awaitable[None]]
    say: Callable[[str], None]
    """Gets every change that was made."""
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def act(self, workers: Sequence[Worker]) -> Seen:
        """Delete the Jobs that are to run again, and tell what was seen."""
        seen = Seen()
        by_namespace: defaultdict[str, list[Worker]] = defaultdict(list)
        for worker in workers:
            by_namespace[worker.intent.namespace].append(worker)

        async def look_at(group: Sequence[Worker]) -> None:
            try:
                async with self._turns:
                    world = await self.read([worker.spec for worker in group], for_routing=False)
            except TwgenError as error:
                if len(group) == 1:
                    seen.failures.append(str(error))
                else:
                    # whoever can be read alone is
                    await asyncio.gather(*(look_at([worker]) for worker in group))
                return
            for worker in group:
                try:
                    seen.statuses[worker.spec.worker_deployment] = _status(worker, world)
                    rendered = _rendered(worker, world)
                    if rendered.application:
                        seen.applications[rendered.application].append(rendered)
                    if worker.ended:
                        await self._run_again(worker, worker.ended, world)
                except TwgenError as error:
                    seen.failures.append(str(error))

        await asyncio.gather(*map(look_at, by_namespace.values()))
        return seen

    async def _run_again(self, worker: Worker, job: EndedJob, world: World) -> None:
        """Delete a Job that has something to do again; more is only read where it may have."""
        spec, temporal = worker.spec, worker_world(worker.spec, world).temporal
        routing = temporal.routing if temporal else Routing()
        if routing.current and routing.current.build_id == spec.build_id and not routing.ramping:
            return
        async with self._turns:
            world = await self.read([spec], for_routing=True)
        [plan] = make_plan([spec], world, world.taken_at, _caller(worker)).workers
        if runs_again(plan, job.ended_at, world.taken_at):
            await self.delete(worker.intent, OlderJob(job.name, job.uid))
            because = plan.routing.because
            self.say(f"{spec.worker_deployment}: deleted Job {job.name}, which has ended: {because}")


def _caller(worker: Worker) -> Caller:
    """As whom its rollout is carried out."""
    return worker.intent.caller


def _status(worker: Worker, world: World) -> RolloutStatus:
    now, caller = world.taken_at, _caller(worker)
    status = make_status(make_plan([worker.spec], world, now, caller), world, caller)
    return rollout_status(status, now, worker.intent.hash)


def _rendered(worker: Worker, world: World) -> Rendered:
    """With what a render could say now, which reads the cluster or not, and may have a ledger of it."""
    intent, spec, found = worker.intent, worker.spec, worker_world(worker.spec, world)
    key = spec.worker_deployment, spec.temporal_namespace
    applied = {live.build_id: live.recorded for live in found.deployments or ()}
    possible = [
        replace(world, workers={key: replace(found, deployments=deployments, ledger=ledger)})
        for deployments in (found.deployments, None)
        for ledger in ({}, applied)
    ]
    plans = (plan_versions([spec], each, world.taken_at, _caller(worker)).workers for each in possible)
    hashes = frozenset(plan_hash(versions) for [versions] in plans)
    return Rendered(spec.worker_deployment, intent.application, intent.plan_hash, hashes)
