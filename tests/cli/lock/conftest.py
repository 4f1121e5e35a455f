"""A worker in a Git repository, and the ledger that two branches have locked."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from testing.processes import ENVIRONMENT
from tests.cli.conftest import Ended, Run

GIT = {
    **ENVIRONMENT,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
CONNECTION = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "Connection",
    "metadata": {"name": "temporal", "namespace": "shop"},
    "spec": {"hostPort": "temporal.example.com:7233"},
}


def worker(folder: Path, name: str, image: str, build_id: str = "") -> None:
    options = {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"}
    document = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "workerOptions": options | ({"unsafeCustomBuildID": build_id} if build_id else {}),
            "rollout": {"strategy": "AllAtOnce"},
            "template": {"spec": {"containers": [{"name": "worker", "image": image}]}},
        },
    }
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1))


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A folder with the spec of worker `pay`, which is a Git repository in `tmp_path`."""
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "connection.json").write_text(json.dumps(CONNECTION))
    worker(folder, "pay", "pay:v1")
    git(tmp_path, "init", "-q", "-b", "main")
    return folder


def git(folder: Path, *arguments: str, succeeds: bool = True) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=GIT, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) is succeeds, done.stdout + done.stderr
    return done.stdout


def locked(run: Run, *paths: str | Path) -> None:
    ended = run("lock", *(paths or ("specs",)))
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a change")


def refused(ended: Ended, code: int, *parts: str) -> None:
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    assert "Traceback" not in ended.stderr
    for part in parts:
        assert part in ended.stderr


def two_versions_on_two_branches(run: Run, specs: Path, *, locked_before: bool = True) -> Path:
    """The ledger file of `pay`, to which branch v2 and this one, v3, have added versions, merged."""
    root = specs.parent
    if locked_before:
        locked(run)
    commit(root)
    for tag in ("v2", "v3"):
        git(root, "checkout", "-q", "-b", tag, "main")
        worker(specs, "pay", f"pay:{tag}")
        locked(run)
        commit(root)
    git(root, "merge", "-q", "v2", succeeds=False)  # the spec itself is in conflict
    return specs / "twgen.lock" / "shop.pay.yaml"


@pytest.fixture
def conflict(run: Run, specs: Path) -> Path:
    """The ledger file of `pay`, in conflict, as where no attributes are read; the spec is solved."""
    (specs.parent / ".git" / "info" / "attributes").write_text("*.yaml merge\n")
    file = two_versions_on_two_branches(run, specs)
    worker(specs, "pay", "pay:v3")
    return file


def empty_world(folder: Path) -> Path:
    path = folder / "empty.json"
    known: dict[str, Any] = {"name": "shop/pay", "temporalNamespace": "default", "temporal": None}
    told = {"apiVersion": "twgen.io/v1alpha1", "kind": "Snapshot", "takenAt": "2026-11-21T12:00:00Z"}
    path.write_text(json.dumps({**told, "workers": [known]}))
    return path
