"""The rules for the kinds that may be attached: HPA, PDB, KEDA's ScaledObject and VPA."""

from collections.abc import Mapping
from typing import Any

from twgen.specs.validation import syntax
from twgen.specs.validation.resources import resource_name
from twgen.specs.validation.rules import Rule, Wrong, at_most_one, exactly_one, in_order
from twgen.specs.validation.syntax import Check, Range, not_empty, not_negative, positive

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
    "ContainerResourceMetricSource.container": syntax.DNS_LABEL,
    "ContainerResourceMetricSource.name": resource_name,
    "CrossVersionObjectReference.apiVersion": syntax.api_version,
    "CrossVersionObjectReference.kind": syntax.PATH_SEGMENT,
    "CrossVersionObjectReference.name": syntax.PATH_SEGMENT,
    "HPAScalingPolicy.periodSeconds": Range(1, _LONGEST_PERIOD),
    "HPAScalingPolicy.value": Range(1),
    "HPAScalingRules.policies": not_empty,
    "HPAScalingRules.stabilizationWindowSeconds": Range(0, _LONGEST_WINDOW),
    "HPAScalingRules.tolerance": not_negative,
    "HorizontalPodAutoscalerSpec.maxReplicas": Range(1),
    "HorizontalPodAutoscalerSpec.minReplicas": Range(1),
    "MetricIdentifier.name": syntax.PATH_SEGMENT,
    "MetricTarget.averageUtilization": Range(1),
    "MetricTarget.averageValue": positive,
    "MetricTarget.value": positive,
    "PodDisruptionBudgetSpec.maxUnavailable": syntax.share,
    "PodDisruptionBudgetSpec.minAvailable": syntax.share,
    "V1HorizontalPodAutoscalerSpec.maxReplicas": Range(1),
    "V1HorizontalPodAutoscalerSpec.minReplicas": Range(1),
    "V1HorizontalPodAutoscalerSpec.targetCPUUtilizationPercentage": Range(1),
}
"""By struct and field of kubernetes_types."""


def _metric(struct: Mapping[str, Any]) -> Wrong:
    """The type of a metric names the one field that is there."""
    wanted = _METRICS.get(struct["type"], "")
    if not wanted:
        return
    if wanted not in struct:
        yield (wanted,), f"is required: the type is {struct['type']}"
    for name in struct:
        if name not in {"type", wanted}:
            yield (name,), f"must be left out: the type is {struct['type']}"


def _value_or_average(struct: Mapping[str, Any]) -> Wrong:
    target = struct["target"]
    if "value" not in target and "averageValue" not in target:
        yield ("target",), "needs value or averageValue"


def _external_target(struct: Mapping[str, Any]) -> Wrong:
    target = struct["target"]
    if "value" in target and "averageValue" in target:
        yield ("target", "averageValue"), "conflicts with value: set only one of them"


def _average(struct: Mapping[str, Any]) -> Wrong:
    if "averageValue" not in struct["target"]:
        yield ("target", "averageValue"), "is required"


def _utilization(struct: Mapping[str, Any]) -> Wrong:
    for at, wrong in exactly_one("averageUtilization", "averageValue")(struct["target"]):
        yield ("target", *at), wrong


def _boost(struct: Mapping[str, Any]) -> Wrong:
    """The type of a boost at the start names the one field that is there."""
    for kind in ("Factor", "Quantity"):
        name = kind.lower()
        if struct["type"] == kind and name not in struct:
            yield (name,), f"is required: the type is {kind}"
        if struct["type"] != kind and name in struct:
            yield (name,), f"must be left out: the type is {struct['type']}"


_REPLICAS: tuple[Rule, ...] = (in_order("minReplicas", "maxReplicas"),)

STRUCTS: dict[str, tuple[Rule, ...]] = {
    "ContainerResourceMetricSource": (_utilization,),
    "ExternalMetricSource": (_value_or_average, _external_target),
    "HorizontalPodAutoscalerSpec": _REPLICAS,
    "MetricSpec": (_metric,),
    "ObjectMetricSource": (_value_or_average,),
    "PodDisruptionBudgetSpec": (at_most_one("minAvailable", "maxUnavailable"),),
    "PodsMetricSource": (_average,),
    "ResourceMetricSource": (_utilization,),
    "ScaledObjectSpec": (in_order("minReplicaCount", "maxReplicaCount", _KEDA_MOST_REPLICAS),),
    "V1HorizontalPodAutoscalerSpec": _REPLICAS,
    "VerticalPodAutoscalerSpec.resourcePolicy.containerPolicies.startupBoost.cpu": (_boost,),
    "VerticalPodAutoscalerSpec.startupBoost.cpu": (_boost,),
}
"""By struct of kubernetes_types."""
