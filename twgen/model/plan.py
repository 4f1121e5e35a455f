"""The plan: the changes that twgen would make to versions and traffic, with reasons."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from twgen.model.analysis import Judgement
from twgen.model.draining import ScheduledAction
from twgen.model.reasons.routing import RoutingReason
from twgen.model.reasons.versions import VersionReason
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
    """The next change of traffic that a rollout would make."""

    NONE = "None"
    SET_CURRENT = "SetCurrent"
    SET_RAMP = "SetRamp"
    CLEAR_RAMP = "ClearRamp"


class Phase(StrEnum):
    """The phase of a rollout: it is done, waits, moves traffic now, or needs a person."""

    SETTLED = "Settled"
    WAITING = "Waiting"
    MOVING = "Moving"
    BLOCKED = "Blocked"

    @property
    def goes_on(self) -> bool:
        """The rollout can continue without a person."""
        return self not in {Phase.SETTLED, Phase.BLOCKED}


@dataclass(frozen=True, slots=True)
class AttachedObject:
    """A version's copy of an attached resource."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """The plan of one version: its action, a sentence about it, and the details."""

    build_id: str
    status: VersionStatus
    deployment: str
    action: VersionAction
    because: str
    reason: VersionReason
    replicas: int | None = None
    """None: the manifest has none, or there is no manifest."""
    protected: bool = False
    live: LiveDeployment | None = None
    recorded: RecordedDeployment | None = None
    """The manifest to render again; None: render the spec."""
    is_doubtful: bool = False
    """Its live pod template stays. Only its own hash can show whether somebody changed it by hand."""
    replaced_injection: frozenset[str] | None = None
    """The injected names in that manifest that the spec's connection replaces; None: the connection stays."""
    attached: tuple[AttachedObject, ...] = ()
    """The attached objects that are rendered with it, or for its pods if its own manifest is lost."""
    leaving: tuple[AttachedObject, ...] = ()
    """Attached objects that it must lose: they are rendered once more, without protection and owner."""
    replaced: tuple[AttachedObject, ...] = ()
    """Attached objects that no template makes any more: they must be deleted."""
    following: tuple[AttachedObject, ...] = ()
    """The objects that replace them. They are not rendered before the others are gone."""
    waiting: tuple[AttachedObject, ...] = ()
    """Autoscalers that are not rendered before Argo CD stops setting the replicas."""
    replicas_are_external: bool = False
    """Only an autoscaler or a person sets its replicas."""
    patch: tuple[Mapping[str, Any], ...] = ()
    """The containers of the VersionPatch for its manifest, without those that the manifest lacks."""
    changed_marks: tuple[str, ...] = ()
    """The parts of a live Deployment that change although its pods stay, in words: `labels`."""

    @property
    def is_rendered(self) -> bool:
        """The output has a manifest of its Deployment."""
        return self.action not in {VersionAction.DROP, VersionAction.NONE}


@dataclass(frozen=True, slots=True)
class LaterAction:
    """An action on a version's Deployment at a later time."""

    action: VersionAction
    at: datetime


@dataclass(frozen=True, slots=True)
class RoutingPlan:
    """The next change of traffic, or why there is none."""

    action: RoutingAction
    because: str
    phase: Phase
    reason: RoutingReason
    build_id: str | None = None
    percentage: float | None = None
    claim_manager: bool = False
    due_at: datetime | None = None
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Entries of the target's metadata that are written first, in a look of their own."""
    ignores_missing_queues: bool = False
    """Temporal must accept it although the version does not poll some task queues that have tasks."""


@dataclass(frozen=True, slots=True)
class GateStart:
    """A gate workflow to start."""

    task_queue: str
    workflow_id: str
    workflow_type: str
    request_id: str
    """The same for every client while its version is registered, so that there is no second run."""
    has_input: bool = True
    """It gets the input of the spec's gate, if there is one."""


@dataclass(frozen=True, slots=True)
class WorkerVersions:
    """The plans of all versions of one worker. A render needs no more."""

    spec: WorkerSpec
    versions: tuple[VersionPlan, ...]
    warnings: tuple[str, ...] = ()
    not_created: str = ""
    """Why the target's Deployment is not created; empty: it is created, or exists."""
    not_deployed: str = ""
    """Why the spec's pod template reaches no pod, although its target exists; empty: it does."""
    were_attached: frozenset[str] | None = None
    """The kinds of objects that its live Deployments were rendered with; None: the cluster was not read."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """The plan of one worker: its versions and its traffic."""

    versions: WorkerVersions
    identity: str
    """The manager identity that it was planned for."""
    manager: str
    """The manager of the Worker Deployment; empty: there is none."""
    routing: RoutingPlan
    is_held: bool
    """Its rollout changes nothing now, traffic or other: another manager or a person must act first."""
    gates: tuple[GateStart, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    """The judgements of its metrics about the target while it ramps."""
    unserved: str = ""
    """Why no worker serves the workflows that go to it; empty: they are served."""
    scheduled_actions: tuple[ScheduledAction, ...] = ()
    """The actions of its policy on the workflows of draining versions, in order for each version."""
    old_records: tuple[str, ...] = ()
    """The build IDs of versions that its policy deletes in Temporal once no workflow needs them."""

    @property
    def spec(self) -> WorkerSpec:
        """The worker."""
        return self.versions.spec


@dataclass(frozen=True, slots=True)
class Plan:
    """The plans of all workers."""

    now: datetime
    workers: tuple[WorkerPlan, ...]
    warnings: tuple[str, ...] = ()
    """Warnings that are about no single worker of the specs."""
