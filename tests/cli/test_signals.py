"""Signals: a render in a pipe prints all manifests or an object that kubectl rejects, at any moment."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT, eventually
from tests.cli.conftest import TWGEN, Run, edited, write_kubeconfig
from twgen.yaml.reader import read_documents

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)
RENDER = (TWGEN, "render", "specs", "--snapshot", "snapshot.json")
Command = Sequence[str | Path]


@contextmanager
def started(command: Command, folder: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program whose streams are pipes, killed at the end; nothing has been written to its stdin."""
    environment = {**ENVIRONMENT, **variables}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def waits_in(process: subprocess.Popen[bytes], call: str, stream: int) -> bool:
    """Whether it waits for one of its streams."""
    number = (
        {"read": 0, "write": 1}[call] if os.uname().machine == "x86_64" else {"read": 63, "write": 64}[call]
    )
    return Path(f"/proc/{process.pid}/syscall").read_text().startswith(f"{number} {stream:#x} ")


def is_ready(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has its handlers: Python itself has one for SIGINT before."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16)
    return bool(caught & 1 << (SIGNALS[-1] - 1))


def ended(process: subprocess.Popen[bytes], number: signal.Signals) -> tuple[int, bytes, bytes]:
    """Its exit code, stdout and stderr after the signal."""
    process.send_signal(number)
    output, complaint = process.communicate(timeout=30)
    return process.returncode, output, complaint


def message(output: bytes) -> str:
    """The reason of a failed render."""
    [failed] = read_documents(output.decode())
    assert (failed["apiVersion"], failed["kind"]) == ("twgen.io/v1alpha1", "RenderFailed")
    assert failed["metadata"] == {"name": failed["message"]}
    return str(failed["message"])


@pytest.fixture(params=SIGNALS, ids=lambda number: number.name)
def number(request: pytest.FixtureRequest) -> signal.Signals:
    return request.param


def test_render_that_reads_stdin_ends_with_the_object(story: Path, number: signal.Signals) -> None:
    with started([TWGEN, "render", "-"], story) as process:
        eventually(lambda: waits_in(process, "read", 0))
        code, output, complaint = ended(process, number)
    assert (code, complaint) == (128 + number, b"")
    assert message(output) == f"ended by {number.name}"


def test_object_is_json_if_the_render_would_be(story: Path) -> None:
    with started([TWGEN, "render", "-", "-o", "json"], story) as process:
        eventually(lambda: waits_in(process, "read", 0))
        _, output, _ = ended(process, signal.SIGTERM)
    assert json.loads(output)["message"] == message(output)


@pytest.mark.parametrize(
    ("command", "variables"), [("render", {"ARGOCD_APP_NAME": "pay"}), ("plan", {}), ("validate", {})]
)
def test_plugin_and_other_commands_print_nothing(
    story: Path, number: signal.Signals, command: str, variables: Mapping[str, str]
) -> None:
    with started([TWGEN, command, "-"], story, **variables) as process:
        eventually(lambda: waits_in(process, "read", 0))
        assert ended(process, number) == (128 + number, b"", b"")


def test_render_into_a_file_prints_nothing(story: Path, number: signal.Signals) -> None:
    command = ["sh", "-c", f"exec {TWGEN} render - > file"]
    with started(command, story) as process:
        eventually(lambda: waits_in(process, "read", 0))
        assert ended(process, number) == (128 + number, b"", b"")
    assert (story / "file").read_bytes() == b""


@pytest.mark.parametrize("command", ["render", "version"])
def test_signal_is_answered_while_the_program_is_being_imported(
    tmp_path: Path, number: signal.Signals, command: str
) -> None:
    (tmp_path / "click.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    with started([sys.executable, "-m", "twgen", command], tmp_path) as process:
        output, complaint = process.communicate(timeout=30)
    assert (process.returncode, complaint) == (128 + number, b"")
    assert message(output) == f"ended by {number.name}" if command == "render" else output == b""


@contextmanager
def silent_server() -> Iterator[socket.socket]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def test_render_that_waits_for_silent_servers_ends_with_the_object(
    story: Path, number: signal.Signals
) -> None:
    with silent_server() as temporal, silent_server() as kubernetes:
        through = f"temporal.example.com:7233=127.0.0.1:{temporal.getsockname()[1]}"
        server = f"http://127.0.0.1:{kubernetes.getsockname()[1]}"
        file = write_kubeconfig(story / "kubeconfig", server, {"token": "0"})
        command = [TWGEN, "render", "specs", "--via", through, "--kubeconfig", file]
        with started(command, story) as process, temporal.accept()[0], kubernetes.accept()[0]:
            code, output, complaint = ended(process, number)
    assert (code, complaint) == (128 + number, b"")
    assert message(output) == f"ended by {number.name}"


def test_render_that_waits_for_git_ends_with_the_object_and_ends_git(
    story: Path, number: signal.Signals
) -> None:
    with edited(story / "snapshot.json") as world:
        world["workers"][0]["deployments"] = []  # only Git may still have them
    (story / ".git").mkdir()
    (story / "bin").mkdir()
    slow = story / "bin" / "git"
    # more than a pipe takes: once that is written, the render reads it, and knows which process to end
    slow.write_text("#!/bin/sh\nhead -c 200000 /dev/zero\necho $$ > asked\nexec sleep 60\n")
    slow.chmod(0o755)
    with started(RENDER, story, PATH=f"{slow.parent}:{ENVIRONMENT['PATH']}") as process:
        asked = eventually(lambda: (story / "asked").exists() and (story / "asked").read_text(), 60)
        code, output, complaint = ended(process, number)
    assert (code, complaint) == (128 + number, b"")
    assert message(output) == f"ended by {number.name}"
    assert not Path(f"/proc/{int(asked)}").exists()


@pytest.fixture
def large(story: Path) -> Path:
    """The story with more manifests than a pipe takes at once."""
    for place in range(400):
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"more-{place}"}}
        (story / "specs" / f"{place}.json").write_text(json.dumps({**document, "data": {"text": "x" * 500}}))
    return story


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_signals_during_the_output_cut_nothing_off(
    run: Run, large: Path, number: signal.Signals, form: str
) -> None:
    whole = run(*RENDER[1:], "-o", form).stdout
    assert len(whole) > 2 * 2**16, "a pipe takes half of that"
    with started([*RENDER, "-o", form], large) as process:
        eventually(lambda: waits_in(process, "write", 1), 60)
        for _ in range(3):
            process.send_signal(number)
            eventually(lambda: waits_in(process, "write", 1), 60)
        output, complaint = process.communicate(timeout=30)
    assert (process.returncode, complaint) == (0, b"")
    assert output.decode() == whole


def test_closed_pipe_ends_an_output_that_signals_do_not(large: Path) -> None:
    with started(RENDER, large) as process:
        eventually(lambda: waits_in(process, "write", 1), 60)
        process.send_signal(signal.SIGTERM)
        assert process.stdout
        process.stdout.close()
        assert process.wait(30) == 141


def test_signal_ends_an_output_at_a_terminal(large: Path, number: signal.Signals) -> None:
    screen, stdout = os.openpty()
    with subprocess.Popen(RENDER, cwd=large, stdout=stdout, stderr=subprocess.PIPE) as process:
        os.close(stdout)
        eventually(lambda: waits_in(process, "write", 1), 60)
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    os.close(screen)


def test_signal_at_any_moment_leaves_all_manifests_or_the_object(
    run: Run, large: Path, number: signal.Signals
) -> None:
    """Two signals each, as `timeout` sends them: to the program, then to its process group."""
    whole = run(*RENDER[1:]).stdout.encode()
    began = time.monotonic()
    subprocess.run(RENDER, cwd=large, check=True, capture_output=True)
    pause = (time.monotonic() - began) / 6
    objects, is_whole, end = 0, False, time.monotonic() + 120
    # on a busy machine, even the first signal may come during the output
    while not (objects and is_whole):
        assert time.monotonic() < end
        with started(RENDER, large) as process:
            while not is_ready(process):
                assert time.monotonic() < end
            time.sleep(objects * pause)
            process.send_signal(number)
            code, output, complaint = ended(process, number)
        assert complaint == b""
        if output == whole:
            is_whole = True
            continue
        assert message(output) == f"ended by {number.name}"
        assert code == 128 + number
        objects += 1


def test_ignored_signal_is_ignored(run: Run, story: Path, number: signal.Signals) -> None:
    whole = run(*RENDER[1:]).stdout
    command = f"trap '' {number.name.removeprefix('SIG')}; exec {TWGEN} render - --snapshot snapshot.json"
    with started(["sh", "-c", command], story) as process:
        eventually(lambda: waits_in(process, "read", 0), 60)
        process.send_signal(number)
        text = "\n---\n".join(path.read_text() for path in (story / "specs").iterdir())
        output, _ = process.communicate(text.encode(), timeout=30)
    assert (process.returncode, output.decode()) == (0, whole)
