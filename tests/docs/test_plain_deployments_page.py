"""The commands of the page make the specs that it shows of the Deployment that it shows."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, run
from twgen.yaml.reader import read_documents

PAGE = (ROOT / "docs" / "plain-deployments.md").read_text()
DEPLOYMENT, SPEC, SCALING = blocks(PAGE, "yaml")
COMMANDS = "".join(blocks(PAGE, "")).splitlines()
WORLD = """\
apiVersion: twgen.io/v1alpha1
kind: Snapshot
takenAt: "2026-11-24T12:00:00Z"
workers:
- {name: shop/payments, temporalNamespace: default, temporal: null}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder in which the Deployment of the page was imported by its command."""
    (tmp_path / "live.yaml").write_text(DEPLOYMENT)
    (folder := tmp_path / "workers").mkdir()
    [command] = [line for line in COMMANDS if "| twgen import - " in line]
    ended = run(folder, *command.partition("| twgen ")[2].replace(" - ", " ../live.yaml ").split())
    assert ended.returncode == 0, ended.stderr
    return folder


def test_import_writes_the_files_and_the_spec_of_the_page(repository: Path) -> None:
    assert (repository / "payments.yaml").read_text() == SPEC
    assert {file.name for file in repository.iterdir()} == {
        "payments.yaml",
        "connection-temporal.yaml",
    }
    [named] = re.findall(r"^You should now see `payments.yaml`.*$", PAGE, re.MULTILINE)
    assert all(f"`{file.name}`" in named for file in repository.iterdir())


def test_spec_of_the_page_is_valid_next_to_the_old_deployment(repository: Path) -> None:
    (repository / "old.yaml").write_text(DEPLOYMENT)
    checks = [line for line in COMMANDS if re.match("twgen (validate|lock) ", line)]
    assert len(checks) == 2
    for line in checks:
        ended = run(repository, *line.split()[1:], "--strict")
        assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    assert "no problems" in run(repository, *checks[0].split()[1:]).stderr


def test_autoscaler_of_the_page_takes_the_place_of_replicas(repository: Path) -> None:
    (repository / "scaling.yaml").write_text(SCALING)
    (repository / "payments.yaml").write_text(SPEC.replace("  replicas: 3\n", ""))
    ended = run(repository, "validate", ".", "--strict")
    assert ended.returncode == 0, ended.stderr
    [line] = re.findall(r"`(twgen render \. --offline)`", PAGE)
    ended = run(repository, *line.split()[1:], "--strict")
    assert (ended.returncode, ended.stderr) == (0, "")
    version, scaler = read_documents(ended.stdout)
    assert "replicas" not in version["spec"]
    assert scaler["kind"] == "HorizontalPodAutoscaler"
    assert scaler["spec"]["scaleTargetRef"]["name"] == version["metadata"]["name"]


def test_plan_creates_the_first_version_and_leaves_the_old_deployment_alone(repository: Path) -> None:
    (repository.parent / "world.yaml").write_text(WORLD)
    [line] = [line for line in COMMANDS if line.startswith("twgen plan ")]
    ended = run(repository, *line.split()[1:], "--snapshot", "../world.yaml")
    assert ended.returncode == 0, ended.stderr
    assert re.findall(r"^  (v\d\S+) +\S+ +(\w+) ", ended.stdout, re.MULTILINE) == [("v3.0.0-f88c", "Create")]


def test_pods_of_the_first_version_are_not_selected_by_the_old_deployment(repository: Path) -> None:
    ended = run(repository, "render", ".", "--offline", "-q")
    [rendered] = [item for item in read_documents(ended.stdout) if item["kind"] == "Deployment"]
    [old] = read_documents(DEPLOYMENT)
    labels = rendered["spec"]["template"]["metadata"]["labels"]
    assert not old["spec"]["selector"]["matchLabels"].items() <= labels.items()
