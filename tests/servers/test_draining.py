"""What holds versions that drain, by the report, against what was started."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from time import sleep
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload, SearchAttributes, WorkflowExecution, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    CountWorkflowExecutionsRequest,
    ListWorkflowExecutionsRequest,
    StartWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import ENVIRONMENT, MANAGER, TWGEN
from tests.servers.reading import clients, read_all
from tests.servers.side_by_side import side_by_side
from tests.servers.specs import worker_spec
from tests.servers.terminal import LOST, OPTIONS, SOON, UNKNOWN, Story, becomes_current, on_both_servers
from tests.servers.workflows import events_of, history_of, start
from twgen.cli.settings import clock
from twgen.clients.deadline import Deadline
from twgen.errors import StateUnavailable
from twgen.executing.temporal import TemporalWriter, begin
from twgen.model.draining import BatchAction, BatchState, DrainingAction, DrainingEntry, PinnedWorkflows
from twgen.model.temporal import VersionStatus
from twgen.planning.draining.actions import due_actions
from twgen.planning.plan import worker_world
from twgen.planning.routing.target import Target
from twgen.reading.temporal import workflows
from twgen.reading.temporal.reader import TemporalReader

pytestmark = pytest.mark.server
BUSY = "when the running batch operation has ended"
STARTED = {"v1": (6, 2), "v2": (8, 1), "v3": (12, 0), "v4": (4, 0)}
"""Of each version, so many that wait and so many that wait for a child, which waits."""
BROKEN, ENDED = 3, 2
OPEN = 10
"""Of each version that drains."""


def runs_of(story: Story, workflow_id: str) -> set[str]:
    """The runs of a workflow, as visibility lists them."""
    request = ListWorkflowExecutionsRequest(namespace="default", query=f"WorkflowId = '{workflow_id}'")
    answer = story.worker.server.ask("list_workflow_executions", request)
    return {one.execution.run_id for one in answer.executions}


def report(story: Story, *options: str) -> dict[str, Any]:
    ended = story.run("drain", "-o", "json", *options)
    assert ended.code == 0, ended
    [worker] = json.loads(ended.stdout)["workers"]
    return {version["buildID"]: version for version in worker["versions"]}


@on_both_servers
def test_report_tells_of_each_version_what_was_started_on_it(story: Story) -> None:
    name = story.worker.name.removeprefix("live/")
    for version, (waiting, parents) in STARTED.items():
        becomes_current(story, version)
        waits = [f"{name}-{version}-{number}" for number in range(waiting)]
        has_child = [f"{name}-{version}-parent-{number}" for number in range(parents)]
        start(story.worker, {"WaitingWorkflow": waits, "ParentWorkflow": has_child})
    story.describe("v4", steps=())
    for number in range(BROKEN):
        story.worker.finish(f"{name}-v1-{number}", "break_down")
    for number in range(ENDED):
        story.worker.finish(f"{name}-v3-{number}")

    def told() -> dict[str, Any]:
        found = report(story)
        numbers = {version: one["workflows"] for version, one in found.items()}
        assert numbers == dict.fromkeys(("v1", "v2", "v3"), OPEN), found
        assert found["v1"]["failing"] == BROKEN, found
        return found

    found = eventually(told)
    queue = story.worker.task_queue
    assert found["v1"]["groups"] == [
        {"workflowType": "WaitingWorkflow", "taskQueue": queue, "workflows": 8},
        {"workflowType": "ParentWorkflow", "taskQueue": queue, "workflows": 2},
    ]
    assert [one["workflowType"] for one in found["v3"]["groups"]] == ["WaitingWorkflow"]
    assert {version: one["waitingForChild"] for version, one in found.items()} == {"v1": 2, "v2": 1, "v3": 0}
    assert found["v2"]["failing"] == 0
    for one in found.values():
        assert one["grouped"] == one["lookedAt"] == OPEN
        assert [each["workflows"] for each in one["ages"]] == [OPEN, 0, 0, 0, 0]
        assert 0 <= one["oldestSeconds"] < 3600
        assert one["drainedWithinSeconds"] is None, "none has ended after as long a time"
    [planned] = [one for one in story.planned()["versions"] if one["buildID"] == "v1"]
    assert planned["because"].startswith("it is draining: 10 open workflows need it, the oldest "), planned
    assert "v1: Draining for " in (shown := story.run("status").stdout), shown
    assert ", 10 open workflows, the oldest " in shown
    text = story.run("drain").stdout
    assert "v3: Draining, 10 workflows are pinned to it, the oldest is " in text
    assert "3 with workflow tasks that keep failing, 2 waiting for a child workflow" in text
    assert "| `v1` | Draining | 10 |" in story.run("drain", "-o", "markdown").stdout


def test_more_workflows_than_are_listed_are_counted_by_age_and_the_oldest_is_found(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflows, "PAGE", 10)
    monkeypatch.setattr(workflows, "MOST_PAGES", 2)
    worker = DeployedWorker(temporal, "default/sampled", "sampled")
    spec = worker_spec("sampled", "v2", temporal.connection)

    async def found() -> PinnedWorkflows:
        reader = workflows.Draining(spec, TemporalReader(clients(), Deadline(60)), clock(), timedelta(days=7))
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
    assert 0 < one.described.number <= 10


def ends(story: Story, *options: str, build_id: str = "v1", code: int = 0) -> str:
    """What the command says that ends workflows of a version."""
    ended = story.run("end", "--version", build_id, *options)
    assert ended.code == code, ended
    return ended.stdout + ended.stderr


def done(story: Story, *options: str) -> str:
    return ends(story, *options, "--yes", "--wait")


@contextmanager
def other_batch(story: Story) -> Iterator[None]:
    """A server takes each open workflow of this division for a batch operation that runs."""
    name = f"batch-{story.worker.name.removeprefix('live/')}"
    division = Payload(
        metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=json.dumps("TemporalBatcher").encode()
    )
    started = StartWorkflowExecutionRequest(
        namespace="default",
        workflow_id=name,
        request_id=name,
        workflow_type=WorkflowType(name="NobodyWorksOnIt"),
        task_queue=TaskQueue(name=name),
        search_attributes=SearchAttributes(indexed_fields={"TemporalNamespaceDivision": division}),
    )
    story.worker.server.ask("start_workflow_execution", started)
    query = f"WorkflowId = '{name}' AND TemporalNamespaceDivision = 'TemporalBatcher'"
    counting = CountWorkflowExecutionsRequest(namespace="default", query=query)
    eventually(lambda: story.worker.server.ask("count_workflow_executions", counting).count)
    try:
        yield
    finally:
        ended = TerminateWorkflowExecutionRequest(
            namespace="default", workflow_execution=WorkflowExecution(workflow_id=name)
        )
        story.worker.server.ask("terminate_workflow_execution", ended)


def completed_on(story: Story, workflow_id: str) -> str:
    """The build ID of the version that completed the last workflow task."""
    tasks = (
        event.workflow_task_completed_event_attributes for event in history_of(story.worker, workflow_id)
    )
    *_, last = (task.deployment_version.build_id for task in tasks if task.scheduled_event_id)
    return str(last)


@on_both_servers
def test_workflows_of_a_version_that_drains_are_signalled_moved_and_ended_once(story: Story) -> None:
    name = story.worker.name.removeprefix("live/")
    waiting = [f"{name}-waits-{number}" for number in range(6)]
    parents = [f"{name}-parent-{number}" for number in range(2)]
    others = [f"{name}-other-{number}" for number in range(3)]
    becomes_current(story, "v1")
    start(story.worker, {"WaitingWorkflow": waiting, "ParentWorkflow": parents})
    becomes_current(story, "v2")
    for workflow_id in others:
        story.worker.start("WaitingWorkflow", workflow_id)
    story.describe("v2", steps=())
    eventually(lambda: report(story)["v1"]["workflows"] == len(waiting) + 2 * len(parents))

    assert "it is the target" in ends(story, "--terminate", "--yes", build_id="v2", code=1)
    assert "no terminal for this question: give --yes to confirm" in ends(story, "--terminate", code=2)

    # killed as soon as the server has it, and begun again
    signal = ("--signal", "poke", "--signal-input", '{"now": true}', "--type", "WaitingWorkflow")
    command = [TWGEN, "end", story.folder, "--version", "v1", *signal, "--yes", "--wait", *OPTIONS]

    def killed() -> bool:
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            assert process.stderr
            line = process.stderr.readline()
            process.kill()
        assert UNKNOWN in line or ": will send signal poke to" in line, line
        return UNKNOWN not in line and BUSY not in line

    assert eventually(killed)
    assert "has ended: " in done(story, *signal)
    assert "has ended: " in done(story, *signal)
    signalled = "WORKFLOW_EXECUTION_SIGNALED"
    children = [f"{parent}-child" for parent in parents]
    assert {events_of(story.worker, one, signalled) for one in (*waiting, *children)} == {1}
    assert {events_of(story.worker, one, signalled) for one in (*parents, *others)} == {0}
    done(story, *signal, "--again")
    assert {events_of(story.worker, one, signalled) for one in (*waiting, *children)} == {2}

    assert "no open workflow of v1 matches" in done(story, "--cancel", "--older-than", "1h")
    assert "these workflows were not replayed" in ends(story, "--move", "--yes", code=1)
    done(story, "--move", "--without-replay", "--type", "WaitingWorkflow")
    for workflow_id in waiting:
        story.worker.finish(workflow_id)
    told = "WORKFLOW_EXECUTION_COMPLETED"
    eventually(lambda: all(events_of(story.worker, one, told) for one in waiting))
    assert {completed_on(story, one) for one in waiting} == {"v2"}
    done(story, "--cancel", "--type", "ParentWorkflow")
    assert {events_of(story.worker, one, "WORKFLOW_EXECUTION_CANCEL_REQUESTED") for one in parents} == {1}
    done(story, "--terminate")
    eventually(lambda: not report(story).get("v1", {}).get("workflows"))
    assert {events_of(story.worker, one, "WORKFLOW_EXECUTION_TERMINATED") for one in others} == {0}
    assert {events_of(story.worker, one, told) for one in others} == {0}


@side_by_side
def test_operation_waits_for_the_end_of_another_one_if_it_is_told_to_wait(story: Story) -> None:
    name = story.worker.name.removeprefix("live/")
    old = f"{name}-old"
    becomes_current(story, "v1")
    start(story.worker, {"WaitingWorkflow": [old]})
    becomes_current(story, "v2")
    story.describe("v2", steps=())
    eventually(lambda: report(story)["v1"]["workflows"] == 1)
    command = [TWGEN, "end", story.folder, "--version", "v1", "--cancel", "--yes", "--wait", *OPTIONS]

    with other_batch(story):
        assert "another batch operation is running" in ends(story, "--cancel", "--yes", code=3)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        assert process.stderr
        assert BUSY in (line := process.stderr.readline()), line
        assert events_of(story.worker, old, "WORKFLOW_EXECUTION_CANCEL_REQUESTED") == 0
    _, rest = process.communicate(timeout=SOON)
    assert process.returncode == 0, rest
    assert events_of(story.worker, old, "WORKFLOW_EXECUTION_CANCEL_REQUESTED") == 1


class BegunNow(workflows.Draining):
    """Says that a batch was started at the time of the test, which is days ahead of the server's clock.

    If a server loses the mark that follows a batch, the next try finds the batch and marks its start.
    """

    async def batch(self, job_id: str) -> BatchState | None:
        found = await super().batch(job_id)
        return replace(found, started_at=self.now) if found else None


@on_both_servers
def test_workflow_that_starts_later_on_a_draining_version_is_ended_another_day(story: Story) -> None:
    name, day = story.worker.name.removeprefix("live/"), timedelta(days=1)
    renewing, child = [f"{name}-renews-{number}" for number in range(2)], f"{name}-renews-0-child"
    becomes_current(story, "v1")
    start(story.worker, {"RenewingWorkflow": renewing})
    becomes_current(story, "v2")
    story.describe("v2", steps=())
    eventually(lambda: succeeds(lambda: story.worker.set_manager(MANAGER)))
    cancel = DrainingAction(BatchAction.CANCEL, ("RenewingWorkflow",))
    terminate = DrainingAction(BatchAction.TERMINATE, ("WaitingWorkflow",))
    entries = tuple(DrainingEntry(timedelta(milliseconds=1), what) for what in (cancel, terminate))
    spec = worker_spec(name, "v2", story.worker.server.connection)
    spec = replace(spec, namespace="live", policy=replace(spec.policy, draining=entries))

    async def begun(now: datetime) -> list[tuple[BatchAction, int]]:
        """What `twgen tick` begins at that moment."""
        opened, found = clients(), []
        world = worker_world(spec, await read_all([spec], opened, for_routing=True))
        target = Target(spec, world, now, MANAGER)
        assert target.versions["v1"].status is VersionStatus.DRAINING, "it is not known for a moment"
        batches = BegunNow(spec, TemporalReader(opened, Deadline(60)), now, timedelta())
        writer = TemporalWriter(spec, MANAGER, opened, 60)
        for scheduled_action in due_actions(target):
            said: list[str] = []
            assert await begin(target, scheduled_action, batches, writer, said.append), "another batch runs"
            found.append((scheduled_action.what.action, len(said)))
        return found

    def ticked(now: datetime) -> list[tuple[BatchAction, int]]:
        def once() -> list[list[tuple[BatchAction, int]]]:
            try:
                return [asyncio.run(begun(now))]
            except StateUnavailable as error:
                if LOST in str(error):
                    return []
                raise

        return eventually(once)[0]

    def are_renewed(runs: int) -> bool:
        """Each has been asked to cancel in as many runs, and goes on in another one, on its version."""
        assert {len(runs_of(story, one)) for one in renewing} == {runs + 1}
        return True

    def due_at(now: Callable[[], datetime]) -> list[tuple[BatchAction, int]]:
        """What the next look begins; for a moment a server may not tell the metadata of a version."""
        return eventually(lambda: ticked(now()))

    # the version may begin to drain after this very second
    assert due_at(clock) == [(BatchAction.CANCEL, 1)]
    eventually(lambda: are_renewed(1))
    assert due_at(clock) == [(BatchAction.TERMINATE, 0)], "there is no such workflow yet"
    assert ticked(clock()) == [], "what has continued as new has escaped for today"
    story.worker.finish(renewing[0], "branch")
    eventually(lambda: report(story)["v1"]["workflows"] == 3)
    # a busy machine may count it before its worker has taken its first task
    eventually(lambda: events_of(story.worker, child, "WORKFLOW_TASK_COMPLETED") > 0)
    assert completed_on(story, child) == "v1"

    assert due_at(lambda: clock() + day) == [(BatchAction.CANCEL, 1)]
    eventually(lambda: are_renewed(2))
    assert due_at(lambda: clock() + day) == [(BatchAction.TERMINATE, 1)]
    eventually(lambda: events_of(story.worker, child, "WORKFLOW_EXECUTION_TERMINATED") == 1)
    assert ticked(clock() + day) == []
