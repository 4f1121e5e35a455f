"""Checks all rollouts in a cluster for outdated renders and for Jobs that must be restarted."""

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
from twgen.planning.forgetting import NextTry, OldRecord, records_to_forget
from twgen.planning.plan import make_plan, worker_world
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
    """A worker that has an intent in the cluster."""

    intent: Intent
    spec: WorkerSpec
    ended: EndedJob | None
    """The newest Job of the intent, if it has ended."""
    status: RolloutStatus | None = None
    is_skipped: bool = False
    """Whether Argo CD skipped the intent's hook, so no Job carries out the rollout."""

    @property
    def driver(self) -> Driver:
        """The program that carries out the rollout."""
        if self.intent.is_rolled_out_by_hand:
            return Driver.NONE
        if self.intent.is_by_tick:
            return Driver.TICK
        return Driver.HOOK if self.intent.has_hook else Driver.JOB

    @property
    def is_carried_out(self) -> bool:
        """Whether a Job or tick is carrying out the rollout now."""
        return not self.ended and self.driver is not Driver.NONE


@dataclass(frozen=True, slots=True)
class TickResult:
    """The results of one check of all workers."""

    applications: defaultdict[str, list[Rendered]] = field(default_factory=lambda: defaultdict(list))
    statuses: dict[str, RolloutStatus] = field(default_factory=dict)
    unmoved: dict[str, RolloutStatus] = field(default_factory=dict)
    """The statuses of workers whose rollout neither a Job nor tick is carrying out now."""
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """Warnings about permissions that may be missing on purpose."""
    unread: list[Unread] = field(default_factory=list)
    """The workers that could not be read. At the end of the check, these workers are added to `failures`."""

    @contextmanager
    def whatever_fails(self, subject: str) -> Iterator[None]:
        """Collect any error in one worker's check, even a bug, so that other workers are still checked."""
        try:
            yield
        except TwgenError as error:
            self.failures.append(str(error))
        except Exception as error:  # noqa: BLE001 - a bug must not stop the checks of other workers
            self.failures.append(Bug.of(subject, error))

    def newer(self, statuses: Iterable[RolloutStatus]) -> list[RolloutStatus]:
        """Update statuses from the cluster with the state that this check has read.

        The phase and the reason stay unchanged, because most checks do not read task queues and gates.
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
    """The attached objects, which are read after planning, because the plan determines the kinds to read."""

    @property
    def caller(self) -> Caller:
        """The caller for the plan."""
        intent = self.worker.intent
        return replace(intent.caller, drives=not intent.is_rolled_out_by_hand)

    @cached_property
    def plan(self) -> Plan:
        """The plan of the worker's rollout."""
        return make_plan([self.worker.spec], self.world, self.world.taken_at, self.caller)

    @property
    def status(self) -> RolloutStatus:
        """The worker's current status."""
        status = make_status(self.plan, self.world, self.caller, self.attached)
        return rollout_status(status, self.plan.now, self.worker.intent.hash)

    @property
    def target(self) -> Target:
        """The target version, from the perspective of the worker's rollout."""
        intent, spec = self.worker.intent, self.worker.spec
        return Target(spec, worker_world(spec, self.world), self.plan.now, intent.identity)

    def note(self, result: TickResult) -> None:
        """Add the worker's status and the currently possible renders to the result."""
        intent, [plan] = self.worker.intent, self.plan.workers
        result.statuses[plan.spec.worker_deployment] = self.status
        if intent.application:
            hashes = frozenset(map(plan_hash, possible_renders(plan, self.world, self.caller)))
            rendered = Rendered(plan.spec.worker_deployment, intent.application, intent.plan_hash, hashes)
            result.applications[intent.application].append(rendered)


class Tick:
    """Runs the checks of one process.

    This class remembers its reports and the batch operations that it has started, so as not to repeat them.
    """

    def __init__(
        self, servers: TickServers, say: Callable[[str], None], allowed: TickSettings, *, goes_on: bool
    ) -> None:
        """`say` is called with a sentence about each change. `allowed` has the operator's settings for tick.

        `goes_on` is true if more checks follow.
        """
        self.servers, self.say, self.allowed, self._goes_on = servers, say, allowed, goes_on
        # all times are from the monotonic clock. Each mapping has one entry per worker, which is removed when
        # the worker no longer exists
        self.begun = defaultdict[str, dict[str, datetime]](dict)
        """The time of the next check of a started batch operation, by worker and job ID."""
        self.kept = defaultdict[str, dict[str, NextTry]](dict)
        """When to retry the deletion of an old record, by worker and build ID."""
        self._said = defaultdict[str, set[str]](set)
        self._busy: dict[str, int] = {}
        """The number of consecutive checks that could not read workers for a transient reason, by reason."""

    async def act(self, workers: Sequence[Worker]) -> TickResult:
        """Run one check of all workers: restart ended Jobs that have new work, and write missing statuses."""
        result = TickResult()
        # each Temporal server has its own limit, so that an unresponsive server does not delay other servers
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
                # no Job has run for this intent yet, so there is no need to read Temporal
                with result.whatever_fails(worker.spec.worker_deployment):
                    why = "it belonged to an earlier intent, which was deleted"
                    await self._start_again(worker, worker.ended, why)

        async def check_namespace(group: Sequence[Worker]) -> None:
            with result.whatever_fails(f"the workers of namespace {group[0].intent.namespace}"):
                await self._check(group, turns[group[0].spec.connection.host_port], result)

        await asyncio.gather(*map(check_namespace, by_place.values()))
        unread = result.unread
        if self._goes_on:
            # exceeding a server's rate limit is reported only after three failed reads in a row
            self._busy = {one.why: self._busy.get(one.why, 0) + 1 for one in unread if one.is_busy}
            unread = [one for one in unread if self._busy.get(one.why, 3) >= 3]
        result.failures.extend(unread_lines(unread))
        return result

    def is_new(self, sentence: str, worker: str = "") -> bool:
        """Remember a sentence, and return whether it is new.

        A sentence about a worker is forgotten when the worker no longer exists.
        """
        is_new = sentence not in self._said[worker]
        self._said[worker].add(sentence)
        return is_new

    async def _check(self, group: Sequence[Worker], turn: asyncio.Semaphore, result: TickResult) -> None:
        """Check the workers of one namespace. Only reads count towards the limit of the Temporal server."""
        unsettled = []
        async with turn:
            observations = await self._read(group, result)
        for observation in observations:
            worker, name = observation.worker, observation.worker.spec.worker_deployment
            with result.whatever_fails(name):
                await self._answer(worker, observation.world.taken_at, result)
            with result.whatever_fails(name):
                observation.note(result)
                # the more expensive reads for routing are made only if there may be work
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
                await self._forget(observation, result)
            with result.whatever_fails(name):
                await self._drain(observation, result)

    async def _read(
        self, workers: Sequence[Worker], result: TickResult, *, for_routing: bool = False
    ) -> list[_Observation]:
        """Read the workers. The result omits workers that cannot be read."""
        world, unread = await self.servers.read([worker.spec for worker in workers], for_routing=for_routing)
        result.unread.extend(unread)
        attached: dict[str, AttachedRead] = {}
        observations, plans = [], []
        for worker in workers:
            if (key := worker.spec.key) in world.workers:
                state = RolloutInCluster(is_paused=worker.intent.is_paused)
                own_world = World(world.taken_at, {key: world.workers[key]}).with_rollout(key, state)
                observations.append(observation := _Observation(worker, own_world, attached))
                with suppress(Exception):  # `note` raises the same error again, and its caller reports it
                    plans += [plan.versions for plan in observation.plan.workers]
        if kinds := attached_to_read(plans):
            attached.update(await self.servers.attached(kinds))
        return observations

    async def _write_status(self, observation: _Observation, result: TickResult) -> None:
        """Write a changed status if neither a Job nor tick is carrying out the worker's rollout."""
        worker, before = observation.worker, observation.worker.status
        status: RolloutStatus | None = None
        if worker.driver is Driver.NONE:
            status = observation.status
        elif worker.driver is Driver.HOOK and worker.ended and before:
            status = since_its_hook(before, observation.status)
        if not status:
            return
        # includes the resource version, because a Job may have written a newer status since the read
        since, version = (
            (since_when(before, status), before.resource_version) if before else (status.since, "")
        )
        permits = worker.intent.requests
        status = replace(status, since=since, resource_version=version, permits=permits)
        result.unmoved[status.worker] = status
        if not before or is_news(before, status):
            why = "cannot write its status, which no Job writes"
            with self._permitted(status.worker, why, result):
                cluster = self.servers.writer(worker.intent)
                await cluster.record(write_rollout_status(status), over=status.resource_version)

    async def _run_again(self, observation: _Observation) -> None:
        """Restart a rollout that has ended but has new work.

        If Argo CD tracks the Job, deleting the Job is enough, because Argo CD recreates it.
        """
        worker, ended, [plan] = observation.worker, observation.worker.ended, observation.plan.workers
        if not ended or ended.is_older or worker.driver in {Driver.HOOK, Driver.NONE}:
            return
        if runs_again(plan, ended.ended_at, observation.plan.now, worker.driver):
            await self._start_again(worker, ended, plan.routing.because)

    async def _mind_hook(self, worker: Worker, result: TickResult) -> None:
        """Take over or report a rollout whose hook Argo CD skipped. Hand it back when the hook runs.

        tick starts the rollout when the intent has the annotation. For this, tick needs the same permissions
        as for driver Tick.
        """
        intent, name = worker.intent, worker.spec.worker_deployment
        if intent.taken_over and not intent.is_taken_over and self.allowed.rollouts:
            with self._permitted(name, "cannot remove the note that tick took over its rollout", result):
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
        """Refuse the requests that no Job will answer, or restart an ended Job that can answer requests."""
        status, ended = worker.status, worker.ended
        if not status or worker.is_carried_out:
            return  # the running rollout answers the requests
        refused = []
        for pending in status.pending:
            if not (request := pending.waiting):
                continue
            if why := refused_without_job(request, status, now, worker.driver):
                refused.append((pending, Answer(request, AnswerState.REFUSED, why)))
            elif ended:
                # the Job answers the other requests too
                await self._start_again(worker, ended, f"a request is waiting: {request}")
                return
        says = [f"{each.request}: {each.message}" for _, each in refused]
        if refused:
            # if the refusals cannot be written, the requests may stay pending for a long time
            with self._permitted(status.worker, f"cannot refuse {'; '.join(says)}", result):
                await self.servers.writer(worker.intent).answer(*refused)
                self.say(f"{status.worker}: refused {'; '.join(says)}")

    @contextmanager
    def _permitted(self, worker: str, failure: str, result: TickResult) -> Iterator[None]:
        """Wrap a write to the cluster. A missing permission causes a warning, but only once."""
        try:
            yield
        except Forbidden as error:
            if self.is_new(failure, worker):
                rights = "does the account have the permissions in deploy/tick/statuses?"
                result.warnings.append(f"{worker}: {failure}: {rights} ({error})")

    async def _start_again(self, worker: Worker, ended: EndedJob, because: str) -> None:
        name = worker.spec.worker_deployment
        if worker.driver is Driver.TICK and self.servers.begin_again(worker.intent):
            self.say(f"{name}: restarted its rollout, which had ended: {because}")
        elif ended.job:
            await self.servers.writer(worker.intent).delete_job(ended.job)
            self.say(f"{name}: deleted Job {ended.job.name}, which has ended: {because}")

    def _may_end(self, observation: _Observation) -> bool:
        """Whether a batch operation may be due. After a start, the next operation is not due for a while."""
        target, now = observation.target, self.servers.steady()
        if not (self.allowed.drains and may_end_workflows(target)):
            return False
        begun = self.begun[target.spec.worker_deployment]
        job_ids = old_enough(target.spec, target.temporal, target.now)
        return any(begun.get(job_id, now) <= now for job_id in job_ids)

    def _records_due(self, observation: _Observation) -> list[OldRecord]:
        """At most ten old records to delete by the worker's policy. Empty if the operator forbids this."""
        if not self.allowed.forgets:
            return []
        now, kept = self.servers.steady(), self.kept[observation.target.spec.worker_deployment]
        waiting = {build_id for build_id, again in kept.items() if again.at > now}
        records = records_to_forget(observation.target)
        # the next checks delete the remaining records
        return [record for record in records if record.build_id not in waiting][:10]

    async def _forget(self, observation: _Observation, result: TickResult) -> None:
        """Delete the records that are due, unless their versions now have open workflows."""
        worker, kept = observation.target.spec.worker_deployment, self.kept
        if not (due := self._records_due(observation)):
            return
        target = observation.target
        listed = {version.build_id for version in target.temporal.versions}
        kept[worker] = {build_id: again for build_id, again in kept[worker].items() if build_id in listed}
        # the next try is set before the attempt: otherwise, after an error, every check would retry the same
        # records
        for record in due:
            before = kept[worker].get(record.build_id)
            kept[worker][record.build_id] = NextTry.after(before, self.servers.steady())
        servers = self.servers.of(target.spec)
        unneeded = await servers.without_open_workflows(due)
        report = await delete_records(servers.temporal(target.identity), worker, unneeded)
        # a record that the server still lists is retried later
        for build_id in report.deleted:
            self.say(f"{worker} {build_id}: deleted its record in Temporal, as its RolloutPolicy says")
        result.failures.extend(f"{worker}: an old version was not deleted: {why}" for why in report.refused)

    async def _drain(self, observation: _Observation, result: TickResult) -> None:
        """Start the due actions on workflows of draining versions.

        This method also sets the times of the next checks of actions that have begun.
        """
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
