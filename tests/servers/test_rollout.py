"""`twgen rollout` and what people do to it, on real servers with real workers; the cluster is not read."""

import json
import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from testing.faults import Trouble, forwarding, refusing
from testing.processes import eventually
from tests.servers.live import ENVIRONMENT, MANAGER, TWGEN
from tests.servers.side_by_side import side_by_side
from tests.servers.terminal import OPTIONS, SOON, Story, becomes_current, on_both_servers, until
from tests.servers.workflows import events_of, start
from tests.terminal import terminal

pytestmark = pytest.mark.server
A_WRITE = MANAGER.encode()
"""What each write to Temporal says, and no read: who makes it."""


@on_both_servers
def test_first_version_becomes_current_and_the_second_replaces_it(story: Story) -> None:
    story.start("v1")
    ended = story.run("rollout")
    assert ended.code == 0, ended
    assert "v1 is current now" in ended.stdout
    assert story.described().manager_identity == MANAGER

    story.describe("v2", steps=())
    story.start("v2")
    assert story.run("rollout").code == 0
    assert story.shares() == {"v1": 0, "v2": 100}
    assert story.run("rollout").stdout.count(" now") == 0, "a second rollout changes nothing"


@side_by_side
def test_once_makes_one_change_and_no_pause_is_cut_short(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25, 50))
    story.start("v2")
    assert "25% of new workflows go to v2 now" in story.once().stdout
    again = story.once()
    assert (again.code, story.shares()["v2"]) == (0, 25)
    assert "it stays at 25%" in again.stdout


@side_by_side
def test_gate_that_passes_lets_the_first_step_begin(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,), gate="GateWorkflow")
    story.start("v2")
    with story.rolling() as process:
        lines = until(process, "it stays at 25%")
        memory = Path(f"/proc/{process.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
    assert int(memory) < 96 * 1024
    started = [number for number, line in enumerate(lines) if "started the gate" in line]
    ramped = [number for number, line in enumerate(lines) if "25% of new workflows go to v2 now" in line]
    assert len(started) == len(ramped) == 1
    assert started < ramped


@side_by_side
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


@on_both_servers
def test_misspelt_gate_is_ended_by_a_retry_and_corrected_by_the_spec(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,), gate="GateWorkflo")
    story.start("v2")
    gate = f"test-{story.worker.name}:v2-{story.worker.task_queue}"
    assert "all of its workflow tasks fail" in story.run("rollout").stdout
    retried = story.run("retry")
    assert f"end {gate}, which cannot complete, and start its gate again (attempt 2)" in retried.stderr
    assert "ended as Terminated" not in story.run("rollout").stdout, "another attempt runs"

    story.describe("v2", steps=(25,), gate="GateWorkflow")
    with story.rolling() as process:
        lines = until(process, "it stays at 25%")
    not_the_gate = f"{gate}-2 does not count: its workflow type is GateWorkflo, not GateWorkflow"
    assert any(not_the_gate in line for line in lines)
    assert any(f"started the gate {gate}-3 " in line for line in lines)


@side_by_side
def test_manual_runs_its_gate_and_never_routes_but_promote_does(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(), gate="GateWorkflow")
    specs = story.folder / "specs.yaml"
    specs.write_text(specs.read_text().replace("AllAtOnce", "Manual"))
    story.start("v2")
    assert story.run("promote").code == 1, "the gate has not passed"
    with story.rolling() as process:
        lines = until(process, "the strategy is Manual")
    assert any("started the gate" in line for line in lines)
    assert story.shares()["v1"] == 100
    promoted = story.run("promote")
    assert (promoted.code, story.shares()["v2"]) == (0, 100), promoted


@side_by_side
def test_rollback_to_the_version_replaced_minutes_ago_is_immediate(story: Story) -> None:
    becomes_current(story, "v1")
    becomes_current(story, "v2")
    story.describe("v1", steps=(25,), gate="GateWorkflow")
    ended = story.run("rollout")
    assert (ended.code, story.shares()["v1"]) == (0, 100), ended
    assert "started the gate" not in ended.stdout


@side_by_side
def test_revert_in_mid_ramp_ends_the_ramp(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,))
    story.start("v2")
    story.goes_to({"v1": 75, "v2": 25})
    story.describe("v1", steps=(25,))
    assert story.run("rollout").code == 0
    assert story.shares() == {"v1": 100, "v2": 0}


@side_by_side
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
        assert "its manager is somebody/else" in ended.stdout + ended.stderr
    assert story.shares()["v1"] == 100
    assert story.run("ownership", "claim", "-y").code == 5
    assert story.run("ownership", "claim", "-y", "--from", "somebody/else").code == 0
    assert story.run("rollout").code == 0
    assert story.run("ownership", "release", "-y").code == 0
    assert story.described().manager_identity == ""


@on_both_servers
def test_worker_is_retired_to_others_and_no_rollout_brings_it_back(
    story: Story,
) -> None:
    becomes_current(story, "v1")
    held = [f"{story.worker.task_queue}-{number}" for number in range(2)]
    start(story.worker, {"WaitingWorkflow": held})
    story.describe("v1", steps=())
    refused = story.run("retire")
    assert (refused.code, "no worker without a version is known to poll" in refused.stderr) == (1, True), (
        refused
    )
    story.running.enter_context(story.worker.unversioned())

    def retired() -> bool:
        """Until the server tells of who polls without a version."""
        ended = story.run("retire")
        assert ended.code == 0, ended
        return True

    def asked() -> bool:
        """A person at a terminal declines."""
        command = (TWGEN, "retire", story.folder, *OPTIONS)
        with terminal(command, story.folder, 200, ENVIRONMENT) as shown:
            shown.types("n\n")
            assert (shown.end(), "[y/N]" in shown.text) == (130, True), shown.text
        return True

    eventually(asked, SOON)
    assert story.shares() == {"v1": 100}
    eventually(retired, SOON)
    assert story.shares() == {"v1": 0}
    assert story.run("rollout", "--once").code == 0
    assert story.shares() == {"v1": 0}
    assert "the worker is retired" in story.run("status").stdout
    assert story.planned()["phase"] == "Settled"

    # the page about removing a worker sends people to these
    def is_told() -> bool:
        told = story.run("drain")
        assert (told.code, "v1: Draining, 2 workflows are pinned to it" in told.stdout) == (0, True), told
        return True

    eventually(is_told)
    ended = story.run("end", "--version", "v1", "--terminate", "--yes", "--wait")
    assert (ended.code, "has ended: 2 of 2 workflows" in ended.stdout) == (0, True), ended
    assert {events_of(story.worker, one, "WORKFLOW_EXECUTION_TERMINATED") for one in held} == {1}

    assert story.run("resume").code == 0
    assert story.run("rollout").code == 0
    assert story.shares() == {"v1": 100}


@side_by_side
def test_abort_ends_the_ramp_and_it_stays_so_until_retry(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,))
    story.start("v2")
    story.goes_to({"v1": 75, "v2": 25})
    assert story.run("abort").code == 0
    assert story.shares() == {"v1": 100, "v2": 0}
    assert story.run("rollout").code == 1
    assert story.run("retry").code == 0
    again = story.once()
    assert story.shares()["v2"] == 25, again


@side_by_side
def test_rollout_that_the_page_looks_at_closely_happens_so(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25, 50))
    story.start("v2")
    page = (Path(__file__).parents[2] / "docs" / "steer.md").read_text()
    [block] = re.findall(r"^```\n(twgen rollout \. --once\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shares = []
    for line in block.splitlines():
        command = [word for word in line.split()[1:] if word != "."]
        ended = story.once() if command == ["rollout", "--once"] else story.run(*command)
        assert ended.code == 0, (line, ended)
        shares.append(story.shares()["v2"])
    assert shares == [25, 25, 25, 50, 50, 0, 0, 100, 100, 100, 100, 100]
    assert story.described().manager_identity == MANAGER

    command = [TWGEN, "ownership", "release", story.folder, *OPTIONS]
    unasked = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert (unasked.returncode, "give --yes to confirm" in unasked.stderr) == (2, True), unasked
    assert story.described().manager_identity == MANAGER


@side_by_side
def test_pause_keeps_the_traffic_as_it_is_until_resume(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=())
    story.start("v2")
    assert story.run("pause").code == 0
    with story.rolling() as process:
        until(process, "a person paused it")
        assert process.poll() is None
    assert story.shares()["v1"] == 100
    assert story.run("resume").code == 0
    assert story.run("rollout").code == 0


@on_both_servers
def test_marks_are_set_and_lifted_again_and_again(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=())
    story.start("v2")
    for command in ("pause", "resume", "abort", "retry", "pause", "resume", "abort", "retry"):
        ended = story.run(command)
        assert ended.code == 0, ended
    assert story.run("rollout").code == 0


@on_both_servers
def test_two_rollouts_at_once_end_where_one_would(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25, 50), gate="GateWorkflow")
    story.start("v2")
    with story.rolling() as one, story.rolling() as other:
        told = [until(process, "it stays at 25%") for process in (one, other)]
    assert story.shares() == {"v1": 75, "v2": 25}
    # the same change by the same manager, at the same moment, is one that a server need not make, and of a
    # change whose answer came late a rollout only hears by its next look
    made = [sum("25% of new workflows go to v2 now" in line for line in lines) for lines in told]
    assert max(made) <= 1
    assert sum("started the gate" in line for lines in told for line in lines) >= 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@side_by_side
def test_signal_ends_a_rollout_within_a_second_also_in_the_middle_of_a_write(
    story: Story, number: signal.Signals
) -> None:
    is_about_to_ramp(story)
    with forwarding(story.worker.server.address, Trouble(lost_body=A_WRITE, hangs=True)) as silent:
        story.describe("v2", steps=(25,), address=silent.address)
        with story.rolling() as process:
            eventually(lambda: silent.lost, SOON)
            assert story.shares()["v2"] == 25
            first_of_all(process.pid)
            os.kill(process.pid, number)
            assert process.wait(1) == 128 + number


@side_by_side
def test_write_whose_answer_is_lost_is_found_made_recorded_and_not_repeated(story: Story) -> None:
    is_about_to_ramp(story)
    with forwarding(story.worker.server.address, Trouble(lost_body=A_WRITE)) as losing:
        story.describe("v2", steps=(25,), address=losing.address)
        with story.rolling() as process:
            lines = until(process, "it stays at 25%")
    assert any("; trying again" in line for line in lines)
    assert (losing.lost, losing.bodies) == (1, 2), "the one write that was lost, and the record of it"
    assert story.shares() == {"v1": 75, "v2": 25}
    story.describe("v2", steps=(25,))
    [versions] = [
        worker["versions"] for worker in json.loads(story.run("status", "-o", "json").stdout)["workers"]
    ]
    assert versions[0]["movedBy"]["identity"] == MANAGER


@side_by_side
def test_server_that_dies_and_comes_back_is_waited_for(story: Story) -> None:
    becomes_current(story, "v1")
    with forwarding(story.worker.server.address, Trouble()) as dying:
        story.describe("v2", steps=(25,), address=dying.address)
        with story.rolling("--timeout", "20s") as process:
            until(process, "Temporal does not know it yet")
            dying.die()
            until(process, "; trying again")
            story.start("v2")
            dying.revive()
            until(process, "it stays at 25%")


@side_by_side
def test_ramp_changed_by_hand_resumes_from_the_step_below_with_its_decimals(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(2.5, 33.3))
    story.start("v2")
    assert "2.5% of new workflows go to v2 now" in story.once().stdout
    story.worker.set_manager("")
    story.worker.set_ramp("v2", 40)
    assert "33.3% of new workflows go to v2 now" in story.once().stdout
    again = story.once().stdout
    assert "it stays at 33.3%" in again
    assert "now" not in again


@side_by_side
def test_third_version_in_mid_ramp_ends_the_ramp_and_begins_its_own(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,))
    story.start("v2")
    story.goes_to({"v1": 75, "v2": 25})
    story.describe("v3", steps=(10,))
    story.start("v3")
    ended = story.once("-o", "json")
    assert story.shares() == {"v1": 100, "v2": 0, "v3": 0}, "nothing judges the second one any more"
    begun = story.once()
    assert story.shares() == {"v1": 90, "v2": 0, "v3": 10}, begun
    assert [json.loads(line)["kind"] for line in ended.stdout.splitlines()] == ["Status"]


@side_by_side
def test_rollout_that_cannot_read_or_has_no_time_ends_so(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=())
    late = story.run("rollout", "--within", "10s")
    assert (late.code, "not settled within 10s: live/" in late.stderr) == (4, True), late
    with refusing() as address:
        story.describe("v2", steps=(), address=address)
        assert story.run("rollout").code == 3


def is_about_to_ramp(story: Story) -> None:
    """The next rollout of v2 begins with the write that sends it its first workflows."""
    becomes_current(story, "v1")
    story.worker.set_manager(MANAGER)
    story.start("v2")
    story.describe("v2", steps=(25,))
    eventually(lambda: story.planned()["routing"]["percentage"] == 25, SOON)


def first_of_all(process: int) -> None:
    """Let it run before all others of a busy machine, where we may say so: what it takes is its own time."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, process, -20)
