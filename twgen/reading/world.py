"""Reads the world: the current state of workers in Temporal and Kubernetes."""

import asyncio
from asyncio import Task, TaskGroup
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from twgen.clients.temporal import Busy
from twgen.errors import OutOfTime, TwgenError, first_failure
from twgen.model.spec import WorkerKey, WorkerSpec
from twgen.model.temporal import GateRun, TaskQueue
from twgen.model.values import dataclass
from twgen.model.world import WorkerWorld, World
from twgen.planning.reads import Unread, further_reads, gate_runs_to_read, versions_to_describe
from twgen.planning.routing.polling import may_be_called
from twgen.planning.routing.target import Target
from twgen.reading.kubernetes import ClusterReader
from twgen.reading.temporal.answers import Polled, other_workers, with_pollers
from twgen.reading.temporal.measuring import Measuring
from twgen.reading.temporal.reader import TemporalReader, all_of
from twgen.reporting.bugs import Bug

if TYPE_CHECKING:
    from twgen.clients.prometheus import PrometheusServers

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings of one read of workers: connections, time and scope."""

    temporal: TemporalReader
    cluster: ClusterReader | None
    """The reader for Kubernetes, or None if no cluster is read and Deployments are unknown."""
    now: datetime
    for_routing: bool
    """Whether to also read the input for routing decisions, and facts that are only shown to people.

    The input for a render is always read: versions, and open workflows on versions that may be removed.
    """
    read_at: datetime
    """The time of the read on this machine's clock, while `now` may be a time that a person chose."""
    goes_on: bool = False
    """Whether a rollout continues after this read, even if reads that only explain a wait fail."""
    prometheus_of: "Callable[[WorkerSpec], PrometheusServers] | None" = None
    """Returns the Prometheus servers that a worker can use. None means that Prometheus cannot be read."""
    progress: Iterator[object] = iter(())
    """An iterator that advances by one item for each worker that was read."""
    autoscalers: bool = False
    """Whether to read the Deployments' autoscalers too, which are only shown to people."""

    @property
    def for_people(self) -> bool:
        """Whether people see the result, so that facts that only explain the state are read too."""
        return self.for_routing and not self.goes_on


async def read_world(specs: Sequence[WorkerSpec], reading: Reading) -> World:
    """Read the state of all workers in Temporal and Kubernetes concurrently.

    If reads fail, this raises the first error, which is StateUnavailable or OutOfTime.
    """
    cluster = reading.cluster
    reading.temporal.require_credentials(specs)
    try:
        async with TaskGroup() as group:
            if cluster and cluster.namespace:
                group.create_task(cluster.list(cluster.namespace))
            tasks = [group.create_task(_read_worker(spec, reading)) for spec in specs]
    except ExceptionGroup as failures:
        failure = first_failure(failures)
        raise failure from failure.__cause__
    workers = [task.result() for task in tasks]
    orphans = cluster.orphans(specs) if cluster else ()
    return World(reading.now, {worker.key: worker for worker in [*orphans, *workers]})


async def read_each(specs: Sequence[WorkerSpec], reading: Reading) -> tuple[World, list[Unread]]:
    """Read all workers like `read_world`, but return workers that cannot be read, with the reasons."""

    async def read(spec: WorkerSpec) -> WorkerWorld:
        reading.temporal.require_credentials([spec])
        return await _read_worker(spec, reading)

    workers: dict[WorkerKey, WorkerWorld] = {}
    unread: list[Unread] = []
    outcomes = await asyncio.gather(*map(read, specs), return_exceptions=True)
    for spec, outcome in zip(specs, outcomes, strict=True):
        if isinstance(outcome, WorkerWorld):
            workers[outcome.key] = outcome
            continue
        failure = first_failure(outcome)
        if not isinstance(failure, Exception):
            raise failure
        is_bug = not isinstance(failure, TwgenError)
        why = Bug.of(spec.worker_deployment, failure) if is_bug else str(failure)
        is_busy, is_late = isinstance(failure, Busy), isinstance(failure, OutOfTime)
        unread.append(Unread(spec.connection.host_port, why, is_busy, is_late))
    return World(reading.now, workers), unread


async def _read_worker(spec: WorkerSpec, reading: Reading) -> WorkerWorld:
    """Read a worker's complete state. Errors are raised inside an ExceptionGroup."""
    worker = await _read_further(spec, await _read_versions(spec, reading), reading)
    next(reading.progress, None)
    return worker


async def _read_versions(spec: WorkerSpec, reading: Reading) -> WorkerWorld:
    """Read the worker's routing, versions and Deployments."""
    temporal, cluster = reading.temporal, reading.cluster
    async with TaskGroup() as group:
        describing = group.create_task(temporal.deployment(spec, for_routing=reading.for_routing))
        listing = group.create_task(cluster.deployments(spec)) if cluster else None
        scaling = None
        if cluster and reading.autoscalers:
            scaling = group.create_task(cluster.autoscalers(spec.namespace))
    deployment, live = describing.result(), listing.result() if listing else None
    # if a worker is neither known to Temporal nor deployed, it is new, and waiting would not help
    if not deployment and (live is None or live) and await temporal.wait_until_remembered():
        deployment = await temporal.deployment(spec, for_routing=reading.for_routing)
    world = WorkerWorld(spec.worker_deployment, spec.temporal_namespace, deployment, live)
    if scaling and live:
        names, (autoscalers, why) = {item.name for item in live}, scaling.result()
        own = tuple(item for item in autoscalers if item.deployment in names)
        world = replace(world, autoscalers=own, autoscalers_unread=why)
    if not deployment:
        return world
    listed = {version.build_id: version for version in deployment.versions}
    async with TaskGroup() as group:
        descriptions = [
            group.create_task(temporal.version(spec, build_id, listed.get(build_id)))
            for build_id in versions_to_describe(spec, world, reading.now, for_routing=reading.for_routing)
        ]
        greeting = group.create_task(temporal.server_version(spec)) if reading.for_routing else None
    described = {version.build_id: version for task in descriptions if (version := task.result())}
    versions = tuple((listed | described).values())
    server_version = greeting.result() if greeting else ""
    return replace(world, temporal=replace(deployment, versions=versions, server_version=server_version))


async def _read_further(spec: WorkerSpec, world: WorkerWorld, reading: Reading) -> WorkerWorld:
    """Add the worker's open workflows and, for routing, its pollers, gates and pods."""
    temporal, cluster = reading.temporal, reading.cluster
    reads = further_reads(
        spec, world, reading.now, for_routing=reading.for_routing, for_people=reading.for_people
    )
    async with TaskGroup() as group:
        start = group.create_task
        counting = start(temporal.open_workflows(spec, reads.open_workflows))
        upgrading: dict[str, Task[int]] = {}
        for name in reads.auto_upgrade_workflows:
            upgrading[name] = start(temporal.count(spec, [(spec.worker_deployment, name)], "AutoUpgrade"))
        polling: dict[TaskQueue, Task[Polled | None]] = {}
        for queue in reads.task_queues:
            polling[queue] = start(temporal.pollers(spec, queue))
        if queue_to_explain := reads.task_queue_of_variables:
            polling[queue_to_explain] = start(_explained(temporal.pollers(spec, queue_to_explain), reading))
        asking = {
            (name, queue): start(temporal.has_tasks(spec, name, queue)) for name, queue in reads.tasks_of
        }
        gates = start(_gate_runs(spec, world, reading, reads.gate_runs or ()))
        target = _measuring(spec, world, reading, reads.measured_since)
        measuring = [start(target.measure(metric)) for metric in reads.metrics] if target else []
        neighbours = None
        if reads.worker_deployments:
            neighbours = start(_explained(temporal.worker_deployments(spec), reading))
        counting_pinned = {name: start(temporal.pinned_count(spec, name)) for name in reads.held}
        pods = start(cluster.pod_problems(spec, reads.pods_of)) if cluster else None
        replay = start(cluster.replay(spec)) if cluster and reads.replay else None
    polled = {queue: task.result() or {} for queue, task in polling.items()}
    if deployment := world.temporal:
        tasks = {version_queue: task.result() for version_queue, task in asking.items()}
        upgraded = {build_id: task.result() for build_id, task in upgrading.items()}
        runs = gates.result()
        measurements = tuple(task.result() for task in measuring)
        pinned = {build_id: task.result() for build_id, task in counting_pinned.items()}
        counted = {**{name: number for name, (number, _) in pinned.items()}, **counting.result()}
        versions = tuple(
            replace(
                version,
                open_workflows=counted.get(version.build_id),
                oldest_open_at=pinned.get(version.build_id, (None, None))[1],
                auto_upgrade_workflows=upgraded.get(version.build_id),
                task_queues=with_pollers(version, spec.worker_deployment, polled, tasks, reading.read_at),
                measurements=measurements if version.build_id == spec.build_id and reads.metrics else None,
                gate_runs=runs if version.build_id == spec.build_id and reads.gate_runs is not None else None,
            )
            for version in deployment.versions
        )
        world = replace(world, temporal=replace(deployment, versions=versions))
    listed = neighbours.result() if neighbours else None
    if reads.other_workers:
        similar = [other for other in listed or () if may_be_called(other.name, spec.worker_deployment)]
        world = replace(world, other_workers=(*other_workers(spec.worker_deployment, polled), *similar))
    return replace(
        world,
        pod_problems=pods.result() if pods else {},
        replay=replay.result() if replay else None,
        worker_deployments=None if listed is None else len(listed),
    )


def _measuring(
    spec: WorkerSpec, world: WorkerWorld, reading: Reading, since: datetime | None
) -> Measuring | None:
    """The settings for measuring the target since its ramp began, or None if that time is unknown."""
    routing = world.temporal.routing if world.temporal else None
    versions = world.temporal.versions if world.temporal else ()
    target = next((version for version in versions if version.build_id == spec.build_id), None)
    if not routing or not target or not since:
        return None
    current = routing.current.build_id if routing.current else None
    return Measuring(spec, target, current, reading.temporal, since, reading.prometheus_of, reading.now)


async def _gate_runs(
    spec: WorkerSpec, world: WorkerWorld, reading: Reading, names: tuple[tuple[str, str], ...]
) -> tuple[GateRun, ...]:
    """Read the runs of these gates. If a run has an unexpected workflow type, read the next attempt too."""
    asked, runs = set(names), tuple[GateRun, ...]()
    while names and world.temporal:
        runs += tuple(filter(None, await all_of([reading.temporal.gate_run(spec, *name) for name in names])))
        versions = tuple(
            replace(version, gate_runs=runs) if version.build_id == spec.build_id else version
            for version in world.temporal.versions
        )
        known = replace(world, temporal=replace(world.temporal, versions=versions))
        target = Target(spec, known, reading.now, identity="")
        names = tuple(name for name in gate_runs_to_read(target) or () if name not in asked)
        asked.update(names)
    return runs


async def _explained(asking: Awaitable[Answer], reading: Reading) -> Answer | None:
    """Wait for a read that only explains a wait. If it fails, a rollout continues without the result."""
    try:
        return await asking
    except TwgenError:
        if reading.goes_on:
            return None
        raise
