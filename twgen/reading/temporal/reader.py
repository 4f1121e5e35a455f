"""Asking Temporal during one reading."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from twgen.clients.deadline import Deadline
from twgen.clients.temporal import Call, TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.reading.temporal.calls import count_open_workflows, describe_worker, server_version

Answer = TypeVar("Answer")
NamedVersion = tuple[str, str]
"""A worker, as Temporal calls it, and a build ID."""

_IN_ONE_QUERY = 500
"""Versions; a server takes as many in some milliseconds."""


@dataclass(slots=True)
class _Counts:
    """The open workflows of versions of one Temporal namespace."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: list[NamedVersion] = field(default_factory=list)
    counted: dict[NamedVersion, int] = field(default_factory=dict)


class TemporalReader:
    """What Temporal's servers say until the deadline; what several workers need is asked once."""

    def __init__(self, clients: TemporalClients, deadline: Deadline) -> None:
        self._clients = clients
        self._deadline = deadline
        self._server_versions: dict[str, asyncio.Task[str]] = {}
        self._counts: defaultdict[tuple[str, str], _Counts] = defaultdict(_Counts)

    def require_credentials(self, specs: Iterable[WorkerSpec]) -> None:
        """Raise StateUnavailable when a worker has none that may be used; to be asked before any call."""
        for spec in specs:
            self._clients.profile_of(describe_worker(spec))

    async def ask(self, call: Call[Answer]) -> Answer:
        """The value of a call's answer; raises StateUnavailable or OutOfTime."""
        return await self._clients.ask(call, self._deadline)

    async def server_version(self, spec: WorkerSpec) -> str:
        """The version of the worker's server."""
        address = spec.connection.host_port
        if address not in self._server_versions:
            self._server_versions[address] = asyncio.create_task(self.ask(server_version(spec)))
        return await self._server_versions[address]

    async def open_workflows(self, spec: WorkerSpec, build_ids: Collection[str]) -> Mapping[str, int]:
        """How many open workflows are pinned to each of a worker's versions.

        A server counts but ten times a second for a namespace: versions of other workers that come while it
        counts are counted together by the next call.
        """
        if not build_ids:
            return {}
        counts = self._counts[spec.connection.host_port, spec.temporal_namespace]
        counts.waiting += [(spec.worker_deployment, build_id) for build_id in build_ids]
        async with counts.turn:
            together = tuple(counts.waiting)
            async with asyncio.TaskGroup() as group:
                parts = [
                    group.create_task(self._count(spec, together[start : start + _IN_ONE_QUERY]))
                    for start in range(0, len(together), _IN_ONE_QUERY)
                ]
            del counts.waiting[: len(together)]
            for part in parts:
                counts.counted.update(part.result())
        return {build_id: counts.counted[spec.worker_deployment, build_id] for build_id in build_ids}

    async def _count(self, spec: WorkerSpec, versions: Sequence[NamedVersion]) -> dict[NamedVersion, int]:
        """The count of each: one call when there is none on all together, else by halves."""
        number = await self.ask(count_open_workflows(spec, versions))
        if number == 0 or len(versions) == 1:
            return dict.fromkeys(versions, number)
        middle = len(versions) // 2
        async with asyncio.TaskGroup() as group:
            first = group.create_task(self._count(spec, versions[:middle]))
            second = group.create_task(self._count(spec, versions[middle:]))
        return first.result() | second.result()
