"""Warnings about attached objects that conflict with the pods of a version, each other, or Temporal."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from twgen.model.operator import GroupKind
from twgen.model.paths import join_path, list_at, value_at
from twgen.model.problem import Message, Rule, did_you_mean, quoted
from twgen.model.spec import AttachedResource, AttachedWhile, WorkerSpec
from twgen.specs.attached import (
    BUDGET,
    BUDGET_RULE,
    EVICTS_NONE,
    PROTECTS_NONE,
    SCALED_OBJECT,
    VPA,
    share_of,
    warning_of_limit,
)
from twgen.specs.keda import warn_of_servers
from twgen.specs.pod_warnings import running_containers, selects, too_large, too_small
from twgen.specs.spec_document import SpecDocument
from twgen.versioning.names import WHEN, may_have_placeholders
from twgen.versioning.pod_templates import pod_labels
from twgen.versioning.quantities import quantity_nanos

_BOUNDS = (("minReplicas", 1, "maxReplicas", 0), ("minReplicaCount", 1, "maxReplicaCount", 100))
"""The minimum and maximum fields of an HPA and of a ScaledObject, each with its default.

A minimum of 0 counts as 1, because a version without pods has nothing to evict.
"""
_WITH_TRAFFIC = frozenset({AttachedWhile.TARGET, AttachedWhile.CURRENT, AttachedWhile.RAMPING})
_DRAINING = frozenset({AttachedWhile.DRAINING})
_MEASURED = ("cpu", "memory")
_Bound = tuple[int, str]
"""A number of pods, and the name of the field that sets the number."""
_INJECTED = frozenset(
    {
        *("istio-proxy", "linkerd-proxy", "kuma-sidecar", "consul-dataplane", "envoy-sidecar", "envoy"),
        *("daprd", "vault-agent", "otc-container", "jaeger-agent", "gke-gcsfuse-sidecar", "azwi-proxy"),
        *("datadog-agent-injected", "xray-daemon", "aws-guardduty-agent"),
    }
)
"""The usual names of containers that an admission webhook adds to pods, for example for a service mesh.

A namespace can also ask for them, so a spec does not show whether its pods get them.
"""
_WHEN_PATH = join_path("metadata.annotations", WHEN)
_MOST_WORDS = 100
_IN_ROUTING = {AttachedWhile.CURRENT, AttachedWhile.RAMPING}
_VERTICAL = Rule(
    "vertical-autoscaler", "A VerticalPodAutoscaler has no effect, or conflicts with another object."
)
_UNMEASURED = Rule("missing-request", "An autoscaler cannot measure utilization without a resource request.")


def warn_of_attached(templates: Iterable[SpecDocument], workers: Iterable[WorkerSpec]) -> None:
    """Note each template's conflicts with its worker and with other attached templates."""
    owners = {id(resource.document): (resource, worker) for worker in workers for resource in worker.attached}
    for document in templates:
        if id(document.document) not in owners:
            continue
        resource, worker = owners[id(document.document)]
        template = document.fields.mapping("template")
        kind = GroupKind.of(template.value)
        if kind.group == SCALED_OBJECT.group:
            warn_of_servers(template.mapping("spec"), worker)
        elif kind == BUDGET and (fault := next(_warnings_of_budget(resource, worker), None)):
            template.warning(f"spec.{fault[0]}", BUDGET_RULE(fault[1]))
        elif kind == VPA and resource.template:
            if why := _warning_of_vpa(resource, worker):
                template.warning("spec", _VERTICAL(why))
            for place, warning in _warnings_of_policies(resource, worker):
                template.warning(f"spec.resourcePolicy.{place}", warning)


def _warnings_of_budget(budget: AttachedResource, worker: WorkerSpec) -> Iterator[tuple[str, str]]:
    """The budget fields that do not suit the possible numbers of pods, each with the reason."""
    spec = value_at(budget.template, "spec")
    if not isinstance(spec, dict):
        return
    expressions = value_at(spec, "selector", "matchExpressions")
    own = pod_labels(worker.template.content, worker.name, worker.build_id)
    is_same_for_all = expressions and not may_have_placeholders(str(expressions))
    if worker.build_id and is_same_for_all and not selects({"matchExpressions": expressions}, own):
        yield (
            "selector.matchExpressions",
            "match no pod of the worker, so the budget protects no pods: remove them",
        )
    if warning_of_limit(spec):
        return
    for words in (_WITH_TRAFFIC, _DRAINING):
        pods = _pods(worker, words) if may_meet(budget.when, words) else None
        if not pods:
            continue
        (fewest, least_field), (most, most_field) = pods
        # minAvailable is compared with the autoscaler's minimum, because a draining version can be idle for
        # days, and the budget would block node drains all that time
        limit = spec.get("minAvailable")
        if _of(limit, fewest) >= fewest:
            yield "minAvailable", f"{limit} with {least_field} at {fewest} {EVICTS_NONE}"
        limit = spec.get("maxUnavailable")
        if _of(limit, most) >= most > 1:
            yield "maxUnavailable", f"{limit} with {most_field} at {most} {PROTECTS_NONE}"


def _pods(worker: WorkerSpec, words: frozenset[AttachedWhile]) -> tuple[_Bound, _Bound] | None:
    """The minimum and maximum number of pods of the versions that `words` (of `twgen.io/when`) select."""
    scalers = [item for item in worker.attached if item.autoscales and may_meet(item.when, words)]
    if scalers and scalers[0].when and not words <= scalers[0].when:
        return None
    if scalers:
        least, fewest, most, at_most = _BOUNDS[scalers[0].kind == "ScaledObject"]
        low, high = (value_at(scalers[0].template, "spec", field) for field in (least, most))
        if not scalers[0].template or {type(low), type(high)} - {int, type(None)}:
            return None  # the error is already reported
        of = f"of {scalers[0].name}"
        return (low or fewest, f"{least} {of}"), (high or at_most, f"{most} {of}")
    draining = worker.policy.draining_replicas if words == _DRAINING else None
    pods, field = draining or worker.replicas, "drainingReplicas" if draining else "replicas"
    if pods is None:
        # without drainingReplicas, a draining version keeps its number of pods, which is unknown here
        pods, field = (1, "replicas by default") if words == _WITH_TRAFFIC else (None, "")
    return ((pods, field), (pods, field)) if pods else None


def _of(limit: Any, pods: int) -> int:
    """The limit as a number of pods. Percentages are rounded up, as in Kubernetes."""
    share = share_of(limit)
    return limit if isinstance(limit, int) else -(-pods * share // 100) if share is not None else 0


def _warning_of_vpa(vpa: AttachedResource, worker: WorkerSpec) -> str:
    """The warning that a VPA and another autoscaler use the same resource.

    https://github.com/kubernetes/autoscaler/blob/master/vertical-pod-autoscaler/docs/known-limitations.md
    """
    if value_at(vpa.template, "spec", "updatePolicy", "updateMode") == "Off":
        return ""
    policies = value_at(vpa.template, "spec", "resourcePolicy", "containerPolicies") or []
    named = {value_at(policy, "containerName") or "*": policy for policy in policies}
    containers = value_at(worker.template.content, "spec", "containers") or ()
    for other in worker.attached:
        if not other.autoscales or not may_meet(vpa.when, other.when):
            continue
        measured = list(_utilizations(value_at(other.template, "spec")))
        rest = set(_MEASURED).difference(name for name, _ in measured)
        for resource, only in measured:
            for name in (name for item in containers if only in {"", name := value_at(item, "name")}):
                policy = named.get(name, named.get("*", {}))
                controlled = value_at(policy, "controlledResources")
                if value_at(policy, "mode") != "Off" and (controlled is None or resource in controlled):
                    why = f"changes the {resource} requests, but {other.kind} {other.name} scales on them"
                    apart = f", or controlledResources: [{', '.join(rest)}]" if rest else ""
                    return f'{why}: write updateMode: "Off"{apart}'
    return ""


def _warnings_of_policies(vpa: AttachedResource, worker: WorkerSpec) -> Iterator[tuple[str, Message]]:
    """A warning for each VPA policy with an unknown container, an unlikely amount or no possible amount."""
    pod = value_at(worker.template.content, "spec") or {}
    names = [str(container.get("name")) for _, container in running_containers(pod)]
    for index, policy in enumerate(list_at(vpa.template, "spec", "resourcePolicy", "containerPolicies")):
        place, name = f"containerPolicies[{index}]", value_at(policy, "containerName")
        if names and isinstance(name, str) and name not in {"", "*", *names, *_INJECTED}:
            why = f"the pods have no container {quoted(name)}, so this policy has no effect"
            yield f"{place}.containerName", _VERTICAL(f"{why}{did_you_mean(name, names)}")
        least, most = (_amounts(value_at(policy, field)) for field in ("minAllowed", "maxAllowed"))
        # a large maximum is a way to set none
        for field, warnings in (
            ("minAllowed", (*too_small(least), *too_large(least))),
            ("maxAllowed", too_small(most)),
        ):
            for resource, warning in warnings:
                yield f"{place}.{field}.{resource}", warning
        for resource in least:
            if resource in most and quantity_nanos(least[resource]) > quantity_nanos(most[resource]):
                why = f"is above maxAllowed.{resource} ({most[resource]})"
                yield f"{place}.minAllowed.{resource}", _VERTICAL(f"{least[resource]} {why}: lower it")


def _amounts(resources: Any) -> dict[str, str]:
    """The valid quantities among the resources, by name."""
    found = {}
    for name, quantity in resources.items() if isinstance(resources, dict) else ():
        with suppress(ValueError):
            quantity_nanos(str(quantity))
            found[name] = str(quantity)
    return found


def unmeasured(autoscaler: AttachedResource, pod: Mapping[str, Any]) -> Iterator[tuple[str, Message]]:
    """A warning for each missing resource request that an autoscaler needs to measure utilization.

    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#how-does-a-horizontalpodautoscaler-work
    """
    if value_at(pod, "resources", "requests"):
        return  # pod-level requests are enough
    running = list(running_containers(pod))
    for resource, only in _utilizations(value_at(autoscaler.template, "spec")):
        if only and only not in {*_INJECTED, *(container.get("name") for _, container in running)}:
            why = f"there is no container {quoted(only)}, but {autoscaler.name} scales on its {resource}"
            yield "containers", _UNMEASURED(why)
        for place, container in running:
            asked = (value_at(container, "resources", field, resource) for field in ("requests", "limits"))
            if only in {"", container.get("name")} and not any(asked):
                why = f"{autoscaler.name} scales on its utilization; a LimitRange may set it"
                yield f"{place}.resources.requests.{resource}", _UNMEASURED(f"is missing, but {why}")


def _utilizations(spec: Any) -> Iterator[tuple[str, str]]:
    """The resources whose utilization an autoscaler measures, each with its container (empty means all)."""
    if value_at(spec, "targetCPUUtilizationPercentage"):
        yield "cpu", ""
    for metric in list_at(spec, "metrics"):
        for field in ("resource", "containerResource"):
            name = value_at(metric, field, "name")
            if name in _MEASURED and value_at(metric, field, "target", "type") == "Utilization":
                yield name, str(value_at(metric, field, "container") or "")
    for trigger in list_at(spec, "triggers"):
        kind = value_at(trigger, "type")
        measure = value_at(trigger, "metricType") or value_at(trigger, "metadata", "type") or "Utilization"
        if kind in _MEASURED and measure == "Utilization":
            yield kind, str(value_at(trigger, "metadata", "containerName") or "")


def parse_when(spec: SpecDocument) -> frozenset[AttachedWhile]:
    """The words in a template's `twgen.io/when` annotation; empty if every version gets a copy."""
    written = value_at(spec.document.value, "metadata", "annotations", WHEN)
    # a wrong type is already reported
    if not isinstance(written, str):
        return frozenset()
    words = set()
    for item in dict.fromkeys(written.split(",", _MOST_WORDS)):
        word = item.strip()
        try:
            words.add(AttachedWhile(word))
        except ValueError:
            every = ", ".join(AttachedWhile)
            wrong = f"{quoted(word)} is not one of {every}{did_you_mean(word, AttachedWhile)}"
            if not word:
                fault = "has an extra comma" if written.strip() else "is empty"
                wrong = f"{fault}: write one or more of {every}, or remove it"
            spec.findings.problem(_WHEN_PATH, wrong)
    return frozenset(words)


def may_meet(first: frozenset[AttachedWhile], other: frozenset[AttachedWhile]) -> bool:
    """Whether one version can get copies of both templates. The target can also be current or ramping."""
    if not first or not other or first & other:
        return True
    return any(
        AttachedWhile.TARGET in a and not b.isdisjoint(_IN_ROUTING)
        for a, b in ((first, other), (other, first))
    )
