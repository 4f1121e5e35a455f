"""Whole objects equal those of the Temporal Worker Controller."""

import json
from pathlib import Path
from typing import Any

import pytest

from twgen.model.plan import VersionAction, VersionPlan
from twgen.model.problem import Document
from twgen.model.reasons import VersionReason
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.rendering.deployments import attached_manifest, target_deployment
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.versioning.names import versioned_deployment_name

VECTORS = Path(__file__).parents[1] / "fixtures" / "vectors"
VERSIONS = json.loads((VECTORS / "versions.json").read_text())
RESOURCES = json.loads((VECTORS / "resources.json").read_text())
OUR_ANNOTATIONS = ("twgen.io/", "argocd.argoproj.io/")


def worker(case: dict[str, Any]) -> WorkerSpec:
    documents = [Document("", 0, case["worker"]), Document("", 1, case["connection"])]
    specs = parse_specs(documents, NamespaceRule())
    assert specs.problems == ()
    return specs.workers[0]


def without_ours(deployment: dict[str, Any]) -> dict[str, Any]:
    """Less what the vectors' README says that twgen may add."""
    metadata = dict(deployment["metadata"])
    del metadata["labels"]["app.kubernetes.io/managed-by"]
    annotations = {
        name: value
        for name, value in metadata.pop("annotations").items()
        if not name.startswith(OUR_ANNOTATIONS)
    }
    spec = {name: value for name, value in deployment["spec"].items() if name != "progressDeadlineSeconds"}
    return {"metadata": metadata | ({"annotations": annotations} if annotations else {}), "spec": spec}


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: case["name"])
def test_deployment_equals_the_controllers(case: dict[str, Any]) -> None:
    expected = case["expect"]["deployment"]
    del expected["metadata"]["ownerReferences"]
    del expected["spec"]["strategy"]
    del expected["status"]
    deployment = target_deployment(worker(case))
    assert (deployment.pop("apiVersion"), deployment.pop("kind")) == ("apps/v1", "Deployment")
    assert without_ours(deployment) == expected


@pytest.mark.parametrize("case", RESOURCES, ids=lambda case: case["name"])
def test_attached_object_equals_the_controllers(case: dict[str, Any]) -> None:
    resource, spec = case["resource"], case["resource"]["spec"]
    reference = spec.get("workerDeploymentRef") or spec["temporalWorkerDeploymentRef"]
    owner = worker(VERSIONS[0])
    owner = WorkerSpec(
        **{name: getattr(owner, name) for name in owner.__slots__}
        | {"name": reference["name"], "temporal_namespace": case["temporalNamespace"]}
    )
    version = VersionPlan(
        build_id=case["buildID"],
        status=VersionStatus.CURRENT,
        deployment=versioned_deployment_name(owner.name, case["buildID"]),
        action=VersionAction.KEEP,
        because="it is tested",
        reason=VersionReason.IN_USE,
    )
    attached = AttachedResource(resource["metadata"]["name"], spec["template"], autoscales=False)
    rendered = attached_manifest(owner, version, attached)
    del rendered["metadata"]["labels"]["app.kubernetes.io/managed-by"]
    del rendered["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
    if not rendered["metadata"]["annotations"]:
        del rendered["metadata"]["annotations"]
    expected = case["expect"]
    del expected["metadata"]["ownerReferences"]
    assert rendered == expected
