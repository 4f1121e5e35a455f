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
    """The manifest of a versioned Deployment, and values from it. An empty text: it has no value."""

    manifest: Mapping[str, Any]
    template_hash: str = ""
    connection_hash: str = ""
    address: str = ""
    temporal_namespace: str = ""
    worker_deployment: str = ""
    replicas: int | None = None
    """None: the manifest has no value."""


@dataclass(frozen=True, slots=True)
class LivePatch:
    """The patch of a live Deployment."""

    containers: tuple[Mapping[str, Any], ...]
    """The patched containers, as in a VersionPatch."""
    template: Mapping[str, Any]
    """The live pod template, with the patch."""
    edits: tuple[str, ...] = ()
    """The paths at which a person changed the patched template by hand."""


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
    """No applied manifest sets `spec.replicas`, so leaving it out changes nothing."""
    serving: bool
    """It is available in its newest generation, with at least one available replica."""
    protected: bool
    """Argo CD does not prune it."""
    identity: str
    """The manager identity that rendered it. Empty: unknown."""
    created_at: datetime | None = None
    replicas_are_synced: bool = False
    """Argo CD applied `spec.replicas`: it sets them again if another client changes them."""
    terminating: bool = False
    """It was deleted, but still exists."""
    paused: bool = False
    """Its rollout was paused by hand: `spec.paused`."""
    replacing: bool = False
    """Its pods are being replaced, and no new pod is known to be available."""
    stalled: str = ""
    """Why it makes no progress, from its conditions. Empty: no problem is known."""
    template_is_as_applied: bool = False
    """Its field managers show that its pod template was not changed by hand."""
    edited_variables: frozenset[str] = frozenset()
    """Variables of its containers that were last set by hand, as its field managers show."""
    lost_labels: bool = False
    """It has lost its build-ID label, but its selector still shows the version."""
    other_build_id: str = ""
    """The build ID of its pods, if it belongs to another version. Empty: it is the version's own."""
    tracked_by: str = ""
    """The Argo CD application that tracks it; empty if there is none."""
    attached: tuple[str, ...] = ()
    """The attached objects that were rendered with it and probably still exist, as `Kind/name`."""
    added: tuple[str, ...] = ()
    """The objects that its rollout recorded before it attached them, and that probably still exist."""
    gone: tuple[str, ...] = ()
    """The objects that were deleted later, as recorded at their deletion."""
    owners: tuple[str, ...] = ()
    """Its owners, as `Kind/name`. Kubernetes deletes it with them. twgen sets none."""
    available_replicas: int = 0
    """The number of pods that have been ready for long enough."""
    resource_version: str = ""
    """The resource version of the object; empty if it has none."""
    patch: LivePatch | None = None
    """Its patch. None: it has none."""

    @property
    def falls_to_one(self) -> bool:
        """Only Argo CD sets its replicas: if a render leaves them out, it gets one pod."""
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
    """An autoscaler of a Deployment, made by twgen or not."""

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
    """The old versions of a worker from the commits of its spec."""

    versions: Mapping[str, RecordedDeployment] = field(default_factory=dict)
    """The versions that were searched for and found, by build ID."""
    ends: str = ""
    """Why some versions were not found. Empty: all were found, or there was no search."""

    def with_more(self, more: "GitHistory") -> "GitHistory":
        """This history with more versions."""
        return GitHistory({**self.versions, **more.versions}, self.ends or more.ends)


class RecordedRun(NamedTuple):
    """A workflow run whose history is still on the server."""

    workflow_type: str
    workflow_id: str
    run_id: str
    is_open: bool
    build_id: str = ""
    """The version that it is pinned to while it is open; empty if it is not pinned."""


class ReplayState(StrEnum):
    """The state of the replay of a version."""

    MISSING = "Missing"
    RUNNING = "Running"
    PASSED = "Passed"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """The replay of the target, by its Job."""

    state: ReplayState
    """The status."""
    job: str = ""
    """The name of its Job. Empty: there is no Job."""
    because: str = ""
    """Why it failed, or why its state is not known."""
    created_at: datetime | None = None
    """When its Job was created. Later histories were not replayed."""


@dataclass(frozen=True, slots=True)
class WorkerWorld:
    """One worker in one Temporal namespace."""

    name: Name
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    temporal_namespace: str
    """The Temporal namespace of the worker. Empty: it is not known, because no spec names the worker and its
    Deployments do not have the variable."""
    temporal: Annotated[WorkerDeployment | None, NullWhen(attrgetter("temporal_was_read"))] = None
    """The state in Temporal. Null: Temporal does not know the worker. Absent: Temporal was not asked, so
    nothing can be planned."""
    deployments: tuple[LiveDeployment, ...] | None = None
    """Live apps/v1 Deployments as the API server returns them. Absent: the cluster was not read."""
    ledger: Mapping[str, RecordedDeployment] = field(default_factory=dict)
    """The versions that the ledger remembers, by build ID."""
    history: GitHistory = GitHistory()
    pod_problems: Mapping[str, str] = field(default_factory=dict)
    """Why the newest Pod of each version waits or crashes, by build ID."""
    rollout: RolloutInCluster = field(default_factory=RolloutInCluster)
    clocks_apart: timedelta = timedelta()
    """The difference between the fastest clock and the slowest, which plans use."""
    worker_deployments: int | None = None
    """How many Worker Deployments its Temporal namespace has, counted up to 1000. Absent: not counted,
    because Temporal knows the worker or its pods are not available."""
    other_workers: tuple[OtherWorker, ...] = ()
    """Other workers that may be this one under another name. They are listed if no worker seems to poll for
    the target."""
    replay: ReplayRun | None = None
    """The replay of the target. Absent: not read."""
    autoscalers: tuple[Autoscaler, ...] = ()
    """The autoscalers of its Deployments, whoever made them. Absent: there are none, or none was read."""
    autoscalers_unread: str = ""
    """Why there may be more autoscalers. Absent: all were read, or nobody asked for them."""
    temporal_was_read: bool = True
    """False: only its Deployments are known, and nothing can be planned for it."""

    @property
    def key(self) -> WorkerKey:
        """Identifies it among all workers."""
        return WorkerKey(self.name, self.temporal_namespace)


@dataclass(frozen=True, slots=True)
class World:
    """The state of all workers at one moment."""

    taken_at: datetime
    workers: Mapping[WorkerKey, WorkerWorld]
    is_recorded: bool = False
    """It comes from a snapshot, so workflows that must be counted now were not counted."""

    def with_rollout(self, worker: WorkerKey, rollout: RolloutInCluster) -> "World":
        """The same world with a worker's rollout status from the cluster."""
        return replace(self, workers={**self.workers, worker: replace(self.workers[worker], rollout=rollout)})

    def with_history(self, histories: Mapping[WorkerKey, GitHistory]) -> "World":
        """The same world with old versions from the commits of workers' specs."""
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
