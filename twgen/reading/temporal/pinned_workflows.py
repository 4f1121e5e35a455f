"""Reading which workflows hold a version: counted by the server, listed and described within bounds.

Servers group a count by status alone, so types, task queues and ages come from a list. A list begins with the
newest workflows, and what holds a version longest is its oldest: where not all are listed, ages are counted,
and the oldest page is looked for by its start.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from twgen.model.draining import AGES, BatchState, EndedWorkflow, LookedAt, OpenWorkflow, PinnedWorkflows
from twgen.model.spec import WorkerSpec
from twgen.model.times import format_time
from twgen.model.values import dataclass
from twgen.planning.visibility import pinned_to, still_open
from twgen.reading.temporal.answers import decoded, moment
from twgen.reading.temporal.measuring import STUCK_FROM
from twgen.reading.temporal.reader import PAGE, SharedReads, all_of

if TYPE_CHECKING:
    from temporalio.api.workflow.v1 import WorkflowExecutionInfo
    from temporalio.api.workflowservice.v1 import (
        DescribeBatchOperationResponse,
        DescribeWorkflowExecutionResponse,
    )

MOST_PAGES = 5
_MOST_DESCRIBED = 100
"""Workflows of a version that are asked one by one."""

_LONGEST_AGO = timedelta(days=3650)
_MOST_HALVINGS = 30
_PAUSED = 8
"""Its number as a status of a workflow, which older SDKs have no name for."""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)

_Listed = tuple[str, str, OpenWorkflow]
"""A workflow by its ID and the ID of its run."""


@dataclass(frozen=True, slots=True)
class Draining:
    """Reads what is open on the versions of one worker, at one moment."""

    spec: WorkerSpec
    shared: SharedReads
    now: datetime
    window: timedelta
    """Workflows that closed within it, before now, are read too."""

    async def pinned(self, build_ids: Sequence[str]) -> dict[str, PinnedWorkflows]:
        """The open workflows of each version; one call tells of all that have none."""
        counted = await self.shared.open_workflows(self.spec, build_ids)
        held = [build_id for build_id in build_ids if counted[build_id]]
        found = await all_of([self._of_version(build_id, counted[build_id]) for build_id in held])
        none = {build_id: PinnedWorkflows(0) for build_id in build_ids}
        return none | dict(zip(held, found, strict=True))

    async def batch(self, job_id: str) -> BatchState | None:
        """How far a batch operation is; None: there is none of that ID."""
        from temporalio.api.enums.v1 import BatchOperationState
        from temporalio.api.workflowservice.v1 import DescribeBatchOperationRequest

        def state(answer: "DescribeBatchOperationResponse | None") -> BatchState | None:
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

        request = DescribeBatchOperationRequest(namespace=self.spec.temporal_namespace, job_id=job_id)
        return await self.shared.ask(
            self.spec, "describe_batch_operation", request, state, may_be_absent=True
        )

    async def _of_version(self, build_id: str, number: int) -> PinnedWorkflows:
        pinned = pinned_to(self.spec.worker_deployment, build_id)
        open_ones = still_open(pinned)
        listed, are_all = await self._list(open_ones, MOST_PAGES)
        oldest, older = listed, tuple[int, ...]()
        if not are_all:
            starts = (format_time(self.now - age) for age in AGES)
            older = tuple(
                await all_of([self.count(f"{open_ones} AND StartTime < '{start}'") for start in starts])
            )
            oldest = await self._oldest(open_ones, listed[-1][2].started_at)
        looked_at = await self._look_at(oldest[-_MOST_DESCRIBED:])
        since = format_time(self.now - self.window)
        closed = f"{pinned} AND CloseTime >= '{since}' AND ExecutionStatus != 'ContinuedAsNew'"
        # the newest page of them is enough
        ended, _ = await self.shared.workflows(self.spec, closed, _closed, page_size=PAGE)
        return PinnedWorkflows(
            # between the count and the list some may have closed
            number=len(listed) if are_all else max(number, len(listed)),
            listed=tuple(one for *_, one in listed),
            oldest_at=oldest[-1][2].started_at if oldest else None,
            looked_at=looked_at,
            ended=tuple(filter(None, ended)),
            older_than=older,
        )

    async def _list(self, query: str, most: int) -> tuple[list[_Listed], bool]:
        """The newest of so many pages, and whether they are all."""
        found: list[_Listed] = []
        token = b""
        for _ in range(most):
            page, token = await self.shared.workflows(self.spec, query, _listed, page_size=PAGE, token=token)
            found += page
            if not token:
                break
        return found, not token

    async def count(self, query: str) -> int:
        """How many workflows a query finds."""
        return await self.shared.count_workflows(self.spec, query)

    async def _oldest(self, open_ones: str, newest: datetime) -> list[_Listed]:
        """A page or less of the oldest workflows, older than the newest of them; empty: not found."""
        youngest, before = self.now - newest, _LONGEST_AGO
        for _ in range(_MOST_HALVINGS):
            age = (youngest + before) / 2
            query = f"{open_ones} AND StartTime < '{format_time(self.now - age)}'"
            number = await self.count(query)
            if 0 < number <= PAGE:
                return (await self._list(query, 1))[0]
            youngest, before = (age, before) if number else (youngest, age)
        return []

    async def _look_at(self, workflows: Sequence[_Listed]) -> LookedAt:
        def value(answer: "DescribeWorkflowExecutionResponse | None") -> tuple[bool, bool] | None:
            if answer is None or answer.workflow_execution_info.HasField("close_time"):
                return None
            return answer.pending_workflow_task.attempt >= STUCK_FROM, bool(answer.pending_children)

        asking = [
            self.shared.describe_workflow(self.spec, workflow_id, run_id, value)
            for workflow_id, run_id, _ in workflows
        ]
        described = [workflow for workflow in await all_of(asking) if workflow]
        failing, waiting = (sum(flags) for flags in zip(*described, strict=True)) if described else (0, 0)
        return LookedAt(len(described), failing, waiting)


def _closed(info: "WorkflowExecutionInfo") -> EndedWorkflow | None:
    began, closed = moment(info, "start_time"), moment(info, "close_time")
    return EndedWorkflow(info.type.name, closed - began) if began and closed else None


def _listed(info: "WorkflowExecutionInfo") -> _Listed:
    attributes = info.search_attributes.indexed_fields
    problems = attributes.get("TemporalReportedProblems")
    found = OpenWorkflow(
        workflow_type=info.type.name,
        task_queue=info.task_queue,
        started_at=moment(info, "start_time") or _NEVER,
        is_paused=info.status == _PAUSED,
        has_problems=problems is not None and bool(decoded(problems)),
    )
    return info.execution.workflow_id, info.execution.run_id, found
