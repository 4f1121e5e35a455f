"""A step of a ramp that its policy lets begin by a gate, and end by a person."""

import pytest

from testing.processes import eventually
from tests.servers.side_by_side import side_by_side
from tests.servers.terminal import SOON, Story, becomes_current

pytestmark = pytest.mark.server
STEP = {"rampPercentage": 50, "gate": {"workflowType": "GateWorkflow"}, "until": "Promoted"}


def ramps(story: Story, *, gate_fails: bool) -> None:
    """The second version is at its first step, and the second one has a gate."""
    becomes_current(story, "v1")
    story.describe("v2", steps=(10, 50), pause="30s", policy={"steps": [STEP]})
    story.start("v2", gate_fails=gate_fails)
    story.goes_to({"v1": 90, "v2": 10})


@side_by_side
def test_step_begins_when_its_gate_has_passed_and_ends_when_a_person_promotes(story: Story) -> None:
    ramps(story, gate_fails=False)
    with story.rolling():
        assert eventually(lambda: story.planned()["routing"]["reason"] == "UntilPromoted", SOON)
        assert story.shares() == {"v1": 50, "v2": 50}
        assert story.run("promote").code == 0
        assert eventually(lambda: story.shares() == {"v1": 0, "v2": 100}, SOON)


@side_by_side
def test_step_whose_gate_fails_does_not_begin_and_the_ramp_is_taken_back_until_a_retry(story: Story) -> None:
    ramps(story, gate_fails=True)
    with story.rolling() as rollout:
        assert rollout.wait(SOON) == 1, "it ends as blocked"
    assert story.shares() == {"v1": 100, "v2": 0}

    def aborted() -> str:
        """Why; the oldest server does not know a version for a moment after a change."""
        routing = story.planned()["routing"]
        assert routing["reason"] == "Aborted", routing
        return str(routing["because"])

    assert "the gate GateWorkflow before 50%" in eventually(aborted, SOON)
    assert story.run("retry").code == 0
    again = story.once()
    assert (again.code, story.shares()) == (0, {"v1": 90, "v2": 10}), again
    assert story.planned()["routing"]["reason"] in {"RampPaused", "UpdateInProgress"}, "it has another try"
