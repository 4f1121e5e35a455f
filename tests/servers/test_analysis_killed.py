"""Rollouts that are killed again and again decide as one that is left alone: nothing of it is remembered."""

from contextlib import ExitStack
from itertools import count
from threading import Event, Thread

import pytest

from testing.asking import succeeds
from testing.processes import eventually
from tests.servers.live import Document
from tests.servers.side_by_side import side_by_side
from tests.servers.terminal import SOON, Story, becomes_current, rolled_out

pytestmark = pytest.mark.server
METRICS: list[Document] = [
    {"name": "failures", "workflowFailures": {"maxRatio": 0.02}},
    {"name": "stuck", "reportedProblems": {}},
]
ANALYSIS: Document = {"initialDelay": "0s", "metrics": METRICS}


def to_half(story: Story, pause: str, metrics: list[Document], **settings: str) -> None:
    """The second version ramps at half of the traffic, for such a pause."""
    policy = {"analysis": {**ANALYSIS, "metrics": metrics}, "unserved": {"after": "2m"}}
    story.describe("v2", steps=(50,), pause=pause, policy=policy)
    story.start("v2", **settings)
    # one that fails may have been taken back before it is looked at
    rolled_out(story, lambda: story.shares() == {"v1": 50, "v2": 50} or is_taken_back(story))


def is_taken_back(story: Story) -> bool:
    return story.shares() == {"v1": 100, "v2": 0} and story.planned()["routing"]["reason"] == "Aborted"


def why(story: Story) -> str:
    found: str = story.planned()["routing"]["because"]
    return found


class Traffic(ExitStack):
    """Workflows that start one after the other, for as long as it lasts."""

    def __init__(self, story: Story) -> None:
        super().__init__()
        name, ends = story.worker.name.removeprefix("live/"), Event()

        def go_on() -> None:
            for number in count():
                if ends.wait(0.2):
                    return
                # a busy server that answers one start too late must not end the traffic
                succeeds(lambda number=number: story.worker.start("GateWorkflow", f"{name}-{number}"))

        thread = Thread(target=go_on)
        thread.start()
        self.callback(thread.join)
        self.callback(ends.set)


@side_by_side
def test_version_that_is_well_becomes_current(story: Story) -> None:
    becomes_current(story, "v1")
    with Traffic(story):
        to_half(story, "30s", METRICS)
        rolled_out(story, lambda: story.shares() == {"v1": 0, "v2": 100})


@side_by_side
def test_version_that_fails_three_in_ten_is_taken_back(story: Story) -> None:
    becomes_current(story, "v1")
    with Traffic(story):
        to_half(story, "10m", METRICS[:1], GATE_IS_RISKY="1")
        rolled_out(story, lambda: is_taken_back(story))
    assert "failures: " in why(story)


@side_by_side
def test_version_that_cannot_replay_is_taken_back(story: Story) -> None:
    becomes_current(story, "v1")
    names = story.begun("SleepingWorkflow")
    eventually(lambda: not any(map(story.tries, names)), SOON)
    story.describe("v2", steps=(50,), policy={"analysis": ANALYSIS})
    story.start("v2", CHANGED="1")
    rolled_out(story, lambda: story.shares() == {"v1": 50, "v2": 50})
    story.is_heard()
    for workflow in names:
        story.worker.finish(workflow)
    rolled_out(story, lambda: is_taken_back(story))
    assert "stuck: " in why(story)
