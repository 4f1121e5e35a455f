"""The fields of a WorkerResourceTemplate. Every version of a worker gets a copy of the template's object."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from twgen.model.forms import NAME, ONLY_PLACEHOLDERS, PERCENTAGE
from twgen.model.operator import CLUSTER_SCOPED, NEVER_ATTACHED, GroupKind
from twgen.model.paths import join_path, value_at, written_path
from twgen.model.problem import MISSING_FIELD, SET_BY_TWGEN, Document, Finding, Message, Problem, Rule
from twgen.model.record_shapes import FieldName, FieldRule
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.model.values import dataclass
from twgen.specs.fields import Fields, spec_shape
from twgen.specs.keda import (
    METRIC_OF_ALL,
    SAME_FOR_ALL,
    VERSION_FIELDS,
    check_modifiers,
    check_scaled_object,
    check_triggers,
)
from twgen.specs.pod_warnings import entries, warn_of_hidden_characters
from twgen.specs.validation.walk import refusals
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    COMPARE_OPTIONS,
    DEPLOYMENT_API,
    DEPLOYMENT_NAME_LABEL,
    METRIC_LABELS,
    OWN_PREFIX,
    SYNC_OPTIONS,
    WHEN,
    filled,
    may_have_placeholders,
    placeholders,
    tells_versions_apart,
    unknown_placeholder,
)
from twgen.versioning.stored_form import stored_struct


class AttachedKind(NamedTuple):
    """A kind whose fields twgen knows. Its objects can always be attached, whatever the operator allows."""

    structs: Mapping[str, str]
    """For each API version of the kind, the name of its `spec` struct in kubernetes_types."""
    target: str = ""
    """The `spec` field that refers to a Deployment; empty if there is none."""
    autoscales: bool = False
    """Whether objects of this kind change the Deployment's replicas."""
    scales_from_zero: bool = False
    """Whether objects of this kind also scale up a Deployment that has 0 replicas."""


HPA = GroupKind("autoscaling", "HorizontalPodAutoscaler")
BUDGET = GroupKind("policy", "PodDisruptionBudget")
SCALED_OBJECT = GroupKind("keda.sh", "ScaledObject")
VPA = GroupKind("autoscaling.k8s.io", "VerticalPodAutoscaler")
_DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
KINDS = {
    HPA: AttachedKind(
        {"v2": "HorizontalPodAutoscalerSpec", "v1": "V1HorizontalPodAutoscalerSpec"},
        "scaleTargetRef",
        autoscales=True,
    ),
    BUDGET: AttachedKind({"v1": "PodDisruptionBudgetSpec"}),
    SCALED_OBJECT: AttachedKind(
        {"v1alpha1": "ScaledObjectSpec"}, "scaleTargetRef", autoscales=True, scales_from_zero=True
    ),
    VPA: AttachedKind({"v1": "VerticalPodAutoscalerSpec"}, "targetRef"),
}
"""The kinds that can always be attached. The rules for their fields are in specs.validation.rules."""
TARGET_FIELDS = {kind.target for kind in KINDS.values() if kind.target}
_SAMPLE_NAMES = placeholders("worker-build-id", "build-id", "namespace", "shop/worker")
_SAMPLE_TARGET = {"apiVersion": DEPLOYMENT_API, "kind": "Deployment", "name": _SAMPLE_NAMES["DeploymentName"]}
_OWN_MARKS = {
    "labels": (DEPLOYMENT_NAME_LABEL, BUILD_ID_LABEL),
    "annotations": (SYNC_OPTIONS, COMPARE_OPTIONS),
}
_TOP_FIELDS = {"apiVersion", "kind", "metadata", "spec"}
_FILLED_SELECTORS = re.compile(r"selector|metrics\[\d+\]\.external\.metric\.selector")
"""The paths in a `spec` whose matchLabels twgen and the controller fill in."""
EVICTS_NONE = "blocks every eviction, so nodes with these pods cannot be drained: write maxUnavailable: 1"
PROTECTS_NONE = "protects no pods: write maxUnavailable: 1"
BUDGET_RULE = Rule(
    "disruption-budget", "A PodDisruptionBudget protects no pods or the wrong pods, or blocks node drains."
)
_NOT_ATTACHABLE = Rule("not-attachable", "twgen cannot attach an object of this kind to each version.")
_UNSELECTIVE = Rule("selects-everything", "A selector without labels selects the objects of all versions.")
_INJECT = "write {}, which twgen fills in for each version"


@dataclass(frozen=True, slots=True)
class AttachedFields:
    """The worker, and the object that each of its versions gets a copy of."""

    worker: Annotated[
        str,
        FieldName("workerDeploymentRef.name", "The worker, in the same namespace."),
        NAME,
        FieldRule.REQUIRED,
    ] = ""
    """The name of the WorkerDeployment."""
    template: Annotated[Any, FieldRule.REQUIRED] = None
    """The object. For each version, twgen fills in scaleTargetRef: {}, targetRef: {} and matchLabels: {}."""


ATTACHED = spec_shape(AttachedFields)


def parse_attached(name: str, spec: Fields, more_kinds: tuple[GroupKind, ...]) -> AttachedResource:
    """The attached resource in a document's `spec`. The operator also allows `more_kinds`."""
    template = spec.mapping("template")
    if not spec.has("template"):
        return AttachedResource(name, {}, autoscales=False)
    group_kind, version = _group_kind(template, more_kinds)
    _check_metadata(template)
    inner = template.mapping("spec")
    _check_references(template, inner)
    _check_metrics(inner)
    if group_kind == BUDGET:
        _warn_of_budget(inner)
    inner.warn_of_many_pods("minReplicas", "maxReplicas", "minReplicaCount", "maxReplicaCount")
    if inner.raw("minReplicas") == 0:
        why = "without a polling worker, the autoscaler cannot see the backlog"
        inner.problem("minReplicas", f"must not be 0: {why}")
    if group_kind == SCALED_OBJECT:
        check_scaled_object(template, inner)
    if group_kind.group == SCALED_OBJECT.group:
        check_triggers(inner)
        check_modifiers(inner)
    kind = KINDS.get(group_kind)
    if not kind:
        if "items" in template.value:  # an item may have a kind that is not allowed
            template.problem("items", "makes kubectl and Argo CD treat this object as a List: remove items")
        return AttachedResource(name, template.value, autoscales="scaleTargetRef" in inner.value)
    value = _checked(template, group_kind, kind, version)
    warn_of_hidden_characters(template)
    autoscales = kind.autoscales and kind.target in inner.value
    return AttachedResource(name, value, autoscales, kind.scales_from_zero)


def refusals_of_version(template: Mapping[str, Any], names: Mapping[str, str]) -> list[Finding]:
    """The errors that an API server would report only because of the names that this version fills in.

    The names replace the placeholders, and can be too long or contain invalid characters.
    """
    kind = KINDS.get(GroupKind.of(template))
    struct = kind and kind.structs.get(str(template.get("apiVersion")).rpartition("/")[2])
    if not struct or not may_have_placeholders(str(template)):
        return []
    findings: list[Finding] = []
    for field, field_struct in (("metadata", "ObjectMeta"), ("spec", struct)):
        part = template.get(field) or {}
        usual = {wrong.path for wrong in refusals(_filled_in(part, _SAMPLE_NAMES), field_struct, field)}
        of_version = refusals(_filled_in(part, names), field_struct, field)
        findings += [wrong for wrong in of_version if wrong.path not in usual]
    return findings


def definitions(documents: Iterable[Document]) -> Mapping[GroupKind, Any]:
    """The kinds that CustomResourceDefinitions among the documents define, each with its scope."""
    specs = (
        document.value.get("spec") for document in documents if GroupKind.of(document.value) == _DEFINITION
    )
    return {
        GroupKind(str(value_at(spec, "group")), str(value_at(spec, "names", "kind"))): value_at(spec, "scope")
        for spec in specs
    }


def defined_cluster_scoped(documents: Iterable[Document]) -> set[GroupKind]:
    """The cluster-scoped kinds that CustomResourceDefinitions among the documents define."""
    return {kind for kind, scope in definitions(documents).items() if scope == "Cluster"}


def cluster_scoped_templates(
    workers: Iterable[WorkerSpec], scoped: Collection[GroupKind]
) -> Iterator[Problem]:
    """A problem for each template whose object has one of these cluster-scoped kinds."""
    for resource in (resource for worker in workers for resource in worker.attached):
        if (kind := GroupKind.of(resource.template)) in scoped:
            why = _NOT_ATTACHABLE(_why_cluster_scoped(kind))
            yield Problem.at(resource.document, "spec.template.kind", why)


def _why_cluster_scoped(kind: GroupKind) -> str:
    """The reason why objects of a cluster-scoped kind cannot be attached."""
    why = "is cluster-scoped, but a version's copy must be namespaced"
    return f"{kind} {why}: keep it next to the specs, as a plain manifest"


def is_sentinel(value: Any) -> bool:
    """Whether the value is `{}` or null, which twgen fills in."""
    return value is None or value == {}


def _group_kind(template: Fields, more_kinds: tuple[GroupKind, ...]) -> tuple[GroupKind, str]:
    """The object's kind with its API group, and the API version."""
    group, slash, version = template.text("apiVersion", required=True).rpartition("/")
    group_kind = GroupKind(group, template.text("kind", required=True))
    if not group_kind.kind or not (slash or version):
        return group_kind, version
    allowed = (*KINDS, *more_kinds)
    if group_kind.kind in NEVER_ATTACHED:
        template.problem("kind", _NOT_ATTACHABLE(f"{group_kind.kind} can never be attached to a version"))
    elif group_kind in CLUSTER_SCOPED:
        template.problem("kind", _NOT_ATTACHABLE(_why_cluster_scoped(group_kind)))
    elif group_kind not in allowed:
        shown = ", ".join(map(str, allowed))
        wrong = f"{group_kind} cannot be attached to a version; allowed: {shown}"
        template.problem("kind", _NOT_ATTACHABLE(wrong))
    return group_kind, version


def _checked(template: Fields, group_kind: GroupKind, kind: AttachedKind, version: str) -> Mapping[str, Any]:
    """Check the fields of a known kind as an API server does, and drop unknown fields.

    The result is empty if a field has the wrong type.
    """
    struct = kind.structs.get(version)
    if struct is None:
        served = " or ".join(f"{group_kind.group}/{name}" for name in kind.structs)
        template.problem("apiVersion", f"{template.value['apiVersion']} is not {served}")
        return template.value
    written = {
        name: _without_nulls(item)
        for name, item in template.value.items()
        if name in _TOP_FIELDS and item is not None
    }
    sample = _filled_in(written, _SAMPLE_NAMES)
    sample["spec"] = sample.get("spec") or {}
    if kind.target and isinstance(sample["spec"], dict) and kind.target not in sample["spec"]:
        sample["spec"][kind.target] = _SAMPLE_TARGET
        wrong = MISSING_FIELD(f"is required: {_INJECT}")
        missing = Finding(join_path(template.at("spec"), kind.target), wrong)
        template.refused([missing])
    most, is_whole = template.findings.most, True
    for field, field_struct in (("metadata", "ObjectMeta"), ("spec", struct)):
        path = template.at(field)
        stored = stored_struct(sample.get(field) or {}, field_struct, path, f"a {group_kind.kind}", most)
        template.findings.add_problems(stored.problems)
        template.refused(stored.unknown)
        template.refused(refusals(stored.value, field_struct, path, most, stored.problems))
        if stored.problems:
            is_whole = False
        elif isinstance(written.get(field), dict):
            written[field] = _stored_fields(written[field], stored.value)
    template.close("metadata", "spec", "status")
    return written if is_whole else {}


def _stored_fields(written: Any, stored: Any) -> Any:
    """The template without the fields that an API server drops."""
    if isinstance(written, dict):
        return {name: _stored_fields(item, stored[name]) for name, item in written.items() if name in stored}
    if isinstance(written, list):
        return [_stored_fields(item, kept) for item, kept in zip(written, stored, strict=True)]
    return written


def _filled_in(value: Any, names: Mapping[str, str], key: str = "") -> Any:
    """A copy with these names, and with sample values for everything else that twgen fills in."""
    if key in TARGET_FIELDS and is_sentinel(value):
        return _SAMPLE_TARGET
    if isinstance(value, str):
        return filled(value, names)
    if isinstance(value, dict):
        return {name: _filled_in(item, names, name) for name, item in value.items()}
    return [_filled_in(item, names) for item in value] if isinstance(value, list) else value


def _without_nulls(value: Any, key: str = "") -> Any:
    """A copy without nulls, which some API servers reject. A null to be filled in becomes `{}` or ""."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    asking: dict[str, Any] = {"matchLabels": {}, **{name: {} for name in TARGET_FIELDS}}
    if key == "metadata":
        asking |= dict.fromkeys(VERSION_FIELDS, "")
    return {
        name: asking[name] if item is None else _without_nulls(item, name)
        for name, item in value.items()
        if item is not None or name in asking
    }


def _check_metadata(template: Fields) -> None:
    """Reject metadata that twgen sets for each version: it would be silently overwritten."""
    metadata = template.mapping("metadata")
    for field in ("name", "namespace", "ownerReferences"):
        if metadata.has(field):
            metadata.problem(field, SET_BY_TWGEN("is generated for each version: remove it"))
    for field, ours in _OWN_MARKS.items():
        marks = metadata.value.get(field)
        for name in marks if isinstance(marks, dict) else ():
            if name == WHEN:
                wrong = "belongs in metadata.annotations of the WorkerResourceTemplate"
                metadata.problem(join_path(field, name), wrong)
            elif name in ours or name.startswith(OWN_PREFIX):
                wrong = SET_BY_TWGEN("is set for each version: remove it")
                metadata.problem(join_path(field, name), wrong)


def _warn_of_budget(spec: Fields) -> None:
    """Warn if a budget protects no pods, blocks every eviction, or selects the pods of several versions."""
    written = {name for name, item in spec.value.items() if item is not None}
    # any other field is either minAvailable or maxUnavailable, or is reported as unknown
    if written <= {"selector", "unhealthyPodEvictionPolicy"}:
        spec.warning("", BUDGET_RULE("protects no pods: write minAvailable or maxUnavailable"))
    if warning := warning_of_limit(spec.value):
        spec.warning(*warning)
    selector = spec.value.get("selector")
    if is_sentinel(selector):
        whose = "no pods" if selector is None else "every pod of the namespace"
        remedy = "write {matchLabels: {}} to select the pods of each version"
        spec.warning("selector", BUDGET_RULE(f"selects {whose}: {remedy}"))
    elif (
        isinstance(selector, dict)
        and selector.keys() == {"matchExpressions"}
        and not tells_versions_apart(str(selector))
    ):
        why = "selects the same pods for every version, and a pod with two budgets cannot be evicted"
        spec.warning("selector", BUDGET_RULE(f"{why}: write matchLabels: {{}} next to matchExpressions"))


def warning_of_limit(budget: Mapping[str, Any]) -> tuple[str, Message] | None:
    """The field with which a budget protects no pod or blocks every eviction, whatever the number of pods."""
    for field, none, nothing in (
        ("maxUnavailable", EVICTS_NONE, PROTECTS_NONE),
        ("minAvailable", PROTECTS_NONE, EVICTS_NONE),
    ):
        limit = budget.get(field)
        if share_of(limit) == 0 or (limit == 0 and not isinstance(limit, bool)):
            return field, BUDGET_RULE(f"{limit} {none}")
        if share_of(limit) == 100:
            return field, BUDGET_RULE(f"{limit} {nothing}")
    return None


def share_of(limit: Any) -> int | None:
    """The percentage in a limit such as `50%`, or None if the limit is a number or invalid."""
    is_share = isinstance(limit, str) and re.search(PERCENTAGE, limit)
    return int(limit[:-1]) if is_share and int(limit[:-1]) <= 100 else None


def _check_references(template: Fields, spec: Fields) -> None:
    """Reject unknown placeholders, and references from `spec` to a Deployment or pods by name."""
    for path, item in entries(template.value) if may_have_placeholders(str(template.value)) else ():
        if may_have_placeholders(str(path[1])):
            wrong = "has a placeholder in its key: placeholders are only allowed in values"
            template.problem(written_path(path), wrong)
        # the controller leaves unknown placeholders unchanged: they are typos, or belong to an unrendered
        # Helm chart
        if isinstance(item, str) and unknown_placeholder(item):
            template.problem(written_path(path), ONLY_PLACEHOLDERS)
    for path, item in entries(spec.value):
        if path[1] == "scaleTargetRef" and not is_sentinel(item):
            spec.problem(written_path(path), f"must point at each version's own Deployment: {_INJECT}")
        selects_all = (
            isinstance(item, dict)
            and is_sentinel(item.get("matchLabels", path))
            and not item.get("matchExpressions")
        )
        if selects_all and not _FILLED_SELECTORS.fullmatch(written_path(path)):
            why = "is not filled in here, so each version's copy selects everything"
            such_as = f'write labels, such as {BUILD_ID_LABEL}: "{{{{ .BuildID }}}}"'
            place = join_path(written_path(path), "matchLabels")
            spec.warning(place, _UNSELECTIVE(f"{why}: {such_as}"))
    for field in ("targetRef", "selector.matchLabels"):
        if not is_sentinel(value_at(spec.value, *field.split("."))):
            spec.problem(field, f"must refer to each version's own Deployment: {_INJECT}")


def _check_metrics(spec: Fields) -> None:
    """Check the selectors of an autoscaler's metrics. twgen fills in the labels that identify a version."""
    metrics = spec.raw("metrics")
    for index, metric in enumerate(metrics if isinstance(metrics, list) else ()):
        described, selected = value_at(metric, "object"), value_at(metric, "external", "metric")
        selector = f"metrics[{index}].external.metric.selector"
        if described and not tells_versions_apart(str(described)):
            spec.warning(f"metrics[{index}].object", SAME_FOR_ALL)
        if isinstance(selected, dict) and is_sentinel(selected.get("selector")):
            fault = "is not filled in" if "selector" in selected else "is missing"
            remedy = "write {matchLabels: {}} to measure each version separately"
            if not tells_versions_apart(str(selected.get("name"))):
                why = f"{fault}, so each version scales on the total of all versions: {remedy}"
                spec.warning(selector, METRIC_OF_ALL(why))
        labels = value_at(selected, "selector", "matchLabels")
        for label in METRIC_LABELS if isinstance(labels, dict) else ():
            if label in labels:
                wrong = SET_BY_TWGEN("is filled in for each version: remove it")
                spec.problem(f"{selector}.matchLabels.{label}", wrong)
