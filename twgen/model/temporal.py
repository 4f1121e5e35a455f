"""The state of a worker in Temporal, at one moment."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Annotated, Any

from twgen.model.analysis import Measurement
from twgen.model.problem import quoted
from twgen.model.record_shapes import Each, FieldName, FieldRule, Name
from twgen.model.shapes import choice, number, text
from twgen.model.values import dataclass


class VersionStatus(StrEnum):
    """Temporal's statuses of a version, and NotRegistered for a version that Temporal does not know."""

    CREATED = "Created"
    INACTIVE = "Inactive"
    RAMPING = "Ramping"
    CURRENT = "Current"
    DRAINING = "Draining"
    DRAINED = "Drained"
    UNSPECIFIED = "Unspecified"
    NOT_REGISTERED = "NotRegistered"


class TaskQueueType(StrEnum):
    """The type of the tasks in a task queue."""

    WORKFLOW = "Workflow"
    ACTIVITY = "Activity"
    NEXUS = "Nexus"


class GateStatus(StrEnum):
    """The state of a gate workflow."""

    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"
    TERMINATED = "Terminated"
    TIMED_OUT = "TimedOut"

    @property
    def has_failed(self) -> bool:
        """Whether it ended without completing."""
        return self not in {GateStatus.RUNNING, GateStatus.COMPLETED}


class UpdateState(StrEnum):
    """Whether a routing change has reached every task queue."""

    COMPLETED = "Completed"
    IN_PROGRESS = "InProgress"


@dataclass(frozen=True, slots=True)
class Drainage:
    """Temporal's last check for workflows that hold a version."""

    status: Annotated[
        VersionStatus, choice(VersionStatus.DRAINING, VersionStatus.DRAINED, VersionStatus.UNSPECIFIED)
    ]
    """Draining: open workflows are pinned to the version. Drained: there are none. Unspecified: the server
    has not checked yet."""
    changed_at: datetime | None = None
    """When that status last changed. The sunset delays begin at this time."""
    checked_at: datetime | None = None
    """When the server last checked."""


@dataclass(frozen=True, slots=True)
class TaskQueue:
    """A task queue that a version has polled."""

    name: Name
    """The name of the task queue."""
    type: TaskQueueType
    """The type of the task queue."""
    pollers: bool | None = None
    """Whether a worker of this version polled recently. Absent if not read."""
    unversioned_pollers: bool | None = None
    """Whether an unversioned worker polled recently. Absent if not read."""
    silent_seconds: int | None = None
    """The seconds from the last poll by a worker of this version until the read. Absent if a worker polled
    recently, or if this is unknown."""
    has_tasks: bool | None = None
    """Whether tasks of this version are waiting or arrived recently. Absent if not read."""

    @property
    def is_temporals_own(self) -> bool:
        """Whether Temporal uses the queue itself, such as for commands to one process of a worker.

        Its name has Temporal's prefix. SDKs from before July 2026 polled it as a task queue of the version,
        although no other process polls it: https://github.com/temporalio/temporal/pull/11481
        """
        return self.name.lstrip("/").startswith("temporal-sys/")


@dataclass(frozen=True, slots=True)
class OtherWorker:
    """A worker under another name that may really be the worker whose target has not polled."""

    name: str = ""
    """The name of its Worker Deployment. Absent if it polls without a version."""
    build_id: str = ""
    """The build ID of its newest version, or the build ID that it polls with."""
    task_queue: str = ""
    """The task queue that it polled recently. Absent if unknown, because Temporal only lists the worker."""


@dataclass(frozen=True, slots=True)
class GateRun:
    """A run of the gate on one task queue."""

    task_queue: Name
    """The task queue that it ran on."""
    workflow_id: Name
    """The workflow ID of the run."""
    status: GateStatus
    """The status of the run. Only Completed passes the gate."""
    started_at: datetime | None = None
    """When it started. A run that started before the version's createdAt does not count. A run without a time
    counts."""
    failure: str = ""
    """The failure of the workflow. While the workflow runs, the failure of its workflow tasks if all of them
    fail."""
    workflow_type: str = ""
    """Its workflow type. It counts only if this is the gate's type. Absent if it is the gate's type."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version as Temporal describes it. A time is absent if the event never happened."""

    build_id: Name
    """The build ID of the version."""
    status: Annotated[
        VersionStatus, choice(*(status for status in VersionStatus if status != VersionStatus.NOT_REGISTERED))
    ]
    """The status in Temporal. Inactive counts as Draining if the version was ever current or ramping."""
    created_at: datetime | None = None
    """When Temporal registered it."""
    first_activated_at: datetime | None = None
    """When it first became current or ramping."""
    last_current_at: datetime | None = None
    """When it last became current."""
    last_deactivated_at: datetime | None = None
    """When it last stopped being current or ramping."""
    drainage: Drainage | None = None
    """Temporal's last check for workflows that hold the version."""
    open_workflows: int | None = None
    """Running and paused workflows that are pinned to it. Absent if not counted."""
    oldest_open_at: datetime | None = None
    """When the oldest of these workflows started. Absent if not read, or if there is none."""
    auto_upgrade_workflows: Annotated[int | None, FieldName("openAutoUpgradeWorkflows")] = None
    """Running and paused auto-upgrade workflows on it. Absent if not counted."""
    metadata: Mapping[str, Any] | None = None
    """The metadata of the version, where twgen records an abort or a retry. Absent if not read."""
    task_queues: Annotated[
        tuple[TaskQueue, ...] | None, Each(lambda queue: (queue.type.value, queue.name), "task queue")
    ] = None
    """The task queues that it has polled. Absent if not read."""
    gate_runs: tuple[GateRun, ...] | None = None
    """The runs of the gate workflow. Absent if not read."""
    measurements: Annotated[tuple[Measurement, ...] | None, Each(attrgetter("metric"), "metric")] = None
    """The measurements of the policy's analysis on the ramping target. Absent if not measured."""
    serverless: bool = False
    """Whether Temporal itself starts its workers, on serverless compute."""

    @property
    def own_task_queues(self) -> tuple[TaskQueue, ...]:
        """The task queues except Temporal's own. Empty also if they were not read."""
        return tuple(queue for queue in self.task_queues or () if not queue.is_temporals_own)


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """The version that gets all new workflows outside of the ramp."""

    build_id: Name
    """The build ID of the current version."""
    since: datetime | None = None
    """When it became current."""


@dataclass(frozen=True, slots=True)
class RampingVersion:
    """The version that gets a share of new workflows. An empty build ID means unversioned workers."""

    build_id: str
    """The build ID of the ramping version. Empty if the ramp leads to unversioned workers."""
    percentage: Annotated[float, number(0, 100)]
    """Its share of new workflows, in percent."""
    since: datetime | None = None
    """When it began to ramp."""
    percentage_changed_at: datetime | None = None
    """When its share last changed. The pauses of steps begin at this time."""

    @property
    def percentage_since(self) -> datetime | None:
        """When it got its current share: the later of both times. None if unknown."""
        return max(filter(None, (self.since, self.percentage_changed_at)), default=None)


@dataclass(frozen=True, slots=True)
class Routing:
    """Temporal's routing configuration. Without a current version, unversioned workers are current."""

    update_state: UpdateState | None = None
    """Whether the last change has reached every task queue. Older servers do not report it."""
    changed_at: datetime | None = None
    """When the routing last changed."""
    current: CurrentVersion | None = None
    """The current version. Absent if unversioned workers are current."""
    ramping: RampingVersion | None = None
    """The version that gets a share of new workflows. Absent if no version ramps."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """The fields that contradict each other, each with the reason."""
        if self.current and self.ramping and self.current.build_id == self.ramping.build_id:
            yield "ramping", f"{quoted(self.current.build_id)} is current, so it cannot ramp"


@dataclass(frozen=True, slots=True)
class WorkerDeployment:
    """A Worker Deployment as Temporal describes it."""

    conflict_token: Annotated[str, text(r"^[A-Za-z0-9+/]*={0,2}$(?!\n)", "base64"), FieldRule.WRITTEN] = ""
    """The conflict token that a routing change must send, in Base64."""
    server_version: Annotated[str, FieldRule.WRITTEN] = ""
    """The version of the Temporal server, such as 1.32.0."""
    manager_identity: Annotated[str, FieldRule.WRITTEN] = ""
    """The manager identity. Empty if there is no manager."""
    last_modifier_identity: Annotated[str, FieldRule.WRITTEN] = ""
    """The identity that changed it last. It is only displayed."""
    routing: Annotated[Routing, FieldRule.WRITTEN] = field(default_factory=Routing)
    """The versions that get new workflows."""
    versions: Annotated[
        tuple[Version, ...], Each(attrgetter("build_id"), "version"), FieldRule.REQUIRED, FieldRule.WRITTEN
    ] = ()
    """All versions that Temporal knows."""
