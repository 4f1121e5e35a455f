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
    """New workflows of a worker, and how many of those fail that its target gets."""

    starts_per_hour: float
    failing: float
    """The share of them, from above 0 to 1."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The look at which a version that fails so is noticed."""

    after: timedelta
    """Since its ramp began."""
    percentage: float
    """Of the step that it is at."""
    started: int
    """Workflows that have started on it since."""
    met: float
    """Their share of all of the worker since."""


@dataclass(frozen=True, slots=True)
class Noticing:
    """When a metric would notice a version that fails so, over many ramps that differ by chance alone."""

    metric: str
    half: Notice | None
    """By when in half of the ramps; None: it becomes current before."""
    most: Notice | None
    """By when in nine of ten."""
    unnoticed: float
    """The share of the ramps that end without."""
    is_allowed: bool = False
    """Its bound allows so many failures."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a simulation takes for granted, since neither specs nor world say it."""

    workflow_duration: timedelta
    """How long a pinned workflow runs."""
    startup: timedelta
    """From a new Deployment, or more replicas, until its pods poll."""
    gate_duration: timedelta
    gate_passes: bool
    drainage_interval: timedelta
    """Temporal's grace period before it first counts the workflows of a draining version, and from count to
    count."""
    render_interval: timedelta
    """From one render and sync to the next."""
    traffic: Traffic | None = None
    """How many workflows start and how many fail of those of the target; None: nobody said."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a version, as an offset from the beginning."""

    at: timedelta
    happening: Happening
    build_id: str
    """Empty: unversioned workers."""
    says: str
    """The sentence for people."""
    percentage: float | None = None
    """The share of new workflows that the version has from here on; None: it did not change."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time during which a version stays as it is."""

    begin: timedelta
    end: timedelta | None
    """None: it stays so."""
    stage: Stage
    status: VersionStatus
    """Temporal's word."""
    percentage: float
    """The share of new workflows."""
    replicas: int | None
    """Of its Deployment; None: an autoscaler decides."""

    def covers(self, moment: timedelta) -> bool:
        """The moment is within it; its end is not."""
        return self.begin <= moment and (self.end is None or moment < self.end)


@dataclass(frozen=True, slots=True)
class Lane:
    """One version through time; an empty build ID: unversioned workers."""

    build_id: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class WorkerTimeline:
    """One worker's rollout."""

    worker: str
    temporal_namespace: str
    current_build_id: str | None
    """The version that is current at the beginning; None: unversioned workers are."""
    target_build_id: str
    rollout: Rollout
    sunset: Sunset
    server_version: str
    """Of the Temporal server whose ways were modelled."""
    outcome: Outcome
    because: str
    ends: timedelta
    """When the last thing happened."""
    unchanged_since: timedelta
    """Since when the phase of the rollout and its reason are those of the end."""
    events: tuple[Event, ...]
    lanes: tuple[Lane, ...]
    """In the order in which the versions appear, those that are there at the beginning first."""
    noticing: tuple[Noticing, ...] = ()
    """When a version that fails so would be noticed, by each metric of workflows that fail."""
    notes: tuple[str, ...] = ()
    """What else was assumed about this worker, and what a plan of it warns of."""

    def first(self, happening: Happening, build_id: str) -> timedelta | None:
        """When this first happened to a version; None: never."""
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
    """A simulation of every worker from one beginning on."""

    begins: datetime | None
    """None: at no time in particular, so that only offsets mean anything."""
    is_usual: bool
    """It begins in no world that was read, but as deploys usually do: one earlier version is current."""
    assumptions: Assumptions
    workers: tuple[WorkerTimeline, ...]
