from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, worker
from tests.versioning.vectors import vectors
from twgen.model.shapes import Findings
from twgen.specs import connections
from twgen.specs.fields import Fields
from twgen.versioning.build_ids import build_id, connection_hash, pod_template_hash
from twgen.versioning.names import selector_labels, versioned_deployment_name
from twgen.versioning.stored_form import stored_template, template_json

ELSEWHERE = {"deployment", "workerDeploymentName"}
"""Compared in tests/rendering, whose Deployments hold the worker deployment's name in their environment."""


@pytest.mark.parametrize("case", vectors("versions.json"), ids=lambda case: case["name"])
def test_version_is_what_the_controller_computes(case: dict[str, Any]) -> None:
    expect = {key: value for key, value in case["expect"].items() if key not in ELSEWHERE}
    assert _computed(case["worker"], case["connection"]["spec"]) == expect


def _computed(worker: dict[str, Any], connection: dict[str, Any]) -> dict[str, Any]:
    stored = stored_template(worker["spec"]["template"], "spec.template").value
    encoded = template_json(stored)
    image = stored["spec"]["containers"][0].get("image", "")
    build = build_id(encoded, image, worker["spec"]["workerOptions"].get("unsafeCustomBuildID", ""))
    name = worker["metadata"]["name"]
    parsed = Fields(connection, "spec", Findings()).read(connections.CONNECTION)
    return {
        "templateJSON": encoded,
        "buildID": build,
        "versionedDeploymentName": versioned_deployment_name(name, build),
        "selectorLabels": selector_labels(name, build),
        "podTemplateSpecHash": pod_template_hash(encoded),
        "connectionSpecHash": connection_hash(parsed),
    }


PODS, NAMES = (
    [case for case in vectors("golden.json") if ("template" in case) is has_pods]
    for has_pods in (True, False)
)


@pytest.mark.parametrize("is_of_today", [False, True], ids=["template", "deployment"])
@pytest.mark.parametrize("case", PODS, ids=lambda case: case["name"])
def test_version_is_what_the_controller_has_promised_to_keep(
    case: dict[str, Any], *, is_of_today: bool
) -> None:
    pods = {"template": case["template"]}
    value = worker(template=None, deployment=pods) if is_of_today else worker(**pods)
    value["metadata"] = {"name": case["worker"], "namespace": "staging"}
    value["spec"]["workerOptions"]["unsafeCustomBuildID"] = case.get("unsafeCustomBuildID", "")
    connection = {**CONNECTION, "metadata": {"name": "temporal", "namespace": "staging"}}
    [spec] = parsed(value, connection).workers
    computed = {
        "buildID": spec.build_id,
        "hash": spec.build_id[-4:],
        "workerDeploymentName": spec.worker_deployment,
        "versionedDeploymentName": versioned_deployment_name(spec.name, spec.build_id),
        "selectorLabels": selector_labels(spec.name, spec.build_id),
    }
    told = {name: value for name, value in case.items() if name in computed}
    assert told
    assert {name: computed[name] for name in told} == told


@pytest.mark.parametrize("case", NAMES, ids=lambda case: case["name"])
def test_name_is_what_the_controller_has_promised_to_keep(case: dict[str, Any]) -> None:
    assert versioned_deployment_name(case["worker"], case["buildID"]) == case["versionedDeploymentName"]
