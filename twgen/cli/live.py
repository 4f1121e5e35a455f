"""Reads the servers for a command, with their credentials, the cluster and the deadlines."""

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
"""How often a server may reject a request because of its rate limit: some ten seconds for the doctor."""


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of one event loop, and the reads of a command over them."""

    settings: Settings
    runner: asyncio.Runner
    temporal: TemporalClients
    kubernetes: KubernetesClient | None
    prometheus_of: "Callable[[WorkerSpec], PrometheusServers]"
    """The Prometheus servers that a worker may use; their clients are made once a metric needs one."""

    def cluster_for(self, needed_by: str) -> KubernetesClient:
        """The cluster; raises InvalidInput without one. `needed_by` is the command or option."""
        if not self.kubernetes:
            raise InvalidInput(
                f"{needed_by} needs access to a cluster: give --kubeconfig, or set KUBECONFIG; in a Pod, its"
                " service account is used"
            )
        return self.kubernetes

    def deadline(self) -> Deadline:
        """The deadline of one request, from now on."""
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

        `unread` gets the workers that cannot be read if others can be; None: then it raises. `goes_on` and
        `progress` are as in a Reading.
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
            # a namespace that is not listed may have more of them
            orphans = reading.cluster.orphans(workers) if reading.cluster and not failed else ()
            return replace(world, workers={orphan.key: orphan for orphan in orphans} | {**world.workers})
        # its own task: with Python 3.11, a task in which a TaskGroup failed counts as cancelled from then on,
        # and an asyncio.timeout around it does not end with TimeoutError
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

        Every answer has its own deadline: the rate limit of a server may make the whole read take long.
        `examines`: it also reads the autoscalers, and waits longer for a busy server. `check` is the one to
        which these reads belong.
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
        """`remedy` is for metrics that need another server."""
        self.servers, self.remedy = servers, remedy

    @cached_property
    def _clients(self) -> "PrometheusServers":
        from twgen.clients.prometheus import PrometheusServers

        by_name = {server.name: server for server in self.servers}
        return PrometheusServers(tuple(by_name.values()), self.remedy)

    def of(self, spec: WorkerSpec) -> "PrometheusServers":  # noqa: ARG002 - it is the same for all workers
        """The clients that a worker may use."""
        return self._clients


class Servers:
    """The servers that a command reads; only this class runs coroutines.

    Connections are kept from one read to the next; each read has its own deadline. A failed read closes them:
    the next one opens new ones, with the credentials of that time, and never to another cluster.
    """

    def __init__(self, settings: Settings, unread: list[Unread] | None = None, *, asks: bool = True) -> None:
        """`unread` gets the workers that cannot be read if others can be; None: a read of them raises.

        `asks`: a login program may ask the person at the terminal.
        """
        self._settings = settings
        self._unread = unread
        self._asks = asks
        self._connections: Connections | None = None
        self._reached: ClusterAccess | None = None
        """The cluster that was read; None: none yet."""
        self._clients = WeakSet[KubernetesClient]()
        """All opened clusters, as long as anything uses them."""
        self._is_reading = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, workers: Sequence[WorkerSpec], *, for_routing: bool) -> World:
        """The current state of the workers in Temporal and Kubernetes; raises if it cannot be read."""
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
        """The result of a coroutine that uses these workers' connections; a failure closes them."""
        self._connections = opened = self._connections or self._open(workers)
        self._settings = replace(self._settings, quiet=True)  # its warnings were printed before
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
        """The context of the kubeconfig that was read; empty: none was, or the account of a Pod."""
        opened = self._connections
        reached = opened.kubernetes.reached if opened and opened.kubernetes else self._reached
        return reached.context if reached else ""

    def _open(self, workers: Sequence[InTemporal]) -> Connections:
        settings = self._settings
        unused = settings.via.keys() - {worker.connection.host_port for worker in workers}
        if workers:  # a rollout of an intent does not know its worker yet
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
            # a command without workers needs the cluster
            access = settings.environment.cluster(settings.operator, quiet=settings.quiet or not workers)
        # the log lines of a library may quote credentials that it was sent
        logging.lastResort = logging.NullHandler()
        kubernetes = None
        if access:
            # without workers, nothing can be done without it
            kubernetes = KubernetesClient(replace(access, is_optional=bool(workers)), asks=self._asks)
            self._clients.add(kubernetes)
        temporal = TemporalClients(profiles, settings.via, settings.ca_files)
        remedy = settings.environment.prometheus_remedy(settings.operator)
        prometheus = CommonPrometheus(settings.usable_prometheus(), remedy)
        return Connections(settings, asyncio.Runner(), temporal, kubernetes, prometheus.of)

    def renewed(self, opened: Connections) -> Connections:
        """New connections in the same event loop.

        The old ones are closed. A request that still uses them opens another connection for itself.
        """
        if opened.kubernetes:
            self._reached = opened.kubernetes.reached
            opened.kubernetes.close()
        return replace(self._open(()), runner=opened.runner, prometheus_of=opened.prometheus_of)

    def close(self) -> None:
        """Close the connections: the next read opens new ones."""
        opened, self._connections = self._connections, None
        if opened and opened.kubernetes:
            self._reached = opened.kubernetes.reached
        for client in self._clients:
            client.close()
        # a thread of `status --watch` that is interrupted may still be reading: it ends with the process
        if opened and not self._is_reading:
            opened.runner.close()
