"""A version replays histories before it takes traffic, by a Job of its own image on a local node."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from testing.kubernetes.api import Object
from testing.processes import eventually
from tests.servers.live import Document, policy_document
from tests.servers.pods import condition
from tests.servers.rollouts import SOON, Story, settled
from tests.servers.side_by_side import side_by_side
from tests.servers.workflows import start

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "replay.md").read_text()
[PROGRAM] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
WORKFLOWS = """import os
from testing.worker_program import *
sleeping = ChangedSleepingWorkflow if "CHANGED" in os.environ else SleepingWorkflow
WORKFLOWS = [WaitingWorkflow, GreetingWorkflow, sleeping]
"""
REPLAYED = [sys.executable, "-m", "shop.replay", "/histories"]
pytestmark = pytest.mark.server


def describe(
    story: Story,
    build_id: str,
    *variables: Document,
    command: Sequence[str] = REPLAYED,
    within: str = "1h",
) -> None:
    """Let Git hold a version whose image has the program of the page."""
    image = story.folder.parent / "image"
    (shop := image / "shop").mkdir(parents=True, exist_ok=True)
    (shop / "workflows.py").write_text(WORKFLOWS)
    (shop / "replay.py").write_text(PROGRAM)
    path = {"name": "PYTHONPATH", "value": f"{image}:{ROOT}"}
    policy = policy_document("greeter", replay={"command": list(command), "sample": 5, "within": within})
    story.describe(build_id, policy, variables=[path, *variables], steps=())


def begun(story: Story) -> None:
    """Its first version is current, and has a workflow that every later version goes on with."""
    settled(story)
    start(story.worker, {"SleepingWorkflow": [f"{story.namespace}-sleeps"]})


def replay_log(story: Story) -> str:
    pods = story.pods("twgen.io/replay=greeter")
    return "\n".join(story.node.logs(story.namespace, pod["metadata"]["name"]) for pod in pods)


def replays(story: Story) -> Sequence[Object]:
    return story.listed("/apis/batch/v1", "jobs", "twgen.io/replay=greeter")


@side_by_side
def test_version_whose_code_can_go_on_replays_and_becomes_current(story: Story) -> None:
    begun(story)
    describe(story, "v2")
    story.apply()
    story.stands("Settled", "v2")
    [job] = replays(story)
    assert job["status"]["succeeded"] == 1, replay_log(story)
    assert "cannot be replayed" not in replay_log(story)


@side_by_side
def test_version_with_another_workflow_definition_is_stopped_before_a_workflow_is_on_it(story: Story) -> None:
    begun(story)
    describe(story, "v2", {"name": "CHANGED", "value": "1"})
    story.apply()
    status = story.stands("Blocked", "v2")
    assert status["reason"] == "ReplayFailed", (status, replay_log(story))
    assert f"{story.namespace}-sleeps cannot be replayed: NondeterminismError" in replay_log(story)
    assert (story.share("v1"), story.share("v2")) == (100, 0)
    refused = story.run("promote")
    assert (
        refused.code,
        "its replay has not passed; to continue without it, use --skip-gate" in refused.stderr,
    ) == (1, True), refused
    [before] = replays(story)
    again = story.run("retry")
    assert "replay histories on it again" in again.stderr, again

    def failed_again() -> bool:
        [job] = replays(story)
        assert job["metadata"]["uid"] != before["metadata"]["uid"]
        return condition(job, "Failed") == "True"

    eventually(failed_again, SOON)
    story.stands("Blocked", "v2")
    # what can go on is another build
    describe(story, "v3")
    story.apply()
    story.stands("Settled", "v3")
    assert story.share("v2") == 0


@side_by_side
def test_image_without_the_command_is_said_and_moves_nothing(story: Story) -> None:
    begun(story)
    describe(story, "v2", command=["no-such-program", "/histories"])
    story.apply()
    status = story.stands("Blocked", "v2")
    assert status["reason"] == "ReplayFailed", status
    assert story.share("v2") == 0


@side_by_side
def test_replay_that_hangs_has_failed_after_its_time(story: Story) -> None:
    begun(story)
    describe(story, "v2", command=["sleep", "1000"], within="20s")
    story.apply()
    status = story.stands("Blocked", "v2")
    assert (status["reason"], "DeadlineExceeded" in status["message"]) == ("ReplayFailed", True), status
    assert story.share("v2") == 0
