"""The examples run as they are: specs, the parameters of an Application, and the commands of CI files."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testing.forking import forker
from testing.processes import ENVIRONMENT
from tests.docs.pages import EXAMPLE as RECORDED
from tests.docs.pages import ROOT, blocks
from tests.docs.pages import documents as documents_of
from twgen import __version__
from twgen.yaml.reader import read_documents

EXAMPLES = ROOT / "examples"
WITH_SPECS = sorted(file.parent for file in EXAMPLES.glob("*/worker.yaml"))
TWGEN = Path(sys.executable).with_name("twgen")
INSTALLS = f"pip install git+https://git.example.com/tools/twgen.git@v{__version__}"


def run(
    folder: Path, *command: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return forker().run(command, folder, environment or ENVIRONMENT)


def in_bash(commands: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run commands as a CI runner does, up to the first that fails."""
    script = ["bash", "-e", "-c", commands]
    return subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def documents(path: str) -> list[dict[str, Any]]:
    return read_documents((EXAMPLES / path).read_text())


def kinds(ended: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """How many objects of each kind were rendered."""
    assert ended.returncode == 0, ended.stderr
    found = [item["kind"] for item in read_documents(ended.stdout)]
    return {kind: found.count(kind) for kind in found}


def test_there_are_examples_with_specs() -> None:
    assert [folder.name for folder in WITH_SPECS] == ["draining", "gate", "hook", "keda", "three-versions"]


@pytest.mark.parametrize("folder", WITH_SPECS, ids=lambda folder: folder.name)
def test_example_is_valid_and_can_be_simulated(folder: Path) -> None:
    ended = run(folder, "validate", ".", "--strict", "-q")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    ended = run(folder, "simulate", ".")
    assert ended.returncode == 0, ended.stderr
    assert "is current and gets all new workflows" in ended.stdout


@pytest.mark.parametrize("folder", WITH_SPECS, ids=lambda folder: folder.name)
def test_commands_that_an_example_names_run_offline(folder: Path) -> None:
    named = re.findall(r"^#.*(twgen .*)$", (folder / "worker.yaml").read_text(), re.MULTILINE)
    assert named or folder == RECORDED, "the README names those of the recorded one"
    for command in (*named, "twgen plan . --snapshot snapshot.yaml"):
        ended = run(folder, *command.split()[1:])
        assert (ended.returncode, ended.stderr) == (0, ""), command
        assert ended.stdout != ""


def test_recorded_example_has_a_current_ledger_and_renders_an_autoscaler_and_a_budget_for_each_version() -> (
    None
):
    ended = run(RECORDED, "lock", ".", "--check")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    ended = run(RECORDED, "render", ".", "--snapshot", "snapshot.yaml")
    assert kinds(ended) == {"Deployment": 3, "HorizontalPodAutoscaler": 3, "PodDisruptionBudget": 3}


def world(folder: Path, worker: str, *versions: dict[str, Any], routing: dict[str, Any]) -> str:
    """A snapshot in which Temporal has these versions of a worker."""
    found = {"routing": routing, "versions": versions}
    known = {"name": worker, "temporalNamespace": "default", "temporal": found}
    head = {"apiVersion": "twgen.io/v1alpha1", "kind": "Snapshot", "takenAt": "2026-11-21T12:00:00Z"}
    (folder / "world.json").write_text(json.dumps({**head, "workers": [known]}))
    return str(folder / "world.json")


def test_version_that_drains_gets_the_other_scaled_object(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "keda", specs := tmp_path / "specs")
    image, worker = "shop/reports:v1.7.2", (specs / "worker.yaml")
    worker.write_text(worker.read_text().replace(image, "shop/reports:v1.7.1"))
    assert run(specs, "lock", ".").returncode == 0
    [entry] = read_documents((specs / "twgen.lock" / "shop.reports.yaml").read_text())[0]["versions"]
    worker.write_text(worker.read_text().replace("shop/reports:v1.7.1", image))
    snapshot = world(
        tmp_path, "shop/reports", {"buildID": entry["buildID"], "status": "Draining"}, routing={}
    )
    ended = run(specs, "render", ".", "--snapshot", snapshot, "-q")
    scalers = {
        item["metadata"]["labels"]["temporal.io/build-id"].partition("-")[0]: item["spec"]["maxReplicaCount"]
        for item in read_documents(ended.stdout)
        if item["kind"] == "ScaledObject"
    }
    assert scalers == {"v1.7.1": 3, "v1.7.2": 20}
    for item in read_documents(ended.stdout):
        if item["kind"] == "ScaledObject":
            metadata = item["spec"]["triggers"][0]["metadata"]
            assert metadata["workerDeploymentName"] == "shop/reports"
            assert metadata["workerDeploymentBuildId"] == item["metadata"]["labels"]["temporal.io/build-id"]


def test_gate_holds_back_a_version_and_its_policy_makes_the_rollout_a_hook(tmp_path: Path) -> None:
    current = {"buildID": "v0", "status": "Current"}
    new = {
        "buildID": "v5.1.0-dff7",
        "status": "Inactive",
        "taskQueues": [{"name": "billing", "type": "Workflow", "pollers": True, "unversionedPollers": False}],
    }
    routing = {"current": {"buildID": "v0", "since": "2026-11-20T12:00:00Z"}}
    snapshot = world(tmp_path, "shop/billing", current, new, routing=routing)
    ended = run(EXAMPLES / "gate", "plan", ".", "--snapshot", snapshot, "-o", "json", "-q")
    [planned] = json.loads(ended.stdout)["workers"]
    assert [gate["workflowType"] for gate in planned["gates"]] == ["BillingSmokeTest"]
    operator = str(RECORDED / "operator.yaml")
    ended = run(EXAMPLES / "gate", "render", ".", "--snapshot", snapshot, "--operator-config", operator, "-q")
    [job] = [item for item in read_documents(ended.stdout) if item["kind"] == "Job"]
    assert job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "Sync,PostSync"


def test_application_names_a_folder_and_parameters_that_the_plugin_takes() -> None:
    [application] = documents("argocd/application.yaml")
    source = application["spec"]["source"]
    variables = {
        **ENVIRONMENT,
        "ARGOCD_APP_NAME": application["metadata"]["name"],
        "ARGOCD_APP_PROJECT_NAME": application["spec"]["project"],
        "ARGOCD_APP_PARAMETERS": json.dumps(source["plugin"]["parameters"]),
        "TWGEN_OPERATOR_CONFIG": str(RECORDED / "operator.yaml"),
    }
    ended = run(RECORDED, "render", ".", "--snapshot", "snapshot.yaml", environment=variables)
    assert kinds(ended)["HorizontalPodAutoscaler"] == 3
    assert kinds(ended)["Job"] == 1
    variables["ARGOCD_APP_PARAMETERS"] = variables["ARGOCD_APP_PARAMETERS"].replace("strict", "strikt")
    assert run(RECORDED, "render", ".", environment=variables).returncode == 2


def test_application_is_that_of_the_page_and_the_project_of_the_page_permits_both_examples() -> None:
    shown = documents_of(ROOT / "docs" / "first-application.md")
    [first] = [document for document in shown if document.get("kind") == "Application"]
    [project] = [document for document in shown if document.get("kind") == "AppProject"]
    [goes_on] = [document["spec"] for document in shown if document.keys() == {"spec"}]
    [application], [chart] = documents("argocd/application.yaml"), documents("argocd/chart.yaml")
    assert application == {**first, "spec": {**first["spec"], **goes_on}}
    for each in (application, chart):
        assert each["spec"]["project"] == project["metadata"]["name"]
        assert each["spec"]["source"]["repoURL"] in project["spec"]["sourceRepos"]
        assert each["spec"]["destination"] in project["spec"]["destinations"]


def steps_of_github() -> list[str]:
    [workflow] = documents("ci/github.yaml")
    jobs = workflow["jobs"]
    runs = [step["run"] for job in ("check", "plan") for step in jobs[job]["steps"] if "run" in step]
    return [run for run in runs if run != INSTALLS]


def steps_of_gitlab() -> list[str]:
    [pipeline] = documents("ci/gitlab.yaml")
    return [*pipeline["specs"]["script"], *pipeline["plan"]["script"]]


@pytest.mark.parametrize("steps", [steps_of_github, steps_of_gitlab])
def test_commands_of_ci_run_in_a_repository_of_specs(tmp_path: Path, steps: Any) -> None:
    shutil.copytree(RECORDED, repository := tmp_path / "repository")
    (commands := tmp_path / "bin").mkdir()
    (commands / "twgen").symlink_to(TWGEN)
    # this one keeps the comment in a file
    (commands / "gh").write_text(
        '#!/bin/sh\nfor last; do :; done; cp "$last" "$GITHUB_STEP_SUMMARY.comment"\n'
    )
    (commands / "gh").chmod(0o755)
    variables = {
        **ENVIRONMENT,
        "PATH": f"{commands}{os.pathsep}{ENVIRONMENT['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "TWGEN_SNAPSHOT": "snapshot.yaml",  # in place of the servers, which the runner of the plan reaches
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "PULL_REQUEST": "7",
    }
    for step in steps():
        ended = in_bash(step, repository, variables)
        assert ended.returncode == 0, (step, ended.stderr)
    plans = tmp_path / "summary.md.comment", repository / "plan.md"
    [plan] = [file for file in plans if file.exists()]
    assert "### shop/payments: " in plan.read_text()
    if steps is steps_of_github:
        assert "is current and gets all new workflows" in (tmp_path / "summary.md").read_text()
    spec = repository / "worker.yaml"
    spec.write_text(spec.read_text().replace("payments:v3.0.0", "payments:v3.0.1"))
    ended = in_bash(next(step for step in steps() if "lock" in step), repository, variables)
    assert ended.returncode == 1, "a version that the ledger does not have"


def test_bot_that_changes_an_image_records_the_version(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    [commands] = [text for text in blocks(page, "") if "sed -i" in text]
    repository = tmp_path / "repository"
    shutil.copytree(ROOT / "examples" / "three-versions", repository)
    variables = {**ENVIRONMENT, "PATH": f"{Path(sys.executable).parent}:{ENVIRONMENT['PATH']}"}
    for command in ("git init --quiet", commands):
        ended = in_bash(command, repository, variables)
        assert ended.returncode == 0, ended.stderr
    assert "payments v3.1.0-" in ended.stderr
    staged = subprocess.run(
        ["git", "diff", "--cached", "--name-only"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert "twgen.lock/shop.payments.yaml" in staged.stdout.split()


def test_snippets_of_the_page_on_ci_say_what_the_examples_say() -> None:
    shown = documents_of(ROOT / "docs" / "ci.md")
    [workflow], [pipeline] = documents("ci/github.yaml"), documents("ci/gitlab.yaml")
    jobs = workflow["jobs"]
    [shortest] = [document for document in shown if "jobs" in document]
    assert [step["run"] for step in shortest["jobs"]["check"]["steps"] if "run" in step] == [
        INSTALLS,
        "twgen validate . --strict",
        "twgen lock . --check",
    ]
    used = {step["uses"] for step in jobs["check"]["steps"] if "uses" in step}
    assert {step["uses"] for step in shortest["jobs"]["check"]["steps"] if "uses" in step} < used
    [sarif] = [document for document in shown if "steps" in document]
    assert sarif["permissions"] == jobs["check"]["permissions"]
    named = [
        {name: value for name, value in step.items() if name != "name"} for step in jobs["check"]["steps"]
    ]
    assert [step for step in sarif["steps"] if step not in named] == []
    for name in ("plan", "rollout"):
        [job] = [document[name] for document in shown if name in document]
        assert job == jobs[name]
    [specs] = [document["specs"] for document in shown if "specs" in document]
    assert specs["script"] == pipeline["specs"]["script"][:1]
    assert specs["artifacts"] == pipeline["specs"]["artifacts"]


def test_examples_of_ci_install_twgen_by_one_command() -> None:
    [workflow], [pipeline] = documents("ci/github.yaml"), documents("ci/gitlab.yaml")
    [renders] = documents("rendered/render.yaml")
    for job in (*workflow["jobs"].values(), *renders["jobs"].values()):
        assert INSTALLS in [step.get("run") for step in job["steps"]]
    assert pipeline["default"]["before_script"] == [INSTALLS.replace("install", "install --quiet")]


@pytest.mark.packaging
def test_command_of_ci_installs_a_twgen_that_starts(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    root = EXAMPLES.parent
    asked = ["git", "-C", str(root), "rev-parse", "HEAD"]
    head = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    command = re.sub("https.*", f"file://{root}@{head}", INSTALLS)
    # compiling all of its dependencies takes longer than everything else here
    variables = {**ENVIRONMENT, "PIP_NO_COMPILE": "1"}
    installing = [tmp_path / "bin" / "pip", *command.split()[1:]]
    subprocess.run(installing, env=variables, check=True, capture_output=True)
    ended = subprocess.run(
        [tmp_path / "bin" / "twgen", "version"], check=True, capture_output=True, text=True
    )
    assert ended.stdout.startswith("twgen ")
