"""Streams as a shell gives them: stdout holds data or nothing, and every end is a line and a code."""

import fcntl
import json
import os
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import IO

import pytest

from testing.processes import eventually
from tests.cli.conftest import TWGEN, Ended, Run
from tests.terminal import terminal
from twgen.yaml.reader import read_documents

RENDER = f"{TWGEN} render specs --snapshot snapshot.json"


def shell(folder: Path, line: str) -> Ended:
    command = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def begin(stdin: IO[bytes] | None, text: bytes = b"\n") -> None:
    """Write the first bytes of an input, and wait until the program has read them."""
    assert stdin
    stdin.write(text)
    stdin.flush()
    eventually(lambda: not any(fcntl.ioctl(stdin, termios.FIONREAD, bytes(4))))


@pytest.fixture
def rendered(run: Run, story: Path) -> str:
    """What RENDER prints."""
    ended = run("render", story / "specs", "--snapshot", story / "snapshot.json")
    assert ended.stdout
    return ended.stdout


@pytest.mark.parametrize(
    ("command", "stdout", "reason"),
    [
        (RENDER, "> /dev/full", "No space left on device"),
        (RENDER, ">&-", "stdout is closed"),
        (RENDER.replace("render", "plan"), ">&-", "stdout is closed"),
        (f"{TWGEN} version", "> /dev/full", "No space left on device"),
        (f"{TWGEN} -h", ">&-", "stdout is closed"),
    ],
)
def test_stdout_that_takes_nothing_is_said(story: Path, command: str, stdout: str, reason: str) -> None:
    ended = shell(story, f"{command} {stdout}")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"twgen: cannot write to stdout: {reason}\n"


def test_a_command_without_data_needs_no_stdout(story: Path) -> None:
    assert shell(story, f"{TWGEN} validate specs -q >&-").returncode == 0


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_without_stderr_messages_are_lost_and_never_data(story: Path, rendered: str, stderr: str) -> None:
    refused = shell(story, f"{TWGEN} render nowhere {stderr}")
    assert (refused.returncode, refused.stderr) == (2, "")
    assert "kind: RenderFailed\n" in refused.stdout
    assert shell(story, f"{RENDER} {stderr}").stdout == rendered
    (story / "specs" / "odd.yaml").write_text("a: 1\n")  # warned of
    assert shell(story, f"{RENDER} {stderr}").stdout == rendered


def test_usage_without_stderr_is_no_bug(story: Path) -> None:
    assert shell(story, f"{TWGEN} 2>/dev/full").returncode == 2


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_success_without_stderr_is_one(story: Path, stderr: str) -> None:
    assert shell(story, f"{TWGEN} validate specs {stderr}").returncode == 0


def test_closed_stdin_is_said(story: Path, rendered: str) -> None:
    assert "cannot read stdin: stdin is closed" in shell(story, f"{TWGEN} render - <&-").stderr
    assert shell(story, f"{RENDER} <&-").stdout == rendered


def test_all_streams_closed_is_still_a_code(story: Path) -> None:
    assert shell(story, f"{TWGEN} render - <&- >&- 2>&-").returncode == 2


@pytest.mark.parametrize("wrong", ["render nowhere", "render --bogus", "render specs --now then"])
def test_failed_render_in_a_pipe_is_one_object_with_the_reason(story: Path, wrong: str) -> None:
    ended = shell(story, f"{TWGEN} {wrong} | cat")
    assert ended.returncode == 2
    [failed] = read_documents(ended.stdout)
    assert (failed["apiVersion"], failed["kind"]) == ("twgen.io/v1alpha1", "RenderFailed")
    assert failed["message"]
    assert failed["message"] in ended.stderr
    assert json.loads(shell(story, f"{TWGEN} {wrong} -o json | cat").stdout) == failed


def test_failed_render_with_many_problems_shows_the_first(story: Path) -> None:
    (story / "specs" / "more.json").write_text((story / "specs" / "workerdeployment.json").read_text())
    (story / "specs" / "broken.yaml").write_text("{")
    ended = shell(story, f"{RENDER} | cat")
    [failed] = read_documents(ended.stdout)
    assert failed["message"] == f"{ended.stderr.splitlines()[0]} (the first of 3 lines on stderr)"


def test_bug_of_a_render_is_such_an_object_too(story: Path) -> None:
    (story / "twgen_bug.py").write_text("import twgen.cli.inputs\ndel twgen.cli.inputs.load_specs\n")
    start = "import twgen_bug; from twgen.cli.main import main; main()"
    ended = shell(story, f'TMPDIR=. PYTHONPATH=. {sys.executable} -c "{start}" render specs | cat')
    assert ended.returncode == 70
    [failed] = read_documents(ended.stdout)
    assert failed["message"].startswith("a bug (ImportError)")


def test_failed_render_prints_nothing_elsewhere(story: Path) -> None:
    shell(story, f"{TWGEN} render nowhere > file")
    assert (story / "file").read_text() == ""
    for command in (f"ARGOCD_APP_NAME=pay {TWGEN} render nowhere", f"{TWGEN} plan nowhere"):
        ended = shell(story, f"{command} | cat")
        assert (ended.returncode, ended.stdout) == (2, "")
    with terminal([TWGEN, "render", "nowhere"], story, 120) as shown:
        assert shown.end() == 2
    assert shown.text.splitlines() == ["twgen: nowhere: no such file or folder"]


@pytest.mark.parametrize("reader", ["render -", "validate -", "plan -"])
def test_readers_refuse_a_failed_render_with_its_message(story: Path, reader: str) -> None:
    ended = shell(story, f"{TWGEN} render nowhere 2>/dev/null | {TWGEN} {reader}")
    assert "a render failed: nowhere: no such file or folder" in ended.stdout + ended.stderr
    assert ended.returncode


def test_busy_pipes_are_waited_for(story: Path, rendered: str) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    text = "\n---\n".join(path.read_text() for path in (story / "specs").iterdir())
    command = [TWGEN, "render", "-", "--snapshot", "snapshot.json"]
    with subprocess.Popen(command, cwd=story, stdin=reading, stdout=subprocess.PIPE) as process:
        os.close(reading)
        with os.fdopen(writing, "wb") as stdin:
            begin(stdin, text[:100].encode())
            time.sleep(0.2)  # it finds nothing to read for a while
            stdin.write(text[100:].encode())
        output, _ = process.communicate(timeout=60)
    assert output.decode() == rendered


def test_stdin_named_twice_is_read_once(story: Path, rendered: str) -> None:
    given = "cat specs/connection.json <(echo; echo ---) specs/workerdeployment.json"
    once = shell(story, f"{given} | {TWGEN} render - - --snapshot snapshot.json")
    assert once.stdout == rendered


def test_process_substitution_is_read(story: Path, rendered: str) -> None:
    files = "<(cat specs/connection.json) <(cat specs/workerdeployment.json)"
    ended = shell(story, f"{TWGEN} render {files} --snapshot <(cat snapshot.json)")
    assert ended.stdout == rendered


def test_problems_of_a_pipe_have_lines_although_it_is_read_once(story: Path) -> None:
    broken = "printf 'apiVersion: temporal.io/v1alpha1\\nkind: Connection\\nspec: {}\\n'"
    ended = shell(story, f"{TWGEN} validate <({broken})")
    assert ended.returncode == 1
    assert ":1: metadata.name: is required" in ended.stdout


def test_named_pipe_is_read(story: Path, rendered: str) -> None:
    os.mkfifo(story / "pipe")
    (story / "specs" / "connection.json").rename(story / "connection.json")
    command = RENDER.replace("specs", "specs pipe")
    assert shell(story, f"cat connection.json > pipe & {command}").stdout == rendered


def test_closed_pipe_at_any_size_is_silent(story: Path) -> None:
    for command in (RENDER, f"{TWGEN} --help", f"{TWGEN} version"):
        ended = shell(story, f"{command} | true")
        assert ended.returncode in {0, 141}  # a pipe takes a few lines before stdout is closed
        assert ended.stderr == ""


def test_python_m_twgen_is_the_program(story: Path, rendered: str) -> None:
    ended = shell(story, f"{sys.executable} -m twgen render specs --snapshot snapshot.json")
    assert ended.stdout == rendered
    assert "Usage: twgen version" in shell(story, f"{sys.executable} -m twgen version --help").stdout
