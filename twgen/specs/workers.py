"""The fields of a WorkerDeployment, and the checks of these fields."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from json import loads
from typing import Annotated, Any, Literal

from twgen.model.forms import CUSTOM_BUILD_ID, LINE, NAME
from twgen.model.paths import Path, value_at, written_path
from twgen.model.policy import Policy
from twgen.model.problem import (
    CONFLICT,
    MISSING_FIELD,
    NO_EFFECT,
    NOT_RENDERED,
    REQUIRED,
    UNKNOWN_FIELD,
    UNLIKELY,
    Finding,
    Rule,
    hidden_character,
    quoted,
)
from twgen.model.record_shapes import FieldName, FieldRule, Hint
from twgen.model.rollout import Driver
from twgen.model.shapes import INT32, POSITIVE, Findings, Shape, choice, word
from twgen.model.spec import (
    AttachedResource,
    Connection,
    Encoding,
    Gate,
    GateInput,
    PodTemplate,
    Rollout,
    RolloutStep,
    Strategy,
    Sunset,
    WorkerSpec,
)
from twgen.model.values import dataclass
from twgen.specs.connections import FILL_IN, SECRET_KEY, why_not_of_cloud
from twgen.specs.deployments import DEPLOYMENT_FIELDS, DeploymentFields, pace
from twgen.specs.fields import Fields, spec_shape
from twgen.specs.kinds import CLUSTER_CONNECTION, CONNECTION
from twgen.specs.placement import in_its_place
from twgen.specs.spec_document import SpecDocument
from twgen.specs.templates import check_template
from twgen.versioning.build_ids import build_id, cleaned_build_id, pod_template_hash
from twgen.versioning.injection import TASK_QUEUE, with_task_queue
from twgen.versioning.names import CONTROLLER_API
from twgen.versioning.stored_form import stored_template, template_json

_CONNECTION = Rule("unknown-connection", "A worker names a connection that is not among the documents.")
_BUILD_ID = Rule(
    "custom-build-id", "A custom build ID is changed or ignored, because it is not a valid label value."
)
_CLOUD = Rule("cloud-namespace", "Temporal Cloud does not serve this namespace at this address.")
_HOOK_LIMIT = Rule("hook-time-limit", "A rollout in a hook can take longer than one sync waits for it.")
_NO_PODS = Rule("no-pods", "A worker without pods runs no workflows.")
_ROUNDED = Rule("rounded-percentage", "The controller and twgen would ramp to different percentages.")
_GROUP = CONTROLLER_API.partition("/")[0]
_GATE_INPUTS: Mapping[Literal["ConfigMap", "Secret"], str] = {
    "ConfigMap": "configMapKeyRef",
    "Secret": "secretKeyRef",
}


class ConnectionKind(StrEnum):
    """The kinds of a connection."""

    CONNECTION = CONNECTION
    CLUSTER = CLUSTER_CONNECTION


# suggest no kind, because Connection's old name is more similar to ClusterConnection
_KIND = choice(*ConnectionKind, guesses=False)
_API_GROUP = word(_GROUP)


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A reference to a connection that always includes its kind and its group."""

    name: Annotated[str, NAME]
    """The same as connectionRef.name."""
    kind: Annotated[ConnectionKind, _KIND, Hint(" or ".join(ConnectionKind))]
    """Connection or ClusterConnection."""
    api_group: Annotated[bool, _API_GROUP, Hint(_GROUP)]
    """The API group of the connection's kind."""
    namespace: Any = None
    """Must be absent: a Connection is in the worker's namespace, and a ClusterConnection in no namespace."""


@dataclass(frozen=True, slots=True)
class ConnectionReference:
    """A worker's reference to its connection."""

    name: Annotated[str, NAME] = ""
    """The name of the connection."""
    kind: Annotated[ConnectionKind | None, _KIND._replace(may_be_empty=True)] = None
    """Connection or ClusterConnection. If it is absent, twgen searches for both kinds."""
    api_group: Annotated[bool, _API_GROUP._replace(may_be_empty=True)] = False
    """The API group of the connection's kind."""
    object_ref: ObjectReference | None = None
    """The same reference as one mapping, with kind and API group.

    Conflicts with the other fields of connectionRef.
    """


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The settings with which a worker connects to Temporal."""

    connection_ref: Annotated[ConnectionReference, FieldRule.REQUIRED] = ConnectionReference()
    """A Connection in the worker's namespace, or a ClusterConnection."""
    temporal_namespace: Annotated[str, LINE, FieldRule.REQUIRED] = ""
    """The Temporal namespace that the workers poll."""
    task_queue: Annotated[str, LINE] = ""
    """The task queue, which pods get as TEMPORAL_TASK_QUEUE. Changing the task queue makes a new version."""
    custom_build_id: Annotated[str, FieldName("unsafeCustomBuildID"), CUSTOM_BUILD_ID] = ""
    """Your own build ID. If only the pod template changes, Kubernetes replaces the pods in place."""


@dataclass(frozen=True, slots=True)
class WorkerFields:
    """The worker: its pods, its connection to Temporal, and its rollout."""

    worker_options: Annotated[
        WorkerOptions, FieldRule.REQUIRED, Hint("write its connectionRef and its temporalNamespace")
    ] = WorkerOptions()
    """The connection to Temporal, the Temporal namespace, the task queue and the build ID."""
    rollout: Annotated[
        Rollout, FieldRule.REQUIRED, Hint("write {strategy: AllAtOnce}, or Progressive with steps, or Manual")
    ] = Rollout(Strategy.MANUAL)
    """How traffic moves to a new version."""
    replicas: Annotated[int | None, INT32] = None
    """The number of pods for each version that gets traffic.

    Omit this field if an autoscaler sets the number. With neither this field nor an autoscaler, a new version
    has 1 pod.
    """
    min_ready_seconds: Annotated[int, INT32] = 0
    """How many seconds a pod must be ready before it counts as available."""
    progress_deadline_seconds: Annotated[int, POSITIVE] = 600
    """After how many seconds without progress a Deployment counts as failed."""
    template: Any = None
    """The pod template. The first container is the worker, and the build ID begins with its image's tag."""
    deployment: DeploymentFields | None = None
    """The spec of a Deployment, as in controller version 1.13 and later.

    Conflicts with spec.template. If it is set, spec.replicas, spec.minReadySeconds and
    spec.progressDeadlineSeconds have no effect.
    """
    sunset: Sunset = Sunset()
    """The delays before a drained version is removed.

    A version is drained after its last pinned workflow has ended.
    """


def parse_worker(
    document: SpecDocument,
    connection_of: Callable[[str, tuple[str, ...]], Connection | str],
    policy: Policy,
    attached: tuple[AttachedResource, ...],
) -> WorkerSpec:
    """The WorkerSpec made from a document. It is usable only if the document has no problems.

    `connection_of(name, kinds)` returns the Connection with that name and one of these kinds, or the reason
    why there is none.
    """
    spec = document.fields
    written: WorkerFields = spec.read(WORKER)
    options, custom = spec.mapping("workerOptions"), written.worker_options.custom_build_id
    template, target, wrong = _template(spec, custom, written.worker_options.task_queue)
    rollout = written.rollout
    worker = WorkerSpec(
        namespace=document.namespace,
        name=document.name,
        temporal_namespace=written.worker_options.temporal_namespace,
        connection=_connection(
            options.mapping("connectionRef"), written.worker_options.connection_ref, connection_of
        ),
        replicas=written.replicas,
        pace=pace(written.min_ready_seconds, written.progress_deadline_seconds, written.deployment),
        rollout=replace(rollout, steps=()) if rollout.strategy is Strategy.ALL_AT_ONCE else rollout,
        sunset=written.sunset,
        template=template,
        build_id=target,
        has_custom_build_id=bool(cleaned_build_id(custom)),
        policy=policy,
        attached=attached,
        document=document.document,
    )
    if custom and cleaned_build_id(custom) != custom and not hidden_character(custom):
        cleaned = f"{target!r} is used" if worker.has_custom_build_id else "it is ignored"
        why = f"{quoted(custom)} is not a valid label value: {cleaned}"
        options.warning("unsafeCustomBuildID", _BUILD_ID(why))
    if worker.temporal_namespace == FILL_IN:
        why = "is not filled in yet: write the namespace that the program polls"
        options.problem("temporalNamespace", NOT_RENDERED(why))
    is_sound = all(finding.path != options.at("temporalNamespace") for finding in spec.findings.problems)
    address, name = worker.connection.host_port, worker.connection.tls_server_name
    if is_sound and (warning := why_not_of_cloud(address, name, worker.temporal_namespace)):
        options.warning("temporalNamespace", _CLOUD(warning))
    _warn_of_no_effect(spec, options, worker)
    check_template(spec, worker, wrong)
    return worker


def _warn_of_no_effect(spec: Fields, options: Fields, worker: WorkerSpec) -> None:
    if (
        worker.policy.control_plane_secret
        and worker.connection.host_port
        and not worker.connection.secret_name
    ):
        message = (
            f"Connection {worker.connection.name} has neither mutualTLSSecretRef nor apiKeySecretRef: the"
            " controlPlaneSecretRef of its RolloutPolicy has no effect"
        )
        options.warning("connectionRef", NO_EFFECT(message))
    is_long = worker.rollout.strategy is Strategy.MANUAL or worker.rollout.pauses >= worker.policy.hold_for
    if worker.policy.driver is Driver.HOOK and is_long:
        message = "can take longer than its RolloutPolicy's holdFor, and then only another sync continues it"
        spec.warning("rollout", _HOOK_LIMIT(f"{message}: driver Job has no such limit"))
    autoscalers = [item for item in worker.attached if item.autoscales]
    # spec.replicas still applies to versions that do not get the autoscaler
    autoscaler = next((item for item in autoscalers if not item.when), None)
    spec.warn_of_many_pods("replicas")
    if worker.says_zero:
        why = "is 0: no pods run, even for versions that have traffic or workflows"
        spec.warning("replicas", _NO_PODS(why))
    if worker.replicas is not None and autoscaler:
        message = f"{worker.replicas} has no effect: attached template {autoscaler.name} sets the replicas"
        spec.warning("replicas", NO_EFFECT(f"{message}; remove one of the two"))


def _connection(
    fields: Fields,
    reference: ConnectionReference,
    connection_of: Callable[[str, tuple[str, ...]], Connection | str],
) -> Connection:
    place: ConnectionReference | ObjectReference = reference
    if reference.object_ref:
        place, fields = reference.object_ref, fields.mapping("objectRef")
    # search both kinds if the kind is invalid, which is already reported
    is_known = not fields.has("kind") or fields.raw("kind") in ("", *ConnectionKind)
    kinds = (str(place.kind),) if place.kind and is_known else tuple(map(str, ConnectionKind))
    connection = connection_of(place.name, kinds)
    if isinstance(connection, Connection):
        return connection
    if place.name:
        fields.problem("name", _CONNECTION(connection))
    return Connection(place.name, "")


def _check_reference(fields: Fields, reference: ConnectionReference) -> None:
    if not reference.object_ref:
        if not reference.name:
            fields.problem("name", "must not be empty" if fields.has("name") else REQUIRED)
        return
    for name in ("name", "kind", "apiGroup"):
        if fields.has(name):
            fields.problem(name, CONFLICT(f"conflicts with objectRef: write only objectRef.{name}"))
    if reference.object_ref.namespace is not None:
        where = f"a {CONNECTION} belongs to the worker's namespace; a {CLUSTER_CONNECTION} is cluster-scoped"
        fields.problem("objectRef.namespace", f"must be left out: {where}")


def _template(spec: Fields, custom: str, task_queue: str) -> tuple[PodTemplate, str, Sequence[Finding]]:
    """The stored form of the pod template, the build ID (empty if there are problems), and the problems.

    The task queue is part of the template, so changing it makes a new version.
    """
    value = spec.raw("template")
    if value is None:
        if isinstance(spec.raw("deployment"), dict):
            spec.problem("deployment.template", REQUIRED)
        elif not spec.has("deployment"):  # a wrong type is already reported
            spec.problem("template", REQUIRED)
        return PodTemplate({}, ""), "", ()
    stored = stored_template(value, spec.at("template"), spec.findings.most)
    spec.findings.add_problems(stored.problems)
    spec.findings.add_unknown(map(in_its_place, stored.unknown))
    if stored.problems:
        return PodTemplate(stored.value, ""), "", stored.problems
    pod = spec.mapping("template").mapping("spec")
    written = value_at(stored.value, "spec", "containers") or ()
    by_hand = [
        f"containers[{index}].env[{place}].name"
        for index, container in enumerate(written if task_queue else ())
        for place, variable in enumerate(container.get("env") or ())
        if variable["name"] == TASK_QUEUE
    ]
    for place in by_hand:
        wrong = f"workerOptions.taskQueue sets {TASK_QUEUE} too: set only one of them"
        pod.problem(place, CONFLICT(wrong))
    is_added = task_queue and not by_hand
    text = template_json(with_task_queue(stored.value, task_queue) if is_added else stored.value)
    content = loads(text)
    containers = content["spec"].get("containers") or [{}]
    target = build_id(text, containers[0].get("image", ""), custom)
    return PodTemplate(content, pod_template_hash(text)), target, ()


def _check_worker(spec: Fields, worker: WorkerFields) -> None:
    ready, deadline = worker.min_ready_seconds, worker.progress_deadline_seconds
    if 0 < deadline <= ready:
        if spec.has("progressDeadlineSeconds"):
            spec.problem("progressDeadlineSeconds", f"{deadline} is not above minReadySeconds ({ready})")
        else:
            spec.problem("minReadySeconds", f"{ready} is not below progressDeadlineSeconds ({deadline})")
    elif ready >= 86_400:
        why = f"{ready} keeps a rollout waiting for a day or more"
        spec.warning("minReadySeconds", UNLIKELY(f"{why}: check the number of seconds"))


def _check_rollout(fields: Fields, rollout: Rollout) -> None:
    # do not check the steps of an unknown strategy, which is already reported
    if fields.raw("strategy") != rollout.strategy:
        return
    if rollout.strategy is Strategy.PROGRESSIVE and not rollout.steps:
        fields.problem("steps", MISSING_FIELD("is required: Progressive needs at least one step"))
    elif rollout.steps and rollout.strategy is Strategy.MANUAL:
        why = "are used only by `twgen promote`: strategy Manual moves no traffic automatically"
        fields.warning("steps", NO_EFFECT(why))
    elif rollout.steps and rollout.strategy is Strategy.ALL_AT_ONCE:
        why = f"have no effect: strategy {rollout.strategy} has no steps"
        fields.warning("steps", NO_EFFECT(why))
    before: float = 0
    for step_fields, step in zip(fields.mappings("steps"), rollout.steps, strict=False):
        if 0 < step.percentage <= before:
            wrong = f"{step.percentage:g} is not above the step before it ({before:g})"
            step_fields.problem("rampPercentage", wrong)
        before = max(before, step.percentage)
    if rollout.gate is None and "gate" in fields.value:
        fields.warning("gate", NO_EFFECT("is empty: new versions have no gate"))


def _check_step(fields: Fields, step: RolloutStep) -> None:
    if step.percentage != int(step.percentage):
        rounded = f"the controller would round {step.percentage:g} down to {int(step.percentage)}"
        fields.warning("rampPercentage", _ROUNDED(rounded))
    if fields.has("gate"):
        wrong = "is not read: write a step's gate in spec.steps of a RolloutPolicy"
        fields.problem("gate", UNKNOWN_FIELD(wrong))


def _check_gate(fields: Fields, gate: Gate) -> None:
    if fields.has("input") and fields.has("inputFrom"):
        fields.problem("inputFrom", CONFLICT("a gate can have input or inputFrom, but not both"))
    encoding = gate.encoding
    if encoding is Encoding.BINARY_MESSAGE and not gate.message_type:
        fields.problem("messageType", "must not be empty" if fields.has("messageType") else REQUIRED)
    # an unknown encoding is already reported, and the rest cannot be checked
    if gate.message_type and not encoding.is_message and fields.raw("encoding") in (None, encoding):
        messages = " or ".join(item for item in Encoding if item.is_message)
        fields.problem(
            "messageType", f"is only for protobuf messages: write encoding {messages}, or leave it out"
        )
    if encoding.is_binary and not fields.has("inputFrom"):
        fields.problem("encoding", f"{encoding} needs bytes, which a spec cannot contain: write inputFrom")
    elif fields.has("encoding") and not (fields.has("input") or fields.has("inputFrom")):
        fields.warning("encoding", NO_EFFECT("has no effect: the gate has neither input nor inputFrom"))


def _read_gate_input(value: Any, path: Path, findings: Findings) -> GateInput | None:
    source = Fields(value, written_path(path), findings)
    references = {
        kind: source.get(name, SECRET_KEY) for kind, name in _GATE_INPUTS.items() if source.has(name)
    }
    if len(references) != 1:
        source.problem("", CONFLICT("must have exactly one of configMapKeyRef and secretKeyRef"))
    source.close(*_GATE_INPUTS.values())
    inputs = [GateInput(kind, key.name, key.key) for kind, key in references.items() if key]
    return inputs[0] if inputs else None


WORKER = spec_shape(
    WorkerFields,
    {
        WorkerFields: _check_worker,
        ConnectionReference: _check_reference,
        Rollout: _check_rollout,
        RolloutStep: _check_step,
        Gate: _check_gate,
    },
    shapes={GateInput: Shape(_read_gate_input), DeploymentFields: DEPLOYMENT_FIELDS},
)
