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
    """The manifest of a versioned Deployment, and values from the manifest. Missing text values are empty."""

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
    """The VersionPatch that was applied to a live Deployment."""

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
    """Whether no applied manifest sets `spec.replicas`. If so, applying a manifest without replicas changes
    nothing."""
    serving: bool
    """Whether the Deployment's newest generation is available, with at least one available replica."""
    protected: bool
    """Whether the Deployment is protected from pruning by Argo CD."""
    identity: str
    """The manager identity of the render that produced the Deployment. Empty if unknown."""
    created_at: datetime | None = None
    replicas_are_synced: bool = False
    """Whether Argo CD applied `spec.replicas`. If so, Argo CD resets the replicas if another client changes
    them."""
    terminating: bool = False
    """Whether the Deployment is being deleted."""
    paused: bool = False
    """Whether a person has set `spec.paused`."""
    replacing: bool = False
    """Whether the pods are being replaced, and no new pod is known to be available yet."""
    stalled: str = ""
    """Why the Deployment is not progressing, according to its conditions. Empty if no problem is known."""
    template_is_as_applied: bool = False
    """Whether the field managers show that the pod template was not edited manually."""
    edited_variables: frozenset[str] = frozenset()
    """The environment variables that were last set manually, according to the field managers."""
    lost_labels: bool = False
    """Whether the Deployment has lost its build-ID label. The selector still identifies the version."""
    other_build_id: str = ""
    """The build ID of the pods, if it differs from `build_id`. Otherwise empty."""
    tracked_by: str = ""
    """The Argo CD application that tracks the Deployment. Empty if no application tracks it."""
    attached: tuple[str, ...] = ()
    """The attached objects that were rendered with the Deployment and probably still exist, as `Kind/name`.
    """
    added: tuple[str, ...] = ()
    """The objects that a rollout attached to the Deployment. The rollout recorded them before attaching them,
    so they probably still exist."""
    gone: tuple[str, ...] = ()
    """The attached objects that a rollout recorded as deleted."""
    owners: tuple[str, ...] = ()
    """The Deployment's owners, as `Kind/name`. Kubernetes deletes the Deployment together with its owners.
    twgen sets no owner."""
    available_replicas: int = 0
    """The number of pods that have been ready for at least minReadySeconds."""
    resource_version: str = ""
    """The Deployment's resource version. Empty if unknown."""
    patch: LivePatch | None = None
    """The VersionPatch that was applied to the Deployment, or None if there is no patch."""

    @property
    def falls_to_one(self) -> bool:
        """Whether a render that omits the replicas leaves one pod, because only Argo CD sets the replicas."""
        return self.replicas_are_synced and not self.replicas_are_external

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The Deployment as returned by the API server."""
        if not self.patch:
            return self.recorded.manifest
        manifest = self.recorded.manifest
        return {**manifest, "spec": {**manifest["spec"], "template": self.patch.template}}


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An autoscaler of a Deployment, whether it was created by twgen or not."""

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
    """A worker's old versions, found in the Git history of its spec."""

    versions: Mapping[str, RecordedDeployment] = field(default_factory=dict)
    """The versions that were searched for and found, by build ID."""
    ends: str = ""
    """Why some versions were not found. Empty if all were found, or if there was no search."""

    def with_more(self, more: "GitHistory") -> "GitHistory":
        """This history, extended with the versions of another history."""
        return GitHistory({**self.versions, **more.versions}, self.ends or more.ends)


class RecordedRun(NamedTuple):
    """A workflow run whose history is still stored on the server."""

    workflow_type: str
    workflow_id: str
    run_id: str
    is_open: bool
    build_id: str = ""
    """The version that the open run is pinned to. Empty if the run is not pinned."""


class ReplayState(StrEnum):
    """The state of a version's replay."""

    MISSING = "Missing"
    RUNNING = "Running"
    PASSED = "Passed"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """The target's replay, as reported by its Job."""

    state: ReplayState
    """The state of the replay."""
    job: str = ""
    """The name of the replay's Job. Empty if there is no Job."""
    because: str = ""
    """Why the replay failed, or why its state is unknown."""
    created_at: datetime | None = None
    """When the replay's Job was created. The replay does not include later histories."""


@dataclass(frozen=True, slots=True)
class WorkerWorld:
    """One worker in one Temporal namespace."""

    name: Name
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    temporal_namespace: str
    """The Temporal namespace of the worker. Empty if unknown, because no spec names the worker and its
    Deployments do not set the environment variable."""
    temporal: Annotated[WorkerDeployment | None, NullWhen(attrgetter("temporal_was_read"))] = None
    """The worker's state in Temporal. Null if Temporal does not know the worker. Absent if Temporal was not
    read, so that no plan is possible."""
    deployments: tuple[LiveDeployment, ...] | None = None
    """The live apps/v1 Deployments, as the API server returns them. Absent if the cluster was not read."""
    ledger: Mapping[str, RecordedDeployment] = field(default_factory=dict)
    """The versions in the ledger, by build ID."""
    history: GitHistory = GitHistory()
    pod_problems: Mapping[str, str] = field(default_factory=dict)
    """Why the newest Pod of each version is waiting or crashing, by build ID."""
    rollout: RolloutInCluster = field(default_factory=RolloutInCluster)
    clocks_apart: timedelta = timedelta()
    """The difference between the fastest and the slowest clock. Plans use the slowest clock."""
    worker_deployments: int | None = None
    """The number of Worker Deployments in the worker's Temporal namespace, counted up to 1000. Absent if not
    counted, because Temporal knows the worker or no pods are available."""
    other_workers: tuple[OtherWorker, ...] = ()
    """Workers that might be this worker under a wrong name. Such workers are listed only if no worker seems
    to poll for the target."""
    replay: ReplayRun | None = None
    """The target's replay. Absent if not read."""
    autoscalers: tuple[Autoscaler, ...] = ()
    """The autoscalers of the worker's Deployments, including autoscalers that twgen did not create. Absent if
    there are no autoscalers, or if the autoscalers were not read."""
    autoscalers_unread: str = ""
    """Why some autoscalers might be missing. Absent if all autoscalers were read, or if no plan needs them.
    """
    temporal_was_read: bool = True
    """Whether Temporal was read. If not, only the worker's Deployments are known, and no plan is possible."""

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
    """Whether the state comes from a snapshot. A snapshot lacks the workflow counts that only a later plan
    needs."""

    def with_rollout(self, worker: WorkerKey, rollout: RolloutInCluster) -> "World":
        """This state with a worker's rollout status from the cluster."""
        return replace(self, workers={**self.workers, worker: replace(self.workers[worker], rollout=rollout)})

    def with_history(self, histories: Mapping[WorkerKey, GitHistory]) -> "World":
        """This state with old versions from the Git history of the workers' specs."""
        workers = {key: replace(self.workers[key], history=history) for key, history in histories.items()}
        return replace(self, workers={**self.workers, **workers})

    def remembering(self, ledger: Mapping[tuple[str, str], RecordedDeployment]) -> "World":
        """This state with the versions of a ledger, by worker and build ID."""
        by_worker: dict[str, dict[str, RecordedDeployment]] = {}
        for (worker, build_id), recorded in ledger.items():
            by_worker.setdefault(worker, {})[build_id] = recorded
        workers = {
            key: replace(worker, ledger=by_worker.get(worker.name, {}))
            for key, worker in self.workers.items()
        }
        return replace(self, workers=workers)
