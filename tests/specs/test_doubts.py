"""What an API server takes of a worker's pods, and nobody means, is warned of."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, attach, parsed, told, worker


def doubts(**container: Any) -> list[str]:
    template = {"spec": {"containers": [{"name": "w", "image": "payments:v3", **container}]}}
    found = parsed(worker(template=template), CONNECTION)
    assert found.problems == found.unknown_fields == ()
    return told(found.warnings)


@pytest.mark.parametrize(("written", "told"), [("512m", "512m"), (512, "512"), ("1000", "1k")])
@pytest.mark.parametrize("field", ["limits", "requests"])
def test_memory_of_a_few_bytes_is_warned_of(field: str, written: str | int, told: str) -> None:
    [doubt] = doubts(resources={field: {"memory": written}})
    place = f"spec.template.spec.containers[0].resources.{field}.memory"
    why = "is less than a mebibyte, too little for any container: write Mi or Gi"
    assert doubt == f"{place}: {told} {why}"


@pytest.mark.parametrize("amount", ["1Mi", "512M", "0", 2**20, "1.5Gi"])
def test_memory_that_holds_a_program_is_not(amount: str | int) -> None:
    assert doubts(resources={"limits": {"memory": amount, "cpu": "500m"}}) == []


@pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe", "startupProbe"])
def test_probe_of_a_port_that_is_not_there_is_warned_of(probe: str) -> None:
    asked = {probe: {"httpGet": {"port": "health"}}}
    said = "there is no port named 'health': the probe always fails"
    assert doubts(**asked) == [f"spec.template.spec.containers[0].{probe}.httpGet.port: {said}"]
    assert doubts(**asked, ports=[{"name": "health", "containerPort": 8080}]) == []
    assert doubts(**{probe: {"tcpSocket": {"port": 8080}}}) == []


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
        "spec.template.spec.containers: there is no 'w', but scaler scales on its cpu"
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


@pytest.mark.parametrize("field", ["limits", "requests"])
@pytest.mark.parametrize(
    ("amounts", "doubt"),
    [
        ({"cpu": 500}, "cpu: is 500 whole cores: write 500m for thousandths of a core"),
        (
            {"cpu": "250", "memory": "512Mi"},
            "cpu: is 250 whole cores: write 250m for thousandths of a core",
        ),
        ({"cpu": "500M"}, "cpu: is 500000000 whole cores: write 500m for thousandths of a core"),
        ({"cpu": "1k"}, "cpu: is 1000 whole cores: write 1000m for thousandths of a core"),
        ({"memory": "512Ti"}, "memory: 512Ti is more than a node has: write Mi or Gi"),
        ({"cpu": "500m", "memory": "4Ti"}, "memory: 4Ti is more than a node has: write Mi or Gi"),
        ({"cpu": "500", "memory": "512Ti"}, "memory: 512Ti is more than a node has: write Mi or Gi"),
    ],
)
def test_resources_of_a_mistaken_unit_are_warned_of(field: str, amounts: dict[str, Any], doubt: str) -> None:
    assert doubts(resources={field: amounts}) == [
        f"spec.template.spec.containers[0].resources.{field}.{doubt}"
    ]


@pytest.mark.parametrize(
    "amounts", [{"cpu": "64", "memory": "1Ti"}, {"cpu": "180", "memory": "1900Gi"}, {"cpu": "99999m"}]
)
def test_resources_of_a_whole_machine_are_not(amounts: dict[str, str]) -> None:
    assert doubts(resources={"limits": amounts}) == []
