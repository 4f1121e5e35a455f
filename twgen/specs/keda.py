"""What KEDA refuses or ignores of a ScaledObject, though an API server takes it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from twgen.model.operator import GroupKind
from twgen.model.paths import join_path, value_at
from twgen.model.problem import Finding, did_you_mean, quoted
from twgen.model.spec import WorkerSpec
from twgen.specs.fields import Fields
from twgen.specs.spec_document import SpecDocument
from twgen.specs.temporal_trigger import check_temporal, warn_of_server
from twgen.versioning.injection import BUILD_IDS
from twgen.versioning.names import tells_versions_apart

_TEMPORAL, _GROUP = "temporal", "keda.sh"
_NEED_NO_VERSION = ("cpu", "cron", "external", "external-push", "memory")
"""Triggers that go by the version's own pods or by the time, or tell their scaler which object they scale."""
SAME_FOR_ALL = (
    "does not select a version, so each version scales on the total of all: filter by {{ .BuildID }}"
)
"""What is wrong with a metric that no placeholder makes that of a version."""
_PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
_HPA_NAME = ("advanced", "horizontalPodAutoscalerConfig", "name")
_EXTERNAL_METRICS = ("AverageValue", "Value")
"""The metricType of a trigger other than `cpu` and `memory`, which have a Utilization too."""


def warn_of_rest_at_zero(spec: Fields) -> None:
    """KEDA takes 0 for a minimum that is left out, and whoever has a share of the traffic can be idle."""
    idle, least = spec.raw("idleReplicaCount"), spec.raw("minReplicaCount") or 0
    if type(idle) is type(least) is int and idle >= least:
        _refuse(spec, "idleReplicaCount", f"{idle} is not below minReplicaCount ({least}): remove it")
        return
    rests, remedy = ("idleReplicaCount", "remove it") if idle == 0 else ("minReplicaCount", "write 1 or more")
    if (spec.raw(rests) or 0) == 0:
        told = "is 0" if spec.raw(rests) == 0 else "is 0 by default"
        spec.warning(
            rests, f"{told}, so an idle version loses its pods, but a rollout waits for pods: {remedy}"
        )


def check_copies(template: Fields, spec: Fields) -> None:
    """Refuse what would be the same for every version, and must not be."""
    annotations = template.mapping("metadata").value.get("annotations")
    if isinstance(annotations, dict) and annotations.get(_PAUSED_REPLICAS) is not None:
        why = "would keep every version at this number, even one that workflows need: remove it"
        template.problem(join_path("metadata.annotations", _PAUSED_REPLICAS), why)
    name = value_at(spec.value, *_HPA_NAME)
    if isinstance(name, str) and name and not tells_versions_apart(name):
        why = "gives the autoscalers of all versions the same name: leave it out, or include {{ .BuildID }}"
        spec.problem(".".join(_HPA_NAME), why)


def check_triggers(spec: Fields) -> None:
    """Note triggers that KEDA has no scaler for, or whose scaler would not look at each version."""
    is_composed, names = bool(value_at(spec.value, "advanced", "scalingModifiers", "target")), set[str]()
    for path, trigger, kind in _triggers(spec):
        if isinstance(name := trigger.get("name"), str) and name:
            if name in names:
                _refuse(spec, f"{path}.name", f"{quoted(name)} is also the name of an earlier trigger")
            names.add(name)
        written = trigger.get("type")
        if kind != written:
            _refuse(spec, f"{path}.type", f"KEDA has no trigger type {quoted(str(written))}: write {kind}")
        metric = trigger.get("metricType")
        allowed = _EXTERNAL_METRICS if kind == _TEMPORAL else (*_EXTERNAL_METRICS, "Utilization")
        if isinstance(metric, str) and metric and metric not in allowed:
            wrong = f"{quoted(metric)} is not one of {', '.join(allowed)}{did_you_mean(metric, allowed)}"
            _refuse(spec, f"{path}.metricType", wrong)
        metadata = trigger.get("metadata")
        if not isinstance(metadata, dict):
            continue
        if kind == _TEMPORAL:
            check_temporal(spec, f"{path}.metadata", metadata, is_composed=is_composed)
        elif kind not in _NEED_NO_VERSION and not _tells_version(trigger):
            place = "metadata.query" if isinstance(metadata.get("query"), str) else "metadata"
            spec.warning(f"{path}.{place}", SAME_FOR_ALL)


def warn_of_servers(templates: Iterable[SpecDocument], workers: Iterable[WorkerSpec]) -> None:
    """Note each trigger that asks Temporal where the worker is not, or where KEDA is not let in."""
    owners = {id(resource.document): worker for worker in workers for resource in worker.attached}
    for document in templates:
        template, worker = document.fields.mapping("template"), owners.get(id(document.document))
        if worker and GroupKind.of(template.value).group == _GROUP:
            spec = template.mapping("spec")
            for path, trigger, kind in _triggers(spec):
                if kind == _TEMPORAL and isinstance(trigger.get("metadata"), dict):
                    warn_of_server(spec, path, trigger, worker)


def _triggers(spec: Fields) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Each trigger with its path, and its type as KEDA writes it."""
    triggers = spec.raw("triggers")
    for index, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
        kind = value_at(trigger, "type")
        if isinstance(kind, str) and kind.strip():
            yield join_path("triggers", index), trigger, kind.strip().lower()


def _tells_version(trigger: Mapping[str, Any]) -> bool:
    variables = (value for name, value in trigger["metadata"].items() if name.endswith("FromEnv"))
    return tells_versions_apart(str(trigger)) or any(str(value) in BUILD_IDS for value in variables)


def _refuse(spec: Fields, path: str, message: str) -> None:
    """Note what KEDA would refuse or ignore, as what an API server would."""
    spec.refused([Finding(spec.at(path), message)])
