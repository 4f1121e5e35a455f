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
    """The result of Temporal's last drainage check of a version."""

    status: Annotated[
        VersionStatus, choice(VersionStatus.DRAINING, VersionStatus.DRAINED, VersionStatus.UNSPECIFIED)
    ]
    """Draining: open workflows are pinned to the version. Drained: no open workflows are pinned to the
    version. Unspecified: the server has not checked yet."""
    changed_at: datetime | None = None
    """When the drainage status last changed. The sunset delays begin at this time."""
    checked_at: datetime | None = None
    """When the server last checked the drainage."""


@dataclass(frozen=True, slots=True)
class TaskQueue:
    """A task queue that a version has polled."""

    name: Name
    """The name of the task queue."""
    type: TaskQueueType
    """The type of the task queue."""
    pollers: bool | None = None
    """Whether a worker of this version polled the task queue recently. Absent if not read."""
    unversioned_pollers: bool | None = None
    """Whether an unversioned worker polled the task queue recently. Absent if not read."""
    silent_seconds: int | None = None
    """The number of seconds between the last poll by a worker of this version and the read. Absent if a
    worker polled recently, or if the last poll is unknown."""
    has_tasks: bool | None = None
    """Whether tasks for this version are waiting or arrived recently. Absent if not read."""

    @property
    def is_temporals_own(self) -> bool:
        """Whether Temporal itself uses the task queue, for example for commands to a single worker process.

        The names of such task queues have Temporal's prefix. SDKs released before July 2026 polled them as
        task queues of the version, although no other process polls them:
        https://github.com/temporalio/temporal/pull/11481
        """
        return self.name.lstrip("/").startswith("temporal-sys/")


@dataclass(frozen=True, slots=True)
class OtherWorker:
    """A worker that might be the spec's worker under a wrong name, because the target has not polled."""

    name: str = ""
    """The name of the worker's Worker Deployment. Absent if the worker is unversioned."""
    build_id: str = ""
    """The build ID of the worker's newest version, or the build ID with which the worker polls."""
    task_queue: str = ""
    """The task queue that the worker polled recently. Absent if Temporal lists the worker without a task
    queue."""


@dataclass(frozen=True, slots=True)
class GateRun:
    """A run of a gate's workflow on one task queue."""

    task_queue: Name
    """The task queue of the run."""
    workflow_id: Name
    """The workflow ID of the run."""
    status: GateStatus
    """The status of the run. Only Completed passes the gate."""
    started_at: datetime | None = None
    """When the run started. A run that started before the version's createdAt does not count. A run without a
    start time counts."""
    failure: str = ""
    """The workflow's failure. For a running workflow, the failure of its workflow tasks, if all of its
    workflow tasks fail."""
    workflow_type: str = ""
    """The run's workflow type. Absent if it is the gate's workflow type. A run with another workflow type
    does not count."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version as reported by Temporal. A time is absent if the event never happened."""

    build_id: Name
    """The build ID of the version."""
    status: Annotated[
        VersionStatus, choice(*(status for status in VersionStatus if status != VersionStatus.NOT_REGISTERED))
    ]
    """The status in Temporal. Inactive counts as Draining if the version was ever current or ramping."""
    created_at: datetime | None = None
    """When Temporal registered the version."""
    first_activated_at: datetime | None = None
    """When the version first became current or ramping."""
    last_current_at: datetime | None = None
    """When the version last became current."""
    last_deactivated_at: datetime | None = None
    """When the version last stopped being current or ramping."""
    drainage: Drainage | None = None
    """The result of Temporal's last drainage check of the version."""
    open_workflows: int | None = None
    """How many running and paused workflows are pinned to the version. Absent if not counted."""
    oldest_open_at: datetime | None = None
    """When the oldest open workflow that is pinned to the version started. Absent if not read, or if the
    version has no such workflow."""
    auto_upgrade_workflows: Annotated[int | None, FieldName("openAutoUpgradeWorkflows")] = None
    """How many running and paused auto-upgrade workflows are on the version. Absent if not counted."""
    metadata: Mapping[str, Any] | None = None
    """The version's metadata in Temporal, where twgen records aborts and retries. Absent if not read."""
    task_queues: Annotated[
        tuple[TaskQueue, ...] | None, Each(lambda queue: (queue.type.value, queue.name), "task queue")
    ] = None
    """The task queues that the version has polled. Absent if not read."""
    gate_runs: tuple[GateRun, ...] | None = None
    """The runs of the gate workflow. Absent if not read."""
    measurements: Annotated[tuple[Measurement, ...] | None, Each(attrgetter("metric"), "metric")] = None
    """The measurements for the policy's analysis of the ramping target. Absent if not measured."""
    serverless: bool = False
    """Whether Temporal itself starts the version's workers, on serverless compute."""

    @property
    def own_task_queues(self) -> tuple[TaskQueue, ...]:
        """The task queues that Temporal does not use itself. Also empty if no task queue was read."""
        return tuple(queue for queue in self.task_queues or () if not queue.is_temporals_own)


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """The version that gets all new workflows that do not go to the ramping version."""

    build_id: Name
    """The build ID of the current version."""
    since: datetime | None = None
    """When the version became current."""


@dataclass(frozen=True, slots=True)
class RampingVersion:
    """The version that gets a share of new workflows. An empty build ID means unversioned workers."""

    build_id: str
    """The build ID of the ramping version. Empty if unversioned workers are ramping."""
    percentage: Annotated[float, number(0, 100)]
    """The version's share of new workflows, in percent."""
    since: datetime | None = None
    """When the version began to ramp."""
    percentage_changed_at: datetime | None = None
    """When the version's share last changed. The pause of a step begins at this time."""

    @property
    def percentage_since(self) -> datetime | None:
        """When the version got its current share: when it began to ramp, or when its share last changed.

        None if unknown.
        """
        return max(filter(None, (self.since, self.percentage_changed_at)), default=None)


@dataclass(frozen=True, slots=True)
class Routing:
    """Temporal's routing configuration. Without a current version, unversioned workers are current."""

    update_state: UpdateState | None = None
    """Whether the last routing change has reached every task queue. Older servers do not report this."""
    changed_at: datetime | None = None
    """When the routing last changed."""
    current: CurrentVersion | None = None
    """The current version. Absent if unversioned workers are current."""
    ramping: RampingVersion | None = None
    """The version that gets a share of new workflows. Absent if no version is ramping."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """The fields that contradict each other, each with the reason."""
        if self.current and self.ramping and self.current.build_id == self.ramping.build_id:
            yield "ramping", f"{quoted(self.current.build_id)} is current, so it cannot ramp"


@dataclass(frozen=True, slots=True)
class WorkerDeployment:
    """A Worker Deployment as reported by Temporal."""

    conflict_token: Annotated[str, text(r"^[A-Za-z0-9+/]*={0,2}$(?!\n)", "base64"), FieldRule.WRITTEN] = ""
    """The conflict token that a routing change must send, in Base64."""
    server_version: Annotated[str, FieldRule.WRITTEN] = ""
    """The version of the Temporal server, such as 1.32.0."""
    manager_identity: Annotated[str, FieldRule.WRITTEN] = ""
    """The manager identity. Empty if there is no manager."""
    last_modifier_identity: Annotated[str, FieldRule.WRITTEN] = ""
    """The identity that last changed the Worker Deployment. This identity is only displayed."""
    routing: Annotated[Routing, FieldRule.WRITTEN] = field(default_factory=Routing)
    """The versions that get new workflows."""
    versions: Annotated[
        tuple[Version, ...], Each(attrgetter("build_id"), "version"), FieldRule.REQUIRED, FieldRule.WRITTEN
    ] = ()
    """All versions that Temporal knows."""
