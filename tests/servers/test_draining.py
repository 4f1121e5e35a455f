"""What holds versions that drain, by the report, against what was started."""

import asyncio
import json
from datetime import timedelta
from time import sleep
from typing import Any

import pytest

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import ALONE, run
from tests.servers.reading import clients
from tests.servers.specs import worker_spec
from tests.servers.terminal import Story, becomes_current, on_both_servers
from twgen.cli.settings import clock
from twgen.clients.deadline import Deadline
from twgen.model.draining import PinnedWorkflows
from twgen.reading.temporal import draining
from twgen.reading.temporal.shared import SharedReads

pytestmark = pytest.mark.server
STARTED = {"v1": (30, 10), "v2": (40, 5), "v3": (60, 0), "v4": (40, 0)}
"""Of each version, so many that wait and so many that wait for a child, which waits: 200 in all."""
BROKEN, ENDED = 3, 10


def report(story: Story, *options: str) -> dict[str, Any]:
    ended = run(story.folder, "drain", "-o", "json", *options, options=ALONE)
    assert ended.code == 0, ended
    [worker] = json.loads(ended.stdout)["workers"]
    return {version["buildID"]: version for version in worker["versions"]}


@on_both_servers
def test_report_tells_of_each_version_what_was_started_on_it(story: Story) -> None:
    name = story.worker.name.removeprefix("live/")
    for version, (waiting, parents) in STARTED.items():
        becomes_current(story, version)
        for number in range(waiting):
            story.worker.start("WaitingWorkflow", f"{name}-{version}-{number}")
        for number in range(parents):
            story.worker.start("ParentWorkflow", f"{name}-{version}-parent-{number}")
    story.describe("v4", steps=())
    for number in range(BROKEN):
        story.worker.finish(f"{name}-v1-{number}", "break_down")
    for number in range(ENDED):
        story.worker.finish(f"{name}-v3-{number}")

    def told() -> dict[str, Any]:
        found = report(story)
        numbers = {version: one["workflows"] for version, one in found.items()}
        assert numbers == {"v1": 50, "v2": 50, "v3": 50}, found
        assert found["v1"]["failing"] == BROKEN, found
        return found

    found = eventually(told, 120)
    queue = story.worker.task_queue
    assert found["v1"]["groups"] == [
        {"workflowType": "WaitingWorkflow", "taskQueue": queue, "workflows": 40},
        {"workflowType": "ParentWorkflow", "taskQueue": queue, "workflows": 10},
    ]
    assert [one["workflowType"] for one in found["v3"]["groups"]] == ["WaitingWorkflow"]
    assert {version: one["waitingForChild"] for version, one in found.items()} == {"v1": 10, "v2": 5, "v3": 0}
    assert found["v2"]["failing"] == 0
    for one in found.values():
        assert one["grouped"] == one["lookedAt"] == 50
        assert [each["workflows"] for each in one["ages"]] == [50, 0, 0, 0, 0]
        assert 0 <= one["oldestSeconds"] < 3600
        assert one["drainedWithinSeconds"] is None, "none has ended after as long a time"
    text = run(story.folder, "drain", options=ALONE).stdout
    assert "v3: Draining, 50 workflows are pinned to it, the oldest for " in text
    assert "3 with workflow tasks that keep failing, 10 waiting for a child" in text
    assert "| `v1` | Draining | 50 |" in run(story.folder, "drain", "-o", "markdown", options=ALONE).stdout


def test_more_workflows_than_are_listed_are_counted_by_age_and_the_oldest_is_found(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "PAGE", 10)
    monkeypatch.setattr(draining, "MOST_PAGES", 2)
    worker = DeployedWorker(temporal, "default/sampled", "sampled")
    spec = worker_spec("sampled", "v2", temporal.connection)

    async def found() -> PinnedWorkflows:
        reader = draining.Draining(spec, SharedReads(clients(), Deadline(60)), clock(), timedelta(days=7))
        return (await reader.pinned(["v1", "v0"]))["v1"]

    with worker.version("v1"):
        eventually(lambda: succeeds(lambda: worker.set_current("v1")))
        for number in range(35):
            worker.start("WaitingWorkflow", f"sampled-{number}")
            if number == 0:
                sleep(1.1)  # the first one is the only one of its second
        one = eventually(lambda: (told := asyncio.run(found())).number == 35 and told)
    assert not one.are_listed
    assert (len(one.listed), one.older_than) == (20, (0, 0, 0, 0))
    first = min(listed.started_at for listed in one.listed)
    assert one.oldest_at is not None
    assert one.oldest_at < first - timedelta(seconds=1)
    assert 0 < one.looked_at.number <= 10
