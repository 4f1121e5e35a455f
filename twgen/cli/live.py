"""Connects a command to Temporal, Kubernetes and Prometheus, and reads them within deadlines."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakSet

from twgen.cli.environment import usual_kubeconfig
from twgen.cli.output import counting
from twgen.cli.settings import Settings, clock
from twgen.clients.deadline import AnswerDeadline, Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import TemporalClients
from twgen.errors import InvalidInput
from twgen.model.operator import PrometheusServer
from twgen.model.spec import InTemporal, WorkerSpec
from twgen.model.values import dataclass
from twgen.model.world import World
from twgen.planning.reads import Unread, unread_error
from twgen.reading.kubernetes import ClusterReader
from twgen.reading.temporal.checks import Check
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.world import Reading, read_each, read_world

if TYPE_CHECKING:
    from twgen.clients.prometheus import PrometheusServers

Answer = TypeVar("Answer")
_MOST_REFUSALS = {False: 3.0, True: 8.0}
"""How many times a server can rate-limit a request before twgen gives up, by `examines` of `read_each`.

The doctor sets `examines`, and gives up after about ten seconds.
"""


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections that a command uses in one event loop."""

    settings: Settings
    runner: asyncio.Runner
    temporal: TemporalClients
    kubernetes: KubernetesClient | None
    prometheus_of: "Callable[[WorkerSpec], PrometheusServers]"
    """The Prometheus servers that a worker may use. Their clients are created when a metric needs one."""

    def cluster_for(self, needed_by: str) -> KubernetesClient:
        """The client of the cluster. Without a cluster, it raises an error that names `needed_by`."""
        if not self.kubernetes:
            raise InvalidInput(
                f"{needed_by} needs access to a cluster: give --kubeconfig, or set KUBECONFIG; in a Pod, its"
                " service account is used"
            )
        return self.kubernetes

    def deadline(self) -> Deadline:
        """A new deadline for one request."""
        return Deadline(self.settings.timeout)

    async def read(
        self,
        workers: Sequence[WorkerSpec],
        *,
        for_routing: bool,
        goes_on: bool = False,
        unread: list[Unread] | None = None,
        progress: Iterator[object] | None = None,
    ) -> World:
        """The current state of the workers in Temporal and Kubernetes.

        If only some workers can be read, `unread` collects the unreadable workers. If `unread` is None, an
        unreadable worker raises an error. `goes_on` and `progress` are as in a Reading.
        """
        namespace = "" if workers else self.settings.namespace_rule.default
        deadline = self.settings.reading_deadline()
        reading = self._reading(deadline, namespace, None, for_routing=for_routing, goes_on=goes_on)
        reading = replace(reading, autoscalers=reading.for_people, progress=progress or iter(()))
        if unread is not None and len(workers) > 1:
            world, failed = await read_each(workers, reading)
            if len(failed) == len(workers):
                raise unread_error(failed)
            unread += failed
            # report orphans only if all reads succeeded, because unlisted namespaces may have more of them
            orphans = reading.cluster.orphans(workers) if reading.cluster and not failed else ()
            return replace(world, workers={orphan.key: orphan for orphan in orphans} | {**world.workers})
        # in a separate task: in Python 3.11, a task in which a TaskGroup failed counts as cancelled from then
        # on, and an asyncio.timeout around it does not raise TimeoutError
        return await asyncio.create_task(read_world(workers, reading))

    async def read_each(
        self,
        workers: Sequence[WorkerSpec],
        *,
        for_routing: bool,
        examines: bool = False,
        check: Check | None = None,
    ) -> tuple[World, list[Unread]]:
        """The workers that can be read, and the reasons why the others cannot.

        Every response has its own deadline, because a server's rate limit may make the whole read take long.
        With `examines`, it also reads the autoscalers, and waits longer for a busy server. `check` is the
        check of tick to which these reads belong, if any.
        """
        deadline = AnswerDeadline(self.settings.timeout, _MOST_REFUSALS[examines])
        reading = self._reading(deadline, "", check, for_routing=for_routing, goes_on=True)
        return await read_each(workers, replace(reading, autoscalers=examines))

    def _reading(
        self, deadline: Deadline, namespace: str, check: Check | None, *, for_routing: bool, goes_on: bool
    ) -> Reading:
        cluster = ClusterReader(self.kubernetes, deadline, namespace) if self.kubernetes else None
        temporal, read_at = TemporalReader(self.temporal, deadline, check), clock()
        now = self.settings.now or read_at
        return Reading(temporal, cluster, now, for_routing, read_at, goes_on, self.prometheus_of)


class CommonPrometheus:
    """The same Prometheus servers for all workers."""

    def __init__(self, servers: Sequence[PrometheusServer], remedy: str) -> None:
        """`remedy` is the advice for metrics whose server is not in `servers`."""
        self.servers, self.remedy = servers, remedy

    @cached_property
    def _clients(self) -> "PrometheusServers":
        from twgen.clients.prometheus import PrometheusServers

        by_name = {server.name: server for server in self.servers}
        return PrometheusServers(tuple(by_name.values()), self.remedy)

    def of(self, spec: WorkerSpec) -> "PrometheusServers":  # noqa: ARG002 - it is the same for all workers
        """The Prometheus clients for a worker."""
        return self._clients


class Servers:
    """The servers that a command reads. Only this class runs coroutines.

    Connections stay open between reads, and each read has its own deadline. A failed read closes the
    connections. The next read connects to the same cluster again, with newly read credentials.
    """

    def __init__(self, settings: Settings, unread: list[Unread] | None = None, *, asks: bool = True) -> None:
        """`unread` is as in `Connections.read`.

        `asks` is whether a credential plugin may prompt the user at the terminal.
        """
        self._settings = settings
        self._unread = unread
        self._asks = asks
        self._connections: Connections | None = None
        self._reached: ClusterAccess | None = None
        """The cluster that was read, or None before the first read."""
        self._clients = WeakSet[KubernetesClient]()
        """All clients that are still in use, so that `close` can close them."""
        self._is_reading = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, workers: Sequence[WorkerSpec], *, for_routing: bool) -> World:
        """The current state of the workers in Temporal and Kubernetes. Raises an error if a read fails."""
        with counting("workers are read", len(workers), quiet=self._settings.quiet) as items:
            return self.run(
                workers,
                lambda opened: opened.read(
                    workers, for_routing=for_routing, unread=self._unread, progress=items
                ),
            )

    def run(
        self, workers: Sequence[InTemporal], work: Callable[[Connections], Coroutine[Any, Any, Answer]]
    ) -> Answer:
        """Run a coroutine with connections for these workers. A failure closes the connections."""
        self._connections = opened = self._connections or self._open(workers)
        self._settings = replace(self._settings, quiet=True)  # the warnings have been printed
        self._is_reading = True
        try:
            answer = opened.runner.run(work(opened))
        except BaseException:
            self._is_reading = False
            self.close()
            raise
        self._is_reading = False
        return answer

    @property
    def context(self) -> str:
        """The kubeconfig context, or empty if twgen read no cluster or used the Pod's service account."""
        opened = self._connections
        reached = opened.kubernetes.reached if opened and opened.kubernetes else self._reached
        return reached.context if reached else ""

    def _open(self, workers: Sequence[InTemporal]) -> Connections:
        settings = self._settings
        unused = settings.via.keys() - {worker.connection.host_port for worker in workers}
        if workers:  # without workers, the needed addresses are unknown: an intent is read later
            no_effect = "--via has no effect"
            settings.warn(
                f"no worker's Connection has the address {it}: {no_effect}" for it in sorted(unused)
            )

        def profiles() -> Profiles:
            return settings.environment.profiles(
                settings.operator, allow_unlisted=settings.allow_unlisted_connections
            )

        if settings.no_cluster:
            access = None
        elif self._reached:
            access = self._reached
        elif settings.kubeconfig or settings.context:
            access = ClusterAccess(settings.kubeconfig or usual_kubeconfig(), settings.context)
        else:
            # a command without workers needs the cluster, and raises an error instead of a warning
            access = settings.environment.cluster(settings.operator, quiet=settings.quiet or not workers)
        # log lines of libraries may contain credentials
        logging.lastResort = logging.NullHandler()
        kubernetes = None
        if access:
            # if there are no workers, the command cannot work without the cluster
            kubernetes = KubernetesClient(replace(access, is_optional=bool(workers)), asks=self._asks)
            self._clients.add(kubernetes)
        temporal = TemporalClients(profiles, settings.via, settings.ca_files)
        remedy = settings.environment.prometheus_remedy(settings.operator)
        prometheus = CommonPrometheus(settings.usable_prometheus(), remedy)
        return Connections(settings, asyncio.Runner(), temporal, kubernetes, prometheus.of)

    def renewed(self, opened: Connections) -> Connections:
        """New connections in the same event loop.

        The old connections are closed. A request that is still in progress reconnects by itself.
        """
        if opened.kubernetes:
            self._reached = opened.kubernetes.reached
            opened.kubernetes.close()
        return replace(self._open(()), runner=opened.runner, prometheus_of=opened.prometheus_of)

    def close(self) -> None:
        """Close the connections. The next read opens new connections."""
        opened, self._connections = self._connections, None
        if opened and opened.kubernetes:
            self._reached = opened.kubernetes.reached
        for client in self._clients:
            client.close()
        # after an interrupt, the thread of `status --watch` may still be reading: it ends with the process
        if opened and not self._is_reading:
            opened.runner.close()
