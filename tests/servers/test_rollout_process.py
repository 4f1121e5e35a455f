"""Rollouts as processes of their own, with the arguments of their Job: killed, and by wrong clocks."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO, Any

import pytest

from testing.faults import Trouble, forwarding
from testing.forking import Forked, forker
from testing.processes import eventually
from tests.servers.live import ENVIRONMENT
from tests.servers.rollouts import (
    IDENTITY,
    PAUSE,
    SOON,
    Story,
    describe_ramp,
    gates_of,
    outlast,
    ramped_at,
    settled,
)
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server

DEATHS_AT_ONCE = 3
"""Stories that share the requests at which a server dies."""
CLOCK = """\
import sys
from datetime import timedelta
from pathlib import Path
from twgen.cli import settings

right, ahead = settings.clock, Path(sys.argv.pop(1))
settings.clock = lambda: right() + timedelta(seconds=int(ahead.read_text()))
from twgen.__main__ import main

main()
"""
"""The program, its clock ahead by as many seconds as a file says."""


def jump(ahead: Path, seconds: int) -> None:
    """Put the clock ahead by as many seconds; whoever reads it never finds half of a number."""
    (new := ahead.with_suffix(".new")).write_text(str(seconds))
    new.replace(ahead)


@pytest.mark.parametrize("server", ["Temporal", "the API server"])
@side_by_side
def test_rollout_that_is_killed_after_each_of_its_requests_loses_nothing(story: Story, server: str) -> None:
    settled(story)
    *arguments, kubeconfig = without_its_job(story, gate="GateWorkflow", steps=())
    address = story.temporal.address
    if server != "Temporal":
        address = story.cluster.address.removeprefix("https://")
    through, log = story.folder.parent / "through", story.folder.parent / "log"
    for number in count(1):
        silent = Trouble(hangs=True, **{"lost_answer" if server == "Temporal" else "lost_turn": number})
        with forwarding(address, silent) as way, log.open("ab") as output:
            # it names the address of the API server only
            through.write_text(Path(kubeconfig).read_text().replace(address, way.address))
            told = [*arguments, str(through), "--via", f"{address}={way.address}"]
            process = begun(story, told, output)
            eventually(lambda process=process, way=way: way.lost or has_ended(process), SOON)
            process.send(signal.SIGKILL)
            code = process.wait()
        assert code in {0, -signal.SIGKILL}, log.read_text()
        assert story.share("v1") + story.share("v2") == 100
        assert story.replicas() == {"v1": 1, "v2": 1}
        if code == 0:
            break
    assert number > 5, "the last one was not killed, as none was before"
    assert story.share("v2") == 100
    assert story.described().manager_identity == IDENTITY
    assert story.replicas() == {"v1": 1, "v2": 1}
    eventually(lambda: gates_of(story, "v2") == 1, SOON)


@pytest.mark.parametrize("first", range(1, DEATHS_AT_ONCE + 1))
@side_by_side
def test_temporal_that_dies_at_any_request_is_waited_for_and_each_version_becomes_current(
    story: Story, first: int
) -> None:
    # of the newest one a new version is sometimes registered only once the last routing update is over, after
    # two minutes; each death needs a version
    story = replace(story, temporal=story.oldest_temporal)
    settled(story)
    address, log = story.temporal.address, story.folder.parent / "log"
    for number in count(first, DEATHS_AT_ONCE):
        build_id = f"v{number + 1}"
        told = without_its_job(story, build_id, steps=())
        with forwarding(address, Trouble(lost_answer=number)) as way, log.open("wb") as output:
            process = begun(story, [*told, "--via", f"{address}={way.address}"], output)
            eventually(lambda way=way, process=process: way.lost or has_ended(process), SOON)
            if way.lost:
                way.die()
                eventually(
                    lambda process=process: "; trying again" in log.read_text() or has_ended(process), SOON
                )
                way.revive()
            assert process.wait(SOON) == 0, log.read_text()
        assert story.share(build_id) == 100
        assert set(story.replicas().values()) == {1}
        if not way.lost:
            break
    assert number > 3, "the last one lost nothing, as none did before"


@side_by_side
def test_rollout_whose_clock_jumps_waits_behind_and_cuts_no_pause_short_ahead(story: Story) -> None:
    settled(story)
    arguments = without_its_job(story, steps=(25, 50))
    jump(ahead := story.folder.parent / "ahead", -3600)
    command = [sys.executable, "-P", "-c", CLOCK, str(ahead), *arguments]
    with (story.folder.parent / "log").open("wb") as log:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log)
    try:
        eventually(lambda: story.share("v2") == 25, SOON)
        outlast(PAUSE)
        assert story.share("v2") == 25, "by its clock an hour of the pause is left"
        jump(ahead, 0)
        eventually(lambda: story.share("v2") == 50, SOON)
        began = ramped_at(story)
        jump(ahead, 3600)
        assert process.wait(SOON) == 0
    finally:
        process.terminate()
        process.wait()
    assert story.share("v2") == 100
    current = story.described().routing_config.current_version_changed_time
    assert current.ToMilliseconds() / 1000 - began >= PAUSE
    assert "by the slowest clock; clocks differ by" in (story.folder.parent / "log").read_text()
    assert story.replicas() == {"v1": 1, "v2": 1}


def ended(process: Forked) -> int | None:
    """How a process has ended; None: it has not."""
    with suppress(TimeoutError):
        return process.wait(0.05)
    return None


def begun(story: Story, arguments: Sequence[str], output: IO[bytes]) -> Forked:
    """A rollout, which says there what it does."""
    streams = [output.fileno()] * 3
    return forker("urllib3").start("twgen.__main__:main", arguments, story.folder, ENVIRONMENT, streams)


def has_ended(process: Forked) -> bool:
    return ended(process) is not None


def without_its_job(story: Story, build_id: str = "v2", **options: Any) -> Sequence[str]:
    """Apply a version without the Job of its rollout, and wait for its worker; the Job's arguments."""
    describe_ramp(story, build_id, **options)
    manifests = story.manifests()
    story.cluster.apply([item for item in manifests if item["kind"] != "Job"])
    [job] = [item for item in manifests if item["kind"] == "Job"]
    [container] = job["spec"]["template"]["spec"]["containers"]

    def polls() -> bool:
        found = {version.deployment_version.build_id for version in story.described().version_summaries}
        return build_id in found

    eventually(polls, SOON)
    token = story.cluster.token("greeter-rollout", story.namespace)
    kubeconfig = story.cluster.write_kubeconfig(story.namespace, token, namespace=story.namespace)
    return [*container["args"], "--kubeconfig", str(kubeconfig)]
