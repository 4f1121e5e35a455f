"""Old versions from the commits of their specs, in real Git repositories."""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testing.processes import ENVIRONMENT
from twgen.model.spec import WorkerSpec
from twgen.model.world import GitHistory
from twgen.reading.documents import Sources, read_paths
from twgen.reading.history import SpecSources, read_history
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule

RULE = NamespaceRule("shop")
CONNECTION = """
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {name: temporal}
spec: {hostPort: "%s:7233"}
"""
POLICY = """
apiVersion: twgen.io/v1alpha1
kind: RolloutPolicy
metadata: {name: pay}
spec: {workerRef: {name: pay}, environment: %s, connectionChanges: %s}
"""


def worker(version: str, *, name: str = "pay", replicas: int = 2, custom: str = "") -> str:
    build_id = f", unsafeCustomBuildID: {custom}" if custom else ""
    return f"""
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  workerOptions: {{connectionRef: {{name: temporal}}, temporalNamespace: default{build_id}}}
  rollout: {{strategy: AllAtOnce}}
  template: {{spec: {{containers: [{{name: worker, image: "registry.example.com/pay:{version}"}}]}}}}
"""


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, text: str = "") -> str:
        settings = ("-c", "user.name=team", "-c", "user.email=team@example.com", "-c", "commit.gpgSign=false")
        environment = {**ENVIRONMENT, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", *settings, *arguments]
        ended = subprocess.run(
            command, cwd=self.root, env=environment, input=text, text=True, check=True, capture_output=True
        )
        return ended.stdout.strip()

    def commit(self, files: Mapping[str, str | None]) -> dict[str, str]:
        """Write files (None: remove) and commit; the build IDs of the workers in their folder."""
        for name, text in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink()
            else:
                file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=change")
        folders = [self.root / name for name in ("app", "apps/pay") if (self.root / name).exists()]
        return {spec.name: spec.build_id for spec in specs(folders[-1])} if folders else {}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def specs(folder: Path) -> tuple[WorkerSpec, ...]:
    return parse_specs(read_paths([str(folder)], Sources()).documents, RULE).workers


def history(folder: Path, *build_ids: str, name: str = "pay", seconds: float = 30) -> GitHistory:
    [spec] = (spec for spec in specs(folder) if spec.name == name)
    sources = SpecSources([str(folder)], RULE, ())
    return read_history(spec, build_ids, sources, time.monotonic() + seconds, "there is none")


def pod(found: GitHistory, build_id: str) -> dict[str, Any]:
    template: dict[str, Any] = found.versions[build_id].manifest["spec"]["template"]["spec"]
    return template


def variables(found: GitHistory, build_id: str) -> dict[str, str]:
    return {item["name"]: item["value"] for item in pod(found, build_id)["containers"][0]["env"]}


def test_old_version_is_found_in_the_commits_of_its_spec(repository: Repository) -> None:
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    second = repository.commit({"app/pay.yaml": worker("2", replicas=5)})["pay"]
    repository.commit({"app/pay.yaml": worker("3")})
    found = history(repository.root / "app", first, second)
    assert not found.ends
    assert {build_id: recorded.replicas for build_id, recorded in found.versions.items()} == {
        first: 2,
        second: 5,
    }
    assert pod(found, first)["containers"][0]["image"] == "registry.example.com/pay:1"


def test_commit_that_changed_connection_and_policy_too_leaves_older_versions_theirs(
    repository: Repository,
) -> None:
    first = repository.commit(
        {
            "app/pay.yaml": worker("1"),
            "app/temporal.yaml": CONNECTION % "old",
            "app/policy.yaml": POLICY % ("HostPort", "Target"),
        }
    )["pay"]
    repository.commit(
        {
            "app/pay.yaml": worker("2"),
            "app/temporal.yaml": CONNECTION % "new",
            "app/policy.yaml": POLICY % ("Current", "Target"),
        }
    )
    found = history(repository.root / "app", first)
    assert variables(found, first)["TEMPORAL_HOST_PORT"] == "old:7233"


@pytest.mark.parametrize(("changes", "address"), [("Target", "new"), ("NewVersionsOnly", "old")])
def test_connection_that_reached_a_live_target_is_that_of_its_last_commit(
    repository: Repository, changes: str, address: str
) -> None:
    first = repository.commit(
        {
            "app/pay.yaml": worker("1"),
            "app/temporal.yaml": CONNECTION % "old",
            "app/policy.yaml": POLICY % ("HostPort", changes),
        }
    )["pay"]
    repository.commit(
        {
            "app/temporal.yaml": CONNECTION % "new",
            "app/policy.yaml": POLICY % ("Current", changes),
        }
    )
    repository.commit({"app/pay.yaml": worker("1", replicas=7)})
    repository.commit({"app/temporal.yaml": CONNECTION % "newest", "app/pay.yaml": worker("2")})
    found = history(repository.root / "app", first)
    assert found.versions[first].replicas == 7
    # the names of variables wait for a new version, the address does not
    assert variables(found, first)["TEMPORAL_HOST_PORT"] == f"{address}:7233"


def test_file_and_folder_may_have_had_other_names(repository: Repository) -> None:
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    (repository.root / "apps").mkdir()
    repository.git("mv", "app", "apps/pay")
    repository.git("mv", "apps/pay/pay.yaml", "apps/pay/worker.yaml")
    repository.commit({})
    second = repository.commit({"apps/pay/worker.yaml": worker("2")})["pay"]
    repository.commit({"apps/pay/worker.yaml": worker("3")})
    assert history(repository.root / "apps" / "pay", first, second).versions.keys() == {first, second}


def test_version_of_a_branch_that_was_merged_is_found(repository: Repository) -> None:
    repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})
    repository.git("checkout", "--quiet", "-b", "branch")
    tried = repository.commit({"app/pay.yaml": worker("2")})["pay"]
    repository.commit({"app/pay.yaml": worker("3")})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"elsewhere": "1"})
    repository.git("merge", "--quiet", "--no-edit", "branch")
    repository.commit({"app/pay.yaml": worker("4")})
    assert tried in history(repository.root / "app", tried).versions


def test_newest_template_of_a_custom_build_id_is_what_ran_last(repository: Repository) -> None:
    repository.commit({"app/pay.yaml": worker("1", custom="blue"), "app/temporal.yaml": CONNECTION % "a"})
    repository.commit({"app/pay.yaml": worker("2", custom="blue")})
    repository.commit({"app/pay.yaml": worker("3", custom="green")})
    found = history(repository.root / "app", "blue")
    assert pod(found, "blue")["containers"][0]["image"] == "registry.example.com/pay:2"


def test_workers_of_one_file_are_told_apart(repository: Repository) -> None:
    both = {"app/all.yaml": f"{worker('1')}---{worker('1', name='bill')}---{CONNECTION % 'a'}"}
    first = repository.commit(both)["bill"]
    both = {"app/all.yaml": f"{worker('2')}---{worker('2', name='bill')}---{CONNECTION % 'a'}"}
    repository.commit(both)
    found = history(repository.root / "app", first, name="bill")
    assert found.versions[first].worker_deployment == "shop/bill"


def test_commits_that_cannot_be_read_are_passed_over(repository: Repository) -> None:
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    for text in ("a: [", "\x00", "", worker("2").replace("containers", "container"), "a" * 17 * 2**20):
        repository.commit({"app/pay.yaml": text, "app/other.yaml": "kind: X"})
    repository.commit({"app/pay.yaml": worker("3")})
    found = history(repository.root / "app", first, "never-seen")
    assert found.versions.keys() == {first}
    assert found.ends.startswith("no commit of ")


@pytest.mark.parametrize("name", ["pay\nroll.yaml", "päy.yaml", ":(glob)*.yaml", "-x.yaml", "a b.yaml"])
def test_any_name_of_a_file_is_read_or_passed_over(repository: Repository, name: str) -> None:
    first = repository.commit({f"app/{name}": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    repository.commit({f"app/{name}": worker("2")})
    found = history(repository.root / "app", first)
    assert bool(found.versions) is ("\n" not in name)


def test_shallow_clone_says_so(repository: Repository, tmp_path: Path) -> None:
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    repository.commit({"app/pay.yaml": worker("2")})
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth=1", f"file://{tmp_path}", str(clone))
    assert history(clone / "app", first).ends.endswith("the clone is shallow")
    repository.git("-C", str(clone), "fetch", "--quiet", "--unshallow")
    assert first in history(clone / "app", first).versions


def test_folder_that_no_repository_holds_says_why(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "all.yaml").write_text(f"{worker('1')}---{CONNECTION % 'a'}")
    assert history(tmp_path / "app", "v1").ends == "there is none"


def test_time_that_is_over_is_said(repository: Repository) -> None:
    repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})
    assert history(repository.root / "app", "v1", seconds=0).ends.startswith("reading it takes too long")


def test_machine_without_git_says_so(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})
    monkeypatch.setenv("PATH", "/nowhere")
    assert history(repository.root / "app", "v1").ends == "git is not installed"


def test_nothing_that_a_repository_names_is_run(repository: Repository) -> None:
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    ran = repository.root / "ran"
    script = repository.root / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(0o755)
    repository.commit({"app/pay.yaml": worker("2"), ".gitattributes": "*.yaml diff=x filter=x\n"})
    for setting in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.x.textconv",
        "diff.x.command",
        "filter.x.smudge",
        "gpg.program",
        "diff.external",
    ):
        repository.git("config", setting, str(script))
    repository.git("config", "log.showSignature", "true")
    repository.git("config", "core.hooksPath", str(repository.root))
    assert first in history(repository.root / "app", first).versions
    assert not ran.exists()


def test_folder_that_only_looks_like_a_repository_is_none(repository: Repository) -> None:
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    looks = {"app/HEAD": "ref: refs/heads/main\n", "app/config": "[core]\nbare = true\n"}
    repository.commit({**looks, "app/objects/x": "", "app/refs/x": "", "app/pay.yaml": worker("2")})
    assert first in history(repository.root / "app", first).versions
