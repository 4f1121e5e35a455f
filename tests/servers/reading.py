from collections.abc import Collection
from datetime import UTC, datetime

from twgen.clients import TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerDeployment
from twgen.reading.temporal import read_temporal

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def read(
    spec: WorkerSpec, *, for_routing: bool = False, due: Collection[str] = (), timeout: float = 20.0
) -> WorkerDeployment | None:
    with TemporalClients(timeout, allow_unlisted=True) as clients:
        [answer] = read_temporal(
            [spec], clients, for_routing=for_routing, now=NOW, due_for_scale_down=lambda *_: due
        )
        return answer
