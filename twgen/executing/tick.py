"""One look at all rollouts of a cluster: which renders are outdated, and which Jobs are to run again."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, Protocol

from twgen.errors import TwgenError
from twgen.model.draining import ScheduledEnding
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import Plan
from twgen.model.rollout import EndedJob, JobReference, RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.times import later
from twgen.model.values import dataclass
from twgen.model.world import World
from twgen.planning.attached_status import AttachedRead, attached_to_read
from twgen.planning.draining.schedule import (
    REPEATED_AFTER,
    due_endings,
    may_end_workflows,
    old_enough,
    settled_until,
)
from twgen.planning.plan import make_plan, worker_world
from twgen.planning.refresh import Rendered, plan_hash, possible_renders, runs_again
from twgen.planning.rollout import brought_up_to_date, since_its_hook, since_when
from twgen.planning.routing.target import Target
from twgen.planning.worker_status import make_status
from twgen.records.intent import Intent
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
    """The statuses of those whose traffic nothing in the cluster moves now."""
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def whatever_fails(self) -> Iterator[None]:
        """What fails of one worker is no failure of the others."""
        try:
            yield
        except TwgenError as error:
            self.failures.append(str(error))

    def newer(self, statuses: Iterable[RolloutStatus]) -> list[RolloutStatus]:
        """What rollouts left to read, with what their workers have become since.

        Phase and reason stay the rollout's own word: most looks read neither task queues nor gates.
        """
        found = {status.worker: status for status in statuses}
        for worker in found.keys() & self.statuses.keys():
            found[worker] = brought_up_to_date(found[worker], self.statuses[worker])
        return [status for _, status in sorted((found | self.kept).items())]


@dataclass(frozen=True)
class _Observation:
    """A worker, and what is known of it alone."""

    worker: Worker
    world: World
    attached: dict[str, AttachedRead]
    """What was read of attached objects; nothing before it is known by the plans which there should be."""

    @cached_property
    def plan(self) -> Plan:
        """What is to become of it, as its rollout would plan it."""
        return make_plan([self.worker.spec], self.world, self.world.taken_at, self._caller)

    @property
    def status(self) -> RolloutStatus:
        """How it stands."""
        status = make_status(self.plan, self.world, self._caller, self.attached)
        return rollout_status(status, self.plan.now, self.worker.intent.hash)

    @property
    def target(self) -> Target:
        """Its target, as its rollout sees it."""
        intent, spec = self.worker.intent, self.worker.spec
        return Target(spec, worker_world(spec, self.world), self.plan.now, intent.identity, not_created="")

    @property
    def may_end(self) -> frozenset[str]:
        """The batch operations that its policy may want by now."""
        if not may_end_workflows(target := self.target):
            return frozenset()
        return old_enough(target.spec, target.temporal, target.now)

    @property
    def _caller(self) -> Caller:
        intent = self.worker.intent
        return replace(intent.caller, drives=not intent.is_rolled_out_by_hand)

    def note(self, seen: Seen) -> None:
        """Keep how it stands, and whether it is rendered as it would be now."""
        intent, [plan] = self.worker.intent, self.plan.workers
        seen.statuses[plan.spec.worker_deployment] = self.status
        if intent.application:
            wanted = frozenset(map(plan_hash, possible_renders(plan, self.world, self._caller)))
            rendered = Rendered(plan.spec.worker_deployment, intent.application, intent.plan_hash, wanted)
            seen.applications[intent.application].append(rendered)


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
    drain: Callable[[Target, ScheduledEnding], Awaitable[bool]] | None = None
    """Begins what a policy does to the workflows of a version, if it can be; None: nobody allows that."""
    attached: Callable[[Mapping[str, set[GroupKind]]], Awaitable[Mapping[str, AttachedRead]]] | None = None
    """What the cluster has of these kinds, by namespace; raises nothing that is expected."""
    begun: dict[str, datetime] = field(default_factory=dict)
    """The batch operations that are known to have been begun, and until when each has nothing more to do."""
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def act(self, workers: Sequence[Worker]) -> Seen:
        """Delete the Jobs that are to run again, keep the statuses that no Job keeps; what was seen."""
        seen = Seen()
        by_namespace: defaultdict[str, list[Worker]] = defaultdict(list)
        for worker in workers:
            by_namespace[worker.intent.namespace].append(worker)
            if worker.ended and worker.ended.is_older:
                # whatever Temporal says: nothing has looked at this intent yet
                with seen.whatever_fails():
                    await self._delete(
                        worker, worker.ended, "it ran for an earlier intent, which was deleted"
                    )

        async def look_at(group: Sequence[Worker]) -> None:
            async with self._turns:
                unsettled = []
                for look in await self._read(group, seen):
                    worker, by_hand = look.worker, look.worker.intent.is_rolled_out_by_hand
                    with seen.whatever_fails():
                        look.note(seen)
                        # what decides on traffic is only read where there may be something to do
                        moves = not look.target.has_all_traffic and (worker.ended or by_hand)
                        if moves or (self.drain and self._may_end(look)):
                            unsettled.append(worker)
                        else:
                            await self._keep(look, seen)
                if unsettled:
                    for look in await self._read(unsettled, seen, for_routing=True):
                        with seen.whatever_fails():
                            await self._keep(look, seen)
                            await self._run_again(look)
                        await self._drain(look, seen)

        await asyncio.gather(*map(look_at, by_namespace.values()))
        return seen

    async def _read(
        self, workers: Sequence[Worker], seen: Seen, *, for_routing: bool = False
    ) -> list[_Observation]:
        """Those that can be read."""
        world, failures = await self.read([worker.spec for worker in workers], for_routing=for_routing)
        seen.failures.extend(failures)
        attached: dict[str, AttachedRead] = {}
        looks, plans = [], []
        for worker in workers:
            if (key := worker.spec.key) in world.workers:
                state = RolloutInCluster(is_paused=worker.intent.is_paused)
                known = World(world.taken_at, {key: world.workers[key]}).with_rollout(key, state)
                looks.append(look := _Observation(worker, known, attached))
                with suppress(TwgenError):  # the code that notes it reports it
                    plans += [plan.versions for plan in look.plan.workers]
        if self.attached and (wanted := attached_to_read(plans)):
            attached.update(await self.attached(wanted))
        return looks

    async def _keep(self, look: _Observation, seen: Seen) -> None:
        """Write the status of a worker whose traffic nothing in the cluster moves, where there is news."""
        worker, told = look.worker, look.worker.told
        now: RolloutStatus | None = None
        if worker.intent.is_rolled_out_by_hand:
            now = look.status
        elif worker.ended and worker.ended.is_hook and told:
            now = since_its_hook(told, look.status)
        if not now:
            return
        # a Job may have taken over since
        since, version = (since_when(told, now), told.resource_version) if told else (now.since, "")
        now = replace(now, since=since, resource_version=version)
        seen.kept[now.worker] = now
        if not told or is_news(told, now):
            await self.record(look.worker.intent, now)

    async def _run_again(self, look: _Observation) -> None:
        """Delete a tracked Job that has ended and has something to do again."""
        worker, [plan] = look.worker, look.plan.workers
        ended = worker.ended
        if not ended or ended.is_hook or ended.is_older or worker.intent.is_rolled_out_by_hand:
            return
        if runs_again(plan, ended.ended_at, look.plan.now):
            await self._delete(worker, ended, plan.routing.because)

    async def _delete(self, worker: Worker, ended: EndedJob, because: str) -> None:
        await self.delete(worker.intent, ended.job)
        self.say(f"{worker.spec.worker_deployment}: deleted Job {ended.job.name}, which has ended: {because}")

    def _may_end(self, look: _Observation) -> bool:
        """Some workflows may be to be ended: what was begun is not asked for again before it may be due."""
        return any(self.begun.get(job_id, look.plan.now) <= look.plan.now for job_id in look.may_end)

    async def _drain(self, look: _Observation, seen: Seen) -> None:
        """Begin what is due to the workflows of its versions that drain, and note what was begun before."""
        if not self.drain:
            return
        target = look.target
        self.begun.update(settled_until(target))
        for ending in due_endings(target):
            with seen.whatever_fails():
                if await self.drain(target, ending):
                    self.begun[ending.job_id] = later(target.now, REPEATED_AFTER)
