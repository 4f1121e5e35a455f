"""Reads workers from Temporal."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from twgen.clients.deadline import Deadline
from twgen.clients.temporal import Call, TemporalClients
from twgen.errors import OutOfTime, StateUnavailable, first_failure
from twgen.model.spec import InTemporal, WorkerSpec
from twgen.model.temporal import GateRun, OtherWorker, TaskQueue, TaskQueueType, Version, WorkerDeployment
from twgen.planning.draining.actions import pinned_to, quoted_text, still_open
from twgen.planning.routing.polling import MOST_COUNTED
from twgen.reading.temporal import answers
from twgen.reading.temporal.answers import NUMBERS_OF_TYPES, TASK_QUEUE_TYPES, Polled, moment
from twgen.reading.temporal.checks import Check, Place, place_of, shared

if TYPE_CHECKING:
    from temporalio.api.taskqueue.v1 import TaskQueueStats
    from temporalio.api.workflow.v1 import WorkflowExecutionInfo
    from temporalio.api.workflowservice.v1 import ListWorkerDeploymentsResponse

Answer = TypeVar("Answer")
NamedVersion = tuple[str, str]
"""A Worker Deployment's name and a build ID."""

_EVENTS = 10
"""The number of a history's last events that are read. A failure is the last event, or signals follow it."""
_MOST_LISTED = 8
"""The maximum number of versions, per Temporal namespace and read, whose open workflows are listed."""
PAGE = 1000
"""The number of workflows per call, which is the server's limit."""
_SUMMARIES = 100
"""The number of workers per call, which is the server's limit."""
_MOST_PAGES = 100
_FORGOTTEN_FOR = 0.3
"""The wait in seconds before a worker that was not found is read again. After one in thirty routing changes,
server 1.29.1 does not find the worker for about 50 ms."""
_MOST_WAITS = 10
"""The maximum number of workers per read that are read again after a wait. This saves the server's rate limit
for workers that exist."""
_IN_ONE_QUERY = 500
"""The number of versions per query. A server answers such a query in a few milliseconds."""


@dataclass(slots=True)
class _Counts:
    """The number of open workflows on each version in one Temporal namespace."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: list[NamedVersion] = field(default_factory=list)
    counted: dict[NamedVersion, int] = field(default_factory=dict)
    failed: dict[NamedVersion, BaseException] = field(default_factory=dict)
    """The versions whose workflows could not be counted, with the errors."""


class TemporalReader:
    """Reads workers from Temporal within one deadline, with only one read for data that several workers need.

    Every method may raise StateUnavailable or OutOfTime.
    """

    def __init__(self, clients: TemporalClients, deadline: Deadline, check: Check | None = None) -> None:
        self._clients = clients
        self.check = check or Check()
        """The check to which this reader's reads belong."""
        self.deadline = deadline
        self._shared: dict[tuple[str, ...], asyncio.Task[Any]] = {}
        """Reads that several workers share, by subject, server address and namespace."""
        self._counts: defaultdict[Place, _Counts] = defaultdict(_Counts)
        self._listed: Counter[Place] = Counter()
        self._waits = 0

    def require_credentials(self, specs: Iterable[InTemporal]) -> None:
        """Raise StateUnavailable if a worker has no usable credentials. Call this before other methods."""
        for spec in specs:
            self._clients.profile_of(spec)

    async def ask(
        self,
        spec: InTemporal,
        name: str,
        value: Callable[[Any], Answer],
        *,
        may_be_absent: bool = False,
        **fields: Any,
    ) -> Answer:
        """Make the call `name` of Temporal's API with these fields, and return the converted response.

        Raises StateUnavailable or OutOfTime.
        """
        call = Call(spec, name, fields, value, may_be_absent=may_be_absent)
        return await self.check.silences.unless_silent(
            (spec.connection.host_port, call.method), lambda: self._clients.ask(call, self.deadline)
        )

    async def wait_until_remembered(self) -> bool:
        """Wait until the server may find a worker again. Returns False if too many workers have waited."""
        self._waits += 1
        if self._waits > _MOST_WAITS:
            return False
        await asyncio.sleep(_FORGOTTEN_FOR)
        return True

    async def server_version(self, spec: InTemporal) -> str:
        """The version of the worker's Temporal server."""
        address, versions = spec.connection.host_port, self._clients.server_versions
        if address not in versions:
            versions[address] = await shared(
                self._shared,
                ("version", address),
                lambda: self.ask(spec, "GetSystemInfo", lambda answer: str(answer.server_version)),
            )
        return versions[address]

    async def worker_deployments(self, spec: InTemporal) -> Sequence[OtherWorker]:
        """At most MOST_COUNTED Worker Deployments in the worker's Temporal namespace.

        This needs at most two calls. Since server 1.32.0, a page may contain fewer items than requested.
        """
        return await shared(
            self._shared,
            ("workers", *place_of(spec)),
            lambda: self._listed_workers(spec, answers.listed_workers, MOST_COUNTED // 2, most_pages=2),
        )

    async def summaries(self, spec: InTemporal) -> Mapping[str, bytes]:
        """Each worker's entry in the list of `spec`'s Temporal namespace, which may be a few seconds old."""
        return dict(await self._listed_workers(spec, answers.summaries, _SUMMARIES, _MOST_PAGES))

    async def _listed_workers(
        self,
        spec: InTemporal,
        value: Callable[["ListWorkerDeploymentsResponse"], tuple[list[Answer], bytes]],
        page_size: int,
        most_pages: int,
    ) -> list[Answer]:
        """Convert the Worker Deployments on the first pages of a Temporal namespace's list.

        Reading stops after the time limit for one response, because a faulty server could send endless pages.
        """
        listed, began, token = list[Answer](), time.monotonic(), b""
        for _ in range(most_pages):
            more, token = await self.ask(
                spec, "ListWorkerDeployments", value, page_size=page_size, next_page_token=token
            )
            listed += more
            if not token or time.monotonic() - began > self.deadline.timeout:
                break
        return listed

    async def reports_problems(self, spec: InTemporal) -> bool:
        """Whether the server can search the worker's namespace for workflows with reported problems."""

        def value(answer: Any) -> bool:
            return bool(answer.namespace_info.capabilities.reported_problems_search_attribute)

        return await shared(
            self._shared, ("problems", *place_of(spec)), lambda: self.ask(spec, "DescribeNamespace", value)
        )

    async def tasks(
        self, spec: InTemporal, task_queue: str, build_id: str
    ) -> Mapping[TaskQueueType, tuple["TaskQueueStats", "TaskQueueStats"]]:
        """Statistics about a task queue, by type: for a version's tasks, and for tasks without a version.

        Server 1.29.1 counts tasks without a version separately, while server 1.32.0 includes them in each
        version. On both servers, only the "enhanced" mode reports the rates at which tasks are added and
        dispatched.
        """
        version = f"{spec.worker_deployment}:{build_id}"

        def value(answer: Any) -> Mapping[TaskQueueType, tuple["TaskQueueStats", "TaskQueueStats"]]:
            own, unversioned = (answer.versions_info[name].types_info for name in (version, ""))
            return {
                kind: (own[number].stats, unversioned[number].stats)
                for number, kind in TASK_QUEUE_TYPES.items()
            }

        return await self.ask(
            spec,
            "DescribeTaskQueue",
            value,
            task_queue={"name": task_queue},
            api_mode="DESCRIBE_TASK_QUEUE_MODE_ENHANCED",
            versions={"build_ids": [version], "unversioned": True},
            task_queue_types=TASK_QUEUE_TYPES,
            report_stats=True,
        )

    async def open_workflows(self, spec: InTemporal, build_ids: Collection[str]) -> Mapping[str, int]:
        """Count the open workflows that are pinned to each of these versions.

        A server allows only ten counts per second and namespace. Therefore, while a count is running, this
        collects other workers' versions, and the next call counts them together.
        """
        if not build_ids:
            return {}
        counts = self._counts[place_of(spec)]
        versions = [(spec.worker_deployment, build_id) for build_id in build_ids]
        counts.waiting += versions
        async with counts.turn:
            # raised again, because otherwise each worker of a failed call would repeat the call
            if failure := next((counts.failed[key] for key in versions if key in counts.failed), None):
                raise failure
            together = tuple(counts.waiting)
            try:
                async with asyncio.TaskGroup() as group:
                    parts = [
                        group.create_task(self._count_each(spec, together[start : start + _IN_ONE_QUERY]))
                        for start in range(0, len(together), _IN_ONE_QUERY)
                    ]
            except ExceptionGroup as failures:
                failure = first_failure(failures)
                counts.failed.update(dict.fromkeys(together, failure))
                del counts.waiting[: len(together)]
                raise failure from failure.__cause__
            del counts.waiting[: len(together)]
            for part in parts:
                counts.counted.update(part.result())
        return {build_id: counts.counted[spec.worker_deployment, build_id] for build_id in build_ids}

    async def pinned_count(self, spec: InTemporal, build_id: str) -> tuple[int | None, datetime | None]:
        """The number of open workflows that are pinned to a version, and the oldest workflow's start time.

        The number is None if the workflows were not counted, and the start time is None if not all workflows
        were listed. Only a few versions' workflows are listed, because a server allows only ten list requests
        per second and namespace.
        """
        key = place_of(spec)
        self._listed[key] += 1
        if self._listed[key] > _MOST_LISTED:
            return None, None
        query = still_open(pinned_to(spec.worker_deployment, build_id))
        starts, token = await self.workflows(spec, query, lambda info: moment(info, "start_time"))
        if token:
            return await self.count_workflows(spec, query), None
        return len(starts), min(filter(None, starts), default=None)

    async def _count_each(
        self, spec: InTemporal, versions: Sequence[NamedVersion]
    ) -> dict[NamedVersion, int]:
        """Count all versions' workflows in one call. If any are open, split the versions and count again."""
        number = await self.count(spec, versions, "Pinned")
        if number == 0 or len(versions) == 1:
            return dict.fromkeys(versions, number)
        middle = len(versions) // 2
        async with asyncio.TaskGroup() as group:
            first = group.create_task(self._count_each(spec, versions[:middle]))
            second = group.create_task(self._count_each(spec, versions[middle:]))
        return first.result() | second.result()

    async def count(self, spec: InTemporal, versions: Iterable[NamedVersion], behaviour: str) -> int:
        """Count the open workflows with a versioning behavior (Pinned or AutoUpgrade) on these versions.

        A workflow that is pinned by an override has these search attributes from its start. On all supported
        servers, `CloseTime IS NULL` finds running and paused workflows. The server's own drainage check
        overlooks paused workflows.
        """
        names = ", ".join(quoted_text(f"{worker}:{build_id}") for worker, build_id in versions)
        query = (
            f"TemporalWorkerDeploymentVersion IN ({names}) "
            f"AND TemporalWorkflowVersioningBehavior = '{behaviour}' AND CloseTime IS NULL"
        )
        return await self.count_workflows(spec, query)

    async def count_workflows(self, spec: InTemporal, query: str) -> int:
        """The number of workflows that match a query."""
        return await self.ask(spec, "CountWorkflowExecutions", lambda answer: int(answer.count), query=query)

    async def workflows(
        self,
        spec: InTemporal,
        query: str,
        value: Callable[["WorkflowExecutionInfo"], Answer],
        *,
        page_size: int = PAGE,
        token: bytes = b"",
    ) -> tuple[list[Answer], bytes]:
        """A page of workflows that match a query, newest first and converted, and the next page's token."""
        # each page is converted immediately, because the memos and attributes of all workflows would need
        # too much memory
        return await self.ask(
            spec,
            "ListWorkflowExecutions",
            lambda answer: ([value(info) for info in answer.executions], bytes(answer.next_page_token)),
            query=query,
            page_size=page_size,
            next_page_token=token,
        )

    async def describe_workflow(
        self, spec: InTemporal, workflow_id: str, run_id: str, value: Callable[[Any], Answer]
    ) -> Answer:
        """Describe a workflow run, or the workflow's latest run if `run_id` is empty.

        `value` converts the response, which is None if the workflow does not exist.
        """
        execution = {"workflow_id": workflow_id, "run_id": run_id}
        return await self.ask(
            spec, "DescribeWorkflowExecution", value, may_be_absent=True, execution=execution
        )

    async def deployment(self, spec: WorkerSpec, *, for_routing: bool = True) -> WorkerDeployment | None:
        """The worker's routing and its list of versions, or None if the worker does not exist.

        Without `for_routing`, an earlier check's description may be reused.
        """
        check, place, summary = self.check, place_of(spec), b""
        key = place, spec.worker_deployment
        if check.described is not None and not for_routing:
            # if listing fails, for example because a permission is missing, the worker is described instead
            with suppress(StateUnavailable, OutOfTime):
                summaries = await shared(check.lists, place, lambda: self.summaries(spec))
                summary = summaries.get(spec.worker_deployment, b"")
            before, known = check.described.get(key, (b"", None))
            if summary and summary == before:
                return known
        described = await self.ask(
            spec,
            "DescribeWorkerDeployment",
            answers.worker_deployment,
            may_be_absent=True,
            deployment_name=spec.worker_deployment,
        )
        check.remember(key, summary, described)
        return described

    async def version(self, spec: WorkerSpec, build_id: str, listed: Version | None) -> Version | None:
        """Describe a version, and combine the description with the version's entry in the list.

        Returns None if the server does not find the version and the list does not contain it.
        """
        return await self.ask(
            spec,
            "DescribeWorkerDeploymentVersion",
            lambda answer: answers.described_version(answer, listed),
            may_be_absent=True,
            deployment_version={"deployment_name": spec.worker_deployment, "build_id": build_id},
        )

    async def pollers(self, spec: WorkerSpec, queue: TaskQueue) -> Polled:
        """The recent pollers of a task queue."""
        named, number = {"name": queue.name}, NUMBERS_OF_TYPES[queue.type]
        return await self.ask(
            spec, "DescribeTaskQueue", answers.pollers, task_queue=named, task_queue_type=number
        )

    async def has_tasks(self, spec: WorkerSpec, build_id: str, queue: TaskQueue) -> bool:
        """Whether a version's tasks are waiting in a task queue or arrived recently (Temporal's own rule)."""
        tasks = await self.tasks(spec, queue.name, build_id)
        return any(stats.approximate_backlog_count or stats.tasks_add_rate for stats in tasks[queue.type])

    async def gate_run(self, spec: WorkerSpec, task_queue: str, workflow_id: str) -> GateRun | None:
        """A gate workflow's latest run, with the reason if it failed, or None if no run has started."""
        value = partial(answers.gate_run, task_queue, workflow_id)
        run, fails = await self.describe_workflow(spec, workflow_id, "", value)
        if run is None or not (fails or run.status.has_failed):
            return run
        failure = await self._failure(spec, workflow_id)
        return replace(run, failure=failure or ("its history contains no failure" if fails else ""))

    async def _failure(self, spec: WorkerSpec, workflow_id: str) -> str:
        """The failure in the newest events of a workflow's latest run, or empty if no failure is known."""
        # an error is ignored, because decisions do not depend on the failure's message
        with suppress(StateUnavailable, OutOfTime):
            return await self.ask(
                spec,
                "GetWorkflowExecutionHistoryReverse",
                answers.last_failure,
                may_be_absent=True,
                execution={"workflow_id": workflow_id},
                maximum_page_size=_EVENTS,
            )
        return ""


async def all_of(asking: Sequence[Awaitable[Answer]]) -> list[Answer]:
    """Wait for all answers. If a request failed, raise the first error after all requests have ended."""
    values: list[Answer] = []
    for answer in await asyncio.gather(*asking, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer
        values.append(answer)
    return values
