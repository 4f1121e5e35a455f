"""What an API server takes of a worker's pods, and nobody means, is warned of."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, told, worker


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
    why = "is less than a mebibyte, and no container starts with that: write Mi or Gi"
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
