"""Reading the world: what the servers say of the workers right now."""

import asyncio
from asyncio import TaskGroup
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from twgen.errors import TwgenError
from twgen.model.spec import WorkerKey, WorkerSpec
from twgen.model.world import WorkerWorld, World
from twgen.planning.reads import further_reads, versions_to_describe
from twgen.reading.kubernetes import ClusterReader, SharedLists
from twgen.reading.temporal.answers import with_pollers
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.temporal.shared import SharedReads


async def read_worker(
    spec: WorkerSpec,
    temporal: TemporalReader,
    cluster: ClusterReader | None,
    now: datetime,
    *,
    for_routing: bool,
) -> WorkerWorld:
    """What is known of a worker; without a cluster, nothing of its Deployments.

    A render needs its versions and, of those that may go, the open workflows. `for_routing` also reads what
    decides on traffic, and what only people ask for. A failed read comes inside an ExceptionGroup.
    """
    worker = spec.worker_deployment
    async with TaskGroup() as group:
        describing = group.create_task(temporal.deployment())
        listing = group.create_task(cluster.deployments()) if cluster else None
    found, live = describing.result(), listing.result() if listing else None
    world = WorkerWorld(worker, spec.temporal_namespace, found, live)

    listed = {version.build_id: version for version in (found.versions if found else ())}
    async with TaskGroup() as group:
        by_name = [
            group.create_task(temporal.version(build_id, listed.get(build_id)))
            for build_id in versions_to_describe(spec, world, now, for_routing=for_routing)
        ]
        greeting = group.create_task(temporal.server_version()) if found and for_routing else None
    if found:
        described = {version.build_id: version for task in by_name if (version := task.result())}
        versions = tuple((listed | described).values())
        server_version = greeting.result() if greeting else ""
        found = replace(found, versions=versions, server_version=server_version)
        world = replace(world, temporal=found)

    reads = further_reads(spec, world, now, for_routing=for_routing)
    async with TaskGroup() as group:
        counting = group.create_task(temporal.open_workflows(reads.open_workflows))
        upgrading = {
            build_id: group.create_task(temporal.auto_upgrade_workflows(build_id))
            for build_id in reads.auto_upgrade_workflows
        }
        polling = {queue: group.create_task(temporal.pollers(queue)) for queue in reads.task_queues}
        gates = [group.create_task(temporal.gate_run(*run)) for run in reads.gate_runs or ()]
        pods = group.create_task(cluster.pod_problems(reads.pods_of)) if cluster else None
    if found:
        polled = {queue: task.result() for queue, task in polling.items()}
        upgraded = {build_id: task.result() for build_id, task in upgrading.items()}
        runs = tuple(run for task in gates if (run := task.result()))
        read = (
            replace(
                version,
                open_workflows=counting.result().get(version.build_id),
                auto_upgrade_workflows=upgraded.get(version.build_id),
                task_queues=with_pollers(version, worker, polled),
                gate_runs=runs if version.build_id == spec.build_id and reads.gate_runs is not None else None,
            )
            for version in found.versions
        )
        world = replace(world, temporal=replace(found, versions=tuple(read)))
    return replace(world, pod_problems=pods.result() if pods else {})


async def read_world(
    specs: Sequence[WorkerSpec],
    temporal: SharedReads,
    cluster: SharedLists | None,
    now: datetime,
    *,
    for_routing: bool,
) -> World:
    """What Temporal and Kubernetes (None: not read) say of the workers, all of them at the same time.

    `for_routing` as for `read_worker`. The first read that fails is raised, StateUnavailable or OutOfTime.
    """
    temporal.require_credentials(specs)
    try:
        async with asyncio.TaskGroup() as group:
            if cluster and cluster.namespace:
                group.create_task(cluster.list(cluster.namespace))
            reading = [
                group.create_task(_read(spec, temporal, cluster, now, for_routing=for_routing))
                for spec in specs
            ]
    except ExceptionGroup as failures:
        failure = _first(failures)
        raise failure from failure.__cause__
    workers = [task.result() for task in reading]
    strays = cluster.strays(specs) if cluster else ()
    return World(now, {worker.key: worker for worker in [*strays, *workers]})


async def read_each(
    specs: Sequence[WorkerSpec],
    temporal: SharedReads,
    cluster: SharedLists | None,
    now: datetime,
    *,
    for_routing: bool,
) -> tuple[World, list[str]]:
    """The same of those workers that can be read, and why the others cannot be."""

    async def read(spec: WorkerSpec) -> WorkerWorld:
        temporal.require_credentials([spec])
        return await _read(spec, temporal, cluster, now, for_routing=for_routing)

    found: dict[WorkerKey, WorkerWorld] = {}
    failures: dict[str, None] = {}
    for end in await asyncio.gather(*map(read, specs), return_exceptions=True):
        if isinstance(end, WorkerWorld):
            found[end.key] = end
            continue
        failure = _first(end)
        if not isinstance(failure, TwgenError):
            raise failure
        failures[str(failure)] = None  # the same one may be that of many
    return World(now, found), list(failures)


async def _read(
    spec: WorkerSpec,
    temporal: SharedReads,
    cluster: SharedLists | None,
    now: datetime,
    *,
    for_routing: bool,
) -> WorkerWorld:
    readers = TemporalReader(spec, temporal), ClusterReader(spec, cluster) if cluster else None
    return await read_worker(spec, *readers, now, for_routing=for_routing)


def _first(failure: BaseException) -> BaseException:
    """What failed first, of several."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
