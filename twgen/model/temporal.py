"""What Temporal says of a worker, at one moment."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from twgen.model.analysis import Measurement
from twgen.model.values import dataclass


class VersionStatus(StrEnum):
    """Temporal's words for where a version stands, and one for a version that it does not know."""

    CREATED = "Created"
    INACTIVE = "Inactive"
    RAMPING = "Ramping"
    CURRENT = "Current"
    DRAINING = "Draining"
    DRAINED = "Drained"
    UNSPECIFIED = "Unspecified"
    NOT_REGISTERED = "NotRegistered"


class TaskQueueType(StrEnum):
    """What a task queue carries."""

    WORKFLOW = "Workflow"
    ACTIVITY = "Activity"
    NEXUS = "Nexus"


class GateStatus(StrEnum):
    """How far a gate workflow is."""

    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"
    TERMINATED = "Terminated"
    TIMED_OUT = "TimedOut"

    @property
    def has_failed(self) -> bool:
        """It ended without completing."""
        return self not in {GateStatus.RUNNING, GateStatus.COMPLETED}


class UpdateState(StrEnum):
    """Whether a routing change has reached every task queue."""

    COMPLETED = "Completed"
    IN_PROGRESS = "InProgress"


@dataclass(frozen=True, slots=True)
class Drainage:
    """What Temporal last found out about the workflows that hold a version."""

    status: VersionStatus  # Draining, Drained or Unspecified
    changed_at: datetime | None = None
    checked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TaskQueue:
    """A task queue that a version has polled."""

    name: str
    type: TaskQueueType
    pollers: bool | None = None
    """A worker of this version polled lately; None: not read."""
    unversioned_pollers: bool | None = None
    """An unversioned worker polled lately; None: not read."""
    silent_seconds: int | None = None
    """How long ago a worker of this version polled last, when that was read; None: lately, or not told."""
    has_tasks: bool | None = None
    """Tasks of this version wait there, or came lately; None: not read."""

    @property
    def is_temporals_own(self) -> bool:
        """Temporal made it, as the prefix says, such as for commands to one process of a worker.

        SDKs of before July 2026 made that one a task queue of their version, and no other process polls it.
        https://github.com/temporalio/temporal/pull/11481
        """
        return self.name.lstrip("/").startswith("temporal-sys/")


@dataclass(frozen=True, slots=True)
class OtherWorker:
    """A worker that Temporal knows and that may be the one whose target has not polled, by another name."""

    name: str = ""
    """Of its Worker Deployment; empty: it polls without a version."""
    build_id: str = ""
    """That of its newest version, or the one with which it polls."""
    task_queue: str = ""
    """Which one it polled lately; empty: Temporal lists it, and that is all."""


@dataclass(frozen=True, slots=True)
class GateRun:
    """A run of a gate workflow, on one task queue of the target."""

    task_queue: str
    workflow_id: str
    status: GateStatus
    started_at: datetime | None = None
    failure: str = ""
    """What its workflow failed with, or, while it runs, what each of its workflow tasks fails with."""


@dataclass(frozen=True, slots=True)
class Version:
    """A Worker Deployment Version as Temporal describes it; a None time: never."""

    build_id: str
    status: VersionStatus
    created_at: datetime | None = None
    first_activated_at: datetime | None = None
    last_current_at: datetime | None = None
    """When it last became current."""
    last_deactivated_at: datetime | None = None
    drainage: Drainage | None = None
    open_workflows: int | None = None
    """Running and paused workflows pinned to it; None: not counted."""
    oldest_open_at: datetime | None = None
    """When the oldest of these started; None: not read, or there is none."""
    auto_upgrade_workflows: int | None = None
    """Running and paused auto-upgrade workflows on it; None: not counted."""
    metadata: Mapping[str, Any] | None = None
    task_queues: tuple[TaskQueue, ...] | None = None
    """None: not read."""
    gate_runs: tuple[GateRun, ...] | None = None
    measurements: tuple[Measurement, ...] | None = None
    """By what its policy measures while it ramps; None: not measured."""

    @property
    def own_task_queues(self) -> tuple[TaskQueue, ...]:
        """Those that any of its workers may poll; none too when they were not read."""
        return tuple(queue for queue in self.task_queues or () if not queue.is_temporals_own)


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """Where workflows go that no ramp takes."""

    build_id: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class RampingVersion:
    """Where a share of new workflows goes, in percent; an empty build ID: to unversioned workers."""

    build_id: str
    percentage: float
    since: datetime | None = None
    percentage_changed_at: datetime | None = None

    @property
    def percentage_since(self) -> datetime | None:
        """Since when it has had its share: the later of both times; None: nobody knows."""
        return max(filter(None, (self.since, self.percentage_changed_at)), default=None)


@dataclass(frozen=True, slots=True)
class Routing:
    """Temporal's routing configuration; no current version: unversioned workers are current."""

    current: CurrentVersion | None = None
    ramping: RampingVersion | None = None
    update_state: UpdateState | None = None
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WorkerDeployment:
    """A Worker Deployment as Temporal describes it."""

    routing: Routing = field(default_factory=Routing)
    versions: tuple[Version, ...] = ()
    conflict_token: str = ""  # base64
    server_version: str = ""
    manager_identity: str = ""
    last_modifier_identity: str = ""
