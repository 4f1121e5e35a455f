"""What twgen would do, and why."""

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
    """What becomes of a version's Deployment."""

    CREATE = "Create"
    KEEP = "Keep"
    UPDATE = "Update"
    SCALE_DOWN = "ScaleDown"
    DROP = "Drop"
    NONE = "None"


class RoutingAction(StrEnum):
    """The one change of traffic that a rollout would make next."""

    NONE = "None"
    SET_CURRENT = "SetCurrent"
    SET_RAMP = "SetRamp"
    CLEAR_RAMP = "ClearRamp"


class Phase(StrEnum):
    """Whether a rollout is done, waits, moves traffic now, or needs a person."""

    SETTLED = "Settled"
    WAITING = "Waiting"
    MOVING = "Moving"
    BLOCKED = "Blocked"

    @property
    def goes_on(self) -> bool:
        """The rollout can still move by itself."""
        return self not in {Phase.SETTLED, Phase.BLOCKED}


@dataclass(frozen=True, slots=True)
class AttachedObject:
    """A version's copy of an attached resource."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """What becomes of one version, in a sentence and in full."""

    build_id: str
    status: VersionStatus
    deployment: str
    action: VersionAction
    because: str
    reason: VersionReason
    replicas: int | None = None
    """None: left out of the manifest, or there is no manifest."""
    protected: bool = False
    live: LiveDeployment | None = None
    recorded: RecordedDeployment | None = None
    """The manifest to render again; None: as the spec describes it."""
    is_doubtful: bool = False
    """Its live pod template stays, and nothing tells whether somebody changed it by hand but its own hash."""
    replaced_injection: frozenset[str] | None = None
    """The injected names of that manifest that make room for the spec's connection; None: it stays."""
    attached: tuple[AttachedObject, ...] = ()
    """The attached objects that are rendered with it, or for its pods when its own manifest is lost."""
    leaving: tuple[AttachedObject, ...] = ()
    """Those that it has and is to have no longer: rendered once more, without protection and owner."""
    replaced: tuple[AttachedObject, ...] = ()
    """Those that it has and no template makes any more: they are to be deleted."""
    following: tuple[AttachedObject, ...] = ()
    """What takes their place, and is not rendered before they are gone."""
    replicas_are_external: bool = False
    """Nobody but an autoscaler or a person decides its replicas."""
    patch: tuple[Mapping[str, Any], ...] = ()
    """The containers of the VersionPatch that its manifest gets, less those that it does not have."""
    changed_marks: tuple[str, ...] = ()
    """What applying it changes of a live Deployment whose pods stay, in words: `labels`."""

    @property
    def is_rendered(self) -> bool:
        """There is a manifest of its Deployment in the output."""
        return self.action not in {VersionAction.DROP, VersionAction.NONE}


@dataclass(frozen=True, slots=True)
class LaterAction:
    """What becomes of a version's Deployment at a later time."""

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
    """What the target is marked with first, in a look of its own: entries of its metadata."""
    ignores_missing_queues: bool = False
    """Temporal is not to refuse it for task queues that have tasks and that its version does not poll."""


@dataclass(frozen=True, slots=True)
class GateStart:
    """A gate workflow to start."""

    task_queue: str
    workflow_id: str
    workflow_type: str
    request_id: str
    """The same for all who start it while its version is registered: no second run beside the first."""
    has_input: bool = True
    """It gets the input of the spec's gate, where that has one."""


@dataclass(frozen=True, slots=True)
class WorkerVersions:
    """What becomes of every version of one worker; enough to render."""

    spec: WorkerSpec
    versions: tuple[VersionPlan, ...]
    warnings: tuple[str, ...] = ()
    not_created: str = ""
    """Why the target's Deployment is not created; empty: it is, or exists."""
    not_deployed: str = ""
    """Why the spec's pod template reaches no pod, though its target is there; empty: it does."""
    were_attached: frozenset[str] | None = None
    """The kinds of what its live Deployments were rendered with; None: the cluster was not read."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What becomes of one worker's versions and traffic."""

    versions: WorkerVersions
    identity: str
    """As whom it was planned."""
    manager: str
    """Who manages the Worker Deployment; empty: nobody."""
    routing: RoutingPlan
    is_held: bool
    """Its rollout changes nothing now, also beside the traffic: that is another's turn, or a person's."""
    gates: tuple[GateStart, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    """What the metrics of its analysis say of the target while it ramps."""
    unserved: str = ""
    """Why nobody serves workflows that go to the worker; empty: they are served."""
    scheduled_actions: tuple[ScheduledAction, ...] = ()
    """What its policy does to the workflows of its versions that drain, of each in order."""
    old_records: tuple[str, ...] = ()
    """The versions whose records its policy deletes in Temporal once no workflow needs them: build IDs."""

    @property
    def spec(self) -> WorkerSpec:
        """The worker."""
        return self.versions.spec


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of every worker."""

    now: datetime
    workers: tuple[WorkerPlan, ...]
    warnings: tuple[str, ...] = ()
    """What concerns no single worker of the specs."""
