"""`twgen rollout` and what people do to it, on real servers with real workers; the cluster is not read."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import ALONE, ENVIRONMENT, MANAGER, TWGEN, Ended, run, worker_document, write_specs

pytestmark = pytest.mark.server
OPTIONS = (*ALONE, "--identity", MANAGER)


@dataclass(frozen=True, slots=True)
class Story:
    """A worker and the folder of its specs; versions run for as long as the story lasts."""

    worker: DeployedWorker
    folder: Path
    running: ExitStack

    def start(self, build_id: str, *, gate_fails: bool = False) -> None:
        self.running.enter_context(self.worker.version(build_id, gate_fails=gate_fails))
        eventually(lambda: build_id in self.shares())

    def describe(self, build_id: str, **options: Any) -> None:
        name = self.worker.name.removeprefix("live/")
        document = worker_document(name, build_id, **options)
        write_specs(self.folder, self.worker.server.address, document)

    def run(self, *command: str) -> Ended:
        return run(self.folder, *command, options=OPTIONS)

    def recorded(self) -> Mapping[str, Any]:
        """What `twgen snapshot` records of the worker."""
        ended = run(self.folder, "snapshot", "-o", "json")
        assert ended.code == 0, ended
        [worker] = json.loads(ended.stdout)["workers"]
        return dict(worker["temporal"] or {"versions": [], "routing": {}})

    def shares(self) -> Mapping[str, float]:
        """Which share of the new workflows each version has that Temporal knows, in percent."""
        found = self.recorded()
        shares = {version["buildID"]: 0.0 for version in found["versions"]}
        ramping = found["routing"].get("ramping") or {"buildID": "", "percentage": 0}
        if current := found["routing"].get("current"):
            shares[current["buildID"]] = 100 - ramping["percentage"]
        return shares | ({ramping["buildID"]: ramping["percentage"]} if ramping["buildID"] else {})


@contextmanager
def telling(server: TemporalServer, folder: Path, name: str) -> Iterator[Story]:
    with ExitStack() as running:
        worker = DeployedWorker(server, f"live/{name}", name)
        story = Story(worker, folder, running)
        story.describe("v1", steps=())
        yield story


@pytest.fixture
def story(temporal: TemporalServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Story]:
    name = f"r{abs(hash(request.node.nodeid)) % 10**8}"
    with telling(temporal, tmp_path / "specs", name) as told:
        yield told


def becomes_current(story: Story, build_id: str) -> None:
    story.start(build_id)
    eventually(lambda: succeeds(lambda: story.worker.set_current(build_id)))


def test_first_version_becomes_current_and_the_second_replaces_it(story: Story) -> None:
    story.start("v1")
    ended = story.run("rollout")
    assert ended.code == 0, ended
    assert "v1 is current now" in ended.stdout
    assert story.recorded()["managerIdentity"] == MANAGER

    story.describe("v2", steps=())
    story.start("v2")
    assert story.run("rollout").code == 0
    assert story.shares() == {"v1": 0, "v2": 100}
    assert story.run("rollout").stdout.count(" now") == 0, "a second rollout changes nothing"


def test_once_makes_one_change_and_no_pause_is_cut_short(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25, 50))
    story.start("v2")
    assert "25 % of new workflows go to v2 now" in story.run("rollout", "--once").stdout
    again = story.run("rollout", "--once")
    assert (again.code, story.shares()["v2"]) == (0, 25)
    assert "it stays at 25 %" in again.stdout


def test_gate_that_passes_lets_the_first_step_begin(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,), gate="GateWorkflow")
    story.start("v2")
    rolling = story.run("rollout", "--within", "20s")
    assert rolling.code == 4, rolling
    assert rolling.stdout.count("started the gate") == 1
    assert rolling.stdout.index("started the gate") < rolling.stdout.index("25 % of new workflows go to v2")
    assert rolling.stderr.splitlines()[-1].startswith("twgen: not settled within 20s: live/")


def test_gate_that_fails_stops_the_rollout_until_a_person_retries(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(), gate="GateWorkflow")
    story.start("v2", gate_fails=True)
    failed = story.run("rollout")
    assert failed.code == 1, failed
    assert "the gate on task queue" in failed.stdout
    assert story.shares()["v1"] == 100

    assert story.run("promote").code == 1
    retried = story.run("retry")
    assert (retried.code, "start its gate again (attempt 2)" in retried.stderr) == (0, True), retried
    assert story.run("rollout").code == 1, "the second attempt fails as well"

    skipped = story.run("promote", "--skip-gate")
    assert (skipped.code, story.shares()["v2"]) == (0, 100), skipped


def test_manual_runs_its_gate_and_never_routes_but_promote_does(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(), gate="GateWorkflow")
    specs = story.folder / "specs.yaml"
    specs.write_text(specs.read_text().replace("AllAtOnce", "Manual"))
    story.start("v2")
    assert story.run("promote").code == 1, "the gate has not passed"
    rolling = story.run("rollout", "--within", "8s")
    assert (rolling.code, story.shares()["v1"]) == (4, 100), rolling
    assert "started the gate" in rolling.stdout
    promoted = story.run("promote")
    assert (promoted.code, story.shares()["v2"]) == (0, 100), promoted


def test_rollback_to_the_version_replaced_minutes_ago_is_immediate(story: Story) -> None:
    becomes_current(story, "v1")
    becomes_current(story, "v2")
    story.describe("v1", steps=(25,), gate="GateWorkflow")
    ended = story.run("rollout")
    assert (ended.code, story.shares()["v1"]) == (0, 100), ended
    assert "started the gate" not in ended.stdout


def test_revert_in_mid_ramp_ends_the_ramp(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,))
    story.start("v2")
    story.run("rollout", "--once")
    assert story.shares() == {"v1": 75, "v2": 25}
    story.describe("v1", steps=(25,))
    assert story.run("rollout").code == 0
    assert story.shares() == {"v1": 100, "v2": 0}


def test_foreign_manager_stops_everything_and_says_who(story: Story) -> None:
    becomes_current(story, "v1")
    story.worker.set_manager("somebody/else")
    story.describe("v2", steps=(), gate="GateWorkflow")
    story.start("v2")
    for command in (
        ("rollout",),
        ("promote", "--skip-gate"),
        ("abort",),
        ("retry",),
        ("pause",),
        ("resume",),
    ):
        ended = story.run(*command)
        assert ended.code == 5, ended
        assert "somebody/else manages it" in ended.stdout + ended.stderr
    assert story.shares()["v1"] == 100
    assert story.run("ownership", "claim", "-y").code == 5
    assert story.run("ownership", "claim", "-y", "--from", "somebody/else").code == 0
    assert story.run("rollout").code == 0
    assert story.run("ownership", "release", "-y").code == 0
    assert story.recorded()["managerIdentity"] == ""


def test_abort_ends_the_ramp_and_it_stays_so_until_retry(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,))
    story.start("v2")
    story.run("rollout", "--once")
    assert story.run("abort").code == 0
    assert story.shares() == {"v1": 100, "v2": 0}
    assert story.run("rollout").code == 1
    assert story.run("retry").code == 0
    story.run("rollout", "--once")
    assert story.shares()["v2"] == 25


def test_rollout_that_the_page_looks_at_closely_happens_so(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25, 50))
    story.start("v2")
    page = (Path(__file__).parents[2] / "docs" / "rollout.md").read_text()
    [block] = re.findall(r"^```\n(twgen rollout \. --once\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shares = []
    for line in block.splitlines():
        ended = story.run(*(word for word in line.split()[1:] if word != "."))
        assert ended.code == 0, (line, ended)
        shares.append(story.shares()["v2"])
    assert shares == [25, 25, 25, 50, 50, 0, 0, 100, 100, 100, 100, 100]
    assert story.recorded()["managerIdentity"] == MANAGER

    command = [TWGEN, "ownership", "release", story.folder, *OPTIONS]
    unasked = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert (unasked.returncode, "-y says yes" in unasked.stderr) == (2, True), unasked
    assert story.recorded()["managerIdentity"] == MANAGER


def test_pause_keeps_the_traffic_as_it_is_until_resume(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=())
    story.start("v2")
    assert story.run("pause").code == 0
    paused = story.run("rollout", "--within", "4s")
    assert (paused.code, story.shares()["v1"]) == (4, 100), paused
    assert "a person paused it" in paused.stdout
    assert story.run("resume").code == 0
    assert story.run("rollout").code == 0


def test_two_rollouts_at_once_make_one_change(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25, 50), gate="GateWorkflow")
    story.start("v2")
    command = [TWGEN, "rollout", story.folder, "--within", "15s", *OPTIONS]
    rolling = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        for _ in range(2)
    ]
    told = [process.communicate(timeout=60) for process in rolling]
    assert [process.returncode for process in rolling] == [4, 4], told
    assert story.shares() == {"v1": 75, "v2": 25}
    assert sum(out.count("25 % of new workflows go to v2 now") for out, _ in told) == 1


def test_sigterm_ends_a_rollout_within_a_second(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,))
    story.start("v2")
    command = [TWGEN, "rollout", story.folder, *OPTIONS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout
        eventually(lambda: "it stays at 25 %" in process.stdout.readline())  # type: ignore[union-attr]
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(1) == 143
