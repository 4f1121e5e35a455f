"""What tells whether a version that takes a share of the traffic is well: metrics, and what was measured."""

from datetime import datetime, timedelta
from enum import StrEnum

from twgen.model.values import dataclass


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
class Metric:
    """One thing that is measured, by a name of its own."""

    name: str
    workflow_failures: WorkflowFailures


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is measured while a version ramps."""

    metrics: tuple[Metric, ...]
    on_failure: OnFailure
    initial_delay: timedelta
    """From the begin of the ramp: before, nothing is judged."""


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
    """`3 of 41 failed (7.32 %), bound 2 %`."""
    value: float | None = None
    """None: nothing was measured."""
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class FailureCount:
    """Workflows that started on a version."""

    started: int
    failed: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a metric was on the target, over the time since its ramp began."""

    metric: str
    since: datetime
    target: FailureCount | None = None
    current: FailureCount | None = None
    """What it is compared with; None: nothing."""
    problem: str = ""
    """Why it could not be read."""
