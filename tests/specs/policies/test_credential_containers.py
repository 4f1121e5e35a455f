"""The containers that a policy gives the credentials to, and mistakes in their names."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, policy, told, worker

PODS = {"spec": {"containers": [{"name": "worker", "image": "pay:1"}, {"name": "proxy", "image": "envoy:1"}]}}
OTHER = {**worker(), "metadata": {"name": "other", "namespace": "shop"}}
"""A worker whose only container is `w`."""


def found(*names: str, of: str = "payments") -> Any:
    named = {"workerRef": {"name": of}} if of else {}
    documents = (worker(template=PODS), OTHER, CONNECTION)
    return parsed(*documents, policy(credentialContainers=list(names), **named))


def test_containers_of_the_worker_are_taken() -> None:
    specs = found("worker")
    assert (specs.problems, specs.warnings) == ((), ())
    assert {item.name: item.policy.credential_containers for item in specs.workers} == {
        "payments": ("worker",),
        "other": None,
    }


@pytest.mark.parametrize(
    ("specs", "wrong"),
    [
        (found("wroker"), "[0]: 'wroker' is not a container of payments; did you mean worker?"),
        (found("worker", "w"), "[1]: 'w' is not a container of payments"),
        (found(), ": must not be empty"),
        (found("worker", "worker"), "[1]: 'worker' appears twice"),
        (found("nothing", of=""), "[0]: 'nothing' is not a container of any of its workers"),
        (found("worker", of=""), ": contains no container of other, which would get no credentials"),
    ],
)
def test_container_that_a_worker_lacks_is_a_problem(specs: Any, wrong: str) -> None:
    assert told(specs.problems) == [f"spec.credentialContainers{wrong}"]


def test_policy_of_a_namespace_may_name_the_containers_of_several_workers() -> None:
    assert found("worker", "w", of="").problems == ()
