"""A worker as its team wants it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from twgen.model.connection import Connection
from twgen.model.policy import Policy


class Strategy(StrEnum):
    """How traffic moves to a new version."""

    MANUAL = "Manual"
    ALL_AT_ONCE = "AllAtOnce"
    PROGRESSIVE = "Progressive"


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """A share of new workflows, in percent, and how long to stay there."""

    percentage: float
    pause: timedelta


@dataclass(frozen=True, slots=True)
class Gate:
    """The workflow that must complete on every workflow task queue of a version before it gets traffic."""

    workflow_type: str
    input: Any = None
    input_from: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Rollout:
    """How traffic moves: the strategy, its steps, and the gate before them."""

    strategy: Strategy
    steps: tuple[RolloutStep, ...] = ()
    gate: Gate | None = None


@dataclass(frozen=True, slots=True)
class Sunset:
    """How long a drained version keeps its pods, and then its Deployment."""

    scaledown_delay: timedelta
    delete_delay: timedelta


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod template as an API server stores it and Go encodes it, and the hash of that encoding."""

    content: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class AttachedResource:
    """An object that every version of a worker gets a copy of, such as an HPA."""

    name: str
    template: Mapping[str, Any]
    autoscales: bool
    """It sets the replicas of the Deployment that it is attached to."""

    @property
    def kind(self) -> str:
        """The kind of the objects."""
        return str(self.template.get("kind", ""))


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """A WorkerDeployment with its connection, policy and attached resources."""

    namespace: str
    name: str
    temporal_namespace: str
    connection: Connection
    replicas: int | None
    min_ready_seconds: int
    progress_deadline_seconds: int
    rollout: Rollout
    sunset: Sunset
    template: PodTemplate
    build_id: str
    """The target: what the version that this spec describes is called."""
    has_custom_build_id: bool
    policy: Policy
    attached: tuple[AttachedResource, ...] = ()
    source: str = field(default="", compare=False)
    """The file that it stands in; for messages."""

    @property
    def worker_deployment(self) -> str:
        """What Temporal calls the worker: `<Kubernetes namespace>/<worker>`."""
        return f"{self.namespace}/{self.name}"

    @property
    def replicas_are_external(self) -> bool:
        """Nobody but an autoscaler or a person decides the replicas."""
        return self.replicas is None or any(resource.autoscales for resource in self.attached)
