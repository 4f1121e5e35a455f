"""Reading the world: what the servers say of the workers right now."""

import asyncio
from asyncio import Task, TaskGroup
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from twgen.errors import TwgenError
from twgen.model.spec import WorkerKey, WorkerSpec
from twgen.model.temporal import TaskQueue
from twgen.model.values import dataclass
from twgen.model.world import WorkerWorld, World
from twgen.planning.reads import further_reads, versions_to_describe
from twgen.planning.routing.registration import may_be_called
from twgen.reading.kubernetes import ClusterReader, SharedLists
from twgen.reading.temporal.answers import Polled, other_workers, with_pollers
from twgen.reading.temporal.measuring import Measuring
from twgen.reading.temporal.reader import SharedReads, TemporalReader

if TYPE_CHECKING:
    from twgen.reading.prometheus import PrometheusReader

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at workers: through what, as of when, and how much is asked."""

    temporal: SharedReads
    cluster: SharedLists | None
    """None: nothing is known of Deployments."""
    now: datetime
    for_routing: bool
    """Not only what a render needs, versions and, of those that may go, the open workflows, but also what
    decides on traffic, and what only people ask for."""
    read_at: datetime
    """By the reader's clock; `now` may be another time that a person asks about."""
    goes_on: bool = False
    """What explains a wait, and decides nothing, may fail: a rollout must not, which only waits."""
    prometheus: "Callable[[], PrometheusReader] | None" = None
    """Makes the reader of Prometheus; None: its metrics cannot be read."""

    @property
    def for_people(self) -> bool:
        """Somebody looks: what decides nothing, and says more, is read too."""
        return self.for_routing and not self.goes_on

    def cluster_of(self, spec: WorkerSpec) -> ClusterReader | None:
        """What reads a worker's Deployments and pods."""
        return ClusterReader(spec, self.cluster) if self.cluster else None


async def read_world(specs: Sequence[WorkerSpec], reading: Reading) -> World:
    """What Temporal and Kubernetes say of the workers, all of them at the same time.

    The first read that fails is raised, StateUnavailable or OutOfTime.
    """
    cluster = reading.cluster
    reading.temporal.require_credentials(specs)
    try:
        async with TaskGroup() as group:
            if cluster and cluster.namespace:
                group.create_task(cluster.list(cluster.namespace))
            tasks = [group.create_task(_read(spec, reading)) for spec in specs]
    except ExceptionGroup as failures:
        failure = first_failure(failures)
        raise failure from failure.__cause__
    workers = [task.result() for task in tasks]
    strays = cluster.strays(specs) if cluster else ()
    return World(reading.now, {worker.key: worker for worker in [*strays, *workers]})


async def read_each(specs: Sequence[WorkerSpec], reading: Reading) -> tuple[World, list[str]]:
    """The same of those workers that can be read, and why the others cannot be."""

    async def read(spec: WorkerSpec) -> WorkerWorld:
        reading.temporal.require_credentials([spec])
        return await _read(spec, reading)

    found: dict[WorkerKey, WorkerWorld] = {}
    failures: dict[str, None] = {}
    for end in await asyncio.gather(*map(read, specs), return_exceptions=True):
        if isinstance(end, WorkerWorld):
            found[end.key] = end
            continue
        failure = first_failure(end)
        if not isinstance(failure, TwgenError):
            raise failure
        failures[str(failure)] = None  # many workers may have the same failure
    return World(reading.now, found), list(failures)


async def _read(spec: WorkerSpec, reading: Reading) -> WorkerWorld:
    """All reads of a worker; a failed read comes inside an ExceptionGroup."""
    return await _read_further(spec, await _read_versions(spec, reading), reading)


async def _read_versions(spec: WorkerSpec, reading: Reading) -> WorkerWorld:
    """The worker's routing, versions and Deployments."""
    temporal, cluster = TemporalReader(spec, reading.temporal), reading.cluster_of(spec)
    async with TaskGroup() as group:
        describing = group.create_task(temporal.deployment())
        listing = group.create_task(cluster.deployments()) if cluster else None
    found, live = describing.result(), listing.result() if listing else None
    # where nothing is deployed, a worker that is not known is a new one
    if not found and (live is None or live) and await reading.temporal.second_look():
        found = await temporal.deployment()
    world = WorkerWorld(spec.worker_deployment, spec.temporal_namespace, found, live)
    if not found:
        return world
    listed = {version.build_id: version for version in found.versions}
    async with TaskGroup() as group:
        by_name = [
            group.create_task(temporal.version(build_id, listed.get(build_id)))
            for build_id in versions_to_describe(spec, world, reading.now, for_routing=reading.for_routing)
        ]
        greeting = group.create_task(reading.temporal.server_version(spec)) if reading.for_routing else None
    described = {version.build_id: version for task in by_name if (version := task.result())}
    versions = tuple((listed | described).values())
    server_version = greeting.result() if greeting else ""
    return replace(world, temporal=replace(found, versions=versions, server_version=server_version))


async def _read_further(spec: WorkerSpec, world: WorkerWorld, reading: Reading) -> WorkerWorld:
    """The same worker with its open workflows and, for routing, its pollers, gates and pods."""
    temporal, cluster = TemporalReader(spec, reading.temporal), reading.cluster_of(spec)
    reads = further_reads(
        spec, world, reading.now, for_routing=reading.for_routing, for_people=reading.for_people
    )
    async with TaskGroup() as group:
        start, shared = group.create_task, reading.temporal
        counting = start(shared.open_workflows(spec, reads.open_workflows))
        of_auto_upgrade = reads.auto_upgrade_workflows
        upgrading = {name: start(temporal.auto_upgrade_workflows(name)) for name in of_auto_upgrade}
        polling: dict[TaskQueue, Task[Polled | None]] = {}
        for queue in reads.task_queues:
            polling[queue] = start(temporal.pollers(queue))
        if queue_to_explain := reads.task_queue_of_variables:
            polling[queue_to_explain] = start(_explained(temporal.pollers(queue_to_explain), reading))
        asking = {(name, queue): start(temporal.has_tasks(name, queue)) for name, queue in reads.tasks_of}
        gates = [start(temporal.gate_run(*run)) for run in reads.gate_runs or ()]
        target = _measuring(spec, world, reading, reads.measured_since)
        measuring = [start(target.measure(metric)) for metric in reads.metrics] if target else []
        neighbours = None
        if reads.worker_deployments:
            neighbours = start(_explained(shared.worker_deployments(spec), reading))
        holding = {name: start(shared.held(spec, name)) for name in reads.held}
        pods = start(cluster.pod_problems(reads.pods_of)) if cluster else None
        replay = start(cluster.replay()) if cluster and reads.replay else None
    polled = {queue: task.result() or {} for queue, task in polling.items()}
    if found := world.temporal:
        tasks = {version_queue: task.result() for version_queue, task in asking.items()}
        upgraded = {build_id: task.result() for build_id, task in upgrading.items()}
        runs = tuple(run for task in gates if (run := task.result()))
        measurements = tuple(task.result() for task in measuring)
        held = {build_id: task.result() for build_id, task in holding.items()}
        counted = {**{name: pinned.number for name, pinned in held.items()}, **counting.result()}
        versions = tuple(
            replace(
                version,
                open_workflows=counted.get(version.build_id),
                oldest_open_at=held[version.build_id].oldest_at if version.build_id in held else None,
                auto_upgrade_workflows=upgraded.get(version.build_id),
                task_queues=with_pollers(version, spec.worker_deployment, polled, tasks, reading.read_at),
                measurements=measurements if version.build_id == spec.build_id and reads.metrics else None,
                gate_runs=runs if version.build_id == spec.build_id and reads.gate_runs is not None else None,
            )
            for version in found.versions
        )
        world = replace(world, temporal=replace(found, versions=versions))
    listed = neighbours.result() if neighbours else None
    if reads.other_workers:
        alike = [other for other in listed or () if may_be_called(other.name, spec.worker_deployment)]
        world = replace(world, other_workers=(*other_workers(spec.worker_deployment, polled), *alike))
    return replace(
        world,
        pod_problems=pods.result() if pods else {},
        replay=replay.result() if replay else None,
        worker_deployments=None if listed is None else len(listed),
    )


def _measuring(
    spec: WorkerSpec, world: WorkerWorld, reading: Reading, since: datetime | None
) -> Measuring | None:
    """What measures the target since it ramps; None: it is not known since when."""
    routing = world.temporal.routing if world.temporal else None
    versions = world.temporal.versions if world.temporal else ()
    target = next((version for version in versions if version.build_id == spec.build_id), None)
    if not routing or not target or not since:
        return None
    current = routing.current.build_id if routing.current else None
    return Measuring(spec, target, current, reading.temporal, since, reading.prometheus, reading.now)


async def _explained(asking: Awaitable[Answer], reading: Reading) -> Answer | None:
    """What explains a wait and decides nothing: a rollout goes on without."""
    try:
        return await asking
    except TwgenError:
        if reading.goes_on:
            return None
        raise


def first_failure(failure: BaseException) -> BaseException:
    """What failed first, of several."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
