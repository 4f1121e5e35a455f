"""The files of .github fit the project: versions of Python, commands and folders."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from testing.install import installed
from testing.recipes import ACTIONLINT
from twgen.yaml.reader import read_documents

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
EXAMPLES = [ROOT / "examples" / name for name in ("ci/github.yaml", "rendered/render.yaml")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def document(path: Path) -> dict[str, Any]:
    [found] = read_documents(path.read_text())
    return found


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in document(workflow)["jobs"].values() for step in job["steps"]]


@pytest.mark.packaging
def test_actionlint_finds_nothing_in_the_workflows() -> None:
    ended = subprocess.run(
        [
            installed(ACTIONLINT),
            *("-no-color", "-shellcheck=", "-pyflakes="),
            *("-ignore", 'label "workers" is unknown'),  # of the runner in the examples
            *(*WORKFLOWS, *EXAMPLES),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.packaging
def test_actionlint_finds_a_mistake(tmp_path: Path) -> None:
    text = (GITHUB / "workflows" / "ci.yml").read_text()
    broken = tmp_path / "ci.yml"
    broken.write_text(text.replace("matrix.python }}", "matrix.pyton }}"))
    ended = subprocess.run([installed(ACTIONLINT), broken], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert '"pyton" is not defined' in ended.stdout


def test_ci_runs_every_python_of_the_classifiers_from_the_lowest_that_is_required() -> None:
    classified = [
        found[1]
        for classifier in PROJECT["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier))
    ]
    matrix = document(GITHUB / "workflows" / "ci.yml")["jobs"]["check"]["strategy"]["matrix"]
    assert matrix["python"] == classified
    assert PROJECT["requires-python"] == f">={classified[0]}"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_commands_of_a_workflow_are_targets_of_the_makefile(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = [
        target
        for step in steps(workflow)
        for target in re.findall(r"^make ([a-z-]+)", step.get("run", ""), re.MULTILINE)
    ]
    assert used
    assert set(used) <= targets


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_with_their_version_next_to_it(workflow: Path) -> None:
    used = re.findall(r"^ *- uses: (.*)$|^ *uses: (.*)$", workflow.read_text(), re.MULTILINE)
    actions = ["".join(each) for each in used]
    assert len(actions) == len([step for step in steps(workflow) if "uses" in step])
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [action for action in actions if not pinned.fullmatch(action)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_has_no_right_that_no_job_asks_for(workflow: Path) -> None:
    assert document(workflow)["permissions"] == {"contents": "read"}


def test_same_action_has_the_same_commit_everywhere() -> None:
    used = {step["uses"] for workflow in WORKFLOWS for step in steps(workflow) if "uses" in step}
    assert len({action.partition("@")[0] for action in used}) == len(used)


def test_dependabot_looks_at_every_go_module() -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*go.mod"]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    [go] = [each for each in document(GITHUB / "dependabot.yml")["updates"] if "directories" in each]
    assert go["package-ecosystem"] == "gomod"
    assert go["directories"] == sorted(f"/{Path(file).parent}" for file in found)
