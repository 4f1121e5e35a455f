"""Workers as Git describes them: their pods, their connection to Temporal, and their rollout."""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from twgen.model.forms import (
    DATA_KEY,
    HOST_PORT,
    LINE,
    MESSAGE_TYPE,
    MOST_STEPS,
    NAME,
    RAMP_PERCENTAGES,
    SERVER_NAME,
)
from twgen.model.policy import Policy
from twgen.model.problem import Document
from twgen.model.record_shapes import Each, Example, FieldName, FieldRule, Hint
from twgen.model.shapes import choice, duration, number
from twgen.model.values import dataclass


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One key of a Kubernetes Secret."""

    name: Annotated[str, NAME]
    """The name of the Secret, in the workers' namespace."""
    key: Annotated[str, DATA_KEY]
    """The key of the Secret that holds the API key."""
    optional: bool = field(default=False, compare=False, repr=False)
    """Has no effect. The key must always exist."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A Temporal server's address and the names of the Secrets that hold a worker's credentials."""

    name: Annotated[str, FieldRule.INTERNAL]
    host_port: Annotated[str, HOST_PORT, Example("temporal.example.com:7233")]
    """The address of the Temporal frontend, as host:port."""
    tls_server_name: Annotated[
        str, FieldName("tls.serverName", "How clients check the server's certificate."), SERVER_NAME
    ] = ""
    """The name that the server's certificate must have."""
    ca_secret: Annotated[
        str,
        FieldName(
            "tls.caCertSecretRef.name",
            "The Secret with the CA certificates, in ca.crt. Conflicts with mutualTLSSecretRef: that Secret"
            " can contain ca.crt itself.",
        ),
        NAME,
        FieldRule.OF_HOLDER,
    ] = ""
    """The name of the Secret, in the workers' namespace."""
    mutual_tls_secret: Annotated[
        str,
        FieldName(
            "mutualTLSSecretRef.name",
            "The Secret with the client certificate, in tls.crt and tls.key. Conflicts with apiKeySecretRef.",
        ),
        NAME,
        FieldRule.OF_HOLDER,
    ] = ""
    """The name of the Secret, in the workers' namespace."""
    api_key_secret: Annotated[SecretKey | None, FieldName("apiKeySecretRef")] = None
    """The Secret with the API key. Conflicts with mutualTLSSecretRef."""
    document: Annotated[Document, FieldRule.INTERNAL] = field(
        default=Document("", 0, None), compare=False, repr=False
    )
    """The document of the connection."""

    @property
    def needs_credentials(self) -> bool:
        """Whether it uses TLS or an API key, so that clients of its server need credentials."""
        return bool(self.secret_name or self.tls_server_name or self.ca_secret)

    @property
    def secret_name(self) -> str:
        """The name of the Secret that a worker needs. Empty if it needs none."""
        if self.mutual_tls_secret:
            return self.mutual_tls_secret
        return self.api_key_secret.name if self.api_key_secret else ""


class Strategy(StrEnum):
    """How traffic moves to a new version."""

    MANUAL = "Manual"
    ALL_AT_ONCE = "AllAtOnce"
    PROGRESSIVE = "Progressive"


_LAST_STEP = ": leave the step out, since all traffic moves after the last one"


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """A share of new workflows, in percent, and how long the version keeps it."""

    percentage: Annotated[float, FieldName("rampPercentage"), number(*RAMP_PERCENTAGES, all_of_it=_LAST_STEP)]
    """The version's share of new workflows, in percent."""
    pause: Annotated[timedelta, FieldName("pauseDuration"), duration(timedelta(seconds=30)), Example("90s")]
    """How long the version keeps this share: at least 30s. After the last step, the version becomes
    current."""


class Encoding(StrEnum):
    """The encoding of a gate's input, as the payload's metadata names it. A message is a protobuf message."""

    JSON = "json/plain"
    JSON_MESSAGE = "json/protobuf"
    BYTES = "binary/plain"
    BINARY_MESSAGE = "binary/protobuf"

    @property
    def is_binary(self) -> bool:
        """Whether the input is not JSON, so that a spec cannot contain it."""
        return self in {Encoding.BYTES, Encoding.BINARY_MESSAGE}

    @property
    def is_message(self) -> bool:
        """Whether the encoding has a message type."""
        return self in {Encoding.JSON_MESSAGE, Encoding.BINARY_MESSAGE}


@dataclass(frozen=True, slots=True)
class GateInput:
    """The key of a ConfigMap or a Secret that holds the input of a gate."""

    kind: Literal["ConfigMap", "Secret"]
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Gate:
    """The workflow that must complete on every workflow task queue of a version before it gets traffic."""

    workflow_type: Annotated[str, LINE]
    """The workflow type. The version's own workers must register it."""
    input: Any = None
    """The workflow's input: any JSON. Conflicts with inputFrom and with the binary encodings."""
    input_from: GateInput | None = None
    """The ConfigMap or Secret that holds the workflow's input. Conflicts with input."""
    encoding: Encoding = Encoding.JSON
    """The encoding of the input. The binary encodings need inputFrom."""
    message_type: Annotated[str, MESSAGE_TYPE] = ""
    """The full name of the input's protobuf message. Only for json/protobuf and binary/protobuf;
    binary/protobuf requires it."""

    @property
    def metadata(self) -> dict[str, bytes]:
        """The metadata of the payload that contains the input."""
        entries = {"encoding": self.encoding.value, "messageType": self.message_type}
        return {name: text.encode() for name, text in entries.items() if text}


@dataclass(frozen=True, slots=True)
class Rollout:
    """How traffic moves: the strategy, the steps, and the gate before them."""

    strategy: Annotated[
        Strategy,
        choice(*Strategy, hint="; only Progressive has steps"),
        Hint(f"one of {', '.join(Strategy)}"),
    ]
    """Manual: a person moves the traffic. AllAtOnce: all traffic moves as soon as the version's workers poll.
    Progressive: traffic moves step by step."""
    steps: Annotated[tuple[RolloutStep, ...], Each(noun="step", most=MOST_STEPS)] = ()
    """The steps of Progressive: at most 20, each with a higher share than the step before. With Manual, only
    `twgen promote` uses them."""
    gate: Gate | None = None
    """A workflow that must complete on every workflow task queue of a version before it gets traffic."""

    @property
    def pauses(self) -> timedelta:
        """The sum of the pauses of all steps."""
        return sum((step.pause for step in self.steps), timedelta())


@dataclass(frozen=True, slots=True)
class Sunset:
    """How long a drained version keeps its pods, and then its Deployment."""

    scaledown_delay: timedelta = timedelta(hours=1)
    """How long a drained version keeps its replicas."""
    delete_delay: timedelta = timedelta(hours=24)
    """How long a drained version then keeps its Deployment, with zero replicas. This delay begins when
    scaledownDelay ends."""


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod template as an API server stores it, and the hash of the JSON that Go writes for it."""

    content: Mapping[str, Any]
    hash: str


class AttachedWhile(StrEnum):
    """The states of versions that get a copy of an attached resource.

    The target never counts as Draining or Drained, even if it had traffic before and has none yet.
    """

    TARGET = "Target"
    CURRENT = "Current"
    RAMPING = "Ramping"
    DRAINING = "Draining"
    DRAINED = "Drained"


@dataclass(frozen=True, slots=True)
class AttachedResource:
    """A template of an object, such as an HPA. Every version of a worker gets a copy."""

    name: str
    template: Mapping[str, Any]
    autoscales: bool
    """Whether it changes the replicas of the Deployment that it is attached to."""
    scales_from_zero: bool = False
    """Whether it also scales that Deployment up from zero, unless the autoscaler is paused."""
    when: frozenset[AttachedWhile] = frozenset()
    """The states of versions that get a copy. Empty means all states."""
    document: Document = field(default=Document("", 0, None), compare=False, repr=False)
    """The document of the template, for messages."""

    @property
    def kind(self) -> str:
        """The kind of the objects."""
        return str(self.template.get("kind", ""))


class WorkerKey(NamedTuple):
    """Identifies a worker. Two workers may have the same name, in different Temporal namespaces."""

    worker_deployment: str
    """The name in Temporal: `<Kubernetes namespace>/<worker>`."""
    temporal_namespace: str


@dataclass(frozen=True, slots=True)
class NamedWorker:
    """A worker without a spec: only its name is known."""

    worker_deployment: str
    temporal_namespace: str
    connection: Connection
    document: Document = Document("", 0, None)


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """A WorkerDeployment with its connection, policy and attached resources."""

    namespace: str
    name: str
    temporal_namespace: str
    connection: Connection
    replicas: int | None
    pace: Mapping[str, Any]
    """The fields of the target's Deployment that control how its pods are replaced. A change restarts no pod.
    """
    rollout: Rollout
    sunset: Sunset
    template: PodTemplate
    build_id: str
    """The build ID of the target, the version that this spec describes."""
    has_custom_build_id: bool
    policy: Policy
    attached: tuple[AttachedResource, ...] = ()
    document: Document = field(default=Document("", 0, None), compare=False, repr=False)
    """The document of the worker, for messages."""

    @property
    def worker_deployment(self) -> str:
        """The name in Temporal: `<Kubernetes namespace>/<worker>`."""
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> WorkerKey:
        """The key of the worker among all workers."""
        return WorkerKey(self.worker_deployment, self.temporal_namespace)

    @property
    def says_zero(self) -> bool:
        """Whether the spec sets the target's replicas to zero."""
        scalers = (resource for resource in self.attached if resource.autoscales)
        is_scaled = any(not scaler.when or AttachedWhile.TARGET in scaler.when for scaler in scalers)
        is_patched = any(patch.replicas and patch.build_id == self.build_id for patch in self.policy.patches)
        return self.replicas == 0 and not is_scaled and not is_patched

    @property
    def replicas_are_external(self) -> bool:
        """Whether only an autoscaler or a person sets the replicas."""
        return self.replicas is None or any(resource.autoscales for resource in self.attached)


InTemporal = NamedWorker | WorkerSpec
"""A value with a worker's name in Temporal and its connection."""
