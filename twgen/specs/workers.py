"""Reading WorkerDeployments."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from json import loads
from typing import Any, Literal

from twgen.model.policy import Driver, Policy
from twgen.model.problem import Finding, hidden_character, quoted
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
from twgen.specs.connections import parse_data_key, why_not_of_cloud
from twgen.specs.deployments import parse_pace
from twgen.specs.fields import Fields
from twgen.specs.kinds import CLUSTER_CONNECTION, CONNECTION
from twgen.specs.limits import FILLED, MESSAGE_TYPE, MOST_STEPS, RAMP_PERCENTAGES, SHORTEST_PAUSE
from twgen.specs.numbers import read_number
from twgen.specs.spec_document import SpecDocument
from twgen.specs.templates import check_template
from twgen.versioning.build_ids import LONGEST_BUILD_ID, build_id, cleaned_build_id, pod_template_hash
from twgen.versioning.go_json import template_json
from twgen.versioning.injection import TASK_QUEUE, with_task_queue
from twgen.versioning.names import CONTROLLER_API
from twgen.versioning.stored_form import stored_template

_GROUP = CONTROLLER_API.partition("/")[0]
_GATE_INPUTS: Mapping[Literal["ConfigMap", "Secret"], str] = {
    "ConfigMap": "configMapKeyRef",
    "Secret": "secretKeyRef",
}


def parse_worker(
    document: SpecDocument,
    connection_of: Callable[[str, tuple[str, ...]], Connection | str],
    policy: Policy,
    attached: tuple[AttachedResource, ...],
) -> WorkerSpec:
    """The WorkerSpec of a document; of no use when it has problems.

    `connection_of(name, kinds)` is the Connection of that name and one of these kinds, or why there is none.
    """
    spec = document.fields
    options = spec.mapping("workerOptions")
    if not spec.has("workerOptions"):
        spec.problem("workerOptions", "is required: write its connectionRef and its temporalNamespace")
    custom = options.text("unsafeCustomBuildID", form=FILLED, most=LONGEST_BUILD_ID)
    template, target, wrong = _template(spec, custom, options.line("taskQueue"))
    sunset = spec.mapping("sunset")
    worker = WorkerSpec(
        namespace=document.namespace,
        name=document.name,
        temporal_namespace=options.line("temporalNamespace", required=True),
        connection=_connection(options.mapping("connectionRef"), connection_of),
        replicas=spec.integer("replicas", least=0),
        pace=parse_pace(spec),
        rollout=_rollout(spec),
        sunset=Sunset(
            scaledown_delay=sunset.duration("scaledownDelay", timedelta(hours=1)),
            delete_delay=sunset.duration("deleteDelay", timedelta(hours=24)),
        ),
        template=template,
        build_id=target,
        has_custom_build_id=bool(cleaned_build_id(custom)),
        policy=policy,
        attached=attached,
        document=document.document,
    )
    if custom and cleaned_build_id(custom) != custom and not hidden_character(custom):
        cleaned = f"{target!r} is used" if worker.has_custom_build_id else "it is ignored"
        options.warning("unsafeCustomBuildID", f"{quoted(custom)} is not a valid label value: {cleaned}")
    is_sound = all(found.path != options.at("temporalNamespace") for found in spec.diagnostics.problems)
    address, name = worker.connection.host_port, worker.connection.tls_server_name
    if is_sound and (doubt := why_not_of_cloud(address, name, worker.temporal_namespace)):
        options.warning("temporalNamespace", doubt)
    _warn_of_no_effect(spec, options, worker)
    check_template(spec, worker, wrong)
    for fields in (options, sunset, spec):
        fields.close()
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
        options.warning("connectionRef", message)
    is_long = worker.rollout.strategy is Strategy.MANUAL or worker.rollout.pauses >= worker.policy.hold_for
    if worker.policy.driver is Driver.HOOK and is_long:
        message = "can take longer than holdFor of its RolloutPolicy, and then only another sync continues it"
        spec.warning("rollout", f"{message}: driver Job has no such limit")
    autoscalers = [item for item in worker.attached if item.autoscales]
    # beside one that not every version gets, they are those of the others
    autoscaler = next((item for item in autoscalers if not item.when), None)
    spec.warn_of_many_pods("replicas")
    if worker.says_zero:
        spec.warning("replicas", "is 0: no pods run, even for versions that have traffic or workflows")
    if worker.replicas is not None and autoscaler:
        message = f"{worker.replicas} has no effect: attached template {autoscaler.name} sets the replicas"
        spec.warning("replicas", f"{message}; remove one of the two")


def _connection(
    reference: Fields, connection_of: Callable[[str, tuple[str, ...]], Connection | str]
) -> Connection:
    kinds = (CONNECTION, CLUSTER_CONNECTION)
    if reference.has("objectRef"):
        reference = _object_reference(reference)
    name, kind = reference.object_name("name", required=True), reference.text("kind")
    if reference.text("apiGroup") not in {"", _GROUP}:
        reference.problem("apiGroup", f"must be {_GROUP}")
    reference.close()
    if kind and kind not in kinds:
        reference.problem("kind", f"{quoted(kind)} is not one of {', '.join(kinds)}")
    found = connection_of(name, (kind,) if kind in kinds else kinds)
    if isinstance(found, Connection):
        return found
    if name:
        reference.problem("name", found)
    return Connection(name, "")


def _object_reference(reference: Fields) -> Fields:
    """The `objectRef` of a reference: its other form, which always says kind and group, and stands alone."""
    for name in ("name", "kind", "apiGroup"):
        if reference.has(name):
            reference.problem(name, f"conflicts with objectRef: write only objectRef.{name}")
    reference.close()
    found = reference.mapping("objectRef")
    if not found.text("kind"):
        found.problem("kind", f"is required: {CONNECTION} or {CLUSTER_CONNECTION}")
    if not found.text("apiGroup"):
        found.problem("apiGroup", f"is required: {_GROUP}")
    if found.has("namespace"):
        of_it = f"a {CONNECTION} is in the worker's namespace, a {CLUSTER_CONNECTION} in none"
        found.problem("namespace", f"must be left out: {of_it}")
    return found


def _template(spec: Fields, custom: str, task_queue: str) -> tuple[PodTemplate, str, Sequence[Finding]]:
    """The pod template as it is stored, the build ID, and the problems; with any, neither ID nor hash.

    The task queue is part of the template: code that polls another one is another version.
    """
    value = spec.raw("template")
    if value is None:
        if isinstance(spec.raw("deployment"), dict):
            spec.problem("deployment.template", "is required")
        elif not spec.has("deployment"):  # of another type it is told by itself
            spec.problem("template", "is required")
        return PodTemplate({}, ""), "", ()
    stored = stored_template(value, spec.at("template"), spec.diagnostics.most)
    spec.diagnostics.add_problems(stored.problems)
    spec.diagnostics.add_unknown(stored.unknown)
    if stored.problems:
        return PodTemplate(stored.template, ""), "", stored.problems
    pod = spec.mapping("template").mapping("spec")
    by_hand = _told_by_hand(stored.template) if task_queue else []
    for place in by_hand:
        pod.problem(place, f"workerOptions.taskQueue sets {TASK_QUEUE} too: set only one of them")
    is_added = task_queue and not by_hand
    text = template_json(with_task_queue(stored.template, task_queue) if is_added else stored.template)
    content = loads(text)
    containers = content["spec"].get("containers") or [{}]
    target = build_id(text, containers[0].get("image", ""), custom)
    return PodTemplate(content, pod_template_hash(text)), target, ()


def _told_by_hand(template: Mapping[str, Any]) -> list[str]:
    """The places below the pod's `spec` that set the variable of the task queue."""
    return [
        f"containers[{index}].env[{place}].name"
        for index, container in enumerate((template.get("spec") or {}).get("containers") or ())
        for place, variable in enumerate(container.get("env") or ())
        if variable["name"] == TASK_QUEUE
    ]


def _rollout(spec: Fields) -> Rollout:
    fields = spec.mapping("rollout")
    if not spec.has("rollout"):
        how = "write {strategy: AllAtOnce}, or Progressive with steps, or Manual"
        spec.problem("rollout", f"is required: {how}")
    if not fields.has("strategy"):
        fields.problem("strategy", f"is required: one of {', '.join(Strategy)}")
    more = "; only Progressive has steps" if fields.has("steps") else ""
    strategy = fields.choice("strategy", Strategy, Strategy.MANUAL, hint=more)
    steps = _steps(fields)
    if strategy is Strategy.PROGRESSIVE and not steps:
        fields.problem("steps", "is required: Progressive needs at least one step")
    # an unknown strategy is told already, and may be one with steps
    if steps and fields.raw("strategy") == strategy == Strategy.MANUAL:
        fields.warning(
            "steps", "are made only by `twgen promote`: strategy Manual moves no traffic by itself"
        )
    elif steps and fields.raw("strategy") == strategy == Strategy.ALL_AT_ONCE:
        fields.warning("steps", f"have no effect: strategy {strategy} has no steps")
        steps = ()
    gate = _gate(fields.mapping("gate")) if fields.has("gate") else None
    if gate is None and "gate" in fields.value:
        fields.warning("gate", "is empty: new versions have no gate")
    fields.close()
    return Rollout(strategy, steps, gate)


def _steps(rollout: Fields) -> tuple[RolloutStep, ...]:
    written = rollout.raw("steps")
    if isinstance(written, list) and len(written) > MOST_STEPS:
        rollout.problem("steps", f"has {len(written)} steps: at most {MOST_STEPS} are allowed")
        return ()
    steps: list[RolloutStep] = []
    least, most = RAMP_PERCENTAGES
    for fields in rollout.mappings("steps"):
        before = percentage = steps[-1].percentage if steps else 0
        value = read_number(fields, "rampPercentage", required=True)
        if value is None:
            pass  # what is wrong is told
        elif not least <= value <= most:
            all_of_it = (
                ": leave the step out, since all traffic moves after the last one"
                if value == most + 1
                else ""
            )
            fields.problem("rampPercentage", f"{value} is not from {least} to {most}{all_of_it}")
        elif value <= before:
            fields.problem("rampPercentage", f"{value} is not above the step before it ({before})")
        else:
            percentage = value
            if value != int(value):
                fields.warning("rampPercentage", f"the controller would round {value} down to {int(value)}")
        pause = SHORTEST_PAUSE
        if fields.has("pauseDuration"):
            pause = fields.duration("pauseDuration", SHORTEST_PAUSE, least=SHORTEST_PAUSE)
        else:
            fields.problem("pauseDuration", "is required")
        if fields.has("gate"):
            fields.problem("gate", "is not read: write the gate of a step in spec.steps of a RolloutPolicy")
        fields.close("gate")
        steps.append(RolloutStep(percentage, pause))
    return tuple(steps)


def _gate(fields: Fields) -> Gate:
    workflow_type = fields.line("workflowType", required=True)
    if fields.has("input") and fields.has("inputFrom"):
        fields.problem("inputFrom", "a gate has input or inputFrom, not both")
    source = fields.mapping("inputFrom")
    references = {
        kind: parse_data_key(source.mapping(name)) for kind, name in _GATE_INPUTS.items() if source.has(name)
    }
    inputs = [GateInput(kind, found.name, found.key) for kind, found in references.items()]
    if fields.has("inputFrom") and len(inputs) != 1:
        source.problem("", "must have exactly one of configMapKeyRef and secretKeyRef")
    source.close("configMapKeyRef", "secretKeyRef")
    encoding, message_type = _encoding(fields)
    gate = Gate(workflow_type, fields.raw("input"), inputs[0] if inputs else None, encoding, message_type)
    fields.close()
    return gate


def _encoding(fields: Fields) -> tuple[Encoding, str]:
    """What a gate says of its input: the encoding, and the type of the message."""
    encoding = fields.choice("encoding", Encoding, Encoding.JSON)
    needs_type = encoding is Encoding.BINARY_MESSAGE
    message_type = fields.text("messageType", required=needs_type, form=MESSAGE_TYPE)
    # an unknown encoding has been reported, and nothing else about it is known
    if message_type and not encoding.is_message and fields.raw("encoding") in (None, encoding):
        messages = " or ".join(one for one in Encoding if one.is_message)
        fields.problem(
            "messageType", f"is only for protobuf messages: write encoding {messages}, or leave it out"
        )
    if encoding.is_binary and not fields.has("inputFrom"):
        fields.problem("encoding", f"{encoding} needs bytes, which a spec cannot contain: write inputFrom")
    elif fields.has("encoding") and not (fields.has("input") or fields.has("inputFrom")):
        fields.warning("encoding", "has no effect: the gate has neither input nor inputFrom")
    return encoding, message_type
