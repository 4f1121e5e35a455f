"""A ramp whose workflows fail is taken back by the numbers that Temporal counts; one that is well goes on."""

from typing import Any

import pytest

from testing.processes import eventually
from tests.servers.live import recorded_versions
from tests.servers.terminal import SOON, Story, becomes_current, on_both_servers

pytestmark = pytest.mark.server
STARTED = 30
"""Of which a version at half of the traffic gets about half."""


def ramps(story: Story, *, fails: bool, **failures: Any) -> None:
    """The second version has half of the traffic, and what was started since has ended."""
    becomes_current(story, "v1")
    name = story.worker.name.removeprefix("live/")
    metrics = [{"name": "failures", "workflowFailures": failures}]
    policy = {"analysis": {"initialDelay": "0s", "metrics": metrics}}
    story.describe("v2", steps=(50,), policy=policy)
    story.start("v2", gate_fails=fails)
    assert story.once().code == 0
    assert story.shares() == {"v1": 50, "v2": 50}
    for number in range(STARTED):
        story.worker.start("GateWorkflow", f"{name}-{number}")


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
    assert "bound 2 %" in plan["routing"]["because"]
    assert plan["analysis"] == [], "it ramps no more"


@on_both_servers
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
