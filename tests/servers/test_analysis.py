"""A ramp whose workflows fail is taken back by the numbers that Temporal counts; one that is well goes on."""

from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from testing.processes import eventually
from tests.servers.live import recorded_versions
from tests.servers.side_by_side import side_by_side
from tests.servers.terminal import SOON, Story, becomes_current, on_both_servers

pytestmark = pytest.mark.server
STARTED = 30
"""Of which a version at half of the traffic gets about half."""


def to_half(story: Story, metric: Any, **settings: Any) -> None:
    """The second version, which is measured, has half of the traffic."""
    policy = {"analysis": {"initialDelay": "0s", "metrics": [metric]}}
    story.describe("v2", steps=(50,), policy=policy)
    story.start("v2", **settings)
    story.goes_to({"v1": 50, "v2": 50})
    story.is_heard()


def ramps(story: Story, *, fails: bool, **failures: Any) -> None:
    """The second version has half of the traffic, and what was started since has ended."""
    becomes_current(story, "v1")
    to_half(story, {"name": "failures", "workflowFailures": failures}, gate_fails=fails)
    story.begun("GateWorkflow", STARTED)


@on_both_servers
def test_version_whose_workflows_fail_is_taken_back_with_the_numbers(story: Story) -> None:
    ramps(story, fails=True, maxRatio=0.02)
    eventually(lambda: story.planned()["routing"]["reason"] == "AnalysisFailed", SOON)
    plan = story.planned()
    [judged] = plan["analysis"]
    assert (judged["metric"], judged["verdict"], judged["bound"]) == ("failures", "Fails", 0.02)
    assert judged["value"] > 0.5
    ended = story.once()
    assert story.shares() == {"v1": 100, "v2": 0}, ended
    assert "failed (" in ended.stdout
    plan = story.planned()
    assert plan["routing"]["reason"] == "Aborted"
    assert "bound 2%" in plan["routing"]["because"]
    assert plan["analysis"] == [], "it ramps no more"


@side_by_side
def test_version_that_is_well_passes_and_is_counted_from_the_begin_of_its_ramp(story: Story) -> None:
    ramps(story, fails=False, notAbove="Current", workflowTypes=["GateWorkflow"])

    def counted() -> dict[str, int]:
        [target] = [found for found in recorded_versions(story.folder) if found["buildID"] == "v2"]
        [measured] = target["measurements"]
        counts = measured["failures"]
        assert counts["target"]["started"] + counts["current"]["started"] == STARTED, measured
        found: dict[str, int] = counts["target"]
        return found

    assert eventually(counted, SOON)["failed"] == 0
    plan = story.planned()
    [judged] = plan["analysis"]
    assert (judged["verdict"], judged["value"]) == ("Passes", 0)
    assert plan["routing"]["reason"] in {"RampPaused", "UpdateInProgress"}
    assert story.shares() == {"v1": 50, "v2": 50}


def is_taken_back(story: Story, sign: str) -> None:
    """Its analysis fails, by the plan, and the next look ends the ramp; the mark says why."""
    eventually(lambda: story.planned()["routing"]["reason"] == "AnalysisFailed", SOON)
    ends(story, sign)


def ends(story: Story, sign: str) -> None:
    """The next look ends the ramp of a version that fails, and its mark says why."""
    ended = story.once()
    assert story.shares() == {"v1": 100, "v2": 0}, ended
    found = story.planned()["routing"]
    assert found["reason"] == "Aborted"
    assert sign in found["because"]


@on_both_servers
def test_version_that_cannot_replay_what_runs_is_taken_back_with_its_workflows(story: Story) -> None:
    becomes_current(story, "v1")
    names = story.begun("SleepingWorkflow")
    eventually(lambda: not any(map(story.tries, names)), SOON)
    to_half(story, {"name": "stuck", "reportedProblems": {"max": 0}}, CHANGED="1")
    # the clock counts whole seconds, and the ramp began within this one
    eventually(lambda: story.planned()["analysis"][0]["verdict"] == "Passes", SOON)
    for workflow in names:
        story.worker.finish(workflow)
    is_taken_back(story, "stuck (")
    # the old version still has its pods, and replays them
    eventually(lambda: all(story.tries(name) <= 1 for name in names), SOON)


@side_by_side
def test_version_whose_first_workflow_task_breaks_is_taken_back(story: Story) -> None:
    becomes_current(story, "v1")
    to_half(story, {"name": "stuck", "reportedProblems": {}}, GATE_IS_STUCK="1")
    story.begun("GateWorkflow")
    is_taken_back(story, "stuck (")


@on_both_servers
def test_version_that_takes_none_of_its_tasks_is_taken_back_by_their_age(story: Story) -> None:
    becomes_current(story, "v1")
    name = story.worker.name.removeprefix("live/")
    with ExitStack() as running:
        told = replace(story, running=running)
        to_half(told, {"name": "backlog", "backlogAge": {"max": "15s"}})
        story.begun("GateWorkflow", STARTED)
        eventually(lambda: [judged["verdict"] for judged in story.planned()["analysis"]] == ["Passes"], SOON)
    started = count(STARTED)

    def fails() -> bool:
        # new ones come all the time: without any, nobody falls behind
        story.worker.start("GateWorkflow", f"{name}-{next(started)}")
        return bool(story.planned()["routing"]["reason"] == "AnalysisFailed")

    eventually(fails, SOON)
    ends(story, "the oldest task of")
