"""What tells whether a version that takes a share of the traffic is well: metrics, and what was measured."""

from datetime import datetime, timedelta
from enum import StrEnum
from sys import float_info

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
    failed: int


@dataclass(frozen=True, slots=True)
class Failures:
    """Workflows that started on the target, and what they are compared with."""

    target: FailureCount
    current: FailureCount | None = None
    """None: with nothing, or there is no current version."""


@dataclass(frozen=True, slots=True)
class StuckWorkflows:
    """Running workflows of the target whose workflow tasks keep failing."""

    number: int
    first: tuple[str, ...] = ()
    """The IDs of some of them."""
    is_all: bool = True
    """No: there were more to look at than are looked at."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The task queue of the target whose oldest task waits longest."""

    task_queue: str
    seconds: int
    """How long that task has waited; 0: none waits."""
    added: float
    """Tasks a second that come for the target."""
    dispatched: float
    """Tasks a second that its workers take."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a query answers for one moment; None: no number."""

    at: datetime
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a metric was on the target, over the time since its ramp began; None: it is another kind."""

    metric: str
    since: datetime
    failures: Failures | None = None
    stuck: StuckWorkflows | None = None
    backlog: Backlog | None = None
    points: tuple[Point, ...] | None = None
    problem: str = ""
    """Why it could not be read."""
