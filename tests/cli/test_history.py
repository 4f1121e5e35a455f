"""A version that only the commits of its spec still know, by the real command."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from testing.processes import ENVIRONMENT
from tests.cli.conftest import Run
from tests.cli.test_argocd_settings import OPERATOR, plugin

GIT = {**ENVIRONMENT, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
RENDER = ("render", "specs", "--snapshot", "snapshot.json", "-o", "json", "--identity", "twgen/x")
OPERATOR_FILE = "operator.json"


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=team", "-c", "user.email=team@example.com", *arguments]
    subprocess.run(command, cwd=folder, env=GIT, check=True, capture_output=True)


@pytest.fixture
def lost(story: Path) -> Path:
    """The story in a cluster that has lost its current version, and in Git a commit after its last one."""
    target = story / "specs" / "workerdeployment.json"
    newest = target.read_text()
    snapshot: dict[str, Any] = json.loads((story / "snapshot.json").read_text())
    [worker] = snapshot["workers"]
    [current] = (
        item
        for item in worker["deployments"]
        if item["metadata"]["labels"]["temporal.io/build-id"]
        == worker["temporal"]["routing"]["current"]["buildID"]
    )
    worker["deployments"].remove(current)
    old = json.loads(newest)
    old["spec"]["workerOptions"]["unsafeCustomBuildID"] = worker["temporal"]["routing"]["current"]["buildID"]
    old["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example.com/pay:lost"
    (story / "snapshot.json").write_text(json.dumps(snapshot))
    (story / OPERATOR_FILE).write_text(json.dumps(OPERATOR))
    git(story, "init", "--quiet")
    for text in (json.dumps(old), newest):
        target.write_text(text)
        git(story, "add", "specs")
        git(story, "commit", "--quiet", "--message=change")
    return story


def images(output: str) -> list[str]:
    return [
        item["spec"]["template"]["spec"]["containers"][0]["image"]
        for item in json.loads(output)["items"]
        if item["kind"] == "Deployment"
    ]


@pytest.mark.usefixtures("lost")
def test_version_that_the_cluster_lost_comes_back_from_git(run: Run) -> None:
    ended = run(*RENDER)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "registry.example.com/pay:lost" in images(ended.stdout)
    assert run(*RENDER).stdout == ended.stdout


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"ARGOCD_APP_REVISION": "a" * 40}, "Argo CD left out .git (reposerver.plugin.tar.exclusions)"),
        ({"ARGOCD_APP_SOURCE_REPO_URL": "oci://registry.example.com/specs"}, "is an OCI image"),
        ({"ARGOCD_APP_REVISION": "1.2.3"}, "is not a Git commit"),
    ],
)
def test_plugin_without_git_says_why_it_has_none(
    run: Run, lost: Path, variables: dict[str, str], why: str
) -> None:
    (lost / ".git").rename(lost / "elsewhere")
    ended = run("plan", *RENDER[1:], env=plugin(lost / OPERATOR_FILE, **variables))
    [worker] = json.loads(ended.stdout)["workers"]
    [lost_one] = (version for version in worker["versions"] if version["reason"] == "ManifestLost")
    [told] = (text for text in worker["warnings"] if text.startswith(lost_one["buildID"]))
    assert why in told
    assert why in run(*RENDER, env=plugin(lost / OPERATOR_FILE, **variables)).stderr


def test_drained_version_of_an_unread_cluster_is_taken_to_zero_by_what_git_knows(
    run: Run, lost: Path
) -> None:
    """Its Deployment may have kept pods and protection: no sync fell between the delays."""
    snapshot: dict[str, Any] = json.loads((lost / "snapshot.json").read_text())
    [worker] = snapshot["workers"]
    routing = worker["temporal"]["routing"]
    old, target = routing["current"]["buildID"], routing["ramping"]["buildID"]
    long_ago = {"status": "Drained", "changedAt": "2026-01-02T00:00:00Z", "checkedAt": "2026-01-02T00:00:00Z"}
    worker["temporal"]["routing"] = {"current": {"buildID": target, "since": "2026-01-01T12:00:00Z"}}
    worker["temporal"]["versions"] = [
        {"buildID": target, "status": "Current", "createdAt": "2026-01-01T11:00:00Z"},
        {
            "buildID": old,
            "status": "Drained",
            "createdAt": "2026-01-01T00:00:00Z",
            "firstActivatedAt": "2026-01-01T00:00:00Z",
            "lastDeactivatedAt": "2026-01-01T12:00:00Z",
            "drainage": long_ago,
            "openWorkflows": 0,
        },
    ]
    del worker["deployments"]
    (lost / "snapshot.json").write_text(json.dumps(snapshot))
    ended = run(*RENDER)
    assert (ended.returncode, ended.stderr) == (0, "")
    [rendered] = (
        item
        for item in json.loads(ended.stdout)["items"]
        if item["kind"] == "Deployment" and item["metadata"]["labels"]["temporal.io/build-id"] == old
    )
    assert rendered["spec"]["replicas"] == 0
    assert "Prune=false" not in rendered["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
    assert images(ended.stdout)[0] == "registry.example.com/pay:lost"
