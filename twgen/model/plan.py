"""The plan: the changes that twgen would make to versions and traffic, each with its reason."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from twgen.model.analysis import Judgement
from twgen.model.draining import ScheduledAction
from twgen.model.reasons import RoutingReason, VersionReason
from twgen.model.record_shapes import FieldName, FieldRule, Name
from twgen.model.shapes import TEXT, number
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.values import dataclass
from twgen.model.world import LiveDeployment, RecordedDeployment


class VersionAction(StrEnum):
    """The action on a version's Deployment."""

    CREATE = "Create"
    KEEP = "Keep"
    UPDATE = "Update"
    SCALE_DOWN = "ScaleDown"
    DROP = "Drop"
    NONE = "None"


class RoutingAction(StrEnum):
    """The next routing change that a rollout would make."""

    NONE = "None"
    SET_CURRENT = "SetCurrent"
    SET_RAMP = "SetRamp"
    CLEAR_RAMP = "ClearRamp"


class Phase(StrEnum):
    """The phase of a rollout: whether it is done, is waiting, is moving traffic, or needs a person."""

    SETTLED = "Settled"
    WAITING = "Waiting"
    MOVING = "Moving"
    BLOCKED = "Blocked"

    @property
    def goes_on(self) -> bool:
        """Whether the rollout can continue without a person."""
        return self not in {Phase.SETTLED, Phase.BLOCKED}


@dataclass(frozen=True, slots=True)
class AttachedObject:
    """A version's copy of an attached resource."""

    kind: str
    """The kind of the object."""
    name: str
    """The name of the object."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """The plan for one version."""

    build_id: str
    """The build ID of the version."""
    status: VersionStatus
    """The version's status in Temporal. `NotRegistered` means that the version does not exist in Temporal."""
    deployment: str
    """The name of the version's Kubernetes Deployment. Empty if twgen did not create the version."""
    action: VersionAction
    """The action on the version's Deployment. `ScaleDown` renders zero replicas. `Drop` stops rendering the
    Deployment. `None` means that there is no manifest to render."""
    because: Name
    """The reason as a sentence."""
    reason: Annotated[VersionReason, TEXT]
    """The reason as a stable identifier for programs. `because` states the same reason as a sentence."""
    replicas: int | None = None
    """The rendered replicas. Null if an autoscaler sets them, or if nothing is rendered."""
    protected: bool = False
    """Whether the version's Deployment is protected from pruning by Argo CD."""
    live: LiveDeployment | None = None
    recorded: RecordedDeployment | None = None
    """The manifest to render again, or None if the spec is rendered."""
    is_doubtful: bool = False
    """Whether the live pod template is kept although it may have been edited manually. Such an edit would
    show only as a difference from the recorded hash."""
    replaced_injection: frozenset[str] | None = None
    """The injected names in the manifest that are replaced for the spec's connection. None if the manifest
    keeps its own connection."""
    attached: tuple[AttachedObject, ...] = ()
    """The attached objects of the version, such as an HPA.

    The attached objects are rendered together with the version's Deployment. If the Deployment's manifest is
    lost, the attached objects are rendered for the running pods."""
    leaving: tuple[AttachedObject, ...] = ()
    """Attached objects to remove. These objects are rendered one last time, without prune protection and
    without an owner."""
    replaced: tuple[AttachedObject, ...] = ()
    """Attached objects to delete, because their template was removed."""
    following: tuple[AttachedObject, ...] = ()
    """The replacements for deleted objects. A replacement is rendered when the deleted object is gone."""
    waiting: tuple[AttachedObject, ...] = ()
    """Autoscalers that are not rendered until Argo CD has stopped setting the replicas."""
    replicas_are_external: bool = False
    """Whether only an autoscaler or a person sets the version's replicas."""
    patch: tuple[Mapping[str, Any], ...] = ()
    """The VersionPatch's container changes that the manifest includes."""
    changed_marks: tuple[str, ...] = ()
    """The parts of a live Deployment that change without a restart of its pods, such as `labels`."""

    @property
    def is_rendered(self) -> bool:
        """Whether the output contains a manifest of the version's Deployment."""
        return self.action not in {VersionAction.DROP, VersionAction.NONE}


@dataclass(frozen=True, slots=True)
class LaterAction:
    """An action on a version's Deployment at a later time."""

    action: VersionAction
    """The action on the version's Deployment. `ScaleDown` renders zero replicas. `Drop` stops rendering the
    Deployment. `None` means that there is no manifest to render."""
    at: datetime
    """The earliest time of the action."""


@dataclass(frozen=True, slots=True)
class RoutingPlan:
    """The next routing change, or the reason why there is none."""

    action: RoutingAction
    """`None` means that there is no change now. `SetCurrent` sends all traffic to the build ID. `SetRamp`
    sends a share of the traffic to the build ID. `ClearRamp` ends the ramp."""
    because: Name
    """The reason as a sentence."""
    phase: Phase
    reason: Annotated[RoutingReason, TEXT]
    """The reason as a stable identifier for programs. `because` states the same reason as a sentence."""
    build_id: str | None = None
    """The build ID that gets traffic. Null if the action is `None`, and empty if it is `ClearRamp`."""
    percentage: Annotated[float | None, number(0, 100)] = None
    """The share for `SetRamp`, in percent. The value is 0 for `ClearRamp`, and null for the other actions."""
    claim_manager: bool = False
    """Whether the change also makes twgen the manager. twgen becomes the manager if there is no manager, or
    if adoptFrom names the manager."""
    due_at: datetime | None = None
    """When the wait ends. Null if the end is unknown, or if the rollout is not waiting."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """The entries to write into the target's metadata before the change. After this write, the whole state is
    read again."""
    ignores_missing_queues: bool = False
    """Whether Temporal must accept the change even if the version does not poll a task queue with tasks."""


@dataclass(frozen=True, slots=True)
class GateStart:
    """A gate workflow on one task queue of the target."""

    task_queue: str
    """The task queue that the gate runs on."""
    workflow_id: str
    """The workflow ID of the gate."""
    workflow_type: str
    """The workflow type of the gate."""
    request_id: str
    """The request ID. All clients use the same request ID while the version is registered, so that the gate
    does not run twice."""
    has_input: bool = True
    """Whether the gate workflow gets the input that the spec defines."""


@dataclass(frozen=True, slots=True)
class WorkerVersions:
    """The plans for all versions of one worker. A render needs no other plans."""

    spec: WorkerSpec
    versions: tuple[VersionPlan, ...]
    warnings: tuple[str, ...] = ()
    not_created: str = ""
    """Why the target's Deployment is not created. Empty if the Deployment is created or already exists."""
    not_deployed: str = ""
    """Why no pod gets the spec's pod template although the target exists. Empty if pods get the template."""
    were_attached: frozenset[str] | None = None
    """The kinds of objects that were rendered with the live Deployments. None if the cluster was not read."""

    def warned(self, warnings: Iterable[str]) -> "WorkerVersions":
        """The same plans with more warnings."""
        return replace(self, warnings=(*self.warnings, *warnings))


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """The plan for the versions and the traffic of one worker."""

    versions: WorkerVersions
    identity: str
    """The manager identity that the plan was made for."""
    manager: str
    """The manager identity in Temporal. Empty if there is no manager."""
    routing: RoutingPlan
    """The next routing change, or the reason why there is none."""
    is_held: bool
    """Whether another rollout, manager or person must act first. If so, twgen starts no gates and changes no
    objects."""
    gates: tuple[GateStart, ...] = ()
    """The gate workflows to start now."""
    judgements: Annotated[tuple[Judgement, ...], FieldName("analysis")] = ()
    """The result of each metric of the policy's analysis, while the target ramps."""
    unserved: str = ""
    """The reason why no worker polls for new workflows, as a sentence. Empty if workers poll."""
    scheduled_actions: Annotated[tuple[ScheduledAction, ...], FieldName("draining")] = ()
    """The policy's `draining` actions on open workflows of draining versions. Each version's actions have the
    same order as in the policy."""
    differs: Annotated[tuple[str, ...], FieldRule.LEFT_OUT] = ()
    """The fields of the pod template that differ between a new target and the current version. Absent if no
    field differs, or if the current version is unknown."""
    old_records: Annotated[tuple[str, ...], FieldName("forgets"), FieldRule.LEFT_OUT] = ()
    """The build IDs of the versions that the policy's `keepRecords` does not keep. `twgen tick` deletes these
    versions from Temporal when no workflow needs them. Absent if there are no such versions."""

    @property
    def spec(self) -> WorkerSpec:
        """The worker."""
        return self.versions.spec

    @property
    def name(self) -> Annotated[str, FieldName("worker")]:
        """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
        return self.spec.worker_deployment

    @property
    def temporal_namespace(self) -> str:
        """The Temporal namespace of the worker."""
        return self.spec.temporal_namespace

    @property
    def target(self) -> Annotated[str, FieldName("targetBuildID")]:
        """The build ID of the current spec."""
        return self.spec.build_id

    @property
    def phase(self) -> Phase:
        """`Settled` means that nothing is left to do. `Waiting` means waiting for a time or a person.

        `Moving` means that a change is due. `Blocked` means that a person must act.
        """
        return self.routing.phase

    @property
    def each_version(self) -> Annotated[tuple[VersionPlan, ...], FieldName("versions")]:
        """The target, and all versions that have a Deployment or may have work, sorted by build ID."""
        return self.versions.versions

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about this worker, one sentence each."""
        return self.versions.warnings


@dataclass(frozen=True, slots=True)
class Plan:
    """The next change to every version and to traffic, each with its reason."""

    now: datetime
    """The time of the plan."""
    workers: tuple[WorkerPlan, ...]
    """The workers, sorted by name."""
    warnings: tuple[str, ...] = ()
    """Warnings that are not about a single worker, one sentence each."""
