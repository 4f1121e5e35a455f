"""The status of workers and rollouts, and the declaration of the Status document."""

from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from twgen.model.analysis import Judgement
from twgen.model.draining import ScheduledAction
from twgen.model.plan import LaterAction, Phase, RoutingAction, VersionAction
from twgen.model.record_shapes import FieldName, FieldRule, Name
from twgen.model.rollout import Answer, AnswerState, PendingRequest, Verb
from twgen.model.shapes import choice, number
from twgen.model.temporal import GateStatus, TaskQueueType, VersionStatus
from twgen.model.values import dataclass

_CHANGES = choice(*(action for action in RoutingAction if action is not RoutingAction.NONE))


class Ownership(StrEnum):
    """How the manager identity in Temporal relates to the identity that twgen uses."""

    NOBODY = "Nobody"
    OURS = "Ours"
    ADOPTED = "Adopted"
    """The policy's adoptFrom lists the manager, so the next change takes over the worker."""
    OTHER = "Other"
    UNKNOWN = "Unknown"
    """twgen's own identity is unknown."""


class Unstarted(StrEnum):
    """The status of a gate that has not started, or of a request that no rollout has taken yet."""

    NOT_STARTED = "NotStarted"
    PENDING = "Pending"


@dataclass(frozen=True, slots=True)
class VersionCount:
    """The number of a worker's versions, and the limits that block a new version."""

    deployed: int
    """How many versions count towards maxVersions: all except the target and drained versions with zero
    replicas."""
    most_deployed: Annotated[int, FieldName("maxVersions")]
    """The limit in the RolloutPolicy. When the limit is reached, the target is not created."""
    registered: int
    """The number of versions that Temporal knows."""
    most_registered: int
    """Temporal's default limit. When the limit is reached, Temporal rejects a new version. A server can be
    configured with another limit."""


@dataclass(frozen=True, slots=True)
class Move:
    """The change that gave a version its share of new workflows. Unknown values are empty."""

    identity: str
    """The manager identity that made the change."""
    intent: str
    """The hash of the rollout's intent. Empty if a person or CI ran the rollout."""
    application: str
    """The Argo CD application of the intent. Empty if the intent has no application."""
    at: str
    """When the change was made."""


class AttachedState(StrEnum):
    """The state of an attached object."""

    READY = "Ready"
    """The object exists, and no condition reports a failure."""
    FAILING = "Failing"
    """The object exists, and one of its conditions reports a failure."""
    MISSING = "Missing"
    """The object was rendered together with its Deployment, but does not exist."""
    REFUSED = "Refused"
    """The last sync could not apply the object."""
    PENDING = "Pending"
    """The object has not been applied yet."""
    UNREAD = "NotRead"


@dataclass(frozen=True, slots=True)
class AttachedView:
    """A version's copy of an attached resource."""

    kind: str
    """The kind of the object."""
    name: str
    """The name of the object."""
    state: AttachedState
    """Ready: the object exists, and no condition reports a failure. Failing: a condition reports a failure.
    Missing: the object was applied but does not exist. Refused: the last sync could not apply the object,
    which only tick detects. Pending: the object has not been applied yet. NotRead: unknown."""
    says: Annotated[str, FieldName("message")]
    """The failing conditions, or the effect of a missing object. Empty if there is no problem."""

    @property
    def is_ready(self) -> bool:
        """Whether the object exists, and no condition reports a failure."""
        return self.state is AttachedState.READY


class StepPlace(StrEnum):
    """The position of a step relative to the target's current share."""

    DONE = "Done"
    PRESENT = "Present"
    AHEAD = "Ahead"


@dataclass(frozen=True, slots=True)
class StepView:
    """A step."""

    percentage: Annotated[float, number(0, 100)]
    """The share of new workflows, in percent."""
    place: StepPlace
    """The position of the step relative to the target's current share."""
    gate: str
    """The workflow type that must complete before the step begins. Empty if the step has no gate."""
    until_promoted: bool
    """Whether the step, after its pause, waits for a person to promote the target."""


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """A routing change."""

    action: Annotated[RoutingAction, _CHANGES]
    """SetCurrent: send all traffic to the build ID. SetRamp: send a share of it. ClearRamp: end the ramp."""
    build_id: str
    """The version that gets traffic. Empty for ClearRamp."""
    percentage: Annotated[float | None, number(0, 100)]
    """The share for SetRamp, in percent. 0 for ClearRamp, null for the other actions."""
    at: datetime | None
    """When the change will be made if nothing else changes. Null if the change is due now."""


@dataclass(frozen=True, slots=True)
class ReportedOwner:
    """The manager of a worker."""

    identity: str
    """The manager identity. Empty if there is no manager."""
    relation: Ownership
    """How the manager relates to the caller. Adopted: the RolloutPolicy lets twgen take over from the
    manager. Unknown: the caller's identity is unknown."""


_UNKNOWN_OWNER = ReportedOwner("", Ownership.UNKNOWN)


@dataclass(frozen=True, slots=True)
class ReportedGate:
    """A gate on one task queue."""

    task_queue: str
    """The task queue that it runs on."""
    workflow_id: str
    """The workflow ID of the run."""
    workflow_type: str
    """The workflow type of the gate."""
    status: Annotated[str, choice(Unstarted.NOT_STARTED, *GateStatus)]
    """The status of the gate."""
    is_due: Annotated[bool, FieldRule.INTERNAL] = field(default=False, compare=False)
    """Whether the gate must be started now. Also false if this value was read from a document."""


@dataclass(frozen=True, slots=True)
class ReportedRequest:
    """A person's request."""

    id: str
    """The ID of the request."""
    verb: Verb
    """The requested command."""
    target: Annotated[str, FieldName("targetBuildID")]
    """The build ID of the target that the request refers to."""
    by: str
    """The name of the person. Empty if unknown."""
    at: datetime
    """When the person made the request."""
    state: Annotated[str, choice(Unstarted.PENDING, *AnswerState)]
    """Pending: no rollout has taken the request yet. Taken: the request is being carried out. Done: the
    request was carried out. Refused: the request was refused, and the message says why."""
    message: str
    """The result, or the reason why nothing was done. Empty if the request is pending."""


@dataclass(frozen=True, slots=True)
class ReportedTaskQueue:
    """A task queue that a version has polled."""

    name: str
    """The name of the task queue."""
    type: TaskQueueType
    """The type of the task queue."""
    pollers: bool | None
    """Whether a worker of this version polled the task queue recently. Null if not read."""
    unversioned_pollers: bool | None
    """Whether an unversioned worker polled the task queue recently. Null if not read."""


@dataclass(frozen=True, slots=True)
class ReportedPods:
    """The pods of a Deployment."""

    available: int
    """How many pods are available."""
    wanted: int
    """How many pods the Deployment should have."""
    terminating: bool
    """Whether the Deployment is being deleted."""
    paused: bool
    """Whether the Deployment is paused."""
    stalled: str
    """Why the Deployment is not progressing, according to its conditions. Empty if no condition reports a
    problem."""
    problem: str
    """Why the newest Pod waits or crashes. Empty if no problem is known."""


@dataclass(frozen=True, slots=True)
class VersionReport:
    """One version."""

    build_id: str
    """The build ID of the version."""
    is_target: bool
    """Whether the spec describes this version."""
    status: VersionStatus
    """The status in Temporal. NotRegistered: the version does not exist in Temporal."""
    percentage: Annotated[float | None, number(0, 100)]
    """The version's share of new workflows, in percent. Null if the version is neither current nor ramping.
    """
    since: datetime | None
    """When the version got this percentage, began to drain or was drained. With any other status, when the
    version was registered or its Deployment was created. Null if unknown."""
    moved_by: Move | None
    """The change that gave the version its share, according to the version's metadata in Temporal. Null if
    the version has no share, if the change is unknown, or if another client has changed the share since then.
    """
    open_workflows: int | None
    """How many running and paused workflows are pinned to the version. Null if not counted, because the
    version is kept anyway, or because many other versions are draining."""
    oldest_open_at: datetime | None
    """When the oldest open workflow that is pinned to the version started. Null if not read, or if the
    version has no such workflow."""
    task_queues: tuple[ReportedTaskQueue, ...] | None
    """The task queues that the version has polled. Null if not read."""
    deployment: str
    """The name of the version's Deployment in Kubernetes. Empty if twgen did not create the version."""
    cluster_was_read: bool
    """Whether the cluster was read. If not, the state of the pods is unknown."""
    pods: ReportedPods | None
    """The pods of the version's Deployment. Null if the version has no Deployment, or if the cluster was not
    read."""
    attached: tuple[AttachedView, ...]
    """The attached objects of the version, such as an HPA."""
    action: VersionAction
    """The action on the version's Deployment. ScaleDown: render zero replicas. Drop: stop rendering it. None:
    there is no manifest to render."""
    reason: str
    """The reason as a stable word, for programs. `because` gives it as a sentence."""
    because: Name
    """The reason for the action, as a sentence."""
    next: LaterAction | None
    """The next action after a sunset delay. Null if no next action is known."""
    replicas: Annotated[int | None, FieldRule.INTERNAL] = field(default=None, compare=False)
    """As in `VersionPlan`. Also None if this value was read from a document."""
    is_autoscaled: Annotated[bool, FieldRule.INTERNAL] = field(default=False, compare=False)
    """Whether an autoscaler sets or will set the version's replicas. Also false if this value was read from a
    document."""
    is_patched: Annotated[bool, FieldRule.INTERNAL] = field(default=False, compare=False)
    """Whether a VersionPatch changes the version's manifest. Also false if this value was read from a
    document."""


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker."""

    worker: str
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    temporal_namespace: str
    """The Temporal namespace of the worker. Empty if not read."""
    target: Annotated[str, FieldName("targetBuildID")]
    """The build ID of the current spec."""
    phase: Phase
    """Settled: nothing is left to do. Waiting: it waits for a time or a person. Moving: a change is due.
    Blocked: a person must act."""
    reason: str
    """The reason as a stable word, for programs. `because` gives it as a sentence."""
    because: Name
    """The reason for the phase, as a sentence."""
    unserved: str = ""
    """The reason why no worker polls for new workflows, as a sentence. Empty if workers poll."""
    next: ReportedChange | None = None
    """The next routing change. Null if none is known."""
    waits_until: datetime | None = None
    """When the wait ends. Null if the end is unknown, or if nothing waits."""
    owner: ReportedOwner = _UNKNOWN_OWNER
    """The manager of the worker in Temporal."""
    last_modifier: Annotated[str, FieldName("lastModifierIdentity")] = ""
    """The identity that last changed the routing in Temporal. Empty if unknown."""
    steps: tuple[StepView, ...] = ()
    """The target's steps while the target is ramping. Empty if the target is not ramping or has no steps."""
    gates: tuple[ReportedGate, ...] = ()
    """The target's gates: the spec's gate and the next step's gate. Empty if there is no gate, if no gate is
    needed, or if no task queue is known."""
    analysis: tuple[Judgement, ...] = ()
    """The result of each metric of the policy's analysis, while the target is ramping."""
    draining: tuple[ScheduledAction, ...] = ()
    """The policy's `draining` actions on open workflows of draining versions. The actions of each version are
    in order."""
    request: ReportedRequest | None = None
    """The request that the rollout answers next. If no request is pending, the last answered request. Null if
    no request is known."""
    unversioned_percentage: Annotated[float | None, number(0, 100)] = None
    """The share of new workflows that unversioned workers get, in percent. Null if unversioned workers get no
    share."""
    count: Annotated[VersionCount | None, FieldName("versionCount")] = None
    """The number of versions, and the limits that block a new version. Null if the versions were not read."""
    versions: tuple[VersionReport, ...] = ()
    """The target, then the current and ramping versions, then the others, newest first."""
    warnings: tuple[str, ...] = ()
    """Warnings about this worker, one sentence each."""
    differs: Annotated[tuple[str, ...], FieldRule.INTERNAL] = field(default=(), compare=False)
    """As in `WorkerPlan`. Also empty if this value was read from a document."""
    old_records: Annotated[tuple[str, ...], FieldRule.INTERNAL] = field(default=(), compare=False)
    """As in `WorkerPlan`. Also empty if this value was read from a document."""
    rollout: Annotated["RolloutStatus | None", FieldRule.INTERNAL] = field(default=None, compare=False)
    """The status that the worker's rollout wrote to the cluster. None if Temporal was read instead."""

    @property
    def alarm(self) -> str:
        """The worker's most urgent problem: a failing rollout, or new workflows without a worker.

        Empty if none.
        """
        return (self.rollout.failing if self.rollout else "") or self.unserved


@dataclass(frozen=True, slots=True)
class Status:
    """The state of every worker and of its rollout."""

    now: datetime
    """The time of the report."""
    workers: tuple[WorkerReport, ...]
    """The workers, sorted by name."""
    warnings: tuple[str, ...]
    """Warnings that are not about a single worker, one sentence each."""


@dataclass(frozen=True, slots=True)
class RolloutStatus:
    """The status of a worker's rollout, as the cluster stores it."""

    worker: str
    """The worker's name in Temporal: `<Kubernetes namespace>/<worker>`."""
    phase: Phase
    reason: str
    message: str
    target: str
    current: str | None
    """The build ID of the current version. Empty if no version is current. None if Temporal was not read."""
    percentage: float | None
    """The target's share of new workflows. None if not read."""
    since: datetime
    """When the phase or the reason last changed."""
    report: Status | None
    """The worker's Status document at the time when the status was written. None if it has no details."""
    intent: str = ""
    """The hash of the rollout's intent."""
    failing: str = ""
    """The errors that occur when the rollout reads or changes the state. Empty if there are no errors."""
    permits: tuple[Verb, ...] = ()
    """The requests that the operator has permitted. Requests that need no permission are not listed."""
    pending: tuple[PendingRequest, ...] = field(default=(), compare=False)
    """People's requests to the rollout, in the order in which they are answered."""
    answers: tuple[Answer, ...] = ()
    """The answers to the last abort and to the last other request, newest first. An answer that cannot be
    read is left out."""
    intent_uid: str = field(default="", compare=False)
    """The UID of the intent's ConfigMap, which owns the status ConfigMap. Empty if the status ConfigMap has
    no owner."""
    resource_version: str = field(default="", compare=False)
    """The resource version of the ConfigMap that contained the status. Empty if no ConfigMap contained it."""

    @property
    def details(self) -> WorkerReport | None:
        """The report on the worker. None if Temporal was not read, or if the report cannot be read."""
        return self.report.workers[0] if self.report else None

    def with_details(self, **changes: Any) -> Self:
        """This status with changes to the report on the worker. Without a report, the status is unchanged."""
        if not self.report or not self.details:
            return self
        return replace(self, report=replace(self.report, workers=(replace(self.details, **changes),)))

    def restated(self, phase: Phase, reason: str, message: str, since: datetime) -> Self:
        """This status with another phase and reason, and without the worker's next change."""
        status = replace(self, phase=phase, reason=reason, message=message, since=since, failing="")
        return status.with_details(phase=phase, reason=reason, because=message, next=None, waits_until=None)
