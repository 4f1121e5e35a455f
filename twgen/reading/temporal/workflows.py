"""Reads a worker's workflows: open workflows that keep a version running, and histories to replay.

The server counts the open workflows, and twgen lists and describes a limited number of workflows. Servers can
only group counts by status, so workflow types, task queues and ages come from the list. The list begins with
the newest workflows, but the oldest workflows keep a version running longest. Therefore, if the list is
incomplete, twgen also counts workflows by age, and finds the page with the oldest workflows by start time.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from twgen.model.draining import AGES, BatchState, Described, EndedWorkflow, OpenWorkflow, PinnedWorkflows
from twgen.model.spec import InTemporal, WorkerSpec
from twgen.model.times import format_time
from twgen.model.values import dataclass
from twgen.model.world import RecordedRun
from twgen.planning.draining.actions import of_deployment, pinned_to, quoted_text, still_open
from twgen.reading.temporal.answers import decoded, moment
from twgen.reading.temporal.measuring import STUCK_FROM
from twgen.reading.temporal.reader import PAGE, TemporalReader, all_of

if TYPE_CHECKING:
    from temporalio.api.common.v1 import Payload
    from temporalio.api.workflow.v1 import WorkflowExecutionInfo
    from temporalio.api.workflowservice import v1 as service

MOST_PAGES = 5
_MOST_DESCRIBED = 100
"""The maximum number of workflows per version that are described individually."""

_LONGEST_AGO = timedelta(days=3650)
_MOST_HALVINGS = 30
_PAUSED = 8
"""The number of the workflow status Paused, which older SDKs do not define."""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)

_Listed = tuple[str, str, OpenWorkflow]
"""A workflow's ID, its run ID and the workflow itself."""


@dataclass(frozen=True, slots=True)
class Draining:
    """Reads the open workflows on one worker's versions."""

    spec: WorkerSpec
    temporal: TemporalReader
    now: datetime
    window: timedelta
    """The time before `now` for which closed workflows are read too."""

    async def pinned(self, build_ids: Sequence[str]) -> dict[str, PinnedWorkflows]:
        """Each version's open workflows. A single call finds all versions without open workflows."""
        counted = await self.temporal.open_workflows(self.spec, build_ids)
        in_use = [build_id for build_id in build_ids if counted[build_id]]
        pinned = await all_of([self._of_version(build_id, counted[build_id]) for build_id in in_use])
        none = {build_id: PinnedWorkflows(0) for build_id in build_ids}
        return none | dict(zip(in_use, pinned, strict=True))

    async def batch(self, job_id: str) -> BatchState | None:
        """The progress of a batch operation, or None if the operation does not exist."""
        from temporalio.api.enums.v1 import BatchOperationState

        def state(answer: "service.DescribeBatchOperationResponse | None") -> BatchState | None:
            if answer is None:
                return None
            return BatchState(
                is_running=answer.state == BatchOperationState.BATCH_OPERATION_STATE_RUNNING,
                has_failed=answer.state == BatchOperationState.BATCH_OPERATION_STATE_FAILED,
                total=answer.total_operation_count,
                done=answer.complete_operation_count,
                failed=answer.failure_operation_count,
                started_at=moment(answer, "start_time"),
            )

        return await self.temporal.ask(
            self.spec, "DescribeBatchOperation", state, may_be_absent=True, job_id=job_id
        )

    async def _of_version(self, build_id: str, number: int) -> PinnedWorkflows:
        pinned = pinned_to(self.spec.worker_deployment, build_id)
        open_query = still_open(pinned)
        listed, are_all = await self._list(open_query, MOST_PAGES)
        oldest, older = listed, tuple[int, ...]()
        if not are_all:
            starts = (format_time(self.now - age) for age in AGES)
            older = tuple(
                await all_of([self.count(f"{open_query} AND StartTime < '{start}'") for start in starts])
            )
            oldest = await self._oldest(open_query, listed[-1][2].started_at)
        described = await self._described(oldest[-_MOST_DESCRIBED:])
        since = format_time(self.now - self.window)
        closed = f"{pinned} AND CloseTime >= '{since}' AND ExecutionStatus != 'ContinuedAsNew'"
        # the first page, with the newest workflows, is enough
        ended, _ = await self.temporal.workflows(self.spec, closed, _closed, page_size=PAGE)
        return PinnedWorkflows(
            # workflows may have closed between the count and the list
            number=len(listed) if are_all else max(number, len(listed)),
            listed=tuple(workflow for *_, workflow in listed),
            oldest_at=oldest[-1][2].started_at if oldest else None,
            described=described,
            ended=tuple(filter(None, ended)),
            older_than=older,
        )

    async def _list(self, query: str, most: int) -> tuple[list[_Listed], bool]:
        """The newest workflows, from at most `most` pages, and whether there are no other workflows."""
        workflows: list[_Listed] = []
        token = b""
        for _ in range(most):
            page, token = await self.temporal.workflows(
                self.spec, query, _listed, page_size=PAGE, token=token
            )
            workflows += page
            if not token:
                break
        return workflows, not token

    async def count(self, query: str) -> int:
        """The number of workflows that match a query."""
        return await self.temporal.count_workflows(self.spec, query)

    async def _oldest(self, open_query: str, newest: datetime) -> list[_Listed]:
        """At most one page of the oldest workflows, or empty if the search for that page fails.

        All of these workflows must have started before `newest`.
        """
        youngest_age, oldest_age = self.now - newest, _LONGEST_AGO
        for _ in range(_MOST_HALVINGS):
            age = (youngest_age + oldest_age) / 2
            query = f"{open_query} AND StartTime < '{format_time(self.now - age)}'"
            number = await self.count(query)
            if 0 < number <= PAGE:
                return (await self._list(query, 1))[0]
            youngest_age, oldest_age = (age, oldest_age) if number else (youngest_age, age)
        return []

    async def _described(self, workflows: Sequence[_Listed]) -> Described:
        def value(answer: "service.DescribeWorkflowExecutionResponse | None") -> tuple[bool, bool] | None:
            if answer is None or answer.workflow_execution_info.HasField("close_time"):
                return None
            return answer.pending_workflow_task.attempt >= STUCK_FROM, bool(answer.pending_children)

        asking = [
            self.temporal.describe_workflow(self.spec, workflow_id, run_id, value)
            for workflow_id, run_id, _ in workflows
        ]
        found = [workflow for workflow in await all_of(asking) if workflow]
        return Described(len(found), sum(fails for fails, _ in found), sum(waits for _, waits in found))


def _closed(info: "WorkflowExecutionInfo") -> EndedWorkflow | None:
    began, closed = moment(info, "start_time"), moment(info, "close_time")
    return EndedWorkflow(info.type.name, closed - began) if began and closed else None


def _listed(info: "WorkflowExecutionInfo") -> _Listed:
    attributes = info.search_attributes.indexed_fields
    problems = attributes.get("TemporalReportedProblems")
    workflow = OpenWorkflow(
        workflow_type=info.type.name,
        task_queue=info.task_queue,
        started_at=moment(info, "start_time") or _NEVER,
        is_paused=info.status == _PAUSED,
        has_problems=problems is not None and bool(decoded(problems)),
    )
    return info.execution.workflow_id, info.execution.run_id, workflow


_VERSION = "TemporalWorkerDeploymentVersion"


class _Kind(NamedTuple):
    """A property that divides workflows into groups, so that some workflows of each group are replayed."""

    attribute: str
    """The property's search attribute."""
    value: Callable[[RecordedRun], str]
    """Returns a workflow's value of the property, or empty if the workflow has no value."""
    prefix: str = ""
    """The part of the search attribute's value before the property's value."""

    def text(self, value: str) -> str:
        """A value of the property as text for a query."""
        return quoted_text(self.prefix + value)


_BY_TYPE = _Kind("WorkflowType", lambda workflow: workflow.workflow_type)


class Histories:
    """Reads the histories of one worker's workflows. Every method may raise StateUnavailable or OutOfTime."""

    def __init__(self, worker: InTemporal, temporal: TemporalReader, page: int = PAGE) -> None:
        self._worker = worker
        self._temporal = temporal
        self._page_size = page
        self._before_build_id = f"{worker.worker_deployment}:"

    async def recorded(self, number: int, *, upgrading: bool, task_queue: str = "") -> list[RecordedRun]:
        """At least `number` of the newest workflows of each type, both open (for each version) and closed.

        With `upgrading`, the result contains only auto-upgrade workflows. With `task_queue`, it also contains
        unversioned workflows in that task queue, because the first version will continue them.
        """
        own = of_deployment(self._worker.worker_deployment)
        upgrades = f"{own} AND TemporalWorkflowVersioningBehavior = 'AutoUpgrade'"
        workflows = await self._of_each(still_open(upgrades), [_BY_TYPE], number)
        if task_queue:
            unversioned = f"TaskQueue = {quoted_text(task_queue)} AND TemporalWorkerDeployment IS NULL"
            workflows += await self._of_each(still_open(unversioned), [_BY_TYPE], number)
        if not upgrading:
            pinned = f"{own} AND TemporalWorkflowVersioningBehavior = 'Pinned'"
            by_version = _Kind(_VERSION, lambda workflow: workflow.build_id, self._before_build_id)
            workflows += await self._of_each(still_open(pinned), [by_version, _BY_TYPE], number)
        # runs that continued as new are left out, because their new runs are replayed
        ended = " AND CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'"
        return workflows + await self._of_each((upgrades if upgrading else own) + ended, [_BY_TYPE], number)

    async def history(self, recorded: RecordedRun, most_bytes: int) -> str | None:
        """A run's history as JSON, empty if the server has deleted it, or None if it is too large."""
        from google.protobuf.json_format import MessageToJson
        from temporalio.api.history.v1 import History

        whole, token = History(), b""
        while True:
            page = await self._temporal.ask(
                self._worker,
                "GetWorkflowExecutionHistory",
                lambda answer: (answer.history, answer.next_page_token) if answer else None,
                may_be_absent=True,
                execution={"workflow_id": recorded.workflow_id, "run_id": recorded.run_id},
                next_page_token=token,
            )
            if not page:
                return ""
            part, token = page
            whole.events.extend(part.events)
            # the history as JSON is even larger
            if whole.ByteSize() > most_bytes:
                return None
            if not token:
                text = MessageToJson(whole, indent=1)
                return text if len(text.encode()) <= most_bytes else None

    async def _of_each(self, query: str, kinds: Sequence[_Kind], number: int) -> list[RecordedRun]:
        """At least `number` of the newest workflows of each kind that match the query, if there are enough.

        A list begins with the newest workflows, so a type that was last started long ago is not on the first
        pages. Therefore, each kind on a page is queried separately, followed by all kinds that have not
        appeared yet. If a name contains quotes, the server may find no workflow by that name. In that case,
        the workflows from the page are used.
        """
        workflows: list[RecordedRun] = []
        if not kinds:
            workflows, token = await self._page(query, most=number)
            while token and len(workflows) < number:
                page, token = await self._page(query, token, most=number)
                workflows += page
            return workflows
        kind, *finer = kinds
        queried: set[str] = set()
        others, token = query, b""
        while True:
            page, token = await self._page(others, token)
            if not token and not queried:
                return page
            listed: defaultdict[str, list[RecordedRun]] = defaultdict(list)
            for workflow in page:
                listed[kind.value(workflow)].append(workflow)
            new = listed.keys() - queried
            for value in sorted(new):
                enough = listed[value] if not finer and len(listed[value]) >= number else []
                if token and value and not enough:
                    enough = await self._of_each(
                        f"{query} AND {kind.attribute} = {kind.text(value)}", finer, number
                    )
                workflows += (enough or listed[value])[: number if not finer else None]
            queried |= new
            if not token:
                return workflows
            if values := sorted(new - {""}):
                texts = ", ".join(map(kind.text, values))
                others, token = f"{others} AND {kind.attribute} NOT IN ({texts})", b""

    async def _page(
        self, query: str, token: bytes = b"", most: int = PAGE
    ) -> tuple[list[RecordedRun], bytes]:
        page_size = min(self._page_size, most)
        return await self._temporal.workflows(
            self._worker, query, self._recorded, page_size=page_size, token=token
        )

    def _recorded(self, info: "WorkflowExecutionInfo") -> RecordedRun:
        attributes, version = info.search_attributes.indexed_fields, ""
        is_open = not info.HasField("close_time")
        if is_open and _text(attributes.get("TemporalWorkflowVersioningBehavior")) == "Pinned":
            version = _text(attributes.get(_VERSION)).removeprefix(self._before_build_id)
        return RecordedRun(
            info.type.name, info.execution.workflow_id, info.execution.run_id, is_open, version
        )


def _text(payload: "Payload | None") -> str:
    return "" if payload is None else str(decoded(payload))
