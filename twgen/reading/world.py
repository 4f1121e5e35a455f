"""Reading the world: what the servers say of the workers right now."""

from collections.abc import Sequence
from datetime import datetime

from twgen.clients.kubernetes import KubernetesClient
from twgen.clients.temporal import TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.reading.kubernetes import read_deployments
from twgen.reading.temporal import read_temporal


def read_world(
    specs: Sequence[WorkerSpec],
    temporal: TemporalClients,
    kubernetes: KubernetesClient | None,
    *,
    for_routing: bool,
    now: datetime,
) -> World:
    """What Temporal and Kubernetes (None: not read) say of the workers; raises when one read fails."""
    live, strays = read_deployments(specs, kubernetes) if kubernetes else (None, [])
    workers = read_temporal(specs, live, temporal, for_routing=for_routing, now=now)
    return World(now, {(worker.name, worker.temporal_namespace): worker for worker in [*strays, *workers]})
