import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import World
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.world import Reading, read_world

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def clients() -> TemporalClients:
    return TemporalClients(lambda: Profiles(allow_unlisted=True), {})


async def read_all(
    specs: Sequence[WorkerSpec],
    opened: TemporalClients,
    *,
    for_routing: bool = False,
    timeout: float = 20.0,  # noqa: ASYNC109 - it is a deadline's length
) -> World:
    shared = TemporalReader(opened, Deadline(timeout))
    return await read_world(specs, Reading(shared, None, NOW, for_routing, NOW))


def read(
    spec: WorkerSpec, *, for_routing: bool = False, due: Collection[str] = (), timeout: float = 20.0
) -> WorkerDeployment | None:
    async def read_one() -> WorkerDeployment | None:
        shared = TemporalReader(clients(), Deadline(timeout))
        now = datetime.now(UTC)  # noqa: TID251 - a mark of the future counts for nothing
        world = await read_world([spec], Reading(shared, None, now, for_routing, now))
        found = world.workers[spec.key].temporal
        counts = await shared.open_workflows(spec, due)
        return found and replace(
            found,
            versions=tuple(
                replace(item, open_workflows=counts.get(item.build_id, item.open_workflows))
                for item in found.versions
            ),
        )

    return asyncio.run(read_one())
