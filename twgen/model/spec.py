"""Workers as specified in Git: their pods, their connection to Temporal, and their rollout."""

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
    """The key in the Secret's data that contains the API key."""
    optional: bool = field(default=False, compare=False, repr=False)
    """Has no effect: the key must always exist."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A Temporal server's address, and the names of the Secrets with a worker's credentials."""

    name: Annotated[str, FieldRule.INTERNAL]
    host_port: Annotated[str, HOST_PORT, Example("temporal.example.com:7233")]
    """The address of the Temporal frontend, as `host:port`."""
    tls_server_name: Annotated[
        str, FieldName("tls.serverName", "How clients check the server's certificate."), SERVER_NAME
    ] = ""
    """The server name that the server's certificate must be valid for."""
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
    """The YAML document of the connection."""

    @property
    def needs_credentials(self) -> bool:
        """Whether the connection uses TLS or an API key, so that clients of its server need credentials."""
        return bool(self.secret_name or self.tls_server_name or self.ca_secret)

    @property
    def secret_name(self) -> str:
        """The name of the Secret that a worker needs. Empty if the worker needs no Secret."""
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
    """A share of new workflows, in percent, and how long the version keeps this share."""

    percentage: Annotated[float, FieldName("rampPercentage"), number(*RAMP_PERCENTAGES, all_of_it=_LAST_STEP)]
    """The version's share of new workflows, in percent."""
    pause: Annotated[timedelta, FieldName("pauseDuration"), duration(timedelta(seconds=30)), Example("90s")]
    """How long the version keeps this share: at least 30s. After the last step, the version becomes
    current."""


class Encoding(StrEnum):
    """The encoding of a gate's input, as named in the payload's metadata.

    `message` in a name means a protobuf message.
    """

    JSON = "json/plain"
    JSON_MESSAGE = "json/protobuf"
    BYTES = "binary/plain"
    BINARY_MESSAGE = "binary/protobuf"

    @property
    def is_binary(self) -> bool:
        """Whether the input is not JSON, so that it cannot be written in a spec."""
        return self in {Encoding.BYTES, Encoding.BINARY_MESSAGE}

    @property
    def is_message(self) -> bool:
        """Whether the encoding requires or allows a message type."""
        return self in {Encoding.JSON_MESSAGE, Encoding.BINARY_MESSAGE}


@dataclass(frozen=True, slots=True)
class GateInput:
    """A key of a ConfigMap or a Secret that contains the input of a gate."""

    kind: Literal["ConfigMap", "Secret"]
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Gate:
    """The workflow that must complete before a version gets traffic.

    The workflow runs on every workflow task queue of the version.
    """

    workflow_type: Annotated[str, LINE]
    """The workflow type. The version's own workers must register the workflow."""
    input: Any = None
    """The workflow's input, as any JSON value. Conflicts with inputFrom and with the binary encodings."""
    input_from: GateInput | None = None
    """The ConfigMap or Secret that contains the workflow's input. Conflicts with input."""
    encoding: Encoding = Encoding.JSON
    """The encoding of the input. The binary encodings require inputFrom."""
    message_type: Annotated[str, MESSAGE_TYPE] = ""
    """The full name of the input's protobuf message. Only allowed with json/protobuf, and required with
    binary/protobuf."""

    @property
    def metadata(self) -> dict[str, bytes]:
        """The metadata of the payload that contains the input."""
        entries = {"encoding": self.encoding.value, "messageType": self.message_type}
        return {name: text.encode() for name, text in entries.items() if text}


@dataclass(frozen=True, slots=True)
class Rollout:
    """How traffic moves: the strategy, the steps, and the gate before the steps."""

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
    """A workflow that must complete on every workflow task queue of a version before the version gets
    traffic."""

    @property
    def pauses(self) -> timedelta:
        """The total duration of the pauses of all steps."""
        return sum((step.pause for step in self.steps), timedelta())


@dataclass(frozen=True, slots=True)
class Sunset:
    """How long a drained version keeps its pods, and then its Deployment."""

    scaledown_delay: timedelta = timedelta(hours=1)
    """How long a drained version keeps its replicas before it is scaled to zero."""
    delete_delay: timedelta = timedelta(hours=24)
    """How long a drained version then keeps its Deployment with zero replicas. This delay begins when
    scaledownDelay ends."""


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod template as an API server stores it, and the hash of its JSON as written by Go."""

    content: Mapping[str, Any]
    hash: str


class AttachedWhile(StrEnum):
    """The states in which a version gets a copy of an attached resource.

    The target never counts as Draining or Drained, even if it had traffic before and has no traffic now.
    """

    TARGET = "Target"
    CURRENT = "Current"
    RAMPING = "Ramping"
    DRAINING = "Draining"
    DRAINED = "Drained"


@dataclass(frozen=True, slots=True)
class AttachedResource:
    """The template of an object, such as an HPA. Every version of a worker gets its own copy."""

    name: str
    template: Mapping[str, Any]
    autoscales: bool
    """Whether the object changes the replicas of the Deployment that it is attached to."""
    scales_from_zero: bool = False
    """Whether the object also scales that Deployment up from zero, unless autoscaling is paused."""
    when: frozenset[AttachedWhile] = frozenset()
    """The states in which a version gets a copy. Empty means all states."""
    document: Document = field(default=Document("", 0, None), compare=False, repr=False)
    """The YAML document of the template, for messages."""

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return str(self.template.get("kind", ""))


class WorkerKey(NamedTuple):
    """Identifies a worker. Workers in different Temporal namespaces can have the same name."""

    worker_deployment: str
    """The name of the Worker Deployment: `<Kubernetes namespace>/<worker>`."""
    temporal_namespace: str


@dataclass(frozen=True, slots=True)
class NamedWorker:
    """A worker without a spec, known only by its name."""

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
    """The YAML document of the worker, for messages."""

    @property
    def worker_deployment(self) -> str:
        """The name of the Worker Deployment: `<Kubernetes namespace>/<worker>`."""
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> WorkerKey:
        """The worker's unique key."""
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
        """Whether only autoscalers or people set the replicas."""
        return self.replicas is None or any(resource.autoscales for resource in self.attached)


InTemporal = NamedWorker | WorkerSpec
"""A value that has a worker's name in Temporal and the worker's connection."""
