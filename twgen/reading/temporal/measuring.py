"""Measuring a version that ramps by what Temporal counts, lists and describes of its workflows and tasks."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from twgen.errors import TwgenError
from twgen.model.analysis import (
    Backlog,
    BacklogAge,
    Failures,
    Measurement,
    Metric,
    ReportedProblems,
    StuckWorkflows,
    WorkflowFailures,
)
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import TaskQueue, TaskQueueType, Version
from twgen.model.times import format_time
from twgen.planning.visibility import quoted_text
from twgen.reading.temporal.answers import failure_count
from twgen.reading.temporal.shared import SharedReads, all_of

if TYPE_CHECKING:
    from temporalio.api.taskqueue.v1 import TaskQueueStats
    from temporalio.api.workflow.v1 import WorkflowExecutionInfo
    from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse

_MOST_DESCRIBED = 100
"""Workflows of one look: each costs a call."""
_NAMED = 3
"""Workflows that a sentence names."""
STUCK_FROM = 5
"""Attempts of a workflow task; where servers report problems, they do so from then on, after a minute."""


class Measuring:
    """What one look measures of a worker's target: its metrics since a moment."""

    def __init__(
        self, spec: WorkerSpec, target: Version, current: str | None, shared: SharedReads, since: datetime
    ) -> None:
        self._spec = spec
        self._target = target
        self._current = current
        self._shared = shared
        self._since = since

    async def measure(self, metric: Metric) -> Measurement:
        """The measurement of a metric; what cannot be read holds a ramp, and ends no look."""
        try:
            match metric.measure:
                case WorkflowFailures() as asked:
                    return Measurement(metric.name, self._since, failures=await self._failures(asked))
                case ReportedProblems(most):
                    return Measurement(metric.name, self._since, stuck=await self._stuck(most))
                case BacklogAge():
                    return Measurement(metric.name, self._since, backlog=await self._backlog())
        except TwgenError as error:
            return Measurement(metric.name, self._since, problem=str(error))
        return Measurement(metric.name, self._since, problem="this release cannot read it")

    async def _failures(self, asked: WorkflowFailures) -> Failures:
        """How many workflows have started since on the target, and how many of them ended badly."""
        from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsRequest

        types = ", ".join(map(quoted_text, asked.workflow_types))
        of_types = f" AND WorkflowType IN ({types})" if types else ""
        compared = self._current if asked.max_ratio is None else None
        counts = []
        for build_id in filter(None, (self._target.build_id, compared)):
            query = (
                f"TemporalWorkerDeploymentVersion = {self._named(build_id)}"
                f" AND StartTime >= '{format_time(self._since)}'{of_types} GROUP BY ExecutionStatus"
            )
            request = CountWorkflowExecutionsRequest(namespace=self._spec.temporal_namespace, query=query)
            value = partial(failure_count, asked.statuses)
            counts.append(await self._shared.ask(self._spec, "count_workflow_executions", request, value))
        return Failures(*counts)

    async def _stuck(self, most: int) -> StuckWorkflows:
        """The running workflows whose next task is one of the target, and keeps failing.

        By version alone nobody finds them: one whose first task fails has none yet, and one that the target
        cannot replay keeps that which it came from. So those that may be meant are described, one by one.
        """
        reports = await self._shared.reports_problems(self._spec)
        found, is_all = await self._may_be_stuck(reports=reports)
        described = await all_of([self._is_stuck(*one, reports=reports) for one in found])
        stuck = sorted(workflow for (workflow, _), is_it in zip(found, described, strict=True) if is_it)
        named = tuple(stuck[:_NAMED] if len(stuck) <= _NAMED else (*stuck[: _NAMED - 1], "others"))
        return StuckWorkflows(len(stuck), named, is_all=is_all or len(stuck) > most)

    async def _may_be_stuck(self, *, reports: bool) -> tuple[list[tuple[str, str]], bool]:
        """Workflow and run IDs of the first that may be, and whether they are all."""
        from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest

        queues = ", ".join(
            quoted_text(queue.name) for queue in self._queues() if queue.type is TaskQueueType.WORKFLOW
        )
        if not queues:
            return [], True
        started = "" if reports else f" AND StartTime >= '{format_time(self._since)}'"
        query = (
            f"TaskQueue IN ({queues}) AND ExecutionStatus = 'Running'"
            f"{' AND TemporalReportedProblems IS NOT NULL' if reports else ''}"
            f" AND (TemporalWorkerDeploymentVersion = {self._named(self._target.build_id)}"
            f" OR (TemporalWorkerDeploymentVersion IS NULL{started})"
            " OR TemporalWorkflowVersioningBehavior = 'AutoUpgrade')"
        )
        request = ListWorkflowExecutionsRequest(
            namespace=self._spec.temporal_namespace, query=query, page_size=_MOST_DESCRIBED
        )

        def listed(answer: Any) -> tuple[list[tuple[str, str]], bool]:
            executions = [one.execution for one in answer.executions]
            return [(one.workflow_id, one.run_id) for one in executions], not answer.next_page_token

        return await self._shared.ask(self._spec, "list_workflow_executions", request, listed)

    async def _is_stuck(self, workflow_id: str, run_id: str, *, reports: bool) -> bool:
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

        request = DescribeWorkflowExecutionRequest(
            namespace=self._spec.temporal_namespace,
            execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        )

        def value(answer: "DescribeWorkflowExecutionResponse | None") -> bool:
            if answer is None:
                return False
            info = answer.workflow_execution_info
            keeps_failing = reports or answer.pending_workflow_task.attempt >= STUCK_FROM
            return keeps_failing and not info.HasField("close_time") and self._is_of_target(info)

        return await self._shared.ask(
            self._spec, "describe_workflow_execution", request, value, may_be_absent=True
        )

    def _is_of_target(self, info: "WorkflowExecutionInfo") -> bool:
        """Its next task goes to the target: it moves there, is pinned to it, or ran on it last."""
        told = info.versioning_info
        version = told.deployment_version
        if told.HasField("version_transition"):
            version = told.version_transition.deployment_version
        elif told.versioning_override.HasField("pinned"):
            version = told.versioning_override.pinned.version
        return (version.deployment_name, version.build_id) == (
            self._spec.worker_deployment,
            self._target.build_id,
        )

    async def _backlog(self) -> Backlog:
        """The task queue of the target whose oldest task has waited longest."""
        names = sorted({queue.name for queue in self._queues()})
        found = await all_of([self._backlog_of(name) for name in names])
        return max(found, key=lambda one: one.seconds, default=Backlog("", 0, 0.0, 0.0))

    async def _backlog_of(self, task_queue: str) -> Backlog:
        """What waits of a task queue, of workflows, activities or Nexus, whichever waits longest."""
        told = await self._shared.tasks(self._spec, task_queue, self._target.build_id)
        found = [
            Backlog(
                task_queue=task_queue,
                seconds=max(_age(of_version), _age(of_all)),
                added=of_version.tasks_add_rate,
                dispatched=of_version.tasks_dispatch_rate,
            )
            for of_version, of_all in told.values()
        ]
        return max(found, key=lambda one: one.seconds)

    def _queues(self) -> Sequence[TaskQueue]:
        return self._target.own_task_queues

    def _named(self, build_id: str) -> str:
        return quoted_text(f"{self._spec.worker_deployment}:{build_id}")


def _age(stats: "TaskQueueStats") -> int:
    """How long the oldest task waits, in seconds."""
    return int(stats.approximate_backlog_age.seconds) if stats.approximate_backlog_count > 0 else 0
