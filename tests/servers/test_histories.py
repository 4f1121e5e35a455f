"""`twgen histories` and the program of its page that replays them, on both servers."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest

from testing.processes import eventually
from tests.servers.live import ENVIRONMENT, PATIENT, TWGEN, Ended, run
from tests.servers.reading import clients
from tests.servers.side_by_side import side_by_side
from tests.servers.terminal import Story, becomes_current, on_both_servers
from tests.servers.workflows import events_of, start
from twgen.clients.deadline import Deadline
from twgen.model.spec import NamedWorker
from twgen.planning.routing.gates import chosen
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.temporal.workflows import Histories

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "replay.md").read_text()
[PROGRAM] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ALL = "ParentWorkflow, WaitingWorkflow, GreetingWorkflow, {} as SleepingWorkflow"
pytestmark = pytest.mark.server


def replayed(folder: Path, sleeping: str) -> tuple[int, str]:
    """Exit code and output of the page's program, in an image whose SleepingWorkflow is this one."""
    shop = folder.with_name(f"{folder.name}-{sleeping}") / "shop"
    shop.mkdir(parents=True, exist_ok=True)
    imported = f"from testing.worker_program import {ALL.format(sleeping)}\n"
    names = "WORKFLOWS = [ParentWorkflow, WaitingWorkflow, GreetingWorkflow, SleepingWorkflow]\n"
    (shop / "workflows.py").write_text(imported + names)
    (shop / "replay.py").write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, "-m", "shop.replay", folder],
        cwd=shop.parent,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout


def histories(story: Story, folder: Path, *options: str) -> Ended:
    return run(story.folder, "histories", options=("--folder", str(folder), *options, "-q", *PATIENT))


@side_by_side
def test_histories_are_replayed_by_what_is_deployed_and_not_by_changed_code(story: Story) -> None:
    name = story.worker.name.removeprefix("live/")
    folder = story.folder.parent / f"{name}-histories"
    becomes_current(story, "v1")
    sleeping, greeting = (
        [f"{name}/sleeps {each}" for each in range(3)],
        [f"{name}-greets-{each}" for each in range(4)],
    )
    start(
        story.worker,
        {"SleepingWorkflow": sleeping, "GreetingWorkflow": greeting, "ParentWorkflow": [f"{name}-parent"]},
    )
    ended = "WORKFLOW_EXECUTION_COMPLETED"
    eventually(lambda: all(events_of(story.worker, one, ended) for one in greeting))

    def written() -> set[str]:
        """The workflows whose histories are there; visibility is some moments behind."""
        shutil.rmtree(folder, ignore_errors=True)
        told = histories(story, folder, "--sample", "2")
        assert told.code == 0, told
        assert "6 histories" in told.stdout, told
        assert "4 of open workflows: 2 of GreetingWorkflow, 1 of ParentWorkflow" in told.stdout, told
        return {unquote(file.name.rsplit(".", 2)[0]) for file in folder.iterdir()}

    found = eventually(written)
    assert {f"{name}-parent", f"{name}-parent-child"} < found
    assert len(found & set(sleeping)) == len(found & set(greeting)) == 2
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        assert (
            json.loads(file.read_text())["events"][0]["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED"
        )
    assert replayed(folder, "SleepingWorkflow") == (0, "")
    code, output = replayed(folder, "ChangedSleepingWorkflow")
    # the SDK warns of each on the same stream
    cannot = sorted(re.findall(r"^(\S+ \d) cannot be replayed: NondeterminismError$", output, re.MULTILINE))
    # the SDK may crash when its process ends: that is no success either
    assert (code != 0, cannot) == (True, sorted(found & set(sleeping))), output

    def all_upgrade() -> Ended:
        told = histories(story, folder.parent / f"{name}-upgrading", "--upgrading")
        assert "7 histories" in told.stdout, told
        assert "4 of GreetingWorkflow, 3 of SleepingWorkflow" in told.stdout
        return told

    upgrading = eventually(all_upgrade)
    few = histories(story, folder.parent / f"{name}-few", "--max-bytes", "100")
    assert (few.code, few.stdout.count("histories")) == (1, 0), few
    assert "not written: too large for the rest of --max-bytes" in few.stderr
    assert "no history of GreetingWorkflow, ParentWorkflow, SleepingWorkflow" in few.stderr
    as_temporal = run_without_specs(story, "--deployment-name", story.worker.name, "--upgrading")
    before, after = (ended.stdout.partition("histories in ")[::2] for ended in (as_temporal, upgrading))
    assert (before[0], before[1].partition(",")[2]) == (after[0], after[1].partition(",")[2]), as_temporal


def run_without_specs(story: Story, *options: str) -> subprocess.CompletedProcess[str]:
    """The command as a Pod runs it: with what Temporal's own tools read."""
    temporal = {"TEMPORAL_ADDRESS": story.worker.server.address, "TEMPORAL_NAMESPACE": "default"}
    folder = story.folder.parent / f"{story.folder.name}-here" / "here"
    return subprocess.run(
        [TWGEN, "histories", "--folder", folder, *options, *PATIENT],
        env=ENVIRONMENT | temporal,
        capture_output=True,
        text=True,
        check=False,
    )


@on_both_servers
def test_sample_holds_each_type_of_each_version_also_where_the_newest_are_of_one(story: Story) -> None:
    name = story.worker.name.removeprefix("live/")
    becomes_current(story, "v1")
    start(story.worker, {"ParentWorkflow": [f"{name}-parent"], "SleepingWorkflow": [f"{name}-sleeps"]})
    start(story.worker, {"WaitingWorkflow": [f"{name}-v1-{number}" for number in range(5)]})
    becomes_current(story, "v2")
    start(story.worker, {"WaitingWorkflow": [f"{name}-v2-{number}" for number in range(7)]})
    worker = NamedWorker(story.worker.name, "default", story.worker.server.connection)

    async def listed() -> Counter[tuple[str, str]]:
        reader = Histories(worker, TemporalReader(clients(), Deadline(60)), page=2)
        found = chosen(await reader.recorded(3, upgrading=False), 3)
        return Counter((one.workflow_type, one.build_id) for one in found)

    def all_are_there() -> None:
        # of three that wait two are of the version with the newest, and one of the other in any case
        assert asyncio.run(listed()) == {
            ("ParentWorkflow", "v1"): 1,
            ("WaitingWorkflow", "v1"): 1,
            ("WaitingWorkflow", "v2"): 2,
            ("SleepingWorkflow", ""): 1,
        }

    eventually(lambda: all_are_there() is None)


@on_both_servers
def test_what_no_version_has_had_yet_is_found_by_its_task_queue(story: Story) -> None:
    name = story.worker.name.removeprefix("live/")
    story.worker.start("SleepingWorkflow", f"{name}-old")
    worker = NamedWorker(story.worker.name, "default", story.worker.server.connection)

    async def listed(task_queue: str) -> list[str]:
        reader = Histories(worker, TemporalReader(clients(), Deadline(60)))
        found = await reader.recorded(3, upgrading=True, task_queue=task_queue)
        return [one.workflow_id for one in found]

    eventually(lambda: asyncio.run(listed(story.worker.task_queue)) == [f"{name}-old"])
    assert asyncio.run(listed("")) == []


@on_both_servers
def test_type_that_no_query_finds_hides_no_other(story: Story) -> None:
    name, odd = story.worker.name.removeprefix("live/"), 'List[dict["str"]]'
    becomes_current(story, "v1")
    start(story.worker, {"SleepingWorkflow": [f"{name}-{number}" for number in range(3)]})
    for number in range(4):
        # nobody runs it: it is on the version that its task queue has by then
        story.worker.start(odd, f"{name}-odd-{number}")
    worker = NamedWorker(story.worker.name, "default", story.worker.server.connection)

    async def listed() -> Counter[str]:
        reader = Histories(worker, TemporalReader(clients(), Deadline(60)), page=2)
        found = await reader.recorded(3, upgrading=True, task_queue=story.worker.task_queue)
        return Counter(one.workflow_type for one in found)

    eventually(lambda: asyncio.run(listed()).keys() == {"SleepingWorkflow", odd})
