"""What Temporal, Kubernetes and the ledger say, at one moment."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import WorkerKey
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


@dataclass(frozen=True, slots=True)
class GateRun:
    """A run of a gate workflow, on one task queue of the target."""

    task_queue: str
    workflow_id: str
    status: GateStatus
    started_at: datetime | None = None


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
    auto_upgrade_workflows: int | None = None
    """Running and paused auto-upgrade workflows on it; None: not counted."""
    metadata: Mapping[str, Any] | None = None
    task_queues: tuple[TaskQueue, ...] | None = None
    """None: not read."""
    gate_runs: tuple[GateRun, ...] | None = None


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


@dataclass(frozen=True, slots=True)
class RecordedDeployment:
    """A versioned Deployment's manifest, and what it says of itself; an empty text: it does not say."""

    manifest: Mapping[str, Any]
    template_hash: str = ""
    connection_hash: str = ""
    address: str = ""
    temporal_namespace: str = ""
    worker_deployment: str = ""
    replicas: int | None = None
    """None: it leaves them out."""


@dataclass(frozen=True, slots=True)
class LivePatch:
    """What a live Deployment was patched with."""

    containers: tuple[Mapping[str, Any], ...]
    """As in a VersionPatch."""
    template: Mapping[str, Any]
    """Its pod template as it is, patched."""
    edits: tuple[str, ...] = ()
    """Where that is not as it was patched, since somebody changed it by hand."""


@dataclass(frozen=True, slots=True)
class LiveDeployment:
    """A versioned Deployment in the cluster."""

    build_id: str
    recorded: RecordedDeployment
    """As it was before it was patched."""
    name: str
    uid: str
    replicas: int
    replicas_are_external: bool
    """No applied manifest decides `spec.replicas`: leaving it out changes nothing."""
    serving: bool
    """Available, of the newest generation, with at least one available replica."""
    protected: bool
    """Argo CD will not prune it."""
    identity: str
    """The manager identity that rendered it; empty: not said."""
    created_at: datetime | None = None
    terminating: bool = False
    """It has been deleted and is not gone yet."""
    paused: bool = False
    """Somebody paused its roll-out by hand: `spec.paused`."""
    replacing: bool = False
    """Its pods are being replaced, and nothing tells that one of the new ones is available."""
    stalled: str = ""
    """Why it cannot progress, in the words of its own conditions; empty: nothing is said against it."""
    template_is_as_applied: bool = False
    """Its field managers tell that nobody changed its pod template by hand."""
    edited_variables: frozenset[str] = frozenset()
    """Variables of its containers that were set by hand last, as its field managers tell."""
    lost_labels: bool = False
    """It no longer carries its build-ID label; its selector still tells the version."""
    other_build_id: str = ""
    """What its pods are told to be, where that is another version; empty: nothing else."""
    tracked_by: str = ""
    """The Argo CD application that tracks it; empty: none."""
    attached: tuple[str, ...] = ()
    """The attached objects that were rendered with it, as `Kind/name`."""
    owners: tuple[str, ...] = ()
    """The objects with which Kubernetes deletes it, as `Kind/name`; twgen gives it none."""
    available_replicas: int = 0
    """Pods that have been ready for long enough."""
    resource_version: str = ""
    """Of what was read, in the cluster's own count; empty: not said."""
    patch: LivePatch | None = None
    """What it was patched with; None: nothing."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """It as the API server has it."""
        if not self.patch:
            return self.recorded.manifest
        manifest = self.recorded.manifest
        return {**manifest, "spec": {**manifest["spec"], "template": self.patch.template}}


@dataclass(frozen=True, slots=True)
class GitHistory:
    """What the commits of a worker's spec tell of its old versions."""

    versions: Mapping[str, RecordedDeployment] = field(default_factory=dict)
    """Those that were asked for and found, by build ID."""
    ends: str = ""
    """Why no more were found; empty: they were, or none was asked for."""


@dataclass(frozen=True, slots=True)
class WorkerWorld:
    """What is known of one worker in one Temporal namespace."""

    name: str
    temporal_namespace: str
    temporal: WorkerDeployment | None = None
    """None: Temporal has never heard of it, or was not asked."""
    deployments: tuple[LiveDeployment, ...] | None = None
    """None: the cluster was not read."""
    ledger: Mapping[str, RecordedDeployment] = field(default_factory=dict)
    """The versions that the ledger remembers, by build ID."""
    history: GitHistory = GitHistory()
    pod_problems: Mapping[str, str] = field(default_factory=dict)
    """What the newest Pod of a version does instead of running, by build ID: `waits (ImagePullBackOff)`."""
    rollout: RolloutInCluster = field(default_factory=RolloutInCluster)
    clocks_apart: timedelta = timedelta()
    """By so much the fastest clock that was heard is ahead of the slowest, by which it is planned."""
    temporal_was_read: bool = True
    """False: only its Deployments are known, and nothing can be planned for it."""

    @property
    def key(self) -> WorkerKey:
        """What tells it from all other workers."""
        return WorkerKey(self.name, self.temporal_namespace)


@dataclass(frozen=True, slots=True)
class World:
    """What is known of all workers, at one moment."""

    taken_at: datetime
    workers: Mapping[WorkerKey, WorkerWorld]
    is_recorded: bool = False
    """A snapshot of then: what has become due since was not counted."""

    def with_rollout(self, worker: WorkerKey, rollout: RolloutInCluster) -> "World":
        """The same world with what its cluster says of the rollout of a worker."""
        return replace(self, workers={**self.workers, worker: replace(self.workers[worker], rollout=rollout)})

    def with_history(self, told: Mapping[WorkerKey, GitHistory]) -> "World":
        """The same world with what the commits of workers' specs tell."""
        workers = {key: replace(self.workers[key], history=history) for key, history in told.items()}
        return replace(self, workers={**self.workers, **workers})

    def remembering(self, ledger: Mapping[tuple[str, str], RecordedDeployment]) -> "World":
        """The same world with what a ledger remembers, by worker and build ID."""
        by_worker: dict[str, dict[str, RecordedDeployment]] = {}
        for (worker, build_id), recorded in ledger.items():
            by_worker.setdefault(worker, {})[build_id] = recorded
        workers = {key: replace(one, ledger=by_worker.get(one.name, {})) for key, one in self.workers.items()}
        return replace(self, workers=workers)
