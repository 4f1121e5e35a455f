"""Specs of what runs already say what it says, and leave to a person what it does not."""

import json
from pathlib import Path
from typing import Any

import pytest

from twgen.errors import InvalidInput
from twgen.model.problem import Document
from twgen.specs.imports import Imported, imported
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule

CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "vectors" / "plans.json").read_text())
OF_A_SERVER = {
    "uid": "5f2c1b1e",
    "resourceVersion": "12",
    "generation": 3,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "finalizers": ["temporal.io/delete-protection"],
    "managedFields": [],
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "pay"},
}
CONTAINER = {
    "name": "worker",
    "image": "pay:1",
    "env": [
        {"name": "TEMPORAL_ADDRESS", "value": "temporal.example.com:7233"},
        {"name": "TEMPORAL_NAMESPACE", "value": "pay"},
        {"name": "LOG", "value": "info"},
    ],
}


def documents(*values: dict[str, Any]) -> list[Document]:
    return [Document("live.yaml", index, value) for index, value in enumerate(values)]


def deployment(**container: Any) -> dict[str, Any]:
    labels = {"app": "payments", "team": "pay"}
    pods = {
        "containers": [{**CONTAINER, **container}],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "payments", "namespace": "shop", **OF_A_SERVER},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "payments"}},
            "template": {"metadata": {"creationTimestamp": None, "labels": labels}, "spec": pods},
        },
        "status": {"replicas": 3},
    }


def parsed(specs: list[Imported]) -> Any:
    return parse_specs(documents(*(dict(spec.document) for spec in specs)), NamespaceRule("shop"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_objects_of_the_controller_are_the_same_versions_as_before(case: dict[str, Any]) -> None:
    live = [
        {**value, "metadata": {**OF_A_SERVER, **value["metadata"]}, "status": {"conditions": []}}
        for value in case["documents"]
    ]
    found, left = imported(documents(*live), "default")
    assert left == []
    before = parse_specs(documents(*case["documents"]), NamespaceRule())
    after = parse_specs(documents(*(dict(one.document) for one in found)), NamespaceRule())
    assert after.problems == ()
    assert [spec.build_id for spec in after.workers] == [spec.build_id for spec in before.workers]
    assert not {"status", "uid", "finalizers"} & {
        name for one in found for name in (*one.document, *one.document["metadata"])
    }


def test_plain_deployment_becomes_a_worker_and_its_connection() -> None:
    found, _ = imported(documents(deployment()), "")
    assert [one.file for one in found] == ["payments.yaml", "connection-temporal.yaml"]
    assert [one.missing for one in found] == [(), ()]
    specs = parsed(found)
    [worker] = specs.workers
    assert specs.problems == ()
    assert (worker.worker_deployment, worker.temporal_namespace) == ("shop/payments", "pay")
    assert (worker.connection.host_port, worker.replicas) == ("temporal.example.com:7233", 3)
    template = found[0].document["spec"]["template"]
    # what selects the old Deployment would take the new pods too
    assert template["metadata"]["labels"] == {"team": "pay"}
    assert template["spec"] == {
        "containers": [{"name": "worker", "image": "pay:1", "env": [{"name": "LOG", "value": "info"}]}]
    }


def test_what_a_deployment_does_not_tell_is_to_be_filled_in() -> None:
    found, _ = imported(documents(deployment(env=[])), "")
    assert [place for one in found for place in one.missing] == [
        "payments.yaml: spec.workerOptions.temporalNamespace, if it is not default",
        "connection-temporal.yaml: spec.hostPort",
    ]


def test_over_a_file_it_changes_what_runs_and_nothing_that_a_person_decides() -> None:
    [worker, connection], _ = imported(documents(deployment()), "")
    rollout = {"strategy": "Progressive", "steps": [{"rampPercentage": 5, "pauseDuration": "10m"}]}
    existing = {**worker.document, "spec": {**worker.document["spec"], "rollout": rollout, "replicas": 1}}
    [newer, _], _ = imported(documents(deployment(image="pay:2")), "")
    over = newer.over(existing)
    assert (over["spec"]["rollout"], over["spec"]["replicas"]) == (rollout, 3)
    assert over["spec"]["template"]["spec"]["containers"][0]["image"] == "pay:2"
    secret = {"name": "temporal", "key": "api-key"}
    known = {**connection.document, "spec": {"hostPort": "other:7233", "apiKeySecretRef": secret}}
    assert connection.over(known)["spec"] == {
        "hostPort": "temporal.example.com:7233",
        "apiKeySecretRef": secret,
    }


def test_versions_and_other_objects_are_left_and_told() -> None:
    version = deployment()
    version["metadata"] = {**version["metadata"], "labels": {"temporal.io/build-id": "v1"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    assert imported(documents(version, service), "") == (
        [],
        [
            "live.yaml: Deployment payments is not taken: it is that of a version",
            "live.yaml: Service web is not taken: it is neither the controller's nor a Deployment",
        ],
    )


def test_two_objects_of_one_file_are_refused() -> None:
    other = deployment()
    other["metadata"] = {**other["metadata"], "namespace": "mail"}
    with pytest.raises(InvalidInput, match=r"two objects belong into payments\.yaml"):
        imported(documents(deployment(), other), "")
