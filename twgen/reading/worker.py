"""Reading one worker: what Temporal and Kubernetes say of it right now."""

from asyncio import TaskGroup
from dataclasses import replace
from datetime import datetime

from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerWorld
from twgen.planning.reads import further_reads, versions_to_describe
from twgen.reading.kubernetes import ClusterReader
from twgen.reading.temporal.answers import with_pollers
from twgen.reading.temporal.reader import TemporalReader


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
