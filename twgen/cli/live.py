"""Reading the servers for a command: with whose credentials, through which cluster, until when."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from twgen.cli.argocd import application, in_plugin
from twgen.cli.clock import clock
from twgen.cli.output import warn
from twgen.cli.settings import Settings
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient
from twgen.clients.profiles import Profiles, load_profiles
from twgen.clients.temporal import TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.reading.world import read_world


def read_live(settings: Settings, workers: Sequence[WorkerSpec], *, for_routing: bool) -> World:
    """What Temporal and Kubernetes say of the workers right now."""
    deadline = Deadline(settings.timeout)
    cluster = _cluster(settings)
    with (
        KubernetesClient(cluster, deadline) if cluster else nullcontext() as kubernetes,
        TemporalClients(deadline, _profiles(settings)) as temporal,
    ):
        return read_world(workers, temporal, kubernetes, for_routing=for_routing, now=settings.now or clock())


def _profiles(settings: Settings) -> Profiles:
    operator = settings.operator
    found = load_profiles(os.environ, operator.temporal_config_file, use_environment=not in_plugin())
    allow_unlisted = settings.allow_unlisted_connections
    if not in_plugin():
        return Profiles(found, allow_unlisted=allow_unlisted)
    ours = application()
    return Profiles(found, lambda name: operator.may_use(name, ours), allow_unlisted)


def _cluster(settings: Settings) -> ClusterAccess | None:
    if settings.no_cluster:
        return None
    if settings.kubeconfig or settings.context:
        return ClusterAccess(settings.kubeconfig or _usual_kubeconfig(), settings.context)
    return _cluster_of_application(settings) if in_plugin() else _cluster_at_hand(settings)


def _cluster_of_application(settings: Settings) -> ClusterAccess | None:
    # Argo CD does not tell a plugin its destination: nothing is read that the operator has not mapped
    found = settings.operator.cluster_of(application())
    return ClusterAccess(found.kubeconfig, found.context) if found else None


def _cluster_at_hand(settings: Settings) -> ClusterAccess | None:
    kubeconfig = _usual_kubeconfig()
    if "KUBECONFIG" in os.environ or Path(kubeconfig).exists():
        return ClusterAccess(kubeconfig)
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return ClusterAccess()
    if not settings.quiet:
        warn(["there is no kubeconfig, so the cluster is not read: --no-cluster says that this is meant"])
    return None


def _usual_kubeconfig() -> str:
    return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
