"""`twgen status` on a real server, as a person and as a script watch a rollout."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from testing.asking import succeeds
from testing.faults import Trouble, forwarding
from testing.processes import eventually, free_ports
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import ALONE, ENVIRONMENT, MANAGER, TWGEN, printed, worker_document, write_specs
from tests.terminal import terminal

pytestmark = pytest.mark.server
WATCH = ("-w", "--interval", "1s", "--identity", MANAGER)


@dataclass(frozen=True, slots=True)
class Rollout:
    """A worker whose `v1` is current and whose `v2`, the target, polls; and the folder of its specs."""

    worker: DeployedWorker
    folder: Path


@contextmanager
def rollout(server: TemporalServer, folder: Path, name: str) -> Iterator[Rollout]:
    worker = DeployedWorker(server, f"live/{name}", name)
    write_specs(folder, server.address, worker_document(name, "v2", steps=(25, 50)))
    with ExitStack() as stack:
        stack.enter_context(worker.version("v1"))
        eventually(lambda: succeeds(lambda: worker.set_current("v1")))
        stack.enter_context(worker.version("v2"))
        eventually(lambda: "v2: Inactive" in printed(folder, "status"))
        yield Rollout(worker, folder)


def command(folder: Path, *options: str) -> Sequence[str | Path]:
    return [TWGEN, "status", folder, *ALONE, *options]


@pytest.fixture(scope="module")
def rolled_out(
    oldest_temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rollout]:
    with rollout(oldest_temporal, tmp_path_factory.mktemp("status"), "watched") as going:
        yield going


def test_terminal_shows_a_ramp_as_it_changes_and_ends_with_130_at_ctrl_c(rolled_out: Rollout) -> None:
    with terminal(command(rolled_out.folder, *WATCH), rolled_out.folder, 80, ENVIRONMENT) as shown:
        eventually(lambda: "live/watched  Moving" in shown.text)
        rolled_out.worker.set_ramp("v2", 25)
        eventually(lambda: "v2  25%  Ramping" in shown.text)
        rolled_out.worker.set_ramp("v2", 50)
        eventually(lambda: "v2  50%  Ramping" in shown.text)
        # of its pause of 10 minutes, a busy server may have taken some before it tells of the step
        eventually(lambda: re.search(r"make v2 current in \d+m", shown.text))
        shown.process.send_signal(signal.SIGINT)
        assert shown.end() == 130
    # what hid the cursor shows it again
    assert shown.raw.rfind("\x1b[?25h") > shown.raw.rfind("\x1b[?25l") >= 0
    assert "\x1b[?1049h" not in shown.raw
    assert "Traceback" not in shown.text


def test_watch_that_has_an_end_tells_who_has_not_settled_also_on_a_terminal(rolled_out: Rollout) -> None:
    limited = command(rolled_out.folder, *WATCH, "--within", "2s")
    ended = subprocess.run(limited, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert ended.returncode == 4
    assert re.fullmatch(r"twgen: not settled within 2s: live/watched is \w+, because .+\n", ended.stderr)
    assert "live/watched v2: " in ended.stdout
    with terminal(limited, rolled_out.folder, 80, ENVIRONMENT) as shown:
        assert shown.end() == 4
    assert "not settled within 2s: live/watched" in shown.text


def test_read_that_fails_leaves_what_was_read_and_says_why(rolled_out: Rollout) -> None:
    specs = rolled_out.folder / "specs.yaml"
    good = specs.read_text()
    with terminal(command(rolled_out.folder, *WATCH), rolled_out.folder, 120, ENVIRONMENT) as shown:
        eventually(lambda: "live/watched" in shown.text)
        specs.write_text(good.replace("kind: Connection", "kind: Nothing"))
        eventually(lambda: "s ago: " in shown.text)
        eventually(lambda: "◀ target" in shown.text[shown.text.rindex("s ago: ") :])
        frames = len(shown.text)
        specs.write_text(good)
        eventually(lambda: "Ctrl-C to exit\r\n\r\n" in shown.text[frames:])
        assert shown.process.poll() is None


def test_log_says_when_reading_fails_and_when_it_works_again(rolled_out: Rollout, tmp_path: Path) -> None:
    good = (rolled_out.folder / "specs.yaml").read_text()
    specs = tmp_path / "specs" / "specs.yaml"
    specs.parent.mkdir()
    specs.write_text(good)
    log = tmp_path / "log"
    with log.open("wb") as written:
        watching = subprocess.Popen(
            command(specs.parent, *WATCH), stdout=written, stderr=written, env=ENVIRONMENT
        )
    try:
        eventually(lambda: "live/watched" in log.read_text())
        specs.write_text(good.replace("kind: Connection", "kind: Nothing"))
        eventually(lambda: "; trying again\n" in log.read_text())
        specs.write_text(good)
        eventually(lambda: log.read_text().endswith("twgen: reads succeed again\n"))
        assert watching.poll() is None
    finally:
        watching.kill()
        watching.wait()


def test_server_that_is_gone_ends_nothing(rolled_out: Rollout, tmp_path: Path) -> None:
    specs = rolled_out.folder / "specs.yaml"
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "specs.yaml").write_text(specs.read_text())
    address = rolled_out.worker.server.address
    [closed] = free_ports(1)
    with terminal(command(folder, *WATCH), folder, 120, ENVIRONMENT) as shown:
        eventually(lambda: "◀ target" in shown.text)
        (folder / "specs.yaml").write_text(specs.read_text().replace(address, f"127.0.0.1:{closed}"))
        eventually(lambda: f"s ago: Temporal at 127.0.0.1:{closed}" in shown.text)
        assert shown.process.poll() is None


def test_connection_is_kept_from_one_look_to_the_next(rolled_out: Rollout, tmp_path: Path) -> None:
    address = rolled_out.worker.server.address
    with forwarding(address, Trouble()) as counted:
        write_specs(tmp_path, counted.address, worker_document("watched", "v2", steps=(25, 50)))
        watching = subprocess.Popen(
            command(tmp_path, *WATCH, "-o", "json"), stdout=subprocess.DEVNULL, env=ENVIRONMENT
        )
        try:
            eventually(lambda: counted.requests)
            [first] = eventually(lambda: [counted.requests] if counted.requests > 4 else [])
            eventually(lambda: counted.requests > 3 * first)
        finally:
            watching.kill()
            watching.wait()
        assert counted.connections == 1


def test_log_gets_a_line_when_something_changes_and_the_watch_ends_when_all_is_settled(
    oldest_temporal: TemporalServer, tmp_path: Path
) -> None:
    with (
        rollout(oldest_temporal, tmp_path / "specs", "logged") as going,
        (tmp_path / "log").open("wb") as log,
    ):
        watching = subprocess.Popen(command(going.folder, *WATCH), stdout=log, stderr=log, env=ENVIRONMENT)

        def lines() -> list[str]:
            return (tmp_path / "log").read_text().splitlines()

        try:
            eventually(lambda: len(lines()) >= 3)
            at_first = len(lines())
            going.worker.set_ramp("v2", 25)
            eventually(lambda: any("live/logged v2: 25%, Ramping" in line for line in lines()[at_first:]))
            ramped = len(lines())
            going.worker.set_current("v2")
            assert watching.wait(120) == 0
        finally:
            watching.kill()
            watching.wait()
    assert any("live/logged v2: 100%, Current" in line for line in lines()[ramped:])
    assert any("live/logged: Settled" in line for line in lines()[ramped:])
    said = [line.partition(" ")[2].split(" for ")[0] for line in lines()]
    assert len(said) == len(set(said)), "nothing is said twice"


def test_watch_of_a_blocked_rollout_ends_with_1(oldest_temporal: TemporalServer, tmp_path: Path) -> None:
    with rollout(oldest_temporal, tmp_path / "specs", "aborted") as going:
        going.worker.mark("v2", "twgen.io/aborted", b"true")
        ended = subprocess.run(
            command(going.folder, *WATCH, "-o", "json"),
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
            env=ENVIRONMENT,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("twgen: live/aborted is Blocked, because ")
    [*_, last] = map(json.loads, ended.stdout.splitlines())
    assert last["workers"][0]["phase"] == "Blocked"
