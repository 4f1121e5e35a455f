"""Measures a ramping version: its workflows and tasks in Temporal, and its Prometheus metrics."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from math import isnan
from typing import TYPE_CHECKING

from twgen.errors import StateUnavailable, TwgenError
from twgen.model.analysis import (
    INFINITE,
    Backlog,
    BacklogAge,
    Failures,
    Measurement,
    Metric,
    Point,
    PrometheusQuery,
    ReportedProblems,
    StuckWorkflows,
    WorkflowFailures,
)
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import TaskQueueType, Version
from twgen.model.times import format_time
from twgen.model.values import dataclass
from twgen.planning.analysis.verdicts import moments, query_for
from twgen.planning.draining.actions import quoted_text
from twgen.reading.temporal.answers import failure_count
from twgen.reading.temporal.reader import TemporalReader, all_of

if TYPE_CHECKING:
    from temporalio.api.taskqueue.v1 import TaskQueueStats
    from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse

    from twgen.clients.prometheus import PrometheusServers

_MOST_DESCRIBED = 100
"""The maximum number of workflows that one measurement describes, because each workflow needs a call."""
_NAMED = 3
"""The number of workflows that a message names."""
STUCK_FROM = 5
"""The attempt from which a workflow task counts as stuck. It begins after about a minute. Servers that report
problems use the same number."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Measures the metrics of a worker's target since the time `since`."""

    spec: WorkerSpec
    target: Version
    current: str | None
    """The current version's build ID, or None if there is no current version."""
    temporal: TemporalReader
    since: datetime
    prometheus_of: "Callable[[WorkerSpec], PrometheusServers] | None"
    """Returns the Prometheus servers that a worker can use. None means that Prometheus cannot be read."""
    now: datetime

    async def measure(self, metric: Metric) -> Measurement:
        """Measure a metric. If a read fails, the result contains the error, and the ramp waits."""
        try:
            match metric.measure:
                case WorkflowFailures() as query:
                    return Measurement(metric.name, self.since, failures=await self._failures(query))
                case ReportedProblems(most):
                    return Measurement(metric.name, self.since, stuck=await self._stuck(most))
                case BacklogAge():
                    return Measurement(metric.name, self.since, backlog=await self._backlog())
                case PrometheusQuery() as query if self.prometheus_of:
                    points = await self.points(query, self.prometheus_of(self.spec))
                    return Measurement(metric.name, self.since, points=points)
        except TwgenError as error:
            return Measurement(metric.name, self.since, problem=str(error))
        return Measurement(metric.name, self.since, problem="this twgen release cannot read this metric")

    async def _failures(self, measure: WorkflowFailures) -> Failures:
        """Count all and failed workflows that have started on the target since measuring began.

        If the metric compares two versions, this also counts the current version's workflows.
        """
        types = ", ".join(map(quoted_text, measure.workflow_types))
        by_type = f" AND WorkflowType IN ({types})" if types else ""
        compared_with = self.current if measure.max_ratio is None else None
        counts = []
        for build_id in filter(None, (self.target.build_id, compared_with)):
            query = (
                f"TemporalWorkerDeploymentVersion = {self._version_text(build_id)}"
                f" AND StartTime >= '{format_time(self.since)}'{by_type} GROUP BY ExecutionStatus"
            )
            value = partial(failure_count, measure.statuses)
            counts.append(await self.temporal.ask(self.spec, "CountWorkflowExecutions", value, query=query))
        return Failures(*counts)

    async def _stuck(self, most: int) -> StuckWorkflows:
        """Find the running workflows whose next task belongs to the target and keeps failing.

        A query by version does not find all stuck workflows: a workflow whose first task fails has no version
        yet, and a workflow that the target cannot replay keeps its previous version. Therefore, this reads
        each candidate.
        """
        reports = await self.temporal.reports_problems(self.spec)
        workflows, is_all = await self._may_be_stuck(reports=reports)
        value = partial(self._is_stuck, reports=reports)
        described = await all_of(
            [self.temporal.describe_workflow(self.spec, *workflow, value) for workflow in workflows]
        )
        stuck = sorted(
            workflow for (workflow, _), is_stuck in zip(workflows, described, strict=True) if is_stuck
        )
        names = tuple(stuck[:_NAMED] if len(stuck) <= _NAMED else (*stuck[: _NAMED - 1], "others"))
        return StuckWorkflows(len(stuck), names, is_all=is_all or len(stuck) > most)

    async def _may_be_stuck(self, *, reports: bool) -> tuple[list[tuple[str, str]], bool]:
        """The workflow and run IDs of workflows that may be stuck, and whether the list is complete."""
        queues = ", ".join(
            quoted_text(queue.name)
            for queue in self.target.own_task_queues
            if queue.type is TaskQueueType.WORKFLOW
        )
        if not queues:
            return [], True
        started = "" if reports else f" AND StartTime >= '{format_time(self.since)}'"
        query = (
            f"TaskQueue IN ({queues}) AND ExecutionStatus = 'Running'"
            f"{' AND TemporalReportedProblems IS NOT NULL' if reports else ''}"
            f" AND (TemporalWorkerDeploymentVersion = {self._version_text(self.target.build_id)}"
            f" OR (TemporalWorkerDeploymentVersion IS NULL{started})"
            " OR TemporalWorkflowVersioningBehavior = 'AutoUpgrade')"
        )
        workflows, token = await self.temporal.workflows(
            self.spec,
            query,
            lambda info: (info.execution.workflow_id, info.execution.run_id),
            page_size=_MOST_DESCRIBED,
        )
        return workflows, not token

    def _is_stuck(self, answer: "DescribeWorkflowExecutionResponse | None", *, reports: bool) -> bool:
        """Whether the workflow's next task belongs to the target and keeps failing."""
        if answer is None or answer.workflow_execution_info.HasField("close_time"):
            return False
        versioning = answer.workflow_execution_info.versioning_info
        version = versioning.deployment_version
        if versioning.HasField("version_transition"):
            version = versioning.version_transition.deployment_version
        elif versioning.versioning_override.HasField("pinned"):
            version = versioning.versioning_override.pinned.version
        named, target = (version.deployment_name, version.build_id), self.target.build_id
        keeps_failing = reports or answer.pending_workflow_task.attempt >= STUCK_FROM
        return keeps_failing and named == (self.spec.worker_deployment, target)

    async def _backlog(self) -> Backlog:
        """The backlog of the target's task queue with the longest waiting task of any type."""
        names = sorted({queue.name for queue in self.target.own_task_queues})
        asking = [self.temporal.tasks(self.spec, name, self.target.build_id) for name in names]
        backlogs = [
            Backlog(name, max(_age(own), _age(unversioned)), own.tasks_add_rate, own.tasks_dispatch_rate)
            for name, stats in zip(names, await all_of(asking), strict=True)
            for own, unversioned in stats.values()
        ]
        return max(backlogs, key=lambda backlog: backlog.seconds, default=Backlog("", 0, 0.0, 0.0))

    async def points(self, metric: PrometheusQuery, servers: "PrometheusServers") -> tuple[Point, ...]:
        """The data points of a query since measuring began. Raises StateUnavailable or OutOfTime."""
        from twgen.clients.prometheus import RangeQuery

        # raises an error for a server that is not configured, even before the first data point is due
        server = servers.called(metric.server)
        analysis = self.spec.policy.analysis
        between = moments(metric, self.since, analysis.initial_delay, self.now) if analysis else None
        if not between:
            return ()
        (first, last), step = between, metric.interval
        query = RangeQuery(
            query_for(metric, self.spec), first.timestamp(), last.timestamp(), step.total_seconds()
        )
        series = await servers.series(server, query, self.temporal.deadline)
        if len(series) > 1:
            raise StateUnavailable(
                f"Prometheus {server.name} returned {len(series)} series: aggregate them to one number"
            )
        try:
            # a cache in front of Prometheus may shift all timestamps slightly, so each value counts for the
            # nearest data point. Infinity is replaced, because JSON cannot represent it
            values = {
                round((float(at) - query.first) / query.step): None
                if isnan(value := float(text))
                else max(-INFINITE, min(value, INFINITE))
                for values_of_series in series
                for at, text in values_of_series["values"]
            }
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise StateUnavailable(f"Prometheus {server.name} did not return a number") from error
        return tuple(
            Point(first + place * step, values.get(place)) for place in range((last - first) // step + 1)
        )

    def _version_text(self, build_id: str) -> str:
        return quoted_text(f"{self.spec.worker_deployment}:{build_id}")


def _age(stats: "TaskQueueStats") -> int:
    """How long the oldest task has waited, in seconds."""
    return int(stats.approximate_backlog_age.seconds) if stats.approximate_backlog_count > 0 else 0
