"""Reading the world: what the servers say of the workers right now."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.reading.kubernetes import ClusterReader, SharedLists
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.temporal.shared import SharedReads
from twgen.reading.worker import read_worker


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
                group.create_task(
                    read_worker(
                        spec,
                        TemporalReader(spec, temporal),
                        ClusterReader(spec, cluster) if cluster else None,
                        now,
                        for_routing=for_routing,
                    )
                )
                for spec in specs
            ]
    except ExceptionGroup as failures:
        failure: Exception = failures
        while isinstance(failure, ExceptionGroup):
            failure = failure.exceptions[0]
        raise failure from failure.__cause__
    workers = [task.result() for task in reading]
    strays = cluster.strays(specs) if cluster else ()
    return World(now, {(worker.name, worker.temporal_namespace): worker for worker in [*strays, *workers]})
