"""The page on rendered manifests shows the examples as they are, and says what a render prints."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testing.install import installed
from testing.processes import ENVIRONMENT
from testing.recipes import KUSTOMIZE
from tests.docs.pages import EXAMPLE, ROOT, blocks, run
from twgen.versioning.names import COMPARE_OPTIONS, NOT_PRUNED, SYNC_OPTIONS
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

PAGE = (ROOT / "docs" / "rendered-manifests.md").read_text()
EXAMPLES = ROOT / "examples" / "rendered"
BLOCKS = blocks(PAGE, "yaml")
PRUNE = "kustomize.toolkit.fluxcd.io/prune"
TWGEN = Path(sys.executable).with_name("twgen")

Object = dict[str, Any]


def rendered(*options: str) -> list[Object]:
    ended = run(EXAMPLE, "render", ".", "--snapshot", "snapshot.yaml", "-q", *options)
    assert ended.returncode == 0, ended.stderr
    return read_documents(ended.stdout)


def annotations(manifest: Object) -> dict[str, str]:
    found: dict[str, str] = manifest["metadata"].get("annotations", {})
    return found


def patched(folder: Path, manifests: list[Object]) -> list[Object]:
    """Manifests as Flux builds them with the patches of the example."""
    _, kustomization = read_documents((EXAMPLES / "flux.yaml").read_text())
    (folder / "workers.yaml").write_text(write_documents(manifests))
    built = {"resources": ["workers.yaml"], "patches": kustomization["spec"]["patches"]}
    (folder / "kustomization.yaml").write_text(write_documents([built]))
    command = [str(installed(KUSTOMIZE)), "build", str(folder)]
    return read_documents(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name", ["render", "flux", "argocd"])
def test_page_shows_each_example_as_it_is(name: str) -> None:
    assert (EXAMPLES / f"{name}.yaml").read_text() in BLOCKS
    assert f"(../examples/rendered/{name}.yaml)" in PAGE


@pytest.mark.server
def test_flux_keeps_what_argocd_would_keep_and_deletes_the_rest(tmp_path: Path) -> None:
    manifests = rendered("--operator-config", "operator.yaml")
    # a version that a render lets go: as a live one is, it still has what Flux put on it
    [going, *_] = [item for item in manifests if item["kind"] == "Deployment"]
    annotations(going)[SYNC_OPTIONS] = "ServerSideApply=true"
    annotations(going)[PRUNE] = "disabled"
    del annotations(going)[COMPARE_OPTIONS]
    kept = {True: set(), False: set()}  # type: dict[bool, set[str]]
    for item in patched(tmp_path, manifests):
        is_protected = NOT_PRUNED in annotations(item).get(SYNC_OPTIONS, "")
        assert annotations(item)[PRUNE] == ("disabled" if is_protected else "enabled")
        kept[is_protected].add(item["kind"])
    assert kept[True] == {"Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
    assert kept[False] >= {"Deployment", "ConfigMap", "Job", "Role"}


@pytest.mark.server
def test_patches_change_nothing_but_the_annotation(tmp_path: Path) -> None:
    manifests = rendered("--operator-config", "operator.yaml")
    built = {(item["kind"], item["metadata"]["name"]): item for item in patched(tmp_path, manifests)}
    assert len(built) == len(manifests)
    for item in manifests:
        found = built[item["kind"], item["metadata"]["name"]]
        del annotations(found)[PRUNE]
        if "annotations" not in item["metadata"]:
            del found["metadata"]["annotations"]
        assert found == item


def test_job_of_a_render_is_a_plain_one_that_stays_the_same() -> None:
    first, second = (
        [item for item in rendered("--operator-config", "operator.yaml") if item["kind"] == "Job"]
        for _ in range(2)
    )
    assert first == second
    [job] = first
    assert re.fullmatch(r"payments-rollout-[0-9a-f]{8}", job["metadata"]["name"])
    assert "generateName" not in job["metadata"]
    assert "ttlSecondsAfterFinished" not in job["spec"]
    assert [name for name in annotations(job) if "argocd" in name] == []
    assert [item for item in rendered() if item["kind"] == "Job"] == [], "an operator names the image"


def test_step_of_the_page_renders_the_job(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "specs" / "workers")
    shutil.copy(EXAMPLE / "operator.yaml", tmp_path / "specs" / "operator.yaml")
    (commands := tmp_path / "bin").mkdir()
    (commands / "twgen").symlink_to(TWGEN)
    [[step]] = [found for text in BLOCKS for found in read_documents(text) if isinstance(found, list)]
    subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=tmp_path,
        env={
            **ENVIRONMENT,
            "PATH": f"{commands}:{ENVIRONMENT['PATH']}",
            "TWGEN_SNAPSHOT": str(EXAMPLE / "snapshot.yaml"),
        },
        check=True,
        capture_output=True,
    )
    kinds = {item["kind"] for item in read_documents((tmp_path / "rendered.yaml").read_text())}
    assert {"ConfigMap", "Job", "ServiceAccount"} <= kinds
