"""Versions whose workers stop polling: a ramp is taken back, and one that was deleted begins anew."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import NEWEST, temporal_server
from tests.servers.side_by_side import side_by_side
from tests.servers.terminal import SOON, Story, becomes_current, on_both_servers, telling, until

pytestmark = pytest.mark.server


def routing(story: Story) -> dict[str, Any]:
    found: dict[str, Any] = story.planned()["routing"]
    return found


@on_both_servers
def test_ramp_that_nobody_polls_for_any_more_is_taken_back_until_somebody_retries(story: Story) -> None:
    becomes_current(story, "v1")
    story.describe("v2", steps=(25,), policy={"unserved": {"after": "2m"}})
    with ExitStack() as running:
        replace(story, running=running).start("v2")
        story.goes_to({"v1": 75, "v2": 25})
        # the newest says for a moment that not every task queue has heard of it
        eventually(lambda: routing(story)["reason"] == "RampPaused", SOON)
    # it has two minutes, and is left alone for as long
    assert routing(story)["reason"] == "RampPaused"
    eventually(lambda: routing(story)["reason"] == "Unserved", SOON)
    assert story.shares() == {"v1": 75, "v2": 25}, "a plan changes nothing"

    ended = story.once()
    assert story.shares() == {"v1": 100, "v2": 0}, ended
    assert "v2 (none of its workers has polled task queue" in ended.stdout
    found = routing(story)
    assert (found["action"], found["reason"]) == ("None", "Aborted")
    assert "none of its workers has polled task queue" in found["because"]

    story.start("v2")
    story.once()
    assert story.shares() == {"v1": 100, "v2": 0}, "nobody has retried"
    assert story.run("retry").code == 0
    again = story.once()
    assert story.shares() == {"v1": 75, "v2": 25}, again


@side_by_side
def test_version_that_was_deleted_and_comes_back_is_gated_anew(place: Story) -> None:
    # a version for which somebody polled lately is not deleted; a poll lasts a minute
    settings = {"matching.PollerHistoryTTL": "65s"}
    with (
        temporal_server(place.folder.parent, NEWEST, settings=settings) as server,
        telling(server, place.folder, place.worker.task_queue) as story,
    ):
        worker = story.worker
        becomes_current(story, "v1")
        story.describe("v2", steps=(25,), gate="GateWorkflow")
        with worker.version("v2"):
            eventually(lambda: "started the gate" in story.run("rollout", "--once").stdout, SOON)
            eventually(lambda: story.planned()["routing"]["percentage"] == 25, SOON)
        eventually(lambda: succeeds(lambda: worker.delete_version("v2")), 3 * SOON)
        with story.rolling() as process:
            until(process, "Temporal does not know it yet")
            story.start("v2")
            assert any("started the gate" in line for line in until(process, "it stays at 25%"))
