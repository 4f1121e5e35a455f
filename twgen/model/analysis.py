"""Metrics that show whether a ramping version is healthy, and their measurements."""

from datetime import datetime, timedelta
from enum import StrEnum
from sys import float_info
from typing import Annotated

from twgen.model.forms import LABEL, WORKFLOW_TYPE
from twgen.model.record_shapes import Each, Example, FieldName, Hint, Name, OneOf
from twgen.model.shapes import INT32, duration, number, text, word
from twgen.model.values import dataclass

MOST_TYPES = 50
"""The maximum number of workflow types in one setting."""
INFINITE = float_info.max
"""The number that replaces infinity, because JSON documents cannot contain infinity."""


class OnFailure(StrEnum):
    """The reaction when the analysis of a ramp fails."""

    ABORT = "Abort"
    PAUSE = "Pause"


class ClosedStatus(StrEnum):
    """Temporal's statuses of workflows that closed without completing."""

    FAILED = "Failed"
    TIMED_OUT = "TimedOut"
    TERMINATED = "Terminated"
    CANCELED = "Canceled"


_LARGEST_RATIO = 0.9
"""The highest allowed limit. With a higher limit, no failure rate could be clearly above the limit."""
_SMALLEST_RATIO = 0.000001


@dataclass(frozen=True, slots=True)
class WorkflowFailures:
    """Limits the failure rate of the workflows that have started on the target during its ramp.

    Each attempt of a retry policy counts separately. A continue-as-new chain counts once.
    """

    max_ratio: Annotated[float | None, number(_SMALLEST_RATIO, _LARGEST_RATIO)] = None
    """The highest allowed failure rate, from 0.000001 to 0.9."""
    statuses: Annotated[tuple[ClosedStatus, ...], Each(least=1, is_set=True)] = (
        ClosedStatus.FAILED,
        ClosedStatus.TIMED_OUT,
    )
    """The statuses that count as failed."""
    workflow_types: Annotated[
        tuple[Annotated[str, WORKFLOW_TYPE], ...], Each(noun="type", most=MOST_TYPES, is_set=True)
    ] = ()
    """The workflow types to count. If absent or empty, all types count."""
    false_alarms: Annotated[float, number(_SMALLEST_RATIO, 0.5)] = 0.01
    """The accepted probability of a false alarm. This is the probability that the metric fails during a ramp
    if the version's failure rate is exactly at the limit."""
    at_least: Annotated[int, INT32] = 0
    """The number of workflows that must start before the last step can end."""
    as_current: Annotated[bool, FieldName("notAbove"), word("Current")] = False
    """With `Current`, the limit is the current version's failure rate over the same time, but at least 0.1%.
    This limit replaces maxRatio, and has a confidence of 99%. If workflows of the target have failed, the
    ramp waits until about seven workflows have started on the current version."""


@dataclass(frozen=True, slots=True)
class ReportedProblems:
    """Limits the number of the target's workflows whose workflow tasks have been failing for about a minute.

    Such workflows indicate that the new code cannot replay their histories. If the server does not list these
    workflows in the TemporalReportedProblems search attribute, twgen inspects up to 100 running workflows.
    With such a server, do not use this metric if the target can have more than 100 running workflows: the
    ramp would wait forever.
    """

    at_most: Annotated[int, FieldName("max"), INT32] = 0
    """The maximum number of such workflows. An auto-upgrade workflow may have been stuck even before it moved
    to the target."""


@dataclass(frozen=True, slots=True)
class BacklogAge:
    """Limits the age of the oldest waiting task on the target's task queues."""

    at_most: Annotated[
        timedelta,
        FieldName("max"),
        duration(timedelta(seconds=1)),
        Example("2m"),
        Hint("write a duration such as 2m"),
    ]
    """The maximum age of the oldest waiting task."""


class NoData(StrEnum):
    """The treatment of a data point for which the query returns no value."""

    WAIT = "Wait"
    PASS = "Pass"  # noqa: S105 - no password
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class PrometheusQuery:
    """Limits the result of a Prometheus query, which twgen evaluates once per interval."""

    query: Annotated[str, text(most=4096)]
    """A PromQL query that returns a single number. twgen fills in {{ .DeploymentName }}, {{ .BuildID }} and
    {{ .TemporalNamespace }}."""
    server: Annotated[str, LABEL] = ""
    """The name of a Prometheus server in the OperatorConfig. You can omit this field if there is only one
    server."""
    least: Annotated[float | None, FieldName("thresholdRange.min", "The range of acceptable values.")] = None
    """The lowest acceptable value."""
    most: Annotated[float | None, FieldName("thresholdRange.max")] = None
    """The highest acceptable value."""
    interval: Annotated[
        timedelta,
        duration(timedelta(seconds=10), timedelta(hours=24), ": no step would get a second measurement"),
    ] = timedelta(minutes=1)
    """The time between two data points, from 10s to 24h."""
    failure_limit: Annotated[int, INT32] = 0
    """The metric fails if more data points than this are outside the range."""
    no_data: NoData = NoData.WAIT
    """The treatment of a data point that has no value, or whose value is NaN. With `Wait`, the ramp waits
    while the newest data point has no value. With `Pass`, the data point passes. With `Fail`, the data point
    counts as outside the range."""


Measure = WorkflowFailures | ReportedProblems | BacklogAge | PrometheusQuery
MEASURES = {
    "workflowFailures": WorkflowFailures,
    "reportedProblems": ReportedProblems,
    "backlogAge": BacklogAge,
    "prometheus": PrometheusQuery,
}
"""The possible measures of a metric, by field name."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its name and its measure."""

    name: Annotated[str, LABEL]
    """The name of the metric, unique in the policy."""
    measure: Annotated[Measure, OneOf(MEASURES)]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The metrics of a ramping version."""

    # at most ten, because the server counts workflows for each metric whenever twgen checks the rollout
    metrics: Annotated[
        tuple[Metric, ...],
        Each(noun="metric", least=1, most=10),
        Hint("without metrics, nothing is measured"),
    ]
    """The metrics, which twgen measures whenever it checks the rollout."""
    on_failure: OnFailure = OnFailure.ABORT
    """`Abort` takes the target's share back until you run `twgen retry` or commit a new build. `Pause` keeps
    the share unchanged until you run `twgen resume`."""
    initial_delay: timedelta = timedelta(minutes=1)
    """The time between the start of the ramp and the first evaluation of the metrics."""

    @property
    def least_started(self) -> int:
        """The number of workflows that must start on the version before its last step can end."""
        asked = (metric.measure for metric in self.metrics)
        return max(
            (measure.at_least for measure in asked if isinstance(measure, WorkflowFailures)), default=0
        )


class Verdict(StrEnum):
    """A metric's verdict about a version."""

    PASSES = "Passes"
    FAILS = "Fails"
    UNDECIDED = "Undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a metric."""

    metric: str
    """The name of the metric in the policy."""
    verdict: Verdict
    """With `Fails`, the ramp is taken back or paused. With `Undecided`, the ramp waits."""
    because: str
    """The result as a sentence."""
    value: float | None = None
    """The measured value. Null if nothing was measured."""
    bound: float | None = None
    """The limit for the measured value. Null if unknown."""


@dataclass(frozen=True, slots=True)
class FailureCount:
    """How many workflows started on a version, and how many of these workflows failed."""

    started: int
    """The number of workflows that started."""
    failed: int
    """The number of these workflows that failed."""


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of the target, and of the current version if the metric compares the two versions."""

    target: FailureCount
    """The workflows that started on the target since the ramp began. Absent if not read."""
    current: FailureCount | None = None
    """The workflows that started on the current version. Absent if the metric does not compare versions."""


@dataclass(frozen=True, slots=True)
class StuckWorkflows:
    """The target's running workflows whose workflow tasks keep failing."""

    number: int
    """The number of these workflows."""
    first: tuple[str, ...] = ()
    """The workflow IDs of some of these workflows."""
    is_all: bool = True
    """False if the target had too many running workflows to inspect all of them."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The target's task queue whose oldest task has been waiting longest."""

    task_queue: str
    """The name of the task queue."""
    seconds: int
    """The age of the oldest waiting task, in seconds. The value is 0 if no task is waiting."""
    added: float
    """The number of tasks per second that arrive for the target."""
    dispatched: float
    """The number of tasks per second that the target's workers take."""


@dataclass(frozen=True, slots=True)
class Point:
    """A data point: the result of a query at one time."""

    at: datetime
    """The time of the data point."""
    value: float | None = None
    """The value of the data point. Absent if the query returned no value."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of one metric."""

    metric: Name
    """The name of the metric in the policy."""
    since: datetime
    """When the ramp began."""
    failures: Failures | None = None
    """The failures that workflowFailures counts. Absent if not read."""
    stuck: StuckWorkflows | None = None
    """The stuck workflows that reportedProblems counts. Absent if not read."""
    backlog: Backlog | None = None
    """The task queue with the oldest waiting task, for backlogAge. Absent if not read."""
    points: tuple[Point, ...] | None = None
    """The data points that a prometheus query returned, oldest first. Absent if not read."""
    problem: str = ""
    """Why the metric could not be read."""
