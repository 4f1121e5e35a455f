"""One look at all rollouts of a cluster: which renders are outdated, and which Jobs must run again."""

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
"""Namespaces: those of a server that never answers must not delay the others."""


class Worker(NamedTuple):
    """A worker whose rollout a cluster carries out."""

    intent: Intent
    spec: WorkerSpec
    ended: EndedJob | None
    """The newest Job of its intent, if it has ended."""
    kept: RolloutStatus | None = None
    """Its status in the cluster."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of one look."""

    applications: defaultdict[str, list[Rendered]] = field(default_factory=lambda: defaultdict(list))
    """The last renders of each application."""
    statuses: dict[str, RolloutStatus] = field(default_factory=dict)
    """The current status of each worker."""
    kept: dict[str, RolloutStatus] = field(default_factory=dict)
    """The statuses of the workers whose traffic nothing in the cluster moves now."""
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def whatever_fails(self) -> Iterator[None]:
        """Collect the failure of one worker, so that it does not stop the others."""
        try:
            yield
        except TwgenError as error:
            self.failures.append(str(error))

    def newer(self, statuses: Iterable[RolloutStatus]) -> list[RolloutStatus]:
        """The statuses that rollouts left in the cluster, with the newer state of their workers.

        Phase and reason stay those of the rollout: most looks read neither task queues nor gates.
        """
        left = {status.worker: status for status in statuses}
        for worker in left.keys() & self.statuses.keys():
            left[worker] = brought_up_to_date(left[worker], self.statuses[worker])
        return [status for _, status in sorted((left | self.kept).items())]


@dataclass(frozen=True)
class _Observation:
    """A worker, and the state of it alone."""

    worker: Worker
    world: World
    attached: dict[str, AttachedRead]
    """The attached objects, which are read once the plans say which ones there should be."""

    @property
    def caller(self) -> Caller:
        """The identity that plans it."""
        intent = self.worker.intent
        return replace(intent.caller, drives=not intent.is_rolled_out_by_hand)

    @cached_property
    def plan(self) -> Plan:
        """The plan of its rollout."""
        return make_plan([self.worker.spec], self.world, self.world.taken_at, self.caller)

    @property
    def status(self) -> RolloutStatus:
        """Its current status."""
        status = make_status(self.plan, self.world, self.caller, self.attached)
        return rollout_status(status, self.plan.now, self.worker.intent.hash)

    @property
    def target(self) -> Target:
        """Its target, as its rollout sees it."""
        intent, spec = self.worker.intent, self.worker.spec
        return Target(spec, worker_world(spec, self.world), self.plan.now, intent.identity, not_created="")

    def note(self, seen: Seen) -> None:
        """Keep its status, and whether a new render would differ."""
        intent, [plan] = self.worker.intent, self.plan.workers
        seen.statuses[plan.spec.worker_deployment] = self.status
        if intent.application:
            wanted = frozenset(map(plan_hash, possible_renders(plan, self.world, self.caller)))
            rendered = Rendered(plan.spec.worker_deployment, intent.application, intent.plan_hash, wanted)
            seen.applications[intent.application].append(rendered)


class ReadWorkers(Protocol):
    """Reads the workers; also returns why some of them cannot be read."""

    async def __call__(
        self, workers: Sequence[WorkerSpec], /, *, for_routing: bool
    ) -> tuple[World, Sequence[str]]:
        """With `for_routing`, also task queues, gates and all else that decides on traffic."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One look, with its functions that read and write."""

    read: ReadWorkers
    delete: Callable[[Intent, JobReference], Awaitable[None]]
    record: Callable[[Intent, RolloutStatus], Awaitable[None]]
    """Writes the status of a worker into the cluster."""
    say: Callable[[str], None]
    """Gets every change that was made."""
    drain: Callable[[Target, ScheduledEnding], Awaitable[bool]] | None = None
    """Starts what a policy does to the workflows of a version, if it can; None: it is not allowed."""
    attached: Callable[[Mapping[str, set[GroupKind]]], Awaitable[Mapping[str, AttachedRead]]] | None = None
    """Reads the objects of these kinds, by namespace; raises no TwgenError."""
    begun: dict[str, datetime] = field(default_factory=dict)
    """The batch operations that have started, and until when each has nothing more to do."""
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def act(self, workers: Sequence[Worker]) -> Seen:
        """Delete the Jobs that must run again, and write the statuses that no Job writes."""
        seen = Seen()
        by_namespace: defaultdict[str, list[Worker]] = defaultdict(list)
        for worker in workers:
            by_namespace[worker.intent.namespace].append(worker)
            if worker.ended and worker.ended.is_older:
                # without a look at Temporal: no Job has run for this intent yet
                with seen.whatever_fails():
                    why = "it ran for an earlier intent, which was deleted"
                    await self._delete(worker, worker.ended, why)

        async def look_at(group: Sequence[Worker]) -> None:
            async with self._turns:
                unsettled = []
                for look in await self._read(group, seen):
                    worker, by_hand = look.worker, look.worker.intent.is_rolled_out_by_hand
                    with seen.whatever_fails():
                        look.note(seen)
                        # reads for routing are only made if there may be something to do
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
        """Look at the workers that can be read."""
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
        """Write the status of a worker whose traffic nothing in the cluster moves, if it is news."""
        worker, kept = look.worker, look.worker.kept
        now: RolloutStatus | None = None
        if worker.intent.is_rolled_out_by_hand:
            now = look.status
        elif worker.ended and worker.ended.is_hook and kept:
            now = since_its_hook(kept, look.status)
        if not now:
            return
        # the resource version, since a Job may have taken over in the meantime
        since, version = (since_when(kept, now), kept.resource_version) if kept else (now.since, "")
        now = replace(now, since=since, resource_version=version)
        seen.kept[now.worker] = now
        if not kept or is_news(kept, now):
            await self.record(worker.intent, now)

    async def _run_again(self, look: _Observation) -> None:
        """Delete a Job that Argo CD tracks, has ended, and has something to do again."""
        worker, ended, [plan] = look.worker, look.worker.ended, look.plan.workers
        if not ended or ended.is_hook or ended.is_older or worker.intent.is_rolled_out_by_hand:
            return
        if runs_again(plan, ended.ended_at, look.plan.now):
            await self._delete(worker, ended, plan.routing.because)

    async def _delete(self, worker: Worker, ended: EndedJob, because: str) -> None:
        await self.delete(worker.intent, ended.job)
        self.say(f"{worker.spec.worker_deployment}: deleted Job {ended.job.name}, which has ended: {because}")

    def _may_end(self, look: _Observation) -> bool:
        """A batch operation may be due; after one that has started, the next may be due only later."""
        target, now = look.target, look.plan.now
        if not may_end_workflows(target):
            return False
        wanted = old_enough(target.spec, target.temporal, target.now)
        return any(self.begun.get(job_id, now) <= now for job_id in wanted)

    async def _drain(self, look: _Observation, seen: Seen) -> None:
        """Start what is due for the workflows of draining versions, and note what has started before."""
        if not self.drain:
            return
        target = look.target
        self.begun.update(settled_until(target))
        for ending in due_endings(target):
            with seen.whatever_fails():
                if await self.drain(target, ending):
                    self.begun[ending.job_id] = later(target.now, REPEATED_AFTER)
