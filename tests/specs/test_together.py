"""What is attached to one version is warned of where it spoils what else is there."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.specs.parsing import CONNECTION, attach, parsed, policy, scaler, told, worker

EVICTS_NONE = "blocks every eviction, so nodes with these pods cannot be drained: write maxUnavailable: 1"
PROTECTS_NONE = "protects no pods: write maxUnavailable: 1"
PLACE = "spec.template.spec"


def budget(when: str = "", **limits: Any) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {}}, **limits}
    found = attach({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec}, "budget")
    found["metadata"]["annotations"] = {"twgen.io/when": when} if when else {}
    return found


def hpa(when: str = "", **spec: Any) -> dict[str, Any]:
    found = scaler("scaling", "HorizontalPodAutoscaler", "autoscaling/v2", **{"maxReplicas": 5, **spec})
    found["metadata"]["annotations"] = {"twgen.io/when": when} if when else {}
    return found


def keda() -> dict[str, Any]:
    triggers = [{"type": "cpu", "metadata": {"value": "60"}}]
    return scaler("scaling", "ScaledObject", "keda.sh/v1alpha1", minReplicaCount=1, triggers=triggers)


def warned(*documents: dict[str, Any], **spec: Any) -> list[str]:
    found = parsed(worker(**spec), CONNECTION, *documents)
    assert told((*found.problems, *found.unknown_fields)) == []
    return told(found.warnings)


@pytest.mark.parametrize(
    ("limits", "doubt"),
    [
        ({"maxUnavailable": 0}, f"maxUnavailable: 0 {EVICTS_NONE}"),
        ({"maxUnavailable": "0%"}, f"maxUnavailable: 0% {EVICTS_NONE}"),
        ({"minAvailable": "100%"}, f"minAvailable: 100% {EVICTS_NONE}"),
        ({"maxUnavailable": "100%"}, f"maxUnavailable: 100% {PROTECTS_NONE}"),
        ({"minAvailable": 0}, f"minAvailable: 0 {PROTECTS_NONE}"),
        ({"minAvailable": "0%"}, f"minAvailable: 0% {PROTECTS_NONE}"),
    ],
)
@pytest.mark.parametrize("spec", [{}, {"replicas": 1}, {"replicas": 3}])
def test_budget_that_is_none_however_many_pods_there_are_is_warned_of_once(
    limits: dict[str, Any], doubt: str, spec: dict[str, int]
) -> None:
    assert warned(budget(**limits), **spec) == [f"{PLACE}.{doubt}"]


@pytest.mark.parametrize("spec", [{"minReplicas": "2"}, {"metrics": {}}, {"maxReplicas": [5]}])
def test_budget_beside_an_autoscaler_that_is_wrong_itself_is_told_of_without_it(spec: dict[str, Any]) -> None:
    found = parsed(worker(), CONNECTION, budget(minAvailable=2), hpa(**spec))
    assert [problem.path for problem in found.problems] == [f"{PLACE}.{name}" for name in spec]
    assert told(found.warnings) == []


def test_budget_is_told_of_without_its_worker_too() -> None:
    found = told(parsed(budget(maxUnavailable=0)).warnings)
    assert f"{PLACE}.maxUnavailable: 0 {EVICTS_NONE}" in found


@given(
    pods=st.integers(1, 12),
    field=st.sampled_from(["minAvailable", "maxUnavailable"]),
    limit=st.integers(0, 14) | st.integers(0, 100).map(lambda share: f"{share}%"),
)
def test_budget_is_warned_of_exactly_when_all_or_none_may_be_evicted(
    pods: int, field: str, limit: int | str
) -> None:
    # as the disruption controller counts: shares are rounded up, and no number is below zero
    share = int(limit[:-1]) if isinstance(limit, str) else 0
    number = -(-share * pods // 100) if isinstance(limit, str) else limit
    healthy = number if field == "minAvailable" else max(0, pods - number)
    evicts_none = healthy >= pods
    # the one pod of a version may go: a budget that kept it would hold up every drain
    says_all = limit in {"100%", "0%", 0}
    protects_none = healthy == 0 and (pods > 1 or says_all)
    found = warned(budget(**{field: limit}), replicas=pods)
    assert [text.endswith(EVICTS_NONE) for text in found] == [True] * evicts_none + [False] * protects_none


def test_budget_is_measured_by_the_fewest_and_the_most_pods_of_an_autoscaler() -> None:
    said = f"{PLACE}.minAvailable: 2 with minReplicas of scaling at 2 {EVICTS_NONE}"
    assert warned(budget(minAvailable=2), hpa(minReplicas=2)) == [said]
    assert warned(budget(minAvailable=1), hpa(minReplicas=2)) == []
    said = f"{PLACE}.maxUnavailable: 5 with maxReplicas of scaling at 5 {PROTECTS_NONE}"
    assert warned(budget(maxUnavailable=5), hpa()) == [said]
    said = f"{PLACE}.minAvailable: 50% with minReplicaCount of scaling at 1 {EVICTS_NONE}"
    assert warned(budget(minAvailable="50%"), keda(), template=POD) == [said]


def test_budget_is_measured_by_the_pods_that_draining_versions_have() -> None:
    draining = policy(drainingReplicas=1)
    said = f"{PLACE}.minAvailable: 2 with drainingReplicas at 1 {EVICTS_NONE}"
    assert warned(budget(minAvailable=2), draining, replicas=3) == [said]
    assert warned(budget("Draining", minAvailable=2), draining, replicas=3) == [said]
    assert warned(budget("Target,Current,Ramping", minAvailable=2), draining, replicas=3) == []
    assert warned(budget(maxUnavailable=1), draining, replicas=3) == []


def test_budget_that_needs_the_one_pod_of_a_worker_without_replicas_evicts_none() -> None:
    [warning] = warned(budget(minAvailable=1))
    assert f"minAvailable: 1 with replicas by default at 1 {EVICTS_NONE}" in warning
    assert warned(budget(maxUnavailable=1)) == []


def test_budget_is_in_order_where_nobody_here_says_how_many_pods_there_are() -> None:
    # the target is scaled by nobody here, before it is current
    assert warned(budget("Target", minAvailable=1), hpa("Current", minReplicas=1)) == []


def vpa(mode: str | None = "Auto", *policies: dict[str, Any], when: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"targetRef": {}, "resourcePolicy": {"containerPolicies": list(policies)}}
    spec |= {"updatePolicy": {"updateMode": mode}} if mode else {}
    template = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "spec": spec}
    found = attach(template, "requests")
    found["metadata"]["annotations"] = {"twgen.io/when": when} if when else {}
    return found


def by(resource: str, kind: str = "Utilization") -> dict[str, Any]:
    value = {"averageUtilization": 70} if kind == "Utilization" else {"averageValue": "1"}
    return {"type": "Resource", "resource": {"name": resource, "target": {"type": kind, **value}}}


REQUESTS = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
POD = {"spec": {"containers": [{"name": "w", "image": "payments:v3", **REQUESTS}]}}


@pytest.mark.parametrize("mode", [None, "Auto", "Recreate", "Initial"])
def test_vpa_that_changes_what_an_hpa_measures_by_is_warned_of(mode: str | None) -> None:
    why, off = f"{PLACE}: changes the cpu requests, but", 'scaling scales on them: write updateMode: "Off"'
    apart = ", or controlledResources: [memory]"
    hpas = [f"{why} HorizontalPodAutoscaler {off}{apart}"]
    assert warned(vpa(mode), hpa(metrics=[by("cpu")]), template=POD) == hpas
    assert warned(vpa(mode), keda(), template=POD) == [f"{why} ScaledObject {off}{apart}"]
    by_both = hpa(metrics=[by("cpu"), by("memory")])
    assert warned(vpa(mode), by_both, template=POD) == [f"{why} HorizontalPodAutoscaler {off}"]


def test_vpa_beside_pods_that_are_wrong_themselves_is_told_of_without_them() -> None:
    pod = {"spec": {"containers": [None, {"name": "w"}]}}
    assert parsed(worker(template=pod), CONNECTION, vpa(), hpa(metrics=[by("cpu")])).problems


@pytest.mark.parametrize(
    ("vertical", "horizontal"),
    [
        (vpa("Off"), hpa(metrics=[by("cpu")])),
        (vpa("Auto"), hpa(metrics=[by("cpu", "AverageValue")])),
        (vpa("Auto", {"containerName": "*", "controlledResources": ["memory"]}), hpa(metrics=[by("cpu")])),
        (vpa("Auto", {"containerName": "w", "mode": "Off"}), hpa(metrics=[by("cpu")])),
        (vpa("Auto", when="Draining"), hpa("Target,Current,Ramping", metrics=[by("cpu")])),
    ],
    ids=["only told", "by an amount", "another resource", "not this container", "never of one version"],
)
def test_vpa_beside_an_hpa_that_measures_by_something_else_is_in_order(
    vertical: dict[str, Any], horizontal: dict[str, Any]
) -> None:
    assert warned(vertical, horizontal, template=POD) == []


def scaled_by(
    kind: str, spec: dict[str, Any], *containers: dict[str, Any], first: dict[str, Any] | None = None
) -> list[str]:
    api = {"HorizontalPodAutoscaler": "autoscaling/v2", "ScaledObject": "keda.sh/v1alpha1"}[kind]
    autoscaler = {"scaleTargetRef": {}, "maxReplicas": 5, **spec}
    if kind == "ScaledObject":
        autoscaler["maxReplicaCount"] = autoscaler.pop("maxReplicas")
    attached = attach({"apiVersion": api, "kind": kind, "spec": autoscaler})
    pod = {"containers": [{"image": "payments:v3", **container} for container in containers]}
    if first:
        pod["initContainers"] = [{"name": "first", "image": "proxy:v1", **first}]
    found = parsed(worker(template={"spec": pod}), CONNECTION, attached)
    assert told(found.problems) == told(found.unknown_fields) == []
    return told(found.warnings)


def resource_metric(name: str, kind: str = "Utilization", container: str = "") -> dict[str, Any]:
    target = {"type": kind, "averageUtilization" if kind == "Utilization" else "averageValue": 60}
    found: dict[str, Any] = {"name": name, "target": target}
    if container:
        return {"type": "ContainerResource", "containerResource": {**found, "container": container}}
    return {"type": "Resource", "resource": found}


def unmeasured(index: int, resource: str, field: str = "containers") -> str:
    place = f"spec.template.spec.{field}[{index}].resources.requests.{resource}"
    return f"{place}: is missing, but scaler scales on its utilization; a LimitRange may set it"


SMALL = {"resources": {"requests": {"cpu": "100m"}}}
LIMITED = {"resources": {"limits": {"cpu": "1"}}}


def test_utilization_of_what_no_container_requests_is_warned_of() -> None:
    def scaled(metric: dict[str, Any], *containers: dict[str, Any]) -> list[str]:
        return scaled_by("HorizontalPodAutoscaler", {"metrics": [metric]}, *containers)

    cpu = resource_metric("cpu")
    assert scaled(cpu, {"name": "w"}, {"name": "proxy", **SMALL}) == [unmeasured(0, "cpu")]
    assert scaled(cpu, {"name": "w", **LIMITED}, {"name": "proxy", **SMALL}) == []
    assert scaled(resource_metric("memory"), {"name": "w", **SMALL}) == [unmeasured(0, "memory")]
    assert scaled(resource_metric("cpu", "AverageValue"), {"name": "w"}) == []
    of_one = resource_metric("cpu", container="w")
    assert scaled(of_one, {"name": "w", **SMALL}, {"name": "proxy"}) == []
    assert scaled(of_one, {"name": "proxy", **SMALL}) == [
        "spec.template.spec.containers: there is no container 'w', but scaler scales on its cpu"
    ]


def test_sidecar_among_the_init_containers_is_measured_too() -> None:
    def scaled(first: dict[str, Any], metric: dict[str, Any]) -> list[str]:
        worker = {"name": "w", **SMALL}
        return scaled_by("HorizontalPodAutoscaler", {"metrics": [metric]}, worker, first=first)

    sidecar = {"restartPolicy": "Always"}
    assert scaled(sidecar, resource_metric("cpu")) == [unmeasured(0, "cpu", "initContainers")]
    assert scaled({**sidecar, **SMALL}, resource_metric("cpu")) == []
    assert scaled({}, resource_metric("cpu")) == []
    assert scaled({**sidecar, **SMALL}, resource_metric("cpu", container="first")) == []


def test_utilization_that_keda_asks_for_is_warned_of_too() -> None:
    def scaled(trigger: dict[str, Any], container: dict[str, Any]) -> list[str]:
        return scaled_by("ScaledObject", {"minReplicaCount": 1, "triggers": [trigger]}, container)

    cpu = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}
    assert scaled(cpu, {"name": "w"}) == [unmeasured(0, "cpu")]
    assert scaled(cpu, {"name": "w", **SMALL}) == []
    assert scaled({**cpu, "metricType": "AverageValue"}, {"name": "w"}) == []


def test_autoscaler_and_pod_that_are_wrong_themselves_are_told_of_as_that() -> None:
    wrong = {"minReplicaCount": 1, "triggers": [{"type": {"cpu": 1}}, None]}
    container = {"name": "w", "image": "payments:v3"}
    pod = worker(template={"spec": {"containers": [None, container]}})
    attached = attach({"apiVersion": "keda.sh/v9", "kind": "ScaledObject", "spec": wrong})
    assert parsed(pod, CONNECTION, attached).problems


def test_policy_of_a_vpa_for_a_container_that_pods_do_not_have_is_warned_of() -> None:
    [warning] = warned(vpa("Off", {"containerName": "ww"}), template=POD)
    path = "spec.template.spec.resourcePolicy.containerPolicies[0].containerName"
    assert (
        warning == f"{path}: the pods have no container 'ww', so this policy has no effect; did you mean w?"
    )
    for name in ("w", "*", ""):
        assert warned(vpa("Off", {"containerName": name}), template=POD) == []


@pytest.mark.parametrize("name", ["istio-proxy", "linkerd-proxy", "daprd"])
def test_container_that_a_webhook_injects_can_be_scaled(name: str) -> None:
    assert warned(vpa("Off", {"containerName": "w"}, {"containerName": name}), template=POD) == []
    [warning] = warned(vpa("Off", {"containerName": f"{name}x"}), template=POD)
    assert "so this policy has no effect" in warning
    by_sidecar = {"metrics": [resource_metric("cpu", container=name)]}
    assert scaled_by("HorizontalPodAutoscaler", by_sidecar, {"name": "w", **SMALL}) == []


def test_bounds_of_a_vpa_that_are_unlikely_for_a_request_are_warned_of() -> None:
    def bounded(**bounds: dict[str, Any]) -> list[str]:
        return warned(vpa("Off", {"containerName": "w", **bounds}), template=POD)

    path = "spec.template.spec.resourcePolicy.containerPolicies[0]"
    little = "128m is less than a mebibyte, too little for any container: write Mi or Gi"
    for field in ("minAllowed", "maxAllowed"):
        assert bounded(**{field: {"memory": "128m"}}) == [f"{path}.{field}.memory: {little}"]
    cores = "is 500 whole cores: write 500m for millicores"
    assert bounded(minAllowed={"cpu": "500"}) == [f"{path}.minAllowed.cpu: {cores}"]
    assert bounded(minAllowed={"cpu": "50m", "memory": "64Mi"}, maxAllowed={"cpu": "1000"}) == []


def test_bounds_of_a_vpa_that_no_request_can_meet_are_warned_of() -> None:
    bounds = {"minAllowed": {"cpu": "500m", "memory": "1Gi"}, "maxAllowed": {"cpu": "0.5", "memory": "512Mi"}}
    [warning] = warned(vpa("Off", {"containerName": "*", **bounds}), template=POD)
    path = "spec.template.spec.resourcePolicy.containerPolicies[0].minAllowed.memory"
    assert warning == f"{path}: 1Gi is above maxAllowed.memory (512Mi): lower it"


def test_budget_whose_expressions_match_no_pod_of_the_worker_is_warned_of() -> None:
    for expression, count in (
        ({"key": "app", "operator": "Exists"}, 1),
        ({"key": "temporal.io/build-id", "operator": "Exists"}, 0),
        ({"key": "app", "operator": "In", "values": ["{{ .BuildID }}"]}, 0),
    ):
        selector = {"matchLabels": {}, "matchExpressions": [expression]}
        found = warned(budget(maxUnavailable=1, selector=selector), template=POD, replicas=3)
        assert sum("match no pod of the worker" in warning for warning in found) == count
