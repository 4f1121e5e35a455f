"""A simulated rollout: the events of each version, their times, and the assumptions."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from twgen.model.record_shapes import FieldName, FieldRule, Name
from twgen.model.shapes import SECONDS, printed, printed_number
from twgen.model.spec import Rollout, Strategy, Sunset
from twgen.model.temporal import VersionStatus
from twgen.model.times import format_time
from twgen.model.values import dataclass

Seconds = Annotated[timedelta, SECONDS]
_PERCENTAGE = printed_number(100)
Percentage = Annotated[float, _PERCENTAGE]
Ratio = Annotated[float, printed_number(1)]
_FAILING = printed({"type": "number", "exclusiveMinimum": 0, "maximum": 1})

_TIME = printed({"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}, format_time)
"""A time in any year, because a simulation of long workflows can end after the year 2199."""


class Happening(StrEnum):
    """An event in the life of a version during a rollout."""

    FOUND = "Found"
    CREATED = "Created"
    RESIZED = "Resized"
    READY = "Ready"
    GATE_STARTED = "GateStarted"
    GATE_PASSED = "GatePassed"
    GATE_FAILED = "GateFailed"
    RAMPED = "Ramped"
    RAMP_ENDED = "RampEnded"
    TAKEN_BACK = "TakenBack"
    BECAME_CURRENT = "BecameCurrent"
    BEGAN_DRAINING = "BeganDraining"
    ENDING_BEGUN = "EndingBegun"
    WORKFLOWS_ENDED = "WorkflowsEnded"
    DRAINED = "Drained"
    SCALED_DOWN = "ScaledDown"
    DROPPED = "Dropped"


class Stage(StrEnum):
    """The state of a version between two events, as labelled in the picture of a simulation."""

    STARTING = "starting"
    IDLE = "no new workflows"
    GATE = "gate"
    RAMPING = "ramping"
    CURRENT = "current"
    DRAINING = "draining"
    DRAINED = "drained"
    AT_ZERO = "at zero"


class Outcome(StrEnum):
    """How a simulation ends."""

    SETTLED = "Settled"
    WAITING = "Waiting"
    BLOCKED = "Blocked"
    UNFINISHED = "Unfinished"


@dataclass(frozen=True, slots=True)
class Traffic:
    """The rate at which a worker's workflows start, and the target's failure rate."""

    starts_per_hour: float
    failing: float
    """The share of the target's workflows that fail, above 0 and up to 1."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The first check at which a metric fails a version with this failure rate."""

    after: Seconds
    """The time since the ramp began, in seconds."""
    percentage: Percentage
    """The step's percentage at that time."""
    started: int
    """How many workflows have started on the version by that time."""
    met: Ratio
    """The version's share of the worker's workflows that have started since the ramp began."""


@dataclass(frozen=True, slots=True)
class Noticing:
    """How soon one metric would detect the bad version."""

    metric: str
    """The name of the metric."""
    half: Notice | None
    """When half of the simulated ramps have detected the bad version. Null if the version becomes current
    first."""
    most: Annotated[Notice | None, FieldName("nineOfTen")]
    """When nine of ten simulated ramps have detected the bad version. Null if the version becomes current
    first."""
    unnoticed: Ratio
    """The share of simulated ramps in which the bad version becomes current."""
    is_allowed: bool = False
    """Whether the metric's limit allows this failure rate."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions of a simulation that follow neither from the specs nor from the servers."""

    workflow_duration: Seconds
    """How long a pinned workflow runs."""
    startup: Seconds
    """How long new pods take before they poll."""
    gate_duration: Seconds
    """How long the gate's workflows run."""
    gate_passes: bool
    """Whether the gate's workflows complete. If false, the workflows fail."""
    drainage_interval: Seconds
    """How often Temporal checks a draining version for open workflows. The first check also waits this long.
    """
    render_interval: Seconds
    """The time between two renders, each followed by a sync."""
    traffic: Annotated[Traffic | None, FieldRule.INTERNAL] = None
    """The rate at which workflows start, and the target's failure rate. None if not given."""

    @property
    def starts_per_hour(self) -> Annotated[float | None, printed({"type": "number", "exclusiveMinimum": 0})]:
        """How many workflows of each worker start per hour. Null if not given."""
        return self.traffic.starts_per_hour if self.traffic else None

    @property
    def failing(self) -> Annotated[float | None, _FAILING]:
        """The share of workflows that fail immediately on a bad version. Null if not given."""
        return self.traffic.failing if self.traffic else None


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    at: Seconds
    """The time since the beginning of the simulation, in seconds."""
    happening: Annotated[Happening, FieldName("event")]
    """The event. Found: the version exists at the beginning. TakenBack: the version's ramp ends because the
    version is marked as aborted. EndingBegun: the policy signals, cancels, moves or terminates the version's
    workflows. WorkflowsEnded: the last workflow that is pinned to the version ends."""
    build_id: str
    """The build ID of the version. Empty means unversioned workers."""
    says: Name
    """The event as a sentence."""
    percentage: Annotated[float | None, _PERCENTAGE] = None
    """The version's share of new workflows after the event, in percent. Null if the share did not change."""
    time: Annotated[datetime | None, _TIME] = None
    """The time of the event. Null if the simulation has no date."""


@dataclass(frozen=True, slots=True)
class Span:
    """A period in which the version does not change."""

    begin: Seconds
    """The beginning of the period, in seconds since the beginning of the simulation."""
    end: Annotated[timedelta | None, SECONDS]
    """The end of the period, in seconds since the beginning of the simulation. Null if the period does not
    end."""
    stage: Stage
    """The state of the version in words. `no new workflows` means that the version's pods poll, but the
    version has no share of new workflows."""
    status: VersionStatus
    """The status in Temporal. NotRegistered: the version does not exist in Temporal."""
    percentage: Percentage
    """The version's share of new workflows, in percent."""
    replicas: int | None
    """The replicas of the version's Deployment. Null if the spec does not set the replicas."""

    def covers(self, moment: timedelta) -> bool:
        """Whether the moment is in the period. The end is not part of the period."""
        return self.begin <= moment and (self.end is None or moment < self.end)


@dataclass(frozen=True, slots=True)
class Lane:
    """The history of one version."""

    build_id: str
    """The build ID of the version. Empty means unversioned workers."""
    spans: tuple[Span, ...]
    """The periods between the version's changes."""


@dataclass(frozen=True, slots=True)
class WorkerTimeline:
    """One worker's rollout."""

    worker: str
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    temporal_namespace: str
    """The Temporal namespace of the worker."""
    current_build_id: str | None
    """The version that is current at the beginning. Null if unversioned workers are current."""
    target_build_id: str
    """The build ID of the current spec."""
    rollout: Rollout
    sunset: Sunset
    server_version: str
    """The simulated version of the Temporal server."""
    outcome: Outcome
    """The result. Settled: nothing is left to do. Waiting: the rollout waits for a person. Blocked: something
    is wrong. Unfinished: the simulation was stopped."""
    because: Name
    """The reason for the outcome, as a sentence."""
    ends: Seconds
    """The time of the last event, in seconds since the beginning of the simulation."""
    unchanged_since: timedelta
    """The time at which the rollout's phase or reason last changed."""
    events: tuple[Event, ...]
    """The events, in chronological order."""
    lanes: Annotated[tuple[Lane, ...], FieldName("versions")]
    """Every version that exists during the simulation, in order of appearance."""
    noticing: tuple[Noticing, ...] = ()
    """How soon each workflowFailures metric would detect a version with this failure rate. The time varies
    randomly from ramp to ramp. Empty without startsPerHour and failing."""
    notes: tuple[str, ...] = ()
    """Further assumptions, the plan's warnings, and the versions that are not removed."""

    @property
    def strategy(self) -> Strategy:
        """The strategy of the spec."""
        return self.rollout.strategy

    def first(self, happening: Happening, build_id: str) -> timedelta | None:
        """The first time of this event for a version, or None if it never happens."""
        times = (
            event.at for event in self.events if (event.happening, event.build_id) == (happening, build_id)
        )
        return next(times, None)

    @property
    def most_replicas(self) -> int | None:
        """The highest total number of replicas at any time. Null if unknown."""
        spans = [span for lane in self.lanes if lane.build_id for span in lane.spans]
        sizes = [span.replicas for span in spans]
        if None in sizes:
            return None
        at_once = (
            sum(span.replicas or 0 for span in spans if span.covers(moment))
            for moment in {span.begin for span in spans}
        )
        return max(at_once, default=0)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The simulation of a rollout: its events and their times."""

    begins: datetime | None
    """When the simulation begins. Null if the simulation has no date, so that only relative times are known.
    """
    is_usual: bool
    """Whether the simulation begins with a typical deploy (one earlier version is current) instead of a
    snapshot."""
    assumptions: Assumptions
    """The assumed values, which are neither in the specs nor in the snapshot. Times are in seconds."""
    workers: tuple[WorkerTimeline, ...]
    """The rollout of each worker, in the order of the specs."""
