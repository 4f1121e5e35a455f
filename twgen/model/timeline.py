"""A simulated rollout: what happens to each version, when, and under which assumptions."""

from datetime import datetime, timedelta
from enum import StrEnum

from twgen.model.spec import Rollout, Sunset
from twgen.model.temporal import VersionStatus
from twgen.model.values import dataclass


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
    """The state of a version between two events, as the picture of a simulation labels it."""

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
    """The new workflows of a worker, and the share of the target's that fail."""

    starts_per_hour: float
    failing: float
    """The share of the target's workflows that fail, above 0 and up to 1."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The look at which a metric fails a version with so many failures."""

    after: timedelta
    """The time since its ramp began."""
    percentage: float
    """The percentage of its step at that time."""
    started: int
    """The workflows that have started on it since then."""
    met: float
    """Their share of all workflows of the worker since then."""


@dataclass(frozen=True, slots=True)
class Noticing:
    """When a metric would notice a failing version, over many ramps that differ only by chance."""

    metric: str
    half: Notice | None
    """When half of the ramps have failed; None: the version becomes current before."""
    most: Notice | None
    """When nine of ten ramps have failed."""
    unnoticed: float
    """The share of the ramps in which the metric never fails."""
    is_allowed: bool = False
    """The limit of the metric allows so many failures."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions of a simulation that neither the specs nor the world tell."""

    workflow_duration: timedelta
    """How long a pinned workflow runs."""
    startup: timedelta
    """The time from a new Deployment, or more replicas, until its pods poll."""
    gate_duration: timedelta
    gate_passes: bool
    drainage_interval: timedelta
    """Temporal's grace period before it first counts the workflows of a draining version, and from count to
    count."""
    render_interval: timedelta
    """The time from one render and sync to the next."""
    traffic: Traffic | None = None
    """How many workflows start, and how many of the target's fail; None: not given."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a version; its time is an offset from the beginning."""

    at: timedelta
    happening: Happening
    build_id: str
    """Empty: unversioned workers."""
    says: str
    """The sentence for people."""
    percentage: float | None = None
    """The version's share of new workflows from now on; None: it did not change."""


@dataclass(frozen=True, slots=True)
class Span:
    """A period in which a version does not change."""

    begin: timedelta
    end: timedelta | None
    """None: it does not end."""
    stage: Stage
    status: VersionStatus
    """The status in Temporal's words."""
    percentage: float
    """Its share of new workflows."""
    replicas: int | None
    """The replicas of its Deployment; None: an autoscaler decides."""

    def covers(self, moment: timedelta) -> bool:
        """The moment is in the period; the end of the period is not."""
        return self.begin <= moment and (self.end is None or moment < self.end)


@dataclass(frozen=True, slots=True)
class Lane:
    """One version over time; an empty build ID: unversioned workers."""

    build_id: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class WorkerTimeline:
    """The simulated rollout of one worker."""

    worker: str
    temporal_namespace: str
    current_build_id: str | None
    """The version that is current at the beginning; None: unversioned workers are."""
    target_build_id: str
    rollout: Rollout
    sunset: Sunset
    server_version: str
    """The version of the Temporal server that was simulated."""
    outcome: Outcome
    because: str
    ends: timedelta
    """When the last event happened."""
    unchanged_since: timedelta
    """Since when the phase of the rollout and its reason have not changed."""
    events: tuple[Event, ...]
    lanes: tuple[Lane, ...]
    """The versions in the order in which they appear; the versions of the beginning come first."""
    noticing: tuple[Noticing, ...] = ()
    """When each metric of failures would notice a version that fails so often."""
    notes: tuple[str, ...] = ()
    """Other assumptions about this worker, and the warnings of its plan."""

    def first(self, happening: Happening, build_id: str) -> timedelta | None:
        """When such an event first happened to a version; None: never."""
        times = (
            event.at for event in self.events if (event.happening, event.build_id) == (happening, build_id)
        )
        return next(times, None)

    @property
    def most_replicas(self) -> int | None:
        """The highest number of replicas of all versions at one time; None: an autoscaler decides."""
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
    """A simulation of all workers from one moment on."""

    begins: datetime | None
    """None: at no particular time, so only offsets have a meaning."""
    is_usual: bool
    """No state was read: it begins like a usual deploy, with one earlier version as the current one."""
    assumptions: Assumptions
    workers: tuple[WorkerTimeline, ...]
