"""The commands that remove a worker, hand one over, or uninstall twgen do what their pages say."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testing.asking import succeeds
from testing.install import TEMPORAL_CLI, installed
from testing.processes import ENVIRONMENT, eventually
from testing.servers import NEWEST, TemporalServer, temporal_server
from testing.workers import DeployedWorker
from tests.cases.story import STORIES
from twgen.versioning.names import (
    ADDED,
    ATTACHED,
    COMPARE_OPTIONS,
    GONE,
    HOOK,
    IDENTITY,
    IGNORE_HEALTH,
    INJECTED,
    LINK,
    NOT_PRUNED,
    PATCHED,
    SYNC_OPTIONS,
    SYNC_WAVE,
    TRACKING_ID,
)
from twgen.yaml.reader import read_documents

DOCS = Path(__file__).parents[2] / "docs"


def section(page: str, title: str) -> str:
    text = (DOCS / page).read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert text, f"{page} has no section {title!r}"
    return text


SECTION = section("upgrade.md", "Remove a worker")
APPLICATION = section("upgrade.md", "Remove an Application")
UNINSTALL = section("upgrade.md", "Uninstall twgen")
OWNERSHIP = section("settings.md", "Manager identity")
BUILD_ID = "v3.0.0-97f7"
SOON = 240.0


def commands(program: str, text: str = SECTION) -> list[str]:
    """The commands of this program, each in one line: the page breaks long ones."""
    blocks = "".join(re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    in_one_line = re.sub(
        r"'[^']*'", lambda quoted: re.sub(r"\n *", " ", quoted[0]), blocks.replace("\\\n  ", "")
    )
    return re.findall(rf"^{program} .*$", in_one_line, re.MULTILINE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    # a server forgets after five minutes who polled; here not before a busy machine has run some commands
    settings = {"matching.PollerHistoryTTL": "30s"}
    with temporal_server(tmp_path_factory.mktemp("temporal"), NEWEST, settings=settings) as running:
        yield running


def run(server: TemporalServer, command: str) -> subprocess.CompletedProcess[str]:
    """A command of the page, with the server's own namespace; it must not ask."""
    words = shlex.split(command.replace("--namespace shop.a1b2c", "--namespace default"))[1:]
    program = [str(installed(TEMPORAL_CLI)), *words, "--address", server.address, "--output", "json"]
    return subprocess.run(
        program, capture_output=True, text=True, check=False, env=ENVIRONMENT, stdin=subprocess.DEVNULL
    )


def answer(server: TemporalServer, command: str) -> dict[str, Any]:
    """What a command says that succeeds."""
    ended = run(server, command)
    assert ended.returncode == 0, (command, ended.stdout, ended.stderr)
    found: dict[str, Any] = json.loads(ended.stdout or "{}")
    return found


@pytest.mark.server
def test_worker_leaves_temporal_by_the_commands_of_the_page(server: TemporalServer) -> None:
    worker = DeployedWorker(server, "shop/payments", "refunds")
    count, unmanaged, unversioned, described, deleted_version, deleted = commands("temporal")
    DeployedWorker(server, "", "payments").start("WaitingWorkflow", "not-begun")
    with worker.version(BUILD_ID):
        eventually(lambda: run(server, described).returncode == 0, SOON)
        eventually(lambda: succeeds(lambda: worker.set_current(BUILD_ID)), SOON)
        worker.start("WaitingWorkflow", "begun")
        eventually(lambda: answer(server, count) == {"count": "2"}, SOON)
        worker.finish("begun")
        eventually(lambda: answer(server, count) == {"count": "1"}, SOON)
        worker.set_manager("twgen/prod-eu/payments")
        assert run(server, unversioned).returncode != 0, "another's traffic was changed"
        answer(server, unmanaged)
        answer(server, unversioned)
        assert run(server, deleted_version).returncode != 0, "a version with pods was deleted"

    def drained() -> bool:
        [version] = answer(server, described)["versionSummaries"]
        return bool(version["BuildID"] == BUILD_ID and version["drainageStatus"] == "drained")

    # each deletion that is refused keeps the version from looking whether it is drained
    eventually(drained, SOON)
    eventually(lambda: run(server, deleted_version).returncode == 0, SOON)
    answer(server, deleted)
    assert "no Worker Deployment found" in run(server, described).stderr


@pytest.mark.server
def test_worker_is_handed_over_and_given_back_by_the_commands_of_the_page(server: TemporalServer) -> None:
    worker = DeployedWorker(server, "shop/payments", "handed-over")
    worker.create()
    worker.set_manager("twgen/somebody")
    describe, unset, set_by_hand = commands("temporal", OWNERSHIP)
    assert answer(server, describe)["managerIdentity"] == "twgen/somebody"
    answer(server, set_by_hand)
    assert answer(server, describe)["managerIdentity"] == "twgen/prod-eu/payments"
    answer(server, unset)
    assert answer(server, describe)["managerIdentity"] == ""


def test_labels_of_the_page_select_all_that_stays_of_a_worker() -> None:
    rendered = [*read_documents((STORIES / "rollout-job" / "manifests.yaml").read_text())]
    shown, deleted = commands("kubectl")
    assert deleted.split()[2:] == shown.split()[2:]
    resources, label = deleted.split()[2], deleted.split()[-1]
    name, _, text = label.partition("=")
    selected = {item["kind"] for item in rendered if item["metadata"]["labels"].get(name) == text}
    stays = {item["kind"] for item in rendered if NOT_PRUNED in str(item["metadata"].get("annotations"))}
    assert selected == stays
    short = {"HorizontalPodAutoscaler": "hpa", "PodDisruptionBudget": "pdb", "Deployment": "deployments"}
    assert {short[kind] for kind in selected} <= {*resources.split(",")}


def test_uninstalling_selects_all_that_moves_traffic_and_no_worker() -> None:
    rendered = [*read_documents((STORIES / "rollout-job" / "manifests.yaml").read_text())]
    [deleted] = [line for line in commands("kubectl", UNINSTALL) if line.endswith(" -l twgen.io/rollout")]
    selected = {item["kind"] for item in rendered if "twgen.io/rollout" in item["metadata"]["labels"]}
    stays = {item["kind"] for item in rendered if NOT_PRUNED in str(item["metadata"].get("annotations"))}
    assert {f"{kind.lower()}s" for kind in selected} == {*deleted.split()[2].split(",")}
    assert selected.isdisjoint(stays)
    assert selected | stays == {item["kind"] for item in rendered}


def test_uninstalling_takes_all_marks_off_a_deployment() -> None:
    [taken] = [line for line in commands("kubectl", UNINSTALL) if line.startswith("kubectl annotate ")]
    names = {word.removesuffix("-") for word in taken.split() if word.endswith("-")}
    assert names == {
        *(TRACKING_ID, SYNC_OPTIONS, COMPARE_OPTIONS, LINK, IGNORE_HEALTH, HOOK, SYNC_WAVE),
        *(IDENTITY, INJECTED, ATTACHED, ADDED, GONE, PATCHED),
    }


def test_uninstalling_takes_all_of_the_sidecar_out_of_the_repo_server() -> None:
    [command] = [line for line in commands("kubectl", UNINSTALL) if " patch -n argocd deployment " in line]
    patch = json.loads(shlex.split(command)[-1])["spec"]["template"]["spec"]
    added: dict[str, set[str]] = {"initContainers": set(), "containers": set(), "volumes": set()}
    for name in ("sidecar.yaml", "in-cluster/token.yaml", "templating/programs.yaml"):
        [document] = read_documents((DOCS.parent / "deploy" / name).read_text())
        for field in added:
            added[field] |= {item["name"] for item in document["spec"]["template"]["spec"].get(field, [])}
    assert {field: {item["name"] for item in items} for field, items in patch.items()} == added
