"""What one reading asks Temporal once for several workers."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from twgen.clients.deadline import Deadline
from twgen.clients.temporal import Call, TemporalClients
from twgen.model.spec import InTemporal
from twgen.model.temporal import OtherWorker, TaskQueueType
from twgen.planning.routing.registration import MOST_COUNTED
from twgen.planning.visibility import pinned_to, quoted_text, still_open
from twgen.reading.temporal.answers import TASK_QUEUE_TYPES, listed_worker, moment

if TYPE_CHECKING:
    from temporalio.api.taskqueue.v1 import TaskQueueStats
    from temporalio.api.workflow.v1 import WorkflowExecutionInfo

Answer = TypeVar("Answer")
NamedVersion = tuple[str, str]
"""A worker, as Temporal calls it, and a build ID."""

_MOST_LISTED = 8
"""Versions of a Temporal namespace of which one reading lists the open workflows."""
PAGE = 1000
"""Workflows of one call; a server gives no more."""
_FORGOTTEN_FOR = 0.3
"""Seconds; 1.29.1 says for some 50 ms, after one in thirty changes of routing, that it has no such worker."""
_MOST_SECOND_LOOKS = 10
"""Of one reading: the limit of reads is for those that Temporal knows."""
_IN_ONE_QUERY = 500
"""Versions; a server takes as many in some milliseconds."""


@dataclass(slots=True)
class _Counts:
    """The open workflows of versions of one Temporal namespace."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: list[NamedVersion] = field(default_factory=list)
    counted: dict[NamedVersion, int] = field(default_factory=dict)
    failed: dict[NamedVersion, Exception] = field(default_factory=dict)
    """Why those were not counted that a call was for."""


class Held(NamedTuple):
    """The open workflows that are pinned to a version."""

    number: int | None = None
    """None: not counted."""
    oldest_at: datetime | None = None
    """When the oldest started; None: there is none, or it was not found."""


class SharedReads:
    """The connections and the deadline of one reading, and the answers that its workers share."""

    def __init__(self, clients: TemporalClients, deadline: Deadline) -> None:
        self._clients = clients
        self._deadline = deadline
        self._server_versions: dict[str, asyncio.Task[str]] = {}
        self._counts: defaultdict[tuple[str, str], _Counts] = defaultdict(_Counts)
        self._worker_deployments: dict[tuple[str, str], asyncio.Task[list[OtherWorker]]] = {}
        self._reporting: dict[tuple[str, str], asyncio.Task[bool]] = {}
        self._listed: Counter[tuple[str, str]] = Counter()
        self._second_looks = 0

    def require_credentials(self, specs: Iterable[InTemporal]) -> None:
        """Raise StateUnavailable when a worker has none that may be used; to be called before any other."""
        for spec in specs:
            self._clients.profile_of(spec.connection, spec.temporal_namespace, _named(spec))

    async def ask(
        self,
        spec: InTemporal,
        method: str,
        request: Any,
        value: Callable[[Any], Answer],
        *,
        may_be_absent: bool = False,
    ) -> Answer:
        """The value of what the worker's server answers; raises StateUnavailable or OutOfTime."""
        connection, namespace = spec.connection, spec.temporal_namespace
        call = Call(connection, namespace, _named(spec), method, request, value, may_be_absent=may_be_absent)
        return await self._clients.ask(call, self._deadline)

    async def second_look(self) -> bool:
        """Wait for a moment in which a server may remember a worker; False, at once: others have done so."""
        self._second_looks += 1
        if self._second_looks > _MOST_SECOND_LOOKS:
            return False
        await asyncio.sleep(_FORGOTTEN_FOR)
        return True

    async def server_version(self, spec: InTemporal) -> str:
        """The version of the worker's server."""
        from temporalio.api.workflowservice.v1 import GetSystemInfoRequest

        address, known = spec.connection.host_port, self._clients.server_versions
        if address not in known:
            if address not in self._server_versions:
                asking = self.ask(
                    spec, "get_system_info", GetSystemInfoRequest(), lambda answer: str(answer.server_version)
                )
                self._server_versions[address] = asyncio.create_task(asking)
            known[address] = await asyncio.shield(self._server_versions[address])
        return known[address]

    async def worker_deployments(self, spec: InTemporal) -> Sequence[OtherWorker]:
        """The Worker Deployments of the worker's Temporal namespace, MOST_COUNTED at most."""
        key = (spec.connection.host_port, spec.temporal_namespace)
        if key not in self._worker_deployments:
            self._worker_deployments[key] = asyncio.create_task(self._list_worker_deployments(spec))
        # a worker that is cut must not cut the answer of the others
        return await asyncio.shield(self._worker_deployments[key])

    async def _list_worker_deployments(self, spec: InTemporal) -> list[OtherWorker]:
        """In two calls at most; since 1.32.0 a page may hold fewer than were asked for."""
        from temporalio.api.workflowservice.v1 import ListWorkerDeploymentsRequest

        found, page = list[OtherWorker](), b""
        for _ in range(2):
            request = ListWorkerDeploymentsRequest(
                namespace=spec.temporal_namespace, page_size=MOST_COUNTED // 2, next_page_token=page
            )
            more, page = await self.ask(
                spec,
                "list_worker_deployments",
                request,
                lambda answer: ([*map(listed_worker, answer.worker_deployments)], answer.next_page_token),
            )
            found += more
            if not page:
                break
        return found

    async def reports_problems(self, spec: InTemporal) -> bool:
        """The server lists workflows of the worker's namespace by the problems of their workflow tasks."""
        from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest

        key = (spec.connection.host_port, spec.temporal_namespace)
        if key not in self._reporting:
            asking = self.ask(
                spec,
                "describe_namespace",
                DescribeNamespaceRequest(namespace=spec.temporal_namespace),
                lambda answer: bool(answer.namespace_info.capabilities.reported_problems_search_attribute),
            )
            self._reporting[key] = asyncio.create_task(asking)
        return await asyncio.shield(self._reporting[key])

    async def tasks(
        self, spec: InTemporal, task_queue: str, build_id: str
    ) -> Mapping[TaskQueueType, tuple["TaskQueueStats", "TaskQueueStats"]]:
        """How many tasks of a version are in a task queue, and of no version yet, by what they carry.

        Of the latter 1.29.1 tells beside all versions, and 1.32.0 as part of each. This form of the question,
        which servers call enhanced, tells on both what comes for a version and what its workers take.
        """
        from temporalio.api.enums.v1 import DescribeTaskQueueMode
        from temporalio.api.enums.v1 import TaskQueueType as TypeNumber
        from temporalio.api.taskqueue.v1 import TaskQueue as Named
        from temporalio.api.taskqueue.v1 import TaskQueueVersionSelection
        from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

        version = f"{spec.worker_deployment}:{build_id}"
        request = DescribeTaskQueueRequest(
            namespace=spec.temporal_namespace,
            task_queue=Named(name=task_queue),
            api_mode=DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
            versions=TaskQueueVersionSelection(build_ids=[version], unversioned=True),
            task_queue_types=[TypeNumber.ValueType(number) for number in TASK_QUEUE_TYPES],
            report_stats=True,
        )

        def value(answer: Any) -> Mapping[TaskQueueType, tuple["TaskQueueStats", "TaskQueueStats"]]:
            of_version, of_none = (answer.versions_info[name].types_info for name in (version, ""))
            return {
                kind: (of_version[number].stats, of_none[number].stats)
                for number, kind in TASK_QUEUE_TYPES.items()
            }

        return await self.ask(spec, "describe_task_queue", request, value)

    async def open_workflows(self, spec: InTemporal, build_ids: Collection[str]) -> Mapping[str, int]:
        """How many open workflows are pinned to each of a worker's versions.

        A server counts but ten times a second for a namespace: versions of other workers that come while it
        counts are counted together by the next call.
        """
        if not build_ids:
            return {}
        counts = self._counts[spec.connection.host_port, spec.temporal_namespace]
        versions = [(spec.worker_deployment, build_id) for build_id in build_ids]
        counts.waiting += versions
        async with counts.turn:
            # each of those that were counted together would wait as long for the same failure, one by one
            if failure := next((counts.failed[one] for one in versions if one in counts.failed), None):
                raise failure
            together = tuple(counts.waiting)
            try:
                async with asyncio.TaskGroup() as group:
                    parts = [
                        group.create_task(self._count_each(spec, together[start : start + _IN_ONE_QUERY]))
                        for start in range(0, len(together), _IN_ONE_QUERY)
                    ]
            except ExceptionGroup as error:
                counts.failed.update(dict.fromkeys(together, error))
                del counts.waiting[: len(together)]
                raise
            del counts.waiting[: len(together)]
            for part in parts:
                counts.counted.update(part.result())
        return {build_id: counts.counted[spec.worker_deployment, build_id] for build_id in build_ids}

    async def held(self, spec: InTemporal, build_id: str) -> Held:
        """By how many open workflows a version is held, and since when.

        Of more versions of a namespace than a few nothing is asked: the server lists but ten times a second.
        """
        key = (spec.connection.host_port, spec.temporal_namespace)
        self._listed[key] += 1
        if self._listed[key] > _MOST_LISTED:
            return Held()
        query = still_open(pinned_to(spec.worker_deployment, build_id))
        starts, token = await self.workflows(spec, query, lambda info: moment(info, "start_time"))
        if token:
            return Held(await self.count_workflows(spec, query))
        return Held(len(starts), min(filter(None, starts), default=None))

    async def _count_each(
        self, spec: InTemporal, versions: Sequence[NamedVersion]
    ) -> dict[NamedVersion, int]:
        """One call when no workflow is open on all of them together, else the same for both halves."""
        number = await self.count(spec, versions, "Pinned")
        if number == 0 or len(versions) == 1:
            return dict.fromkeys(versions, number)
        middle = len(versions) // 2
        async with asyncio.TaskGroup() as group:
            first = group.create_task(self._count_each(spec, versions[:middle]))
            second = group.create_task(self._count_each(spec, versions[middle:]))
        return first.result() | second.result()

    async def count(self, spec: InTemporal, versions: Iterable[NamedVersion], behaviour: str) -> int:
        """How many workflows of a behaviour (Pinned or AutoUpgrade) have not closed on the versions.

        A workflow pinned by an override carries the attributes from its start. Having no close time covers
        running and paused ones on servers with and without pausing; the server's own drainage check forgets
        those that are paused.
        """
        names = ", ".join(quoted_text(f"{worker}:{build_id}") for worker, build_id in versions)
        query = (
            f"TemporalWorkerDeploymentVersion IN ({names}) "
            f"AND TemporalWorkflowVersioningBehavior = '{behaviour}' AND CloseTime IS NULL"
        )
        return await self.count_workflows(spec, query)

    async def count_workflows(self, spec: InTemporal, query: str) -> int:
        """How many workflows a query finds."""
        from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsRequest

        request = CountWorkflowExecutionsRequest(namespace=spec.temporal_namespace, query=query)
        return await self.ask(spec, "count_workflow_executions", request, lambda answer: int(answer.count))

    async def workflows(
        self,
        spec: InTemporal,
        query: str,
        value: Callable[["WorkflowExecutionInfo"], Answer],
        *,
        page_size: int = PAGE,
        token: bytes = b"",
    ) -> tuple[list[Answer], bytes]:
        """A page of the workflows that a query finds, the newest first: a value of each, and how to go on."""
        from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest

        request = ListWorkflowExecutionsRequest(
            namespace=spec.temporal_namespace, query=query, page_size=page_size, next_page_token=token
        )
        # a row has memo and attributes besides, which would fill the memory of a Pod
        return await self.ask(
            spec,
            "list_workflow_executions",
            request,
            lambda answer: ([value(info) for info in answer.executions], bytes(answer.next_page_token)),
        )


async def all_of(asking: Sequence[Awaitable[Answer]]) -> list[Answer]:
    """All answers, or the first failure once none is asked for any more."""
    answers: list[Answer] = []
    for answer in await asyncio.gather(*asking, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer
        answers.append(answer)
    return answers


def _named(spec: InTemporal) -> str:
    return (
        f"{spec.worker_deployment} of {spec.document.source}"
        if spec.document.source
        else spec.worker_deployment
    )
