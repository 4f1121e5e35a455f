"""Reading WorkerResourceTemplates: what every version of a worker gets a copy of."""

from collections.abc import Iterator, Mapping
from typing import Any

from twgen.model.paths import join_path, value_at
from twgen.model.spec import AttachedResource
from twgen.specs.fields import Fields
from twgen.versioning.placeholders import unknown_placeholder

DEFAULT_ATTACHED_KINDS = (
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "ScaledObject",
    "VerticalPodAutoscaler",
)
_AUTOSCALERS = {"HorizontalPodAutoscaler", "ScaledObject"}
_RUN_PODS = {"Pod", "Job", "CronJob", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}
_METRIC_LABELS = ("temporal_worker_deployment_name", "temporal_worker_build_id", "temporal_namespace")
_TRIGGER_FIELDS = ("workerDeploymentName", "workerDeploymentBuildId")
_INJECT = "write {} to have it filled in for each version"


def parse_attached(name: str, spec: Fields, kinds: tuple[str, ...]) -> AttachedResource:
    """The attached resource of a document's `spec`; `kinds` are those that the operator allows."""
    template = spec.mapping("template")
    if not spec.has("template"):
        spec.problem("template", "is required")
        return AttachedResource(name, {}, autoscales=False)
    template.text("apiVersion", required=True)
    kind = template.text("kind", required=True)
    if kind in _RUN_PODS or (kind and kind not in kinds):
        template.problem("kind", f"{kind} cannot be attached to a version; allowed: {', '.join(kinds)}")
    for field in ("name", "namespace"):
        if template.mapping("metadata").has(field):
            template.mapping("metadata").problem(field, "is generated for each version: remove it")
    inner = template.mapping("spec")
    _check_strings(template)
    _check_targets(inner)
    _check_replicas(inner)
    _check_metrics(inner)
    _check_triggers(inner)
    value = spec.raw("template")
    autoscales = kind in _AUTOSCALERS and "scaleTargetRef" in inner.value
    return AttachedResource(name, value if isinstance(value, dict) else {}, autoscales)


def is_sentinel(value: Any) -> bool:
    """The place is marked to be filled in: `{}` or null."""
    return value is None or value == {}


def _check_strings(template: Fields) -> None:
    for path, _, item in _entries(template.value, ""):
        if isinstance(item, str) and unknown_placeholder(item):
            template.problem(
                path, "only {{ .DeploymentName }}, {{ .BuildID }} and {{ .TemporalNamespace }} are filled in"
            )


def _check_targets(spec: Fields) -> None:
    for path, key, item in _entries(spec.value, ""):
        if key == "scaleTargetRef" and not is_sentinel(item):
            spec.problem(path, f"must point at each version's own Deployment: {_INJECT}")
    for field in ("targetRef", "selector.matchLabels"):
        if not is_sentinel(value_at(spec.value, *field.split("."))):
            spec.problem(field, f"must be that of each version's own Deployment: {_INJECT}")


def _check_replicas(spec: Fields) -> None:
    if spec.raw("minReplicas") == 0:
        spec.problem("minReplicas", "must not be 0: with no worker polling, the backlog is not seen either")


def _check_metrics(spec: Fields) -> None:
    metrics = spec.raw("metrics")
    for index, metric in enumerate(metrics if isinstance(metrics, list) else ()):
        labels = value_at(metric, "external", "metric", "selector", "matchLabels")
        for label in _METRIC_LABELS:
            if isinstance(labels, dict) and label in labels:
                path = join_path("metrics", index, "external", "metric", "selector", "matchLabels", label)
                spec.problem(path, "is filled in for each version: remove it")


def _check_triggers(spec: Fields) -> None:
    triggers = spec.raw("triggers")
    for index, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
        if value_at(trigger, "type") != "temporal":
            continue
        for field in _TRIGGER_FIELDS:
            if value_at(trigger, "metadata", field) not in {None, ""}:
                path = join_path("triggers", index, "metadata", field)
                spec.problem(path, 'is of each version: write "" to have it filled in')


def _entries(value: Any, path: str) -> Iterator[tuple[str, str | int, Any]]:
    items = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in items:
        below = join_path(path, key)
        yield below, key, item
        yield from _entries(item, below)
