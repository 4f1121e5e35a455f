"""The templates of the page about scaling are valid, and measure each version alone."""

import json
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import EXAMPLE, ROOT, blocks, run
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

PAGE = (ROOT / "docs" / "scaling.md").read_text()
SHOWN = blocks(PAGE, "text")
BLOCKS = blocks(PAGE, "yaml")
TARGET = "v3.0.0-97f7"
AUTOSCALERS = {"HorizontalPodAutoscaler", "ScaledObject"}


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """The recorded example, without its autoscaler and the Deployments that it has sized."""
    shutil.copytree(EXAMPLE, folder := tmp_path / "specs")
    (folder / "scaling.yaml").unlink()
    snapshot = folder / "snapshot.yaml"
    [world] = read_documents(snapshot.read_text())
    del world["workers"][0]["deployments"]
    snapshot.write_text(write_documents([world]))
    return folder


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: read_documents(block)[0]["metadata"]["name"])
def test_template_is_valid_and_scales_each_version(specs: Path, block: str) -> None:
    (specs / "scaling.yaml").write_text(block)
    ended = run(specs, "validate", ".", "--strict", "-q")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    ended = run(specs, "render", ".", "--snapshot", "snapshot.yaml")
    scalers = [item for item in read_documents(ended.stdout) if item["kind"] in AUTOSCALERS]
    names = {scaler["spec"]["scaleTargetRef"]["name"] for scaler in scalers}
    assert names == {"payments-v1-4-2-458f", "payments-v2-0-1-65b5", "payments-v3-0-0-97f7"}


def test_page_shows_what_is_filled_in(specs: Path) -> None:
    (specs / "scaling.yaml").write_text(BLOCKS[0])
    ended = run(specs, "render", ".", "--snapshot", "snapshot.yaml")
    [scaler] = [
        item
        for item in read_documents(ended.stdout)
        if item["kind"] == "HorizontalPodAutoscaler"
        and item["metadata"]["labels"]["temporal.io/build-id"] == TARGET
    ]
    [shown, *_] = SHOWN
    for metric in scaler["spec"]["metrics"]:
        assert metric["external"]["metric"]["selector"]["matchLabels"] == read_documents(shown)[0]


def test_page_shows_why_an_autoscaler_must_keep_a_pod(specs: Path) -> None:
    (specs / "scaling.yaml").write_text(BLOCKS[0].replace("minReplicas: 2", "minReplicas: 0"))
    ended = run(specs, "validate", ".")
    [_, shown, _] = SHOWN
    assert ended.returncode == 1
    assert shown in ended.stdout


def test_trigger_of_keda_on_the_page_asks_for_the_backlog_of_one_version(specs: Path) -> None:
    [block] = [text for text in BLOCKS if "kind: ScaledObject" in text]
    (specs / "scaling.yaml").write_text(block)
    ended = run(specs, "render", ".", "--snapshot", "snapshot.yaml")
    scalers = [item for item in read_documents(ended.stdout) if item["kind"] == "ScaledObject"]
    assert len(scalers) == 3
    for scaler in scalers:
        [trigger] = scaler["spec"]["triggers"]
        assert trigger["metadata"]["namespace"] == "default"
        assert trigger["metadata"]["workerDeploymentName"] == "shop/payments"
        build_id = scaler["metadata"]["labels"]["temporal.io/build-id"]
        assert trigger["metadata"]["workerDeploymentBuildId"] == build_id


def test_autoscaler_of_the_page_leaves_replicas_out(specs: Path) -> None:
    (specs / "scaling.yaml").write_text(BLOCKS[0])
    ended = run(specs, "render", ".", "--snapshot", "snapshot.yaml")
    deployments = [item for item in read_documents(ended.stdout) if item["kind"] == "Deployment"]
    assert deployments
    assert [item for item in deployments if "replicas" in item["spec"]] == []


def test_page_shows_the_warning_about_two_autoscalers(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, folder := tmp_path / "specs")
    [world] = read_documents((folder / "snapshot.yaml").read_text())
    names = ("by-hand", f"payments-scaling-{TARGET.replace('.', '-')}-cb34d097")
    deployment = f"payments-{TARGET.replace('.', '-')}"
    world["workers"][0]["autoscalers"] = [
        {"kind": "HorizontalPodAutoscaler", "name": name, "deployment": deployment} for name in names
    ]
    (folder / "snapshot.yaml").write_text(write_documents([world]))
    ended = run(folder, "plan", ".", "--snapshot", "snapshot.yaml", "-o", "json")
    [worker] = json.loads(ended.stdout)["workers"]
    [*_, shown] = SHOWN
    assert " ".join(shown.split()) in worker["warnings"]
