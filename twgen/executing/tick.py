"""Checks of all rollouts of a cluster: which renders are outdated, and which Jobs must run again."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from twgen.clients.kubernetes import Forbidden
from twgen.errors import TwgenError
from twgen.executing.ports import TickServers
from twgen.executing.temporal import begin, delete_records
from twgen.model.operator import Caller, TickSettings
from twgen.model.plan import Plan
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import Answer, AnswerState, Driver, EndedJob, RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.times import later
from twgen.model.values import dataclass
from twgen.model.world import World
from twgen.planning.draining.actions import (
    REPEATED_AFTER,
    due_actions,
    may_end_workflows,
    old_enough,
    settled_until,
)
from twgen.planning.plan import make_plan, worker_world
from twgen.planning.pruning import NextTry, OldRecord, records_to_prune
from twgen.planning.reads import Unread, unread_lines
from twgen.planning.refresh import Rendered, plan_hash, possible_renders, runs_again
from twgen.planning.requests import refused_without_job
from twgen.planning.rollout import brought_up_to_date, is_news, needs_a_rollout, since_its_hook, since_when
from twgen.planning.routing.target import Target
from twgen.planning.worker_status import AttachedRead, attached_to_read, make_status, rollout_status
from twgen.records.intent import TAKEN_BACK, Intent
from twgen.records.rollout_status import is_of, write_rollout_status
from twgen.reporting.bugs import Bug


class Worker(NamedTuple):
    """A worker whose rollout a cluster carries out."""

    intent: Intent
    spec: WorkerSpec
    ended: EndedJob | None
    """The newest Job of its intent, if it has ended."""
    status: RolloutStatus | None = None
    is_skipped: bool = False
    """Argo CD has skipped its hook, and no Job has its intent."""

    @property
    def driver(self) -> Driver:
        """The program that carries it out."""
        if self.intent.is_rolled_out_by_hand:
            return Driver.NONE
        if self.intent.is_by_tick:
            return Driver.TICK
        return Driver.HOOK if self.intent.has_hook else Driver.JOB

    @property
    def is_carried_out(self) -> bool:
        """A rollout in the cluster has not ended yet."""
        return not self.ended and self.driver is not Driver.NONE


@dataclass(frozen=True, slots=True)
class TickResult:
    """The results of one check."""

    applications: defaultdict[str, list[Rendered]] = field(default_factory=lambda: defaultdict(list))
    statuses: dict[str, RolloutStatus] = field(default_factory=dict)
    unmoved: dict[str, RolloutStatus] = field(default_factory=dict)
    """The statuses of the workers whose traffic nothing in the cluster moves now."""
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """About rights that are missing, which may be meant so."""
    unread: list[Unread] = field(default_factory=list)
    """The workers that could not be read; `failures` has lines about them at the end of the check."""

    @contextmanager
    def whatever_fails(self, subject: str) -> Iterator[None]:
        """Collect the failure of one worker, also an unexpected one, so that it does not stop the others."""
        try:
            yield
        except TwgenError as error:
            self.failures.append(str(error))
        except Exception as error:  # noqa: BLE001 - a bug in one worker is no reason to leave the others alone
            self.failures.append(Bug.of(subject, error))

    def newer(self, statuses: Iterable[RolloutStatus]) -> list[RolloutStatus]:
        """The statuses that rollouts wrote in the cluster, with the newer state of their workers.

        Phase and reason stay the rollout's own: most checks read neither task queues nor gates.
        """
        newest = {status.worker: status for status in statuses}
        for worker in newest.keys() & self.statuses.keys():
            newest[worker] = brought_up_to_date(newest[worker], self.statuses[worker])
        return [status for _, status in sorted((newest | self.unmoved).items())]


@dataclass(frozen=True)
class _Observation:
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
        return Target(spec, worker_world(spec, self.world), self.plan.now, intent.identity)

    def note(self, result: TickResult) -> None:
        """Keep its status, and whether a new render would differ."""
        intent, [plan] = self.worker.intent, self.plan.workers
        result.statuses[plan.spec.worker_deployment] = self.status
        if intent.application:
            hashes = frozenset(map(plan_hash, possible_renders(plan, self.world, self.caller)))
            rendered = Rendered(plan.spec.worker_deployment, intent.application, intent.plan_hash, hashes)
            result.applications[intent.application].append(rendered)


class Tick:
    """The checks of one process, and what they remember: else they would ask and say some things again."""

    def __init__(
        self, servers: TickServers, say: Callable[[str], None], allowed: TickSettings, *, goes_on: bool
    ) -> None:
        """`say` gets every change that was made; `allowed` is what the operator permits.

        `goes_on`: there is a next check.
        """
        self.servers, self.say, self.allowed, self._goes_on = servers, say, allowed, goes_on
        # times are by the steady clock; each mapping is by worker, and forgets workers that are gone
        self.begun = defaultdict[str, dict[str, datetime]](dict)
        """Until when a batch operation that was begun has nothing more to do, by job ID."""
        self.kept = defaultdict[str, dict[str, NextTry]](dict)
        """When the deletion of an old record is tried again, by build ID."""
        self._said = defaultdict[str, set[str]](set)
        self._busy: dict[str, int] = {}
        """Why workers were not read although a later look may read them, and in how many looks in a row."""

    async def act(self, workers: Sequence[Worker]) -> TickResult:
        """Check once: delete the Jobs that must run again, and write the statuses that no Job writes."""
        result = TickResult()
        # a turn of each Temporal server, so that one that never answers does not delay the others
        turns = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(8))
        by_place: defaultdict[tuple[str, str], list[Worker]] = defaultdict(list)
        for memory in (self.begun, self.kept, self._said):
            for gone in memory.keys() - {"", *(worker.spec.worker_deployment for worker in workers)}:
                del memory[gone]
        for worker in workers:
            by_place[worker.spec.connection.host_port, worker.intent.namespace].append(worker)
            with result.whatever_fails(worker.spec.worker_deployment):
                await self._mind_hook(worker, result)
            if worker.ended and worker.ended.is_older:
                # without reading Temporal: no Job has run for this intent yet
                with result.whatever_fails(worker.spec.worker_deployment):
                    why = "it ran for an earlier intent, which was deleted"
                    await self._start_again(worker, worker.ended, why)

        async def check_namespace(group: Sequence[Worker]) -> None:
            with result.whatever_fails(f"the workers of namespace {group[0].intent.namespace}"):
                await self._check(group, turns[group[0].spec.connection.host_port], result)

        await asyncio.gather(*map(check_namespace, by_place.values()))
        unread = result.unread
        if self._goes_on:
            # a server over its limit is reported at the third look in a row: it may answer the next one
            self._busy = {one.why: self._busy.get(one.why, 0) + 1 for one in unread if one.is_busy}
            unread = [one for one in unread if self._busy.get(one.why, 3) >= 3]
        result.failures.extend(unread_lines(unread))
        return result

    def is_new(self, sentence: str, worker: str = "") -> bool:
        """The sentence is not said yet; from now on it is. Without a worker, it is never forgotten."""
        is_new = sentence not in self._said[worker]
        self._said[worker].add(sentence)
        return is_new

    async def _check(self, group: Sequence[Worker], turn: asyncio.Semaphore, result: TickResult) -> None:
        """Check the workers of one namespace; only its reads need a turn on their Temporal server."""
        unsettled = []
        async with turn:
            observations = await self._read(group, result)
        for observation in observations:
            worker, name = observation.worker, observation.worker.spec.worker_deployment
            with result.whatever_fails(name):
                await self._answer(worker, observation.world.taken_at, result)
            with result.whatever_fails(name):
                observation.note(result)
                # reads for routing are only made if there may be something to do
                moves = not (observation.target.has_all_traffic or worker.is_carried_out)
                if moves or self._may_end(observation) or self._records_due(observation):
                    unsettled.append(worker)
                else:
                    await self._write_status(observation, result)
        if not unsettled:
            return
        async with turn:
            observations = await self._read(unsettled, result, for_routing=True)
        for observation in observations:
            name = observation.worker.spec.worker_deployment
            with result.whatever_fails(name):
                await self._write_status(observation, result)
                await self._run_again(observation)
            with result.whatever_fails(name):
                await self._prune(observation, result)
            with result.whatever_fails(name):
                await self._drain(observation, result)

    async def _read(
        self, workers: Sequence[Worker], result: TickResult, *, for_routing: bool = False
    ) -> list[_Observation]:
        """Observe the workers that can be read."""
        world, unread = await self.servers.read([worker.spec for worker in workers], for_routing=for_routing)
        result.unread.extend(unread)
        attached: dict[str, AttachedRead] = {}
        observations, plans = [], []
        for worker in workers:
            if (key := worker.spec.key) in world.workers:
                state = RolloutInCluster(is_paused=worker.intent.is_paused)
                own_world = World(world.taken_at, {key: world.workers[key]}).with_rollout(key, state)
                observations.append(observation := _Observation(worker, own_world, attached))
                with suppress(Exception):  # `note` raises it again, and it is reported there
                    plans += [plan.versions for plan in observation.plan.workers]
        if kinds := attached_to_read(plans):
            attached.update(await self.servers.attached(kinds))
        return observations

    async def _write_status(self, observation: _Observation, result: TickResult) -> None:
        """Write the status of a worker whose traffic nothing in the cluster moves, if it is news."""
        worker, before = observation.worker, observation.worker.status
        status: RolloutStatus | None = None
        if worker.driver is Driver.NONE:
            status = observation.status
        elif worker.driver is Driver.HOOK and worker.ended and before:
            status = since_its_hook(before, observation.status)
        if not status:
            return
        # the resource version, since a Job may have taken over in the meantime
        since, version = (
            (since_when(before, status), before.resource_version) if before else (status.since, "")
        )
        permits = worker.intent.requests
        status = replace(status, since=since, resource_version=version, permits=permits)
        result.unmoved[status.worker] = status
        if not before or is_news(before, status):
            why = "cannot write its status, which has no Job to write it"
            with self._permitted(status.worker, why, result):
                cluster = self.servers.writer(worker.intent)
                await cluster.record(write_rollout_status(status), over=status.resource_version)

    async def _run_again(self, observation: _Observation) -> None:
        """Start a rollout again that has ended and has something to do: Argo CD makes a tracked Job anew."""
        worker, ended, [plan] = observation.worker, observation.worker.ended, observation.plan.workers
        if not ended or ended.is_older or worker.driver in {Driver.HOOK, Driver.NONE}:
            return
        if runs_again(plan, ended.ended_at, observation.plan.now, worker.driver):
            await self._start_again(worker, ended, plan.routing.because)

    async def _mind_hook(self, worker: Worker, result: TickResult) -> None:
        """Take over the rollout of a hook that Argo CD skipped, or say so; leave one that its hook took back.

        Its rollout begins once the intent has the annotation, and needs only the rights that driver Tick
        needs.
        """
        intent, name = worker.intent, worker.spec.worker_deployment
        if intent.taken_over and not intent.is_taken_over and self.allowed.rollouts:
            with self._permitted(name, "cannot remove that tick took over its rollout", result):
                await self.servers.writer(intent).take_over(lasts=False)
                if intent.taken_over == TAKEN_BACK:
                    self.say(f"{name}: its hook carries out its rollout again, in place of tick")
        has_work = not is_of(worker.status, intent) or needs_a_rollout(
            worker.status.phase, worker.status.reason
        )
        is_abandoned = intent.is_taken_over and not self.allowed.rollouts and has_work
        if not (worker.is_skipped or is_abandoned):
            return
        says = f"Argo CD applied {intent.target} without its hooks"
        if self.allowed.rollouts:
            await self.servers.writer(intent).take_over(lasts=True)
            says += ", so tick carries out its rollout"
            self.say(f"{name}: {says}")
        else:
            says += f", so nothing carries out its rollout: run {intent.full_sync}"
        if self.is_new(f"{says} {intent.hash}", name):
            if not self.allowed.rollouts:
                result.warnings.append(f"{name}: {says}")
            with suppress(Forbidden):
                now = self.servers.of(worker.spec).now()
                await self.servers.writer(intent).add_event("Warning", RoutingReason.HOOK_SKIPPED, says, now)

    async def _answer(self, worker: Worker, now: datetime, result: TickResult) -> None:
        """Refuse the requests that no Job will take, or let a Job that has ended run again for one."""
        status, ended = worker.status, worker.ended
        if not status or worker.is_carried_out:
            return  # its rollout takes them
        refused = []
        for pending in status.pending:
            if not (request := pending.waiting):
                continue
            if why := refused_without_job(request, status, now, worker.driver):
                refused.append((pending, Answer(request, AnswerState.REFUSED, why)))
            elif ended:
                # it answers the other requests too
                await self._start_again(worker, ended, f"it is to take a request: {request}")
                return
        says = [f"{each.request}: {each.message}" for _, each in refused]
        if refused:
            # the requests may stay for long
            with self._permitted(status.worker, f"cannot refuse {'; '.join(says)}", result):
                await self.servers.writer(worker.intent).answer(*refused)
                self.say(f"{status.worker}: refused {'; '.join(says)}")

    @contextmanager
    def _permitted(self, worker: str, failure: str, result: TickResult) -> Iterator[None]:
        """Write into the cluster; if the account may not, that is a warning, once."""
        try:
            yield
        except Forbidden as error:
            if self.is_new(failure, worker):
                rights = "does the account have the rights of deploy/tick/statuses?"
                result.warnings.append(f"{worker}: {failure}: {rights} ({error})")

    async def _start_again(self, worker: Worker, ended: EndedJob, because: str) -> None:
        name = worker.spec.worker_deployment
        if worker.driver is Driver.TICK and self.servers.begin_again(worker.intent):
            self.say(f"{name}: its rollout, which had ended, goes on: {because}")
        elif ended.job:
            await self.servers.writer(worker.intent).delete_job(ended.job)
            self.say(f"{name}: deleted Job {ended.job.name}, which has ended: {because}")

    def _may_end(self, observation: _Observation) -> bool:
        """A batch operation may be due; after one that has started, the next may be due only later."""
        target, now = observation.target, self.servers.steady()
        if not (self.allowed.drains and may_end_workflows(target)):
            return False
        begun = self.begun[target.spec.worker_deployment]
        job_ids = old_enough(target.spec, target.temporal, target.now)
        return any(begun.get(job_id, now) <= now for job_id in job_ids)

    def _records_due(self, observation: _Observation) -> list[OldRecord]:
        """Some of the records that the policy of a worker no longer keeps; none if it is not allowed."""
        if not self.allowed.prunes:
            return []
        now, kept = self.servers.steady(), self.kept[observation.target.spec.worker_deployment]
        waiting = {build_id for build_id, again in kept.items() if again.at > now}
        records = records_to_prune(observation.target)
        # the rest comes soon enough
        return [record for record in records if record.build_id not in waiting][:10]

    async def _prune(self, observation: _Observation, result: TickResult) -> None:
        """Delete the records that are due, by facts of now."""
        worker, kept = observation.target.spec.worker_deployment, self.kept
        if not (due := self._records_due(observation)):
            return
        target = observation.target
        listed = {version.build_id for version in target.temporal.versions}
        kept[worker] = {build_id: again for build_id, again in kept[worker].items() if build_id in listed}
        # before it is tried: a failure in the middle is no reason to try the same ones at every check
        for record in due:
            before = kept[worker].get(record.build_id)
            kept[worker][record.build_id] = NextTry.after(before, self.servers.steady())
        servers = self.servers.of(target.spec)
        unneeded = await servers.without_open_workflows(due)
        pruned = await delete_records(servers.temporal(target.identity), unneeded)
        # a record that the server still lists is tried again after its pause, as one that was kept
        for build_id in pruned.deleted:
            self.say(f"{worker} {build_id}: deleted its record in Temporal, as its RolloutPolicy says")
        result.failures.extend(f"{worker}: an old version was not deleted: {why}" for why in pruned.refused)

    async def _drain(self, observation: _Observation, result: TickResult) -> None:
        """Start the due actions on workflows of draining versions, and note those that started before."""
        if not self.allowed.drains:
            return
        target, now = observation.target, self.servers.steady()
        settled = settled_until(target).items()
        begun = {job_id: later(now, until - target.now) for job_id, until in settled}
        self.begun[target.spec.worker_deployment] = begun
        for scheduled in due_actions(target):
            with result.whatever_fails(target.spec.worker_deployment):
                servers = self.servers.of(target.spec)
                batches, writer = servers.batches(target.now), servers.temporal(target.identity)
                if await begin(target, scheduled, batches, writer, self.say):
                    begun[scheduled.job_id] = later(now, REPEATED_AFTER)
