"""What is reported of workers: the only declaration of the Status document."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from twgen.model.analysis import Verdict
from twgen.model.draining import BatchAction
from twgen.model.plan import Phase, RoutingAction, VersionAction
from twgen.model.record_shapes import Name, Named, NullWhen
from twgen.model.requests import AnswerState, Verb
from twgen.model.shapes import choice, number
from twgen.model.status import AttachedView, Move, Ownership, StepView, VersionCount
from twgen.model.temporal import GateStatus, TaskQueueType, VersionStatus
from twgen.model.values import dataclass

_NULL = NullWhen(lambda _: True)
_CHANGES = choice(*(action for action in RoutingAction if action is not RoutingAction.NONE))


class Unstarted(StrEnum):
    """The status of a gate, or of a request, that nothing has begun."""

    NOT_STARTED = "NotStarted"
    PENDING = "Pending"


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """A change of traffic."""

    action: Annotated[RoutingAction, _CHANGES]
    """SetCurrent: send all traffic to the build ID. SetRamp: send a share of it. ClearRamp: end the ramp."""
    build_id: str
    """The version that gets traffic. Empty for ClearRamp."""
    percentage: Annotated[float | None, number(0, 100), _NULL]
    """The share for SetRamp, in percent. 0 for ClearRamp, null for the other actions."""
    at: Annotated[datetime | None, _NULL]
    """When the change is made, if nothing else changes. Null: it is due now."""


@dataclass(frozen=True, slots=True)
class ReportedOwner:
    """The manager of a worker."""

    identity: str
    """The manager identity. Empty: there is no manager."""
    relation: Ownership
    """How the manager relates to the caller. Adopted: the RolloutPolicy allows taking over from it. Unknown:
    the caller's identity is not known."""


@dataclass(frozen=True, slots=True)
class ReportedGate:
    """A gate on one task queue."""

    task_queue: str
    """The task queue that it runs on."""
    workflow_id: str
    """The workflow ID of the run."""
    workflow_type: str
    """The workflow type."""
    status: Annotated[str, choice(Unstarted.NOT_STARTED, *GateStatus)]
    """The status."""


@dataclass(frozen=True, slots=True)
class ReportedMetric:
    """The result of a metric."""

    metric: str
    """The name of the metric in the policy."""
    verdict: Verdict
    """Fails: the ramp is taken back or paused. Undecided: the ramp waits."""
    value: Annotated[float | None, _NULL]
    """The measured value. Null: nothing was measured."""
    bound: Annotated[float | None, _NULL]
    """The limit of the value. Null: not known."""
    because: str
    """The result as a sentence."""


@dataclass(frozen=True, slots=True)
class ReportedEnding:
    """An action on the open workflows of a draining version."""

    build_id: str
    """The build ID of the version."""
    action: BatchAction
    """The action on the workflows."""
    workflow_types: tuple[str, ...]
    """The workflow types that it applies to. Empty: all."""
    at: datetime
    """When it began, or the earliest time at which it may begin."""
    begun: bool
    """Whether it has begun. It begins once while the version drains."""
    workflows: Annotated[int | None, _NULL]
    """How many workflows it applied to when it began. Null: it has not begun, or the number is not known."""
    repeats: int
    """How often it began again, for workflows that started later."""
    held_by: str
    """Why it cannot begin, even when its time has come. Empty: it can."""


@dataclass(frozen=True, slots=True)
class ReportedRequest:
    """A request of a person."""

    id: str
    """The ID of the request."""
    verb: Verb
    """What is requested."""
    target: Annotated[str, Named("targetBuildID")]
    """The build ID that it is for."""
    by: str
    """Who requested it, as far as that is known; empty: not known."""
    at: datetime
    """When it was requested."""
    state: Annotated[str, choice(Unstarted.PENDING, *AnswerState)]
    """Pending: nothing has taken it. Taken: it is being carried out. Done, Refused: the message says what was
    done, or why nothing was."""
    message: str
    """What was done, or why nothing was; empty: it is pending."""


@dataclass(frozen=True, slots=True)
class ReportedTaskQueue:
    """A task queue that it has polled."""

    name: str
    """The name."""
    type: TaskQueueType
    """The type of the task queue."""
    pollers: Annotated[bool | None, _NULL]
    """Whether a worker of this version polled it recently. Null: not read."""
    unversioned_pollers: Annotated[bool | None, _NULL]
    """Whether a worker without a version polled it recently. Null: not read."""


@dataclass(frozen=True, slots=True)
class ReportedPods:
    """The pods of a Deployment."""

    available: int
    """How many pods are available."""
    wanted: int
    """How many pods its Deployment wants."""
    terminating: bool
    """Whether its Deployment is being deleted."""
    paused: bool
    """Whether its Deployment is paused."""
    stalled: str
    """Why its Deployment makes no progress, from its conditions. Empty: no such condition."""
    problem: str
    """Why its newest Pod waits or crashes. Empty: no problem is known."""


@dataclass(frozen=True, slots=True)
class ReportedSunset:
    """A later action on a Deployment."""

    action: VersionAction
    """The action on its Deployment. ScaleDown: render zero replicas. Drop: render it no longer. None: there
    is no manifest to render."""
    at: datetime
    """When its time comes."""


@dataclass(frozen=True, slots=True)
class VersionReport:
    """One version."""

    build_id: str
    """The build ID of the version."""
    is_target: bool
    """Whether it is the version that the spec describes."""
    status: VersionStatus
    """The status in Temporal. NotRegistered: Temporal does not know the version."""
    percentage: Annotated[float | None, number(0, 100), _NULL]
    """The share of new workflows that it gets, in percent. Null: it is neither current nor ramping."""
    since: Annotated[datetime | None, _NULL]
    """When it got this percentage, began to drain or was drained. For another status: when it was registered,
    or when its Deployment was created. Null: not known."""
    moved_by: Annotated[Move | None, _NULL]
    """The change that gave the version its share, from its metadata in Temporal. Null: it has no share, this
    is not known, or another client has changed it since."""
    open_workflows: Annotated[int | None, _NULL]
    """Running and paused workflows that are pinned to it. Null: not counted, because the version stays anyway
    or many other versions drain."""
    oldest_open_at: Annotated[datetime | None, _NULL]
    """When the oldest of these workflows started. Null: not read, or there is none."""
    task_queues: Annotated[tuple[ReportedTaskQueue, ...] | None, _NULL]
    """The task queues that it has polled. Null: not read."""
    deployment: str
    """The name of its Kubernetes Deployment. Empty: twgen did not make the version, so it has none."""
    cluster_was_read: bool
    """Whether the cluster was read. If not, nothing is known about its pods."""
    pods: Annotated[ReportedPods | None, _NULL]
    """The pods of its Deployment. Null: it has no Deployment, or the cluster was not read."""
    attached: tuple[AttachedView, ...]
    """The attached objects of the version, such as an HPA."""
    action: VersionAction
    """The action on its Deployment. ScaleDown: render zero replicas. Drop: render it no longer. None: there
    is no manifest to render."""
    reason: str
    """A stable identifier of the reason, for programs. `because` gives it as a sentence."""
    because: Name
    """The reason for the action, as a sentence."""
    next: Annotated[ReportedSunset | None, _NULL]
    """The next action that its sunset delays lead to. Null: none is known."""


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker."""

    worker: str
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    temporal_namespace: str
    """The Temporal namespace of the worker; empty: not read."""
    target: Annotated[str, Named("targetBuildID")]
    """The build ID of the current spec."""
    phase: Phase
    """Settled: nothing is left to do. Waiting: for time or a person. Moving: a change is due now. Blocked: a
    person must act."""
    reason: str
    """A stable identifier of the reason, for programs. `because` gives it as a sentence."""
    because: Name
    """The reason for the phase, as a sentence."""
    unserved: str
    """Why no worker serves the new workflows, as a sentence. Empty: they are served."""
    next: Annotated[ReportedChange | None, _NULL]
    """The next change of traffic. Null: none is known."""
    waits_until: Annotated[datetime | None, _NULL]
    """When the wait ends. Null: that is not known, or nothing waits."""
    owner: ReportedOwner
    """The manager of the worker in Temporal."""
    last_modifier: Annotated[str, Named("lastModifierIdentity")]
    """The identity that last changed the routing in Temporal. Empty: not known."""
    steps: tuple[StepView, ...]
    """The steps of the target while it ramps. Empty: it does not ramp, or has no steps."""
    gates: tuple[ReportedGate, ...]
    """The gates of the target: the gate of its spec and the gate of the next step. Empty: there is none, none
    is needed, or no task queue is known."""
    analysis: tuple[ReportedMetric, ...]
    """The result of each metric of the policy's analysis, while the target ramps."""
    draining: tuple[ReportedEnding, ...]
    """The actions of the policy's `draining` on open workflows of draining versions, in order for each
    version."""
    request: Annotated[ReportedRequest | None, _NULL]
    """The request of a person to the rollout that is answered next, or else the last one that was answered.
    Null: none is known."""
    unversioned_percentage: Annotated[float | None, number(0, 100), _NULL]
    """The share of new workflows that workers without a version get, in percent. Null: they get none by
    routing."""
    count: Annotated[VersionCount | None, Named("versionCount"), _NULL]
    """The number of versions, and the limits that stop a new one; null: the versions were not read."""
    versions: tuple[VersionReport, ...]
    """The target, then the current and ramping versions, then the others, newest first."""
    warnings: tuple[str, ...]
    """Warnings about this worker, one sentence each."""


@dataclass(frozen=True, slots=True)
class Report:
    """The state of every worker and of its rollout."""

    now: datetime
    """The time of the report."""
    workers: tuple[WorkerReport, ...]
    """The workers, sorted by name."""
    warnings: tuple[str, ...]
    """Warnings that are not about a single worker, one sentence each."""
