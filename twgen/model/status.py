"""The status of workers and versions at one moment, and the rollout status that a cluster stores."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from twgen.model.plan import LaterAction, Phase, RoutingPlan, VersionPlan, WorkerPlan
from twgen.model.record_shapes import Named
from twgen.model.requests import Answer, PendingRequest, Verb
from twgen.model.shapes import number
from twgen.model.temporal import GateStatus, TaskQueue
from twgen.model.values import dataclass


class Ownership(StrEnum):
    """How the manager identity in Temporal relates to the identity that twgen acts as."""

    NOBODY = "Nobody"
    OURS = "Ours"
    ADOPTED = "Adopted"
    """Its adoptFrom names them: the next change takes over."""
    OTHER = "Other"
    UNKNOWN = "Unknown"
    """Nobody said who we are."""


@dataclass(frozen=True, slots=True)
class GateProgress:
    """How far a gate is on one task queue."""

    workflow_type: str
    task_queue: str
    workflow_id: str
    status: GateStatus | None
    """None: it has not started."""


@dataclass(frozen=True, slots=True)
class VersionCount:
    """The number of versions of a worker, and the limits that stop a new one."""

    deployed: int
    """Versions that count towards maxVersions: all except the target and drained versions with zero
    replicas."""
    most_deployed: Annotated[int, Named("maxVersions")]
    """The limit of the RolloutPolicy. When it is reached, the target is not created."""
    registered: int
    """Versions that Temporal knows."""
    most_registered: int
    """The default limit of Temporal. When it is reached, Temporal refuses a new version. A server may be
    configured with another limit."""


@dataclass(frozen=True, slots=True)
class Move:
    """What gave a version its share of new workflows; an empty text: not known."""

    identity: str
    """The manager identity that made the change."""
    intent: str
    """The hash of the rollout's intent. Empty: a person or CI ran it."""
    application: str
    """The Argo CD application of the intent. Empty: none."""
    at: str
    """When the change was made."""


class AttachedState(StrEnum):
    """The state of an attached object."""

    READY = "Ready"
    """It is there, and no condition speaks against it."""
    FAILING = "Failing"
    """It is there, and says itself that it does not do what it is for."""
    MISSING = "Missing"
    """It was rendered with its Deployment, and is not there."""
    REFUSED = "Refused"
    """It is not there: the last sync could not apply it."""
    PENDING = "Pending"
    """It has yet to be applied."""
    UNREAD = "NotRead"


@dataclass(frozen=True, slots=True)
class AttachedView:
    """A version's copy of an attached resource."""

    kind: str
    """Its kind."""
    name: str
    """The name."""
    state: AttachedState
    """Ready; Failing: one of its conditions says so; Missing: it was applied but does not exist; Refused: the
    last sync could not apply it (only tick knows this); Pending: it has not been applied yet; NotRead."""
    says: Annotated[str, Named("message")]
    """The failing conditions, or the effect of a missing object. Empty: there is no problem."""

    @property
    def is_ready(self) -> bool:
        """It is there, and no condition speaks against it."""
        return self.state is AttachedState.READY


@dataclass(frozen=True, slots=True)
class VersionView:
    """The status of one version."""

    plan: VersionPlan
    is_target: bool
    percentage: float | None
    """Its share of new workflows; None: it is not in routing."""
    since: datetime | None
    """When it got this percentage, began to drain or was drained; of any other status, was registered."""
    open_workflows: int | None
    """Running and paused ones pinned to it; None: not counted."""
    oldest_open_at: datetime | None
    """When the oldest of these started; None: not read, or there is none."""
    task_queues: tuple[TaskQueue, ...] | None
    """Those that it has polled; None: not read."""
    cluster_was_read: bool
    pod_problem: str
    """Why its newest Pod waits or crashes; empty: nothing is known against it."""
    later: LaterAction | None
    """What its sunset brings next."""
    attached: tuple[AttachedView, ...]
    """What is rendered beside its Deployment."""
    moved: Move | None
    """Its last move; None: it is not in routing, or somebody else has changed that since."""


class StepPlace(StrEnum):
    """Where a step is relative to the live share of the target."""

    DONE = "Done"
    PRESENT = "Present"
    AHEAD = "Ahead"


@dataclass(frozen=True, slots=True)
class StepView:
    """A step."""

    percentage: Annotated[float, number(0, 100)]
    """The share of new workflows, in percent."""
    place: StepPlace
    """Where the step is relative to the live share of the target."""
    gate: str
    """The workflow type that must complete before the step begins. Empty: it has no gate."""
    until_promoted: bool
    """true: after its pause, the step waits for a person to promote the target."""


@dataclass(frozen=True, slots=True)
class WorkerView:
    """The status of one worker."""

    plan: WorkerPlan
    ownership: Ownership
    last_modifier: str
    """Who changed routing last in Temporal; empty: nobody said."""
    later: RoutingPlan | None
    """The change when the waiting ends."""
    steps: tuple[StepView, ...]
    """Empty: the target does not ramp, or has no steps."""
    gates: tuple[GateProgress, ...]
    """Empty: no gate, or none is needed."""
    unversioned_percentage: float | None
    """The share of new workflows that workers without a version get; None: they are not in routing."""
    count: VersionCount
    versions: tuple[VersionView, ...]
    """The target, then those in routing, then the others; the newest first."""


@dataclass(frozen=True, slots=True)
class Status:
    """The status of every worker, at one moment."""

    now: datetime
    workers: tuple[WorkerView, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RolloutStatus:
    """The status of the rollout of one worker, as its cluster stores it."""

    worker: str
    """As Temporal calls it: `<Kubernetes namespace>/<worker>`."""
    phase: Phase
    reason: str
    message: str
    target: str
    current: str | None
    """The build ID of the current version; empty: none is; None: Temporal was not read."""
    percentage: float | None
    """The target's share of new workflows; None: it was not read."""
    since: datetime
    """When the phase or the reason changed last."""
    document: Mapping[str, Any]
    """The Status document of this one worker, as it was when this was written."""
    intent: str = ""
    """The hash of the intent that is carried out."""
    failing: str = ""
    """What fails at its looks, or after them; empty: nothing does."""
    permits: tuple[Verb, ...] = ()
    """The requests that the operator permits beside those that are always taken."""
    pending: tuple[PendingRequest, ...] = field(default=(), compare=False)
    """What people request of it, in the order in which that is answered."""
    answers: tuple[Answer, ...] = ()
    """To the last abort and to the last other request, the newer one first, as far as they can be read."""
    intent_uid: str = field(default="", compare=False)
    """Of the intent's ConfigMap, as its own ConfigMap names its owner; empty: it names none."""
    resource_version: str = field(default="", compare=False)
    """Of the ConfigMap that it was read from; empty: of none."""

    def restated(self, phase: Phase, reason: str, message: str, since: datetime) -> Self:
        """The same status with another phase and reason, and without the next change of its worker."""
        next_change = {
            "phase": phase.value,
            "reason": reason,
            "because": message,
            "next": None,
            "waitsUntil": None,
        }
        workers = [{**worker, **next_change} for worker in self.document.get("workers", ())]
        document = {**self.document, "workers": workers} if workers else self.document
        restated = replace(self, phase=phase, reason=reason, message=message, since=since)
        return replace(restated, document=document, failing="")
