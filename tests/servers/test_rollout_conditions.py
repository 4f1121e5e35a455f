"""What must hold before traffic moves, told at a terminal: pollers, task queues, gates, and who decides."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from testing.processes import eventually
from tests.servers.live import (
    ALONE,
    MANAGER,
    policy_document,
    recorded_versions,
    run,
    worker_document,
    write_specs,
)
from tests.servers.side_by_side import side_by_side
from tests.servers.terminal import SOON, Story, becomes_current, on_both_servers, until
from twgen.cli.settings import clock
from twgen.model.times import format_time

pytestmark = pytest.mark.server
LATE = timedelta(minutes=6)
"""Longer than a new version may take to poll what it must."""


def planned_later(story: Story) -> tuple[str, str]:
    """Phase and cause of the plan, once the worker has had its time."""
    worker = story.planned("--now", format_time(clock() + LATE))
    return worker["phase"], worker["routing"]["because"]


def queues(story: Story) -> str:
    """Two of its own, as the setting of a worker."""
    return f"{story.worker.task_queue},{story.worker.task_queue}-more"


@side_by_side
def test_progressive_worker_without_any_other_poller_is_current_at_once_after_its_gate(
    story: Story,
) -> None:
    story.describe("v1", gate="GateWorkflow")
    story.start("v1", TASK_QUEUE=queues(story))
    ended = story.run("rollout")
    assert (ended.code, story.shares()) == (0, {"v1": 100})
    assert ended.stdout.count("started the gate") == 2, "on each of its task queues"
    assert "% of new workflows" not in ended.stdout


@side_by_side
def test_unversioned_pollers_of_one_workflow_queue_share_with_a_first_version(story: Story) -> None:
    story.running.enter_context(story.worker.unversioned())
    story.start("v1", TASK_QUEUE=queues(story))
    story.describe("v1")

    def is_seen() -> bool:
        [version] = recorded_versions(story.folder)
        return {queue["unversionedPollers"] for queue in version["taskQueues"]} == {True, False}

    eventually(is_seen, SOON)
    story.goes_to({"v1": 25})


@on_both_servers
def test_worker_beside_unversioned_ones_takes_its_first_step_or_all_at_once(story: Story) -> None:
    story.running.enter_context(story.worker.unversioned())
    story.start("v1")
    story.describe("v1")
    eventually(lambda: story.planned()["routing"]["percentage"] == 25, SOON)
    story.goes_to({"v1": 25})
    story.describe("v1", steps=())
    assert story.run("rollout").code == 0
    assert story.shares() == {"v1": 100}

    story.worker.set_manager("")
    story.worker.set_current("")
    story.describe("v1")

    def shares_after_a_change() -> Mapping[str, float]:
        story.run("rollout", "--once")
        return story.shares()

    # not at once: what has all of the traffic would not ramp
    eventually(lambda: shares_after_a_change() == {"v1": 25}, SOON)


@on_both_servers
def test_task_queue_that_the_target_does_not_poll_is_named_and_blocks_it_in_the_end(story: Story) -> None:
    story.start("v1", TASK_QUEUE=queues(story))
    story.describe("v1", steps=())
    eventually(lambda: story.run("rollout").code == 0, SOON)
    story.start("v2")
    story.describe("v2", steps=())
    missing = f"task queue {story.worker.task_queue}-more, but v1 does"
    with story.rolling() as process:
        until(process, missing)
    assert story.shares() == {"v1": 100, "v2": 0}
    other, numbers = replace(story.worker, task_queue=f"{story.worker.task_queue}-more"), count()

    def is_blocked() -> bool:
        other.start("GateWorkflow", f"{story.worker.task_queue}-{next(numbers)}")
        phase, because = planned_later(story)
        assert (phase, missing in because) == ("Blocked", True), because
        return True

    eventually(is_blocked, SOON)
    # once none came lately, nothing would be left behind
    eventually(lambda: planned_later(story)[0] == "Moving", SOON)
    story.worker.set_manager("")
    story.worker.set_ramp("v2", 5)
    assert story.shares() == {"v1": 95, "v2": 5}


@side_by_side
def test_gate_of_a_worker_without_workflows_cannot_start_and_blocks_it_in_the_end(story: Story) -> None:
    story.running.enter_context(story.worker.version("v1", ONLY_ACTIVITIES="yes"))
    story.describe("v1", steps=(), gate="GateWorkflow")
    with story.rolling() as process:
        until(process, "the gate cannot start: no workflow task queue is known yet")
    phase, because = planned_later(story)
    assert phase == "Blocked"
    assert because.endswith("deploy a worker that polls for workflows, or remove the gate from its spec")
    story.describe("v1", steps=())
    assert story.run("rollout").code == 0


@side_by_side
def test_gate_that_runs_out_of_time_fails_and_one_with_input_in_its_spec_decides_by_it(
    story: Story,
) -> None:
    becomes_current(story, "v1")
    story.start("v2")
    gate = f"test-{story.worker.name}:v2-{story.worker.task_queue}"
    story.worker.start("WaitingWorkflow", gate, pinned_to="v2", seconds=1)
    story.describe("v2", steps=(), gate="WaitingWorkflow")
    eventually(lambda: "ended as TimedOut" in story.planned()["routing"]["because"], SOON)
    assert story.run("rollout").code == 1
    assert story.run("retry").code == 0

    for passes, code in ((False, 1), (True, 0)):
        document = worker_document(story.worker.name.removeprefix("live/"), "v2", steps=())
        document["spec"]["rollout"]["gate"] = {
            "workflowType": "AskedGateWorkflow",
            "input": {"passes": passes},
        }
        write_specs(story.folder, story.worker.server.address, document)
        ended = story.run("rollout")
        assert (ended.code, story.shares()["v2"]) == (code, 100 * passes), ended
        if not passes:
            assert story.run("retry").code == 0


@side_by_side
def test_rollback_to_a_version_replaced_long_ago_ramps_and_a_persons_rollback_is_not_undone_at_once(
    story: Story,
) -> None:
    becomes_current(story, "v1")
    becomes_current(story, "v2")
    name = story.worker.name.removeprefix("live/")
    short = policy_document(name, rollbackWindow="1s")
    write_specs(story.folder, story.worker.server.address, worker_document(name, "v1"), short)
    eventually(lambda: story.planned()["routing"]["percentage"] == 25, SOON)
    story.worker.set_current("v1")
    story.describe("v2")
    moved = "25% of new workflows go to v2 now"
    eventually(lambda: moved in story.run("rollout", "--once").stdout, SOON)
    assert story.shares() == {"v1": 75, "v2": 25}


@on_both_servers
def test_rollouts_of_two_managers_never_alternate_and_the_one_that_may_adopt_takes_over(
    story: Story,
) -> None:
    becomes_current(story, "v1")
    story.start("v2")
    story.describe("v2")
    other = (*ALONE, "--identity", "twgen/somebody/else")
    claims = ("rollout", "--once")
    eventually(lambda: "its manager is now" in run(story.folder, *claims, options=other).stdout, SOON)
    for gate in ("", "GateWorkflow"):
        for steps in ((), (25,)):
            story.describe("v2", gate=gate, steps=steps)
            refused = story.run("rollout")
            assert refused.code == 5, refused
            assert "its manager is twgen/somebody/else" in refused.stderr
            assert "started the gate" not in refused.stdout
    assert story.described().manager_identity == "twgen/somebody/else"
    name = story.worker.name.removeprefix("live/")
    adopts = policy_document(name, adoptFrom=["twgen/somebody/else"])
    worker = worker_document(name, "v2", steps=())
    write_specs(story.folder, story.worker.server.address, worker, adopts)
    assert story.run("rollout").code == 0
    assert story.described().manager_identity == MANAGER
    assert run(story.folder, "rollout", options=other).code == 0, "it is settled, and nobody is needed"
    story.describe("v1", steps=())
    assert run(story.folder, "rollout", options=other).code == 5
    assert story.shares() == {"v1": 0, "v2": 100}
