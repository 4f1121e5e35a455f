"""What a RolloutPolicy says: all that the controller's kinds cannot."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from twgen.model.analysis import Analysis
from twgen.model.draining import DrainingEntry
from twgen.model.histories import Replay
from twgen.model.problem import Document
from twgen.model.values import dataclass

MOST_VERSIONS = 100
"""Temporal's own cap for one Worker Deployment, `matching.maxVersionsInDeployment`, unless it is changed."""

POLLERS_ARE_LISTED = timedelta(minutes=5)
"""How long Temporal tells who polled, `matching.PollerHistoryTTL`, unless it is changed."""


class Driver(StrEnum):
    """What runs a rollout in the cluster."""

    AUTO = "Auto"
    HOOK = "Hook"
    JOB = "Job"
    NONE = "None"


class ConnectionChanges(StrEnum):
    """Which live versions a changed connection reaches."""

    TARGET = "Target"
    NEW_VERSIONS_ONLY = "NewVersionsOnly"
    ALL_VERSIONS = "AllVersions"


class EnvironmentNames(StrEnum):
    """Which generation of names the injected environment variables have."""

    CURRENT = "Current"
    HOST_PORT = "HostPort"
    BINARY_CHECKSUM = "BinaryChecksum"


class OwnerReferences(StrEnum):
    """Whether an attached resource is owned by its versioned Deployment."""

    RENDER = "Render"
    NONE = "None"


class HistorySource(StrEnum):
    """Where the manifest of an old version may come from."""

    LEDGER = "Ledger"
    CLUSTER = "Cluster"
    GIT = "Git"


class MissingTemplate(StrEnum):
    """What to do about a version that needs pods and has a manifest nowhere."""

    WARN = "Warn"
    FAIL = "Fail"


class WhenUnserved(StrEnum):
    """What becomes of a ramp to a version that nobody polls for."""

    ABORT = "Abort"
    PAUSE = "Pause"
    WAIT = "Wait"


class OnDelete(StrEnum):
    """What becomes of protected versions when the Argo CD Application is deleted."""

    CONFIRM = "Confirm"
    ORPHAN = "Orphan"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class VersionPatch:
    """What one version of a worker gets in place of what it was deployed with."""

    build_id: str
    containers: tuple[Mapping[str, Any], ...] = ()
    """By `name`, with those of `image`, `resources` and `env` that it gets, as an API server stores them."""
    replicas: int | None = None
    scaledown_delay: timedelta | None = None
    delete_delay: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Unserved:
    """How long nobody may poll for a version that takes a share of the traffic, and what is done then."""

    after: timedelta
    action: WhenUnserved


@dataclass(frozen=True, slots=True)
class PolicyStep:
    """What a policy says of the step of one percentage, beside what the spec does."""

    percentage: float
    gate: str = ""
    """The workflow type that must complete on the target before it begins; empty: none."""
    metrics: frozenset[str] | None = None
    """The names of those that are judged while it lasts; None: all."""
    until_promoted: bool = False
    """When its pause is over it waits for a person."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A RolloutPolicy with every default filled in."""

    worker: str
    """Name of the one worker it is for; empty: every worker of its namespace without a policy of its own."""
    identity: str
    """Manager identity less its `twgen/` prefix; empty: the caller's."""
    adopt_from: tuple[str, ...]
    driver: Driver
    hold_for: timedelta
    service_account_name: str
    control_plane_secret: str
    rollback_window: timedelta
    connection_changes: ConnectionChanges
    environment: EnvironmentNames
    owner_references: OwnerReferences
    history: tuple[HistorySource, ...]
    missing_template: MissingTemplate
    on_delete: OnDelete
    max_versions: int
    unserved: Unserved
    ignore_missing_task_queues: tuple[str, ...] = ()
    """Glob patterns of the task queues that a version need not poll, though the current one does."""
    analysis: Analysis | None = None
    """None: nothing is measured while a version ramps."""
    steps: tuple[PolicyStep, ...] = ()
    """One for a percentage at most."""
    deployment_labels: Mapping[str, str] = field(default_factory=dict)
    deployment_annotations: Mapping[str, str] = field(default_factory=dict)
    """What the Deployments of all versions get beside what twgen gives them."""
    draining_replicas: int | None = None
    """What a draining version has; None: what it had before."""
    draining: tuple[DrainingEntry, ...] = ()
    """What is done to the workflows of its versions that drain, in order."""
    replay: Replay | None = None
    """What must be replayed before the first step; None: nothing."""
    patches: tuple[VersionPatch, ...] = ()
    """One for a version at most."""
    document: Document = field(default=Document("", 0, None), compare=False, repr=False)
    """Where it stands; without a value: these are the defaults."""

    def analysis_at(self, percentage: float) -> Analysis | None:
        """What measures a version at the step of a percentage; None: nothing does at any."""
        told = self.step(percentage)
        if not self.analysis or not told or told.metrics is None:
            return self.analysis
        asked = tuple(metric for metric in self.analysis.metrics if metric.name in told.metrics)
        return replace(self.analysis, metrics=asked)

    def step(self, percentage: float) -> PolicyStep | None:
        """What it says of the step of a percentage."""
        return next((step for step in self.steps if step.percentage == percentage), None)
