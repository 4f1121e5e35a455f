"""What tells whether a version that takes a share of the traffic is well: metrics, and what was measured."""

from datetime import datetime, timedelta
from enum import StrEnum
from sys import float_info

from twgen.model.record_shapes import Name
from twgen.model.values import dataclass

INFINITE = float_info.max
"""What an infinite number is kept as: documents have none."""


class OnFailure(StrEnum):
    """What becomes of a ramp whose analysis fails."""

    ABORT = "Abort"
    PAUSE = "Pause"


class ClosedStatus(StrEnum):
    """How a workflow may end without completing, in Temporal's words."""

    FAILED = "Failed"
    TIMED_OUT = "TimedOut"
    TERMINATED = "Terminated"
    CANCELED = "Canceled"


@dataclass(frozen=True, slots=True)
class WorkflowFailures:
    """The share of workflows, of those that started on a version since its ramp began, that ended badly."""

    max_ratio: float | None
    """None: what the current version does over the same time."""
    statuses: tuple[ClosedStatus, ...]
    workflow_types: tuple[str, ...]
    """Empty: all."""
    false_alarms: float
    """How often a version that is well may be taken back, over its whole ramp."""
    at_least: int
    """So many must have started before the last step ends."""


@dataclass(frozen=True, slots=True)
class ReportedProblems:
    """How many running workflows of a version may have workflow tasks that keep failing."""

    at_most: int


@dataclass(frozen=True, slots=True)
class BacklogAge:
    """How long the oldest task may wait that a version should have taken."""

    at_most: timedelta


class NoData(StrEnum):
    """What a point means that a query has no number for."""

    WAIT = "Wait"
    PASS = "Pass"  # noqa: S105 - no password
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class PrometheusQuery:
    """What a query of Prometheus must answer, at every point of a ramp."""

    server: str
    """As the operator calls it; empty: the only one that there is."""
    query: str
    """PromQL, with the placeholders of attached resources."""
    least: float | None
    most: float | None
    """Of both limits one at least."""
    interval: timedelta
    failure_limit: int
    """So many points outside of the limits are borne."""
    no_data: NoData


Measure = WorkflowFailures | ReportedProblems | BacklogAge | PrometheusQuery


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that is measured, by a name of its own."""

    name: str
    measure: Measure


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is measured while a version ramps."""

    metrics: tuple[Metric, ...]
    on_failure: OnFailure
    initial_delay: timedelta
    """From the begin of the ramp: before, nothing is judged."""

    @property
    def least_started(self) -> int:
        """So many workflows must have started on the version before its last step ends."""
        asked = (metric.measure for metric in self.metrics)
        return max((one.at_least for one in asked if isinstance(one, WorkflowFailures)), default=0)


class Verdict(StrEnum):
    """What a metric says of a version."""

    PASSES = "Passes"
    FAILS = "Fails"
    UNDECIDED = "Undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a metric says of a version, and why."""

    metric: str
    verdict: Verdict
    because: str
    """`3 of 41 failed (7.32%), bound 2%`."""
    value: float | None = None
    """None: nothing was measured."""
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class FailureCount:
    """Workflows that started on a version."""

    started: int
    """How many workflows started."""
    failed: int
    """How many of these workflows failed."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Workflows that started on the target, and what they are compared with."""

    target: FailureCount
    """Workflows that started on the target since the ramp began. Absent: not read."""
    current: FailureCount | None = None
    """The same for the current version, if the metric compares with it."""


@dataclass(frozen=True, slots=True)
class StuckWorkflows:
    """Running workflows of the target whose workflow tasks keep failing."""

    number: int
    """How many there are."""
    first: tuple[str, ...] = ()
    """The workflow IDs of some of them."""
    is_all: bool = True
    """False: there were too many workflows to inspect all."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The task queue of the target whose oldest task waits longest."""

    task_queue: str
    """The name."""
    seconds: int
    """How many seconds that task has waited. 0: no task waits."""
    added: float
    """How many tasks arrive for the target each second."""
    dispatched: float
    """How many tasks its workers take each second."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a query answers for one moment; None: no number."""

    at: datetime
    """The time of the point."""
    value: float | None = None
    """The value. Absent: the point has no number."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of one metric."""

    metric: Name
    """The name of the metric in the policy."""
    since: datetime
    """When the ramp began."""
    failures: Failures | None = None
    """The failures that workflowFailures counts. Absent: not read."""
    stuck: StuckWorkflows | None = None
    """For reportedProblems: running workflows of the target with workflow tasks that keep failing."""
    backlog: Backlog | None = None
    """For backlogAge: the target's task queue with the oldest waiting task."""
    points: tuple[Point, ...] | None = None
    """For prometheus: the points that the query returned, oldest first."""
    problem: str = ""
    """Why the metric could not be read."""
