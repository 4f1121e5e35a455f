from collections.abc import Collection
from datetime import UTC, datetime

from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerDeployment
from twgen.reading.temporal import read_temporal
from twgen.reading.temporal_visibility import with_open_workflows

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def clients(timeout: float = 20.0) -> TemporalClients:
    return TemporalClients(Deadline(timeout), Profiles(allow_unlisted=True))


def read(
    spec: WorkerSpec, *, for_routing: bool = False, due: Collection[str] = (), timeout: float = 20.0
) -> WorkerDeployment | None:
    with clients(timeout) as opened:
        [world] = read_temporal([spec], None, opened, for_routing=for_routing, now=NOW)
        if not world.temporal or not due:
            return world.temporal
        return with_open_workflows([(spec, world.temporal)], [due], opened)[0]
