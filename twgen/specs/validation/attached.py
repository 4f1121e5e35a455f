"""The rules for the kinds that may be attached: HPA, PDB, KEDA's ScaledObject and VPA."""

from twgen.specs.validation import checks
from twgen.specs.validation.checks import (
    Check,
    Range,
    Rule,
    Struct,
    Wrong,
    at_most_one,
    exactly_one,
    in_order,
    not_empty,
    not_negative,
    positive,
)
from twgen.specs.validation.pods import resource_name

_KEDA_MOST_REPLICAS = 100
"""KEDA's default of maxReplicaCount."""
_METRICS = {"ContainerResource", "External", "Object", "Pods", "Resource"}

_FIELDS: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (checks.DNS_LABEL, ("ContainerResourceMetricSource.container",)),
    (resource_name, ("ContainerResourceMetricSource.name",)),
    (checks.api_version, ("CrossVersionObjectReference.apiVersion",)),
    (checks.PATH_SEGMENT, (
        "CrossVersionObjectReference.kind", "CrossVersionObjectReference.name", "MetricIdentifier.name",
    )),
    (Range(1), (
        "HPAScalingPolicy.value", "HorizontalPodAutoscalerSpec.maxReplicas",
        "HorizontalPodAutoscalerSpec.minReplicas", "MetricTarget.averageUtilization",
        "V1HorizontalPodAutoscalerSpec.maxReplicas", "V1HorizontalPodAutoscalerSpec.minReplicas",
        "V1HorizontalPodAutoscalerSpec.targetCPUUtilizationPercentage",
    )),
    (Range(1, 1800), ("HPAScalingPolicy.periodSeconds",)),
    (Range(0, 3600), ("HPAScalingRules.stabilizationWindowSeconds",)),
    (not_empty, ("HPAScalingRules.policies",)),
    (not_negative, ("HPAScalingRules.tolerance",)),
    (positive, ("MetricTarget.averageValue", "MetricTarget.value")),
    (checks.share, ("PodDisruptionBudgetSpec.maxUnavailable", "PodDisruptionBudgetSpec.minAvailable")),
)  # fmt: skip
FIELDS = {name: check for check, names in _FIELDS for name in names}
"""The check of each field, by struct and field of kubernetes_types."""


def _metric(struct: Struct) -> Wrong:
    """A metric of an HPA has exactly one field besides `type`: the one that `type` names."""
    if struct["type"] not in _METRICS:
        return
    wanted = struct["type"][0].lower() + struct["type"][1:]
    if wanted not in struct:
        yield (wanted,), f"is required: the type is {struct['type']}"
    for name in struct:
        if name not in {"type", wanted}:
            yield (name,), f"must be left out: the type is {struct['type']}"


def _value_or_average(struct: Struct) -> Wrong:
    if struct["target"].keys().isdisjoint({"value", "averageValue"}):
        yield ("target",), "needs value or averageValue"


def _value_or_average_once(struct: Struct) -> Wrong:
    yield from _value_or_average(struct)
    if struct["target"].keys() >= {"value", "averageValue"}:
        yield ("target", "averageValue"), "conflicts with value: set only one of them"


def _average(struct: Struct) -> Wrong:
    if "averageValue" not in struct["target"]:
        yield ("target", "averageValue"), "is required"


def _utilization(struct: Struct) -> Wrong:
    for at, wrong in exactly_one("averageUtilization", "averageValue")(struct["target"]):
        yield ("target", *at), wrong


_REPLICAS: tuple[Rule, ...] = (in_order("minReplicas", "maxReplicas"),)

STRUCTS: dict[str, tuple[Rule, ...]] = {
    "ContainerResourceMetricSource": (_utilization,),
    "ExternalMetricSource": (_value_or_average_once,),
    "HorizontalPodAutoscalerSpec": _REPLICAS,
    "MetricSpec": (_metric,),
    "ObjectMetricSource": (_value_or_average,),
    "PodDisruptionBudgetSpec": (at_most_one("minAvailable", "maxUnavailable"),),
    "PodsMetricSource": (_average,),
    "ResourceMetricSource": (_utilization,),
    "ScaledObjectSpec": (in_order("minReplicaCount", "maxReplicaCount", _KEDA_MOST_REPLICAS),),
    "V1HorizontalPodAutoscalerSpec": _REPLICAS,
}
"""The rules of each struct, by its name in kubernetes_types."""
