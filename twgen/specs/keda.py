"""What KEDA refuses or ignores of a ScaledObject, though an API server takes it."""

from collections.abc import Mapping
from typing import Any

from twgen.model.paths import join_path, value_at
from twgen.model.problem import Finding, did_you_mean, quoted
from twgen.specs.fields import Fields
from twgen.versioning.names import filled, may_have_placeholders, placeholders

_TEMPORAL, _PROMETHEUS = "temporal", "prometheus"
_BUILD_ID = "buildId"
_OF_BUILD_ID = ("{{ .BuildID }}", "__TEMPORAL_WORKER_BUILD_ID__")
VERSION_FIELDS = {
    "workerDeploymentName": (),
    "workerDeploymentBuildId": _OF_BUILD_ID,
    _BUILD_ID: _OF_BUILD_ID,
    "namespace": ("{{ .TemporalNamespace }}", "__TEMPORAL_NAMESPACE__"),
}
"""What tells the workers of one version for KEDA's Temporal scaler, and the placeholders that it may be.

All fields are those of github.com/kedacore/keda, pkg/scalers/temporal_scaler.go, from 2.17 to 2.22.
"""
_PAIR = ("workerDeploymentName", "workerDeploymentBuildId")
_REQUIRED = ("endpoint", "taskQueue")
_SELECTING = (*_PAIR, "selectAllActive", "selectUnversioned")
_KNOWN = (
    *VERSION_FIELDS,
    *_REQUIRED,
    *(f"{name}FromEnv" for name in (*VERSION_FIELDS, *_REQUIRED)),
    *_SELECTING,
    "activationTargetQueueSize",
    "enableTLS",
    "includeRunningWorkflowCount",
    "minConnectTimeout",
    "queueTypes",
    "targetQueueSize",
    "tlsServerName",
    "unsafeSsl",
    "workflowTaskQueueForCount",
)
_PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
_HPA_NAME = ("advanced", "horizontalPodAutoscalerConfig", "name")
_EXTERNAL_METRICS = ("AverageValue", "Value")
"""The metricType of a trigger other than `cpu` and `memory`, which have a Utilization too."""


def warn_of_rest_at_zero(spec: Fields) -> None:
    """KEDA takes 0 for a minimum that is left out, and whoever has a share of the traffic can be idle."""
    rests = "idleReplicaCount" if spec.raw("idleReplicaCount") == 0 else "minReplicaCount"
    if (spec.raw(rests) or 0) == 0:
        told = "is 0" if spec.raw(rests) == 0 else "is 0 when it is left out"
        why = "an idle version loses its pods, and a rollout waits for pods: write 1 or more"
        spec.warning(rests, f"{told}: {why}")


def check_copies(template: Fields, spec: Fields) -> None:
    """Refuse what would be the same for every version, and must not be."""
    annotations = template.mapping("metadata").value.get("annotations")
    if isinstance(annotations, dict) and annotations.get(_PAUSED_REPLICAS) is not None:
        why = "would hold every version at this number, also one that workflows need: remove it"
        template.problem(join_path("metadata.annotations", _PAUSED_REPLICAS), why)
    name = value_at(spec.value, *_HPA_NAME)
    copies = (
        {filled(name, placeholders(item, item, "", "")) for item in "ab"} if isinstance(name, str) else ()
    )
    if name and len(copies) == 1:
        why = "would be that of one autoscaler for all versions: leave it out, or write {{ .BuildID }} in it"
        spec.problem(".".join(_HPA_NAME), why)


def check_triggers(spec: Fields) -> None:
    """Note triggers that KEDA has no scaler for, or whose scaler would not look at each version."""
    triggers = spec.raw("triggers")
    for index, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
        path, kind = join_path("triggers", index), value_at(trigger, "type")
        known = kind.strip().lower() if isinstance(kind, str) else ""
        if known != kind and known:
            _refuse(spec, f"{path}.type", f"KEDA knows no type {quoted(kind)}: write {known}")
        metric = value_at(trigger, "metricType")
        allowed = _EXTERNAL_METRICS if known == _TEMPORAL else (*_EXTERNAL_METRICS, "Utilization")
        if isinstance(metric, str) and metric and metric not in allowed:
            wrong = f"{quoted(metric)} is not one of {', '.join(allowed)}{did_you_mean(metric, allowed)}"
            _refuse(spec, f"{path}.metricType", wrong)
        metadata = value_at(trigger, "metadata")
        if known == _TEMPORAL and isinstance(metadata, dict):
            _check_temporal(spec, f"{path}.metadata", metadata)
        query = value_at(metadata, "query")
        if known == _PROMETHEUS and isinstance(query, str) and not may_have_placeholders(query):
            why = "tells no version, so every one scales by what all have: select one by {{ .BuildID }}"
            spec.warning(f"{path}.metadata.query", why)


def _check_temporal(spec: Fields, path: str, metadata: Mapping[str, Any]) -> None:
    by_lower_case = {name.lower(): name for name in _KNOWN}
    # what is told to be misspelt is not told to be missing as well
    meant = {name: name for name in metadata}
    for name in metadata:
        if name not in _KNOWN and (right := by_lower_case.get(name.lower())):
            meant.setdefault(right, name)
            _refuse(spec, join_path(path, name), f"KEDA knows no such field; did you mean {right}?")
    there = {name.removesuffix("FromEnv") for name in meant}
    for name in _REQUIRED:
        places = [meant[field] for field in (name, f"{name}FromEnv") if field in meant]
        if all(_is_blank(metadata[place]) for place in places):
            is_there = any(metadata[place] is not None for place in places)
            _refuse(spec, f"{path}.{name}", "must not be empty" if is_there else "is required")
    for name, other in (_PAIR, _PAIR[::-1]):
        if name in there and other not in there:
            _refuse(spec, f"{path}.{other}", f'is required beside {name}: write "" to have it filled in')
    for name, allowed in VERSION_FIELDS.items():
        value = metadata.get(name)
        written = value.replace(" ", "") if isinstance(value, str) else value
        if written not in (None, "", *(placeholder.replace(" ", "") for placeholder in allowed)):
            written = allowed[0] if name == _BUILD_ID else ""
            spec.problem(f"{path}.{name}", f'is of each version: write "{written}" to have it filled in')
    by_build_id = [meant[field] for field in (_BUILD_ID, f"{_BUILD_ID}FromEnv") if field in meant]
    if there.isdisjoint(_SELECTING) and all(_is_blank(metadata[place]) for place in by_build_id):
        why = "tells no version, so that only tasks without one are counted"
        spec.warning(path, f'{why}: write workerDeploymentName: "" and workerDeploymentBuildId: ""')


def _refuse(spec: Fields, path: str, message: str) -> None:
    """Note what KEDA would refuse or ignore, as what an API server would."""
    spec.refused([Finding(spec.at(path), message)])


def _is_blank(value: Any) -> bool:
    """KEDA takes it for one that is left out."""
    return value is None or (isinstance(value, str) and not value.strip())
