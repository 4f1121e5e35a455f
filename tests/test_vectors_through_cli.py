"""All that the Temporal Worker Controller computes, through the real command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.planning.differences import DIFFERENT
from twgen.cli.main import twgen
from twgen.errors import InvalidDocuments

VECTORS = Path(__file__).parent / "fixtures" / "vectors"
VERSIONS, RESOURCES, PLANS = (
    json.loads((VECTORS / f"{name}.json").read_text()) for name in ("versions", "resources", "plans")
)
REFUSED = {"hpa-fixed-target", "pdb-own-labels", "keda", "nested-scale-targets", "no-spec"}
"""What the controller's admission webhook refuses, and twgen's validation too."""
NOW = "2026-11-21T12:00:00Z"


def ran(folder: Path, command: str, *arguments: str, documents: list[Any], world: dict[str, Any]) -> Any:
    """What a command prints as JSON for documents, one in each file, and a snapshot."""
    specs = folder / "specs"
    specs.mkdir()
    for index, document in enumerate(documents):
        (specs / f"{index}.json").write_text(json.dumps(document))
    snapshot = folder / "snapshot.json"
    # the controller calls itself otherwise than twgen may
    snapshot.write_text(json.dumps(world).replace('"twc"', '"twgen/twc"'))
    line = [command, str(specs), "--snapshot", str(snapshot), "--identity", "twc", "-o", "json", *arguments]
    return json.loads(CliRunner().invoke(twgen, line, catch_exceptions=False).stdout)


def unknown(worker: dict[str, Any], temporal_namespace: str) -> dict[str, Any]:
    """A snapshot in which Temporal has never heard of the worker."""
    metadata = worker["metadata"]
    entry: dict[str, Any] = {
        "name": f"{metadata['namespace']}/{metadata['name']}",
        "temporalNamespace": temporal_namespace,
        "temporal": None,
        "deployments": [],
    }
    return {"apiVersion": "twgen.io/v1alpha1", "kind": "Snapshot", "takenAt": NOW, "workers": [entry]}


def without_ours(manifest: dict[str, Any]) -> dict[str, Any]:
    """Less what the vectors' README says that twgen may add, and what it leaves out."""
    metadata, body = dict(manifest["metadata"]), dict(manifest.get("spec") or {})
    metadata.pop("ownerReferences", None)
    metadata["labels"] = {
        name: value for name, value in metadata["labels"].items() if name != "app.kubernetes.io/managed-by"
    }
    kept = {
        name: value
        for name, value in metadata.pop("annotations", {}).items()
        if not name.startswith(("twgen.io/", "argocd.argoproj.io/"))
    }
    for name in ("progressDeadlineSeconds", "strategy"):
        if name == "progressDeadlineSeconds" or not body.get(name, True):
            body.pop(name, None)
    return {"metadata": metadata | ({"annotations": kept} if kept else {}), "spec": body}


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: case["name"])
def test_render_prints_the_deployment_of_the_controller(case: dict[str, Any], tmp_path: Path) -> None:
    worker = case["worker"]
    world = unknown(worker, worker["spec"]["workerOptions"]["temporalNamespace"])
    printed = ran(
        tmp_path, "render", "--now", NOW, "--no-hooks", documents=[worker, case["connection"]], world=world
    )
    (deployment,) = printed["items"]
    assert without_ours(deployment) == without_ours(case["expect"]["deployment"])


def resource_documents(case: dict[str, Any]) -> list[dict[str, Any]]:
    spec = case["resource"]["spec"]
    reference = spec.get("workerDeploymentRef") or spec["temporalWorkerDeploymentRef"]
    plain = VERSIONS[0]["worker"]
    options = {
        **plain["spec"]["workerOptions"],
        "temporalNamespace": case["temporalNamespace"],
        "unsafeCustomBuildID": case["buildID"],
    }
    worker = {
        **plain,
        "metadata": {**plain["metadata"], "name": reference["name"]},
        "spec": {**plain["spec"], "workerOptions": options},
    }
    return [worker, VERSIONS[0]["connection"], case["resource"]]


@pytest.mark.parametrize("case", RESOURCES, ids=lambda case: case["name"])
def test_render_prints_the_attached_object_of_the_controller(case: dict[str, Any], tmp_path: Path) -> None:
    documents = resource_documents(case)
    arguments = ["--now", NOW, "--no-hooks"]
    world = unknown(documents[0], case["temporalNamespace"])
    if case["name"] in REFUSED:
        with pytest.raises(InvalidDocuments):
            ran(tmp_path, "render", *arguments, documents=documents, world=world)
        return
    printed = ran(tmp_path, "render", *arguments, documents=documents, world=world)
    (attached,) = (item for item in printed["items"] if item["kind"] != "Deployment")
    assert (attached["apiVersion"], attached["kind"]) == (
        case["expect"]["apiVersion"],
        case["expect"]["kind"],
    )
    assert without_ours(attached) == without_ours(case["expect"])


@pytest.mark.parametrize("case", PLANS, ids=lambda case: case["name"])
def test_plan_prints_what_the_controller_would_do(case: dict[str, Any], tmp_path: Path) -> None:
    printed = ran(tmp_path, "plan", "--now", case["now"], documents=case["documents"], world=case["snapshot"])
    (worker,) = printed["workers"]
    (known,) = case["snapshot"]["workers"]
    expected = case["expect"] | DIFFERENT.get(case["name"], {})
    assert as_the_controller_says_it(worker, known["deployments"]) == expected


def as_the_controller_says_it(worker: dict[str, Any], deployments: list[dict[str, Any]]) -> dict[str, Any]:
    live = {
        item["metadata"]["labels"]["temporal.io/build-id"]: item["spec"].get("replicas", 1)
        for item in deployments
    }
    target, change = worker["targetBuildID"], worker["routing"]
    by_action: dict[str, list[str]] = {}
    for version in worker["versions"]:
        by_action.setdefault(version["action"], []).append(version["buildID"])
    moved = {
        "buildID": change["buildID"],
        "claimManager": change["claimManager"],
        "rampPercentage": change["percentage"] or 0,
        "setCurrent": change["action"] == "SetCurrent",
    }
    return {
        "createTarget": target in by_action.get("Create", ()),
        "deleteDeployments": by_action.get("Drop", []),
        "routing": None if change["action"] == "None" else moved,
        "scaleDeployments": {
            version["buildID"]: version["replicas"]
            for version in worker["versions"]
            if version["buildID"] in live and version["replicas"] not in {None, live[version["buildID"]]}
        },
        "startTestWorkflows": worker["gates"],
        "targetBuildID": target,
        "updateDeployments": by_action.get("Update", []),
    }
