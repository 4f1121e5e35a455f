"""Every folder of specs among the examples is valid and renders, offline."""

import subprocess
from pathlib import Path

import pytest

from testing.forking import forker
from testing.processes import ENVIRONMENT

EXAMPLES = Path(__file__).parents[2] / "examples"
WITH_SPECS = sorted(folder for folder in EXAMPLES.iterdir() if list(folder.glob("*.yaml")))


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return forker().run(command, folder, ENVIRONMENT)


def test_there_are_examples_with_specs() -> None:
    assert WITH_SPECS


@pytest.mark.parametrize("folder", WITH_SPECS, ids=lambda folder: folder.name)
def test_example_is_valid_and_its_ledger_is_current(folder: Path) -> None:
    for command in (("validate", ".", "--strict", "-q"), ("lock", ".", "--check")):
        ended = run(folder, *command)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize("folder", WITH_SPECS, ids=lambda folder: folder.name)
def test_example_renders_from_its_snapshot(folder: Path) -> None:
    ended = run(folder, "render", ".", "--snapshot", "snapshot.yaml")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "kind: Deployment\n" in ended.stdout
