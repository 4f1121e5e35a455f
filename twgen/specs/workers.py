"""Reading WorkerDeployments."""

from datetime import timedelta
from json import loads
from typing import Any

from twgen.model.connection import Connection
from twgen.model.policy import Policy
from twgen.model.problem import Finding
from twgen.model.spec import (
    AttachedResource,
    Gate,
    PodTemplate,
    Rollout,
    RolloutStep,
    Strategy,
    Sunset,
    WorkerSpec,
)
from twgen.specs.fields import Fields, noun
from twgen.specs.opened import Opened
from twgen.specs.templates import check_template
from twgen.versioning.build_ids import build_id, cleaned_build_id
from twgen.versioning.go_json import template_json
from twgen.versioning.hashes import pod_template_hash
from twgen.versioning.stored_form import stored_template

_MOST_STEPS = 20
_SHORTEST_PAUSE = timedelta(seconds=30)


def connection_reference(spec: Fields) -> tuple[str, str]:
    """The name and the kind (empty: either) of the connection that a worker's `spec` asks for."""
    reference = spec.mapping("workerOptions").mapping("connectionRef")
    name, kind = reference.text("name", required=True), reference.text("kind")
    reference.close("apiGroup")
    return name, kind


def parse_worker(
    opened: Opened,
    connection: Connection,
    policy: Policy,
    attached: tuple[AttachedResource, ...],
) -> WorkerSpec:
    """The WorkerSpec of a document; of no use when it has problems."""
    spec = opened.spec
    options = spec.mapping("workerOptions")
    if not spec.has("workerOptions"):
        spec.problem("workerOptions", "is required")
    custom = options.text("unsafeCustomBuildID")
    template, target = _template(spec, custom)
    worker = WorkerSpec(
        namespace=opened.namespace,
        name=opened.name,
        temporal_namespace=options.text("temporalNamespace", required=spec.has("workerOptions")),
        connection=connection,
        replicas=spec.integer("replicas", least=0),
        min_ready_seconds=spec.integer("minReadySeconds", 0, least=0) or 0,
        progress_deadline_seconds=spec.integer("progressDeadlineSeconds", 600, least=1) or 600,
        rollout=_rollout(spec),
        sunset=_sunset(spec.mapping("sunset")),
        template=template,
        build_id=target,
        has_custom_build_id=bool(cleaned_build_id(custom)),
        policy=policy,
        attached=attached,
        source=opened.document.source,
    )
    if custom and cleaned_build_id(custom) != custom:
        cleaned = f"{target!r} is used" if worker.has_custom_build_id else "it is ignored"
        options.warning("unsafeCustomBuildID", f"{custom!r} is not a legal label value: {cleaned}")
    if "." in opened.name:
        doubt = "Temporal refuses the name of a Worker Deployment that has a dot"
        opened.findings.warnings.append(Finding("metadata.name", doubt))
    check_template(spec, worker)
    options.close("connectionRef")
    spec.close()
    return worker


def _template(spec: Fields, custom: str) -> tuple[PodTemplate, str]:
    value = spec.raw("template")
    if value is None:
        spec.problem("template", "is required")
        return PodTemplate({}, ""), ""
    stored = stored_template(value, spec.at("template"))
    spec.findings.problems.extend(stored.problems)
    spec.findings.unknown.extend(stored.unknown)
    if stored.problems:
        return PodTemplate({}, ""), ""
    text = template_json(stored.template)
    content = loads(text)
    containers = content["spec"].get("containers") or [{}]
    target = build_id(text, containers[0].get("image", ""), custom)
    return PodTemplate(content, pod_template_hash(text)), target


def _rollout(spec: Fields) -> Rollout:
    if not spec.has("rollout"):
        spec.problem("rollout", "is required")
    fields = spec.mapping("rollout")
    if spec.has("rollout") and not fields.has("strategy"):
        fields.problem("strategy", f"is required: one of {', '.join(Strategy)}")
    strategy = fields.choice("strategy", Strategy, Strategy.MANUAL)
    steps = _steps(fields)
    if strategy is Strategy.PROGRESSIVE and not steps:
        fields.problem("steps", "Progressive needs at least one step")
    gate = _gate(fields.mapping("gate")) if fields.has("gate") else None
    fields.close("gate")
    return Rollout(strategy, steps, gate)


def _steps(rollout: Fields) -> tuple[RolloutStep, ...]:
    steps: list[RolloutStep] = []
    for fields in rollout.mappings("steps"):
        percentage = _percentage(fields, steps[-1].percentage if steps else 0)
        if not fields.has("pauseDuration"):
            fields.problem("pauseDuration", "is required")
        pause = fields.duration("pauseDuration", _SHORTEST_PAUSE)
        if pause < _SHORTEST_PAUSE:
            fields.problem("pauseDuration", f"{fields.raw('pauseDuration')} is shorter than 30s")
        fields.close()
        steps.append(RolloutStep(percentage, pause))
    if len(steps) > _MOST_STEPS:
        rollout.problem("steps", f"{len(steps)} steps are more than {_MOST_STEPS}")
    return tuple(steps)


def _percentage(fields: Fields, before: float) -> float:
    value: Any = fields.raw("rampPercentage")
    if isinstance(value, bool) or not isinstance(value, int | float):
        wrong = "is required" if value is None else f"must be a number, not {noun(value)}"
        fields.problem("rampPercentage", wrong)
        return before
    if not 1 <= value <= 99:  # noqa: PLR2004 - percent
        fields.problem("rampPercentage", f"{value} is not from 1 to 99")
    elif value <= before:
        fields.problem("rampPercentage", f"{value} is not above the step before it ({before})")
    if value != int(value):
        fields.warning("rampPercentage", f"the controller would cut {value} to {int(value)}")
    return max(value, before)


def _gate(fields: Fields) -> Gate:
    workflow_type = fields.text("workflowType", required=True)
    if fields.has("input") and fields.has("inputFrom"):
        fields.problem("inputFrom", "a gate has input or inputFrom, not both")
    source = fields.mapping("inputFrom")
    references = [name for name in ("configMapKeyRef", "secretKeyRef") if source.has(name)]
    if fields.has("inputFrom") and len(references) != 1:
        source.problem("", "must have exactly one of configMapKeyRef and secretKeyRef")
    for name in references:
        reference = source.mapping(name)
        reference.text("name", required=True)
        reference.text("key", required=True)
        reference.close("optional")
    source.close()
    gate = Gate(workflow_type, fields.raw("input"), source.value if references else None)
    fields.close("inputFrom")
    return gate


def _sunset(fields: Fields) -> Sunset:
    sunset = Sunset(
        scaledown_delay=fields.duration("scaledownDelay", timedelta(hours=1)),
        delete_delay=fields.duration("deleteDelay", timedelta(hours=24)),
    )
    fields.close()
    return sunset
