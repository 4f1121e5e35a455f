"""The state of workers at one moment, from Temporal, Kubernetes and the ledger."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

from twgen.model.record_shapes import Name, NullWhen
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import WorkerKey
from twgen.model.temporal import OtherWorker, WorkerDeployment
from twgen.model.values import dataclass


@dataclass(frozen=True, slots=True)
class RecordedDeployment:
    """The manifest of a versioned Deployment, and values from it. A text is empty if it has no value."""

    manifest: Mapping[str, Any]
    template_hash: str = ""
    connection_hash: str = ""
    address: str = ""
    temporal_namespace: str = ""
    worker_deployment: str = ""
    replicas: int | None = None
    """The number of replicas, or None if the manifest does not set it."""


@dataclass(frozen=True, slots=True)
class LivePatch:
    """The patch of a live Deployment."""

    containers: tuple[Mapping[str, Any], ...]
    """The patched containers, as in a VersionPatch."""
    template: Mapping[str, Any]
    """The live pod template, with the patch."""
    edits: tuple[str, ...] = ()
    """The paths in the patched template that were edited manually."""


@dataclass(frozen=True, slots=True)
class LiveDeployment:
    """A versioned Deployment in the cluster."""

    build_id: str
    recorded: RecordedDeployment
    """The Deployment without its patch."""
    name: str
    uid: str
    replicas: int
    replicas_are_external: bool
    """Whether no applied manifest sets `spec.replicas`. A manifest without it then changes nothing."""
    serving: bool
    """Whether its newest generation is available, with at least one available replica."""
    protected: bool
    """Whether it is protected from pruning by Argo CD."""
    identity: str
    """The manager identity of the render that it comes from. Empty if unknown."""
    created_at: datetime | None = None
    replicas_are_synced: bool = False
    """Whether Argo CD applied `spec.replicas`. It then resets the number if another client changes it."""
    terminating: bool = False
    """Whether it is being deleted."""
    paused: bool = False
    """Whether a person has set `spec.paused`."""
    replacing: bool = False
    """Whether its pods are being replaced, and no new pod is known to be available yet."""
    stalled: str = ""
    """Why it makes no progress, according to its conditions. Empty if no problem is known."""
    template_is_as_applied: bool = False
    """Whether its field managers show that its pod template was not edited manually."""
    edited_variables: frozenset[str] = frozenset()
    """The environment variables that were last set manually, according to its field managers."""
    lost_labels: bool = False
    """Whether it has lost its build-ID label. Its selector still shows its version."""
    other_build_id: str = ""
    """The build ID of its pods if it differs from `build_id`. Empty if it does not differ."""
    tracked_by: str = ""
    """The Argo CD application that tracks it. Empty if there is none."""
    attached: tuple[str, ...] = ()
    """The attached objects that were rendered with it and probably still exist, as `Kind/name`."""
    added: tuple[str, ...] = ()
    """The objects that a rollout attached to it. They were recorded before, and probably still exist."""
    gone: tuple[str, ...] = ()
    """The attached objects that were recorded when they were deleted."""
    owners: tuple[str, ...] = ()
    """Its owners, as `Kind/name`. Kubernetes deletes it together with them. twgen sets no owner."""
    available_replicas: int = 0
    """The number of pods that have been ready for long enough."""
    resource_version: str = ""
    """The resource version of the object. Empty if it has none."""
    patch: LivePatch | None = None
    """Its patch, or None if it has none."""

    @property
    def falls_to_one(self) -> bool:
        """Whether it gets one pod if a render leaves the replicas out, because only Argo CD sets them."""
        return self.replicas_are_synced and not self.replicas_are_external

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The object as the API server returned it."""
        if not self.patch:
            return self.recorded.manifest
        manifest = self.recorded.manifest
        return {**manifest, "spec": {**manifest["spec"], "template": self.patch.template}}


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An autoscaler of a Deployment, whether twgen made it or not."""

    kind: Name
    """The kind of the object, such as HorizontalPodAutoscaler."""
    name: Name
    """The name of the object."""
    deployment: Name
    """The name of the Deployment."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class GitHistory:
    """The old versions of a worker, found in the commits of its spec."""

    versions: Mapping[str, RecordedDeployment] = field(default_factory=dict)
    """The versions that were searched for and found, by build ID."""
    ends: str = ""
    """Why some versions were not found. Empty if all were found, or if there was no search."""

    def with_more(self, more: "GitHistory") -> "GitHistory":
        """This history, and the versions of another one."""
        return GitHistory({**self.versions, **more.versions}, self.ends or more.ends)


class RecordedRun(NamedTuple):
    """A workflow run whose history is still on the server."""

    workflow_type: str
    workflow_id: str
    run_id: str
    is_open: bool
    build_id: str = ""
    """The version that it is pinned to while it is open. Empty if it is not pinned."""


class ReplayState(StrEnum):
    """The state of a version's replay."""

    MISSING = "Missing"
    RUNNING = "Running"
    PASSED = "Passed"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """The replay of the target, as its Job shows it."""

    state: ReplayState
    """The state of the replay."""
    job: str = ""
    """The name of its Job. Empty if there is no Job."""
    because: str = ""
    """Why it failed, or why its state is unknown."""
    created_at: datetime | None = None
    """When its Job was created. The replay does not include later histories."""


@dataclass(frozen=True, slots=True)
class WorkerWorld:
    """One worker in one Temporal namespace."""

    name: Name
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    temporal_namespace: str
    """The Temporal namespace of the worker. Empty if it is unknown: no spec names the worker, and its
    Deployments do not have the variable."""
    temporal: Annotated[WorkerDeployment | None, NullWhen(attrgetter("temporal_was_read"))] = None
    """The state in Temporal. Null if Temporal does not know the worker. Absent if Temporal was not read, so
    that nothing can be planned."""
    deployments: tuple[LiveDeployment, ...] | None = None
    """The live apps/v1 Deployments, as the API server returns them. Absent if the cluster was not read."""
    ledger: Mapping[str, RecordedDeployment] = field(default_factory=dict)
    """The versions in the ledger, by build ID."""
    history: GitHistory = GitHistory()
    pod_problems: Mapping[str, str] = field(default_factory=dict)
    """Why the newest Pod of each version waits or crashes, by build ID."""
    rollout: RolloutInCluster = field(default_factory=RolloutInCluster)
    clocks_apart: timedelta = timedelta()
    """The difference between the fastest and the slowest clock. Plans use the slowest."""
    worker_deployments: int | None = None
    """The number of Worker Deployments in its Temporal namespace, counted up to 1000. Absent if they were not
    counted, because Temporal knows the worker or its pods are not available."""
    other_workers: tuple[OtherWorker, ...] = ()
    """Workers that may be this worker under another name. They are listed if no worker seems to poll for the
    target."""
    replay: ReplayRun | None = None
    """The replay of the target. Absent if not read."""
    autoscalers: tuple[Autoscaler, ...] = ()
    """The autoscalers of its Deployments, even those that twgen did not make. Absent if there are none, or if
    they were not read."""
    autoscalers_unread: str = ""
    """Why there may be more autoscalers. Absent if all were read, or if none were needed."""
    temporal_was_read: bool = True
    """False if only its Deployments are known, so that nothing can be planned for it."""

    @property
    def key(self) -> WorkerKey:
        """The key of the worker among all workers."""
        return WorkerKey(self.name, self.temporal_namespace)


@dataclass(frozen=True, slots=True)
class World:
    """The state of all workers at one moment."""

    taken_at: datetime
    workers: Mapping[WorkerKey, WorkerWorld]
    is_recorded: bool = False
    """Whether it comes from a snapshot. Workflows that only a later plan needs were then not counted."""

    def with_rollout(self, worker: WorkerKey, rollout: RolloutInCluster) -> "World":
        """The same world with a worker's rollout status from the cluster."""
        return replace(self, workers={**self.workers, worker: replace(self.workers[worker], rollout=rollout)})

    def with_history(self, histories: Mapping[WorkerKey, GitHistory]) -> "World":
        """The same world with old versions from the commits of the workers' specs."""
        workers = {key: replace(self.workers[key], history=history) for key, history in histories.items()}
        return replace(self, workers={**self.workers, **workers})

    def remembering(self, ledger: Mapping[tuple[str, str], RecordedDeployment]) -> "World":
        """The same world with the versions of a ledger, by worker and build ID."""
        by_worker: dict[str, dict[str, RecordedDeployment]] = {}
        for (worker, build_id), recorded in ledger.items():
            by_worker.setdefault(worker, {})[build_id] = recorded
        workers = {
            key: replace(worker, ledger=by_worker.get(worker.name, {}))
            for key, worker in self.workers.items()
        }
        return replace(self, workers=workers)
