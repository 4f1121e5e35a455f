"""The workflow that renders into a repository, step by step, and its manifests applied as Flux would."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from testing.install import installed
from testing.processes import eventually, free_ports
from testing.recipes import KUSTOMIZE
from tests.servers.live import ENVIRONMENT
from tests.servers.rollouts import SOON, Story
from tests.servers.side_by_side import side_by_side
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

EXAMPLES = Path(__file__).parents[2] / "examples" / "rendered"
PAGE = Path(__file__).parents[2] / "docs" / "rendered-manifests.md"
AT_ONCE = {"sunset": {"scaledownDelay": "1s", "deleteDelay": "1s"}}
PRUNE = "kustomize.toolkit.fluxcd.io/prune"
GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@example.com")

Object = dict[str, Any]


def rules_of_the_page() -> Sequence[Object]:
    """The rights that the runner's account needs."""
    [role] = [
        document
        for text in PAGE.read_text().split("```yaml\n")[1:]
        for document in read_documents(text.partition("```")[0])
        if isinstance(document, dict) and document.get("kind") == "Role"
    ]
    rules: Sequence[Object] = role["rules"]
    return rules


@dataclass(frozen=True, slots=True)
class Runner:
    """The workspace of a runner: a clone of the specs, and a clone of the environments."""

    workspace: Path
    variables: Mapping[str, str]
    moves_traffic: bool = True
    """The workflow has its last step."""

    def step(self, step: Object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=self.workspace / step.get("working-directory", "."),
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def run(self) -> subprocess.CompletedProcess[str]:
        """All steps of a run, up to the first that fails; the last one that ran."""
        [workflow] = read_documents((EXAMPLES / "render.yaml").read_text())
        steps = [step for step in workflow["jobs"]["render"]["steps"] if "run" in step]
        assert steps[0]["run"].startswith("pip install")  # this test has it already
        assert steps[-1]["run"].startswith("twgen rollout")
        for step in steps[1 : None if self.moves_traffic else -1]:
            ended = self.step(step)
            if ended.returncode:
                break
        return ended

    def succeeds(self) -> bool:
        ended = self.run()
        assert ended.returncode == 0, ended
        return True


class Flux:
    """Applies the folder of the repository as the example's Kustomization says, and prunes."""

    def __init__(self, story: Story, repository: Path) -> None:
        self._story, self._repository = story, repository
        self._inventory: set[tuple[str, str]] = set()

    def reconcile(self) -> None:
        _, kustomization = read_documents((EXAMPLES / "flux.yaml").read_text())
        said = kustomization["spec"]
        folder = self._story.folder.parent / "flux"
        folder.mkdir(exist_ok=True)
        text = self.committed(f"{said['path'].removeprefix('./')}/workers.yaml")
        (folder / "workers.yaml").write_text(text)
        built = {"resources": ["workers.yaml"], "patches": said["patches"]}
        (folder / "kustomization.yaml").write_text(write_documents([built]))
        command = [str(installed(KUSTOMIZE)), "build", str(folder)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self._story.cluster.apply(manifests := read_documents(text))
        applied = {(item["kind"], item["metadata"]["name"]) for item in manifests}
        for kind, name in self._inventory - applied if said["prune"] else ():
            self._prune(kind, name)
        self._inventory = applied

    def committed(self, file: str) -> str:
        command = ["git", "-C", str(self._repository), "show", f"main:{file}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def _prune(self, kind: str, name: str) -> None:
        """Flux asks the live object whether it may go."""
        cluster, namespace = self._story.cluster, self._story.namespace
        for live in cluster.list(f"{kind.lower()}s", namespace):
            if live["metadata"]["name"] == name and live["metadata"]["annotations"][PRUNE] != "disabled":
                cluster.kubectl("delete", kind, name, "--namespace", namespace, "--ignore-not-found")


def new_runner(story: Story, folder: Path) -> Runner:
    """Two repositories, and a runner that has cloned both and may only read the cluster."""
    for name in ("specs", "environments"):
        git("init", "--quiet", "--bare", "--initial-branch=main", str(folder / f"{name}.git"))
        git("clone", "--quiet", str(folder / f"{name}.git"), str(folder / "workspace" / name))
        git("-C", str(folder / "workspace" / name), "commit", "--quiet", "--allow-empty", "-m", "Begin")
        git("-C", str(folder / "workspace" / name), "push", "--quiet", "origin", "HEAD:main")
    (folder / "workspace" / "specs" / "workers").mkdir()
    (commands := folder / "bin").mkdir()
    (commands / "twgen").symlink_to(Path(sys.executable).with_name("twgen"))
    [workflow] = read_documents((EXAMPLES / "render.yaml").read_text())
    variables = {
        **ENVIRONMENT,
        "PATH": f"{commands}{os.pathsep}{ENVIRONMENT['PATH']}",
        "HOME": str(folder),
        "KUBECONFIG": str(story.cluster.user("runner", rules_of_the_page(), story.namespace)),
        "TWGEN_IDENTITY": workflow["env"]["TWGEN_IDENTITY"],
    }
    return Runner(folder / "workspace", variables)


def git(*arguments: str) -> None:
    subprocess.run([*GIT, *arguments], check=True, capture_output=True)


def commits(runner: Runner) -> int:
    """How many the repository of the environments has."""
    command = ["git", "-C", str(runner.workspace.parent / "environments.git"), "rev-list", "--count", "main"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def commit(runner: Runner, story: Story, build_id: str) -> None:
    """Let Git hold this version of the worker, in its ledger too."""
    story.describe(build_id, steps=(), spec=AT_ONCE)
    specs = runner.workspace / "specs" / "workers"
    (specs / "specs.yaml").write_text((story.folder / "specs.yaml").read_text())
    ended = runner.step({"run": "twgen lock specs/workers"})
    assert ended.returncode == 0, ended.stderr
    git("-C", str(specs), "add", ".")
    git("-C", str(specs), "commit", "--quiet", "-m", f"Release {build_id}")


def deployments(text: str) -> set[str]:
    """The versions with a Deployment among manifests."""
    found = [item for item in read_documents(text) if item["kind"] == "Deployment"]
    return {item["metadata"]["name"].removeprefix("greeter-") for item in found}


@side_by_side
def test_versions_come_and_go_by_commits_of_the_workflow(story: Story) -> None:
    runner = new_runner(story, story.folder.parent / "ci")
    flux = Flux(story, runner.workspace.parent / "environments.git")

    def rendered() -> set[str]:
        return deployments(flux.committed("production/shop/workers.yaml"))

    def becomes_current(build_id: str) -> bool:
        runner.succeeds()
        flux.reconcile()
        assert story.share(build_id) == 100
        return True

    commit(runner, story, "v1")
    runner.succeeds()
    assert (rendered(), story.replicas()) == ({"v1"}, {}), "Flux has not applied it yet"
    eventually(lambda: becomes_current("v1"), SOON)

    runner.succeeds()
    before = commits(runner)
    runner.succeeds()
    assert commits(runner) == before, "nothing changed"

    commit(runner, story, "v2")
    runner.succeeds()
    assert (commits(runner), rendered()) == (before + 1, {"v1", "v2"})
    flux.reconcile()
    old = story.cluster.get("deployment", "greeter-v1", story.namespace)
    assert old["metadata"]["annotations"][PRUNE] == "disabled", "it has traffic"
    eventually(lambda: becomes_current("v2"), SOON)
    story.worker.drains("v1")

    def only_v2_is_left() -> bool:
        runner.succeeds()
        flux.reconcile()
        assert (rendered(), story.replicas()) == ({"v2"}, {"v2": 1})
        return True

    eventually(only_v2_is_left, SOON)


@side_by_side
def test_run_that_cannot_read_a_server_fails_and_leaves_the_commit(story: Story) -> None:
    runner = new_runner(story, story.folder.parent / "ci")
    commit(runner, story, "v1")
    runner.succeeds()
    before = commits(runner)
    [port] = free_ports(1)
    stopped = {"TWGEN_VIA": f"{story.temporal.address}=127.0.0.1:{port}"}
    forbidden = {"KUBECONFIG": str(story.cluster.user("stranger", [], story.namespace))}
    commit(runner, story, "v2")
    for server, variables in (("Temporal", stopped), ("Kubernetes", forbidden)):
        ended = replace(runner, variables={**runner.variables, **variables}).run()
        assert (ended.returncode, server in ended.stderr) == (3, True), ended
        assert "twgen render" in ended.args[-1], "the step that failed"
        assert (runner.workspace / "rendered.yaml").read_text() == ""
        assert commits(runner) == before
    runner.succeeds()
    assert commits(runner) == before + 1


@side_by_side
def test_worker_that_leaves_the_specs_keeps_its_pods(story: Story) -> None:
    runner = new_runner(story, story.folder.parent / "ci")
    flux = Flux(story, runner.workspace.parent / "environments.git")
    commit(runner, story, "v1")
    runner.succeeds()
    flux.reconcile()
    environments = runner.workspace / "environments"
    file = environments / "production" / "shop" / "workers.yaml"
    metadata = {"name": "other", "namespace": story.namespace}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    file.write_text(write_documents([other]))
    git("-C", str(environments), "commit", "--quiet", "--all", "-m", "Empty it by mistake")
    git("-C", str(environments), "push", "--quiet")
    flux.reconcile()
    assert story.replicas() == {"v1": 1}


@side_by_side
def test_job_of_a_rollout_stays_when_it_is_applied_again_and_goes_with_the_next(story: Story) -> None:
    runner = new_runner(story, story.folder.parent / "ci")
    flux = Flux(story, runner.workspace.parent / "environments.git")
    image = {"image": "registry.example.com/twgen:testing"}
    config = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig", "rollout": image}
    (operator := runner.workspace / "operator.yaml").write_text(write_documents([config]))
    named = {**runner.variables, "TWGEN_OPERATOR_CONFIG": str(operator)}
    runner = replace(runner, variables=named, moves_traffic=False)
    for build_id in ("v1", "v2"):
        commit(runner, story, build_id)
        runner.succeeds()
        flux.reconcile()
        story.stands("Settled", build_id)
        ended = story.job("Complete")
        runner.succeeds()
        flux.reconcile()
        [again] = story.jobs()
        told = [(job["metadata"]["uid"], job["metadata"]["generation"]) for job in (ended, again)]
        assert told[0] == told[1]
