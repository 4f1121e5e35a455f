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
"""The most workflow types in one setting."""
INFINITE = float_info.max
"""The number instead of an infinite one, which documents cannot contain."""


class OnFailure(StrEnum):
    """The reaction if a ramp's analysis fails."""

    ABORT = "Abort"
    PAUSE = "Pause"


class ClosedStatus(StrEnum):
    """The statuses of workflows that ended without completing. The names are Temporal's."""

    FAILED = "Failed"
    TIMED_OUT = "TimedOut"
    TERMINATED = "Terminated"
    CANCELED = "Canceled"


_LARGEST_RATIO = 0.9
"""The largest limit. With a larger one, no version could be clearly worse."""
_SMALLEST_RATIO = 0.000001


@dataclass(frozen=True, slots=True)
class WorkflowFailures:
    """Limits the share of failed workflows among all that have started on the target during its ramp.

    Each attempt of a retry policy counts. A chain of continue-as-new counts once.
    """

    max_ratio: Annotated[float | None, number(_SMALLEST_RATIO, _LARGEST_RATIO)] = None
    """The share of workflows that may fail, from 0.000001 to 0.9."""
    statuses: Annotated[tuple[ClosedStatus, ...], Each(least=1, is_set=True)] = (
        ClosedStatus.FAILED,
        ClosedStatus.TIMED_OUT,
    )
    """The statuses that count as failed."""
    workflow_types: Annotated[
        tuple[Annotated[str, WORKFLOW_TYPE], ...], Each(noun="type", most=MOST_TYPES, is_set=True)
    ] = ()
    """The workflow types that count. If absent or empty, all types count."""
    false_alarms: Annotated[float, number(_SMALLEST_RATIO, 0.5)] = 0.01
    """The accepted probability that a version whose failure rate is exactly at the limit fails this metric
    during its ramp."""
    at_least: Annotated[int, INT32] = 0
    """The number of workflows that must have started before the last step ends."""
    as_current: Annotated[bool, FieldName("notAbove"), word("Current")] = False
    """Current: instead of maxRatio, allow the current version's failure rate over the same time, but at least
    0.1%. The confidence is 99%. If some workflows failed, the ramp waits while the current version has fewer
    than about seven workflows."""


@dataclass(frozen=True, slots=True)
class ReportedProblems:
    """Limits the number of workflows on the target whose workflow tasks have failed for about a minute.

    Such workflows are a sign that the code cannot replay. If the server does not list them
    (TemporalReportedProblems), twgen inspects up to 100 running workflows. Do not use this metric then if the
    target can have more: the ramp would wait forever.
    """

    at_most: Annotated[int, FieldName("max"), INT32] = 0
    """The number of such workflows that is allowed. An auto-upgrade workflow might have been stuck before it
    moved to the target."""


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
    """The highest allowed age."""


class NoData(StrEnum):
    """The meaning of a point for which the query returns no number."""

    WAIT = "Wait"
    PASS = "Pass"  # noqa: S105 - no password
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class PrometheusQuery:
    """Limits the result of a Prometheus query, which twgen evaluates once per interval."""

    query: Annotated[str, text(most=4096)]
    """A PromQL query that returns one number. twgen fills in {{ .DeploymentName }}, {{ .BuildID }} and
    {{ .TemporalNamespace }}."""
    server: Annotated[str, LABEL] = ""
    """The name of the server in the OperatorConfig. It can be absent if there is only one server."""
    least: Annotated[float | None, FieldName("thresholdRange.min", "The range of good values.")] = None
    """The lowest good value."""
    most: Annotated[float | None, FieldName("thresholdRange.max")] = None
    """The highest good value."""
    interval: Annotated[
        timedelta,
        duration(timedelta(seconds=10), timedelta(hours=24), ": no step would get a second measurement"),
    ] = timedelta(minutes=1)
    """The time between two points, from 10s to 24h."""
    failure_limit: Annotated[int, INT32] = 0
    """The number of points that may be outside the range. With one more, the metric fails."""
    no_data: NoData = NoData.WAIT
    """The meaning of a point without a number. NaN is not a number. Wait: the ramp waits while the newest
    point has no number. Pass: the point is good. Fail: the point is outside the range."""


Measure = WorkflowFailures | ReportedProblems | BacklogAge | PrometheusQuery
MEASURES = {
    "workflowFailures": WorkflowFailures,
    "reportedProblems": ReportedProblems,
    "backlogAge": BacklogAge,
    "prometheus": PrometheusQuery,
}
"""The measures that a metric may have, by field name."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its name and its measure."""

    name: Annotated[str, LABEL]
    """The name of the metric, unique in the policy."""
    measure: Annotated[Measure, OneOf(MEASURES)]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The metrics of a ramping version."""

    # at most ten, because the server counts workflows for each of them whenever the rollout is checked
    metrics: Annotated[
        tuple[Metric, ...],
        Each(noun="metric", least=1, most=10),
        Hint("without metrics, nothing is measured"),
    ]
    """The metrics. twgen measures each of them whenever it checks the rollout."""
    on_failure: OnFailure = OnFailure.ABORT
    """Abort: take the share back until `twgen retry` or a new build ID. Pause: keep the share until `twgen
    resume`."""
    initial_delay: timedelta = timedelta(minutes=1)
    """After the ramp has begun, twgen waits this long before it judges the metrics."""

    @property
    def least_started(self) -> int:
        """The number of workflows that must have started on the version before its last step ends."""
        asked = (metric.measure for metric in self.metrics)
        return max(
            (measure.at_least for measure in asked if isinstance(measure, WorkflowFailures)), default=0
        )


class Verdict(StrEnum):
    """The verdict of a metric on a version."""

    PASSES = "Passes"
    FAILS = "Fails"
    UNDECIDED = "Undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a metric."""

    metric: str
    """The name of the metric in the policy."""
    verdict: Verdict
    """Fails: the ramp is taken back or paused. Undecided: the ramp waits."""
    because: str
    """The result as a sentence."""
    value: float | None = None
    """The measured value. Null if nothing was measured."""
    bound: float | None = None
    """The limit of the value. Null if unknown."""


@dataclass(frozen=True, slots=True)
class FailureCount:
    """The workflows that started on a version, and the failed ones among them."""

    started: int
    """How many workflows started."""
    failed: int
    """How many of these workflows failed."""


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of the target, and of the current version if the metric compares them."""

    target: FailureCount
    """The workflows that started on the target since the ramp began. Absent if not read."""
    current: FailureCount | None = None
    """The workflows that started on the current version, if the metric compares with it."""


@dataclass(frozen=True, slots=True)
class StuckWorkflows:
    """Running workflows of the target whose workflow tasks keep failing."""

    number: int
    """How many there are."""
    first: tuple[str, ...] = ()
    """The workflow IDs of some of them."""
    is_all: bool = True
    """False if there were too many workflows to inspect all of them."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The target's task queue whose oldest task has waited longest."""

    task_queue: str
    """The name of the task queue."""
    seconds: int
    """How many seconds that task has waited. 0 if no task waits."""
    added: float
    """How many tasks arrive for the target each second."""
    dispatched: float
    """How many tasks its workers take each second."""


@dataclass(frozen=True, slots=True)
class Point:
    """The result of a query at one moment."""

    at: datetime
    """The time of the point."""
    value: float | None = None
    """The value. Absent if the point has no number."""


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
    """For reportedProblems: running workflows of the target with workflow tasks that keep failing."""
    backlog: Backlog | None = None
    """For backlogAge: the target's task queue with the oldest waiting task."""
    points: tuple[Point, ...] | None = None
    """For prometheus: the points that the query returned, oldest first."""
    problem: str = ""
    """Why the metric could not be read."""
