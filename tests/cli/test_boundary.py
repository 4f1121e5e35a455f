"""How the program ends: what an error that nobody expected may say, and what a signal stops."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from twgen.cli.main import bug_report

QUOTED = "Bearer eyJhbGciOiJSUzI1NiJ9"


def fail() -> None:
    try:
        {}[QUOTED]
    except KeyError as error:
        error.add_note(QUOTED)
        raise ValueError(f"header {QUOTED!r} has no end") from error


def test_report_of_a_bug_says_where_and_never_what_was_read() -> None:
    try:
        fail()
    except ValueError as error:
        report = bug_report(error)
    assert "Bearer eyJ" not in report
    assert report.index("builtins.KeyError") < report.index("builtins.ValueError")
    assert report.count("in fail") == 2
    assert report.startswith("twgen ")


ENDS = """
import asyncio, os
from twgen.cli.main import exit_code_of, leave

class Panic(BaseException):
    pass

async def fail():
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(9))
        group.create_task(panic())

async def panic():
    os.write(2, b"thread panicked at lib.rs: " + os.environb[b"QUOTED"])
    raise {error}

leave(exit_code_of(lambda: asyncio.run(fail())))
"""


def ended(error: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = ENDS.replace("{error}", error)
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"TMPDIR": str(folder), "QUOTED": QUOTED},
    )


def test_panic_of_a_library_is_a_bug_with_a_report_and_is_not_quoted(tmp_path: Path) -> None:
    told = ended("Panic(os.environ['QUOTED'])", tmp_path)
    assert (told.returncode, told.stdout) == (70, "")
    line = re.fullmatch(r"twgen: a bug \(Panic\); please report the content of (.*)\n", told.stderr)
    assert line
    report = Path(line[1]).read_text()
    assert "__main__.Panic\n" in report
    assert "in panic" in report
    assert QUOTED not in report


@pytest.mark.parametrize(
    ("error", "code"),
    [("KeyboardInterrupt", 130), ("RuntimeError from KeyboardInterrupt", 130), ("SystemExit(5)", 5)],
)
def test_whoever_ends_the_program_has_found_no_bug(error: str, code: int, tmp_path: Path) -> None:
    told = ended(error, tmp_path)
    assert (told.returncode, told.stdout, told.stderr) == (code, "", "")
    assert not list(tmp_path.iterdir())


def test_memory_that_is_out_is_a_line_and_no_bug(tmp_path: Path) -> None:
    told = ended("MemoryError", tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    [line] = told.stderr.splitlines()
    assert line.startswith("twgen: out of memory: raise the memory limit")
    assert not list(tmp_path.iterdir())


def test_report_of_several_errors_at_once_has_them_all() -> None:
    inner = ExceptionGroup(QUOTED, [KeyError(QUOTED)])
    report = bug_report(BaseExceptionGroup(QUOTED, [KeyboardInterrupt(QUOTED), inner, ValueError(QUOTED)]))
    assert QUOTED not in report
    assert report.endswith("\nbuiltins.BaseExceptionGroup\n")
    assert "builtins.ExceptionGroup" in report
    assert "builtins.ValueError" in report
    assert "builtins.KeyError" in report


SIGNALLED_WHERE_ERRORS_GET_LOST = """
import asyncio, os, time, weakref
from twgen.cli.main import exit_code_of, leave

class Connection:
    pass

def end():
    connection = Connection()
    watched = weakref.ref(connection, lambda _: os.kill(os.getpid(), {number}))
    del connection

async def read():
    end()
    await asyncio.sleep(30)

def compute():
    end()
    time.sleep(30)

leave(exit_code_of({story}))
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("story", ["lambda: asyncio.run(read())", "compute"])
def test_signal_ends_the_program_whatever_python_runs_just_then(
    number: signal.Signals, code: int, story: str
) -> None:
    program = SIGNALLED_WHERE_ERRORS_GET_LOST.replace("{number}", str(int(number))).replace("{story}", story)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=25)
    assert (ended.returncode, ended.stderr) == (code, b"")
