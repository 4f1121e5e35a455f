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

_LONGEST_PERIOD = 1800
_LONGEST_WINDOW = 3600
_KEDA_MOST_REPLICAS = 100
"""What KEDA takes maxReplicaCount for when it is left out."""
_METRICS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}

FIELDS: dict[str, Check] = {
    "ContainerResourceMetricSource.container": checks.DNS_LABEL,
    "ContainerResourceMetricSource.name": resource_name,
    "CrossVersionObjectReference.apiVersion": checks.api_version,
    "CrossVersionObjectReference.kind": checks.PATH_SEGMENT,
    "CrossVersionObjectReference.name": checks.PATH_SEGMENT,
    "HPAScalingPolicy.periodSeconds": Range(1, _LONGEST_PERIOD),
    "HPAScalingPolicy.value": Range(1),
    "HPAScalingRules.policies": not_empty,
    "HPAScalingRules.stabilizationWindowSeconds": Range(0, _LONGEST_WINDOW),
    "HPAScalingRules.tolerance": not_negative,
    "HorizontalPodAutoscalerSpec.maxReplicas": Range(1),
    "HorizontalPodAutoscalerSpec.minReplicas": Range(1),
    "MetricIdentifier.name": checks.PATH_SEGMENT,
    "MetricTarget.averageUtilization": Range(1),
    "MetricTarget.averageValue": positive,
    "MetricTarget.value": positive,
    "PodDisruptionBudgetSpec.maxUnavailable": checks.share,
    "PodDisruptionBudgetSpec.minAvailable": checks.share,
    "V1HorizontalPodAutoscalerSpec.maxReplicas": Range(1),
    "V1HorizontalPodAutoscalerSpec.minReplicas": Range(1),
    "V1HorizontalPodAutoscalerSpec.targetCPUUtilizationPercentage": Range(1),
}
"""By struct and field of kubernetes_types."""


def _metric(struct: Struct) -> Wrong:
    """The type of a metric names the one field that is there."""
    wanted = _METRICS.get(struct["type"], "")
    if not wanted:
        return
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
"""By struct of kubernetes_types."""
