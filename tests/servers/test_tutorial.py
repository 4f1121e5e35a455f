"""The tutorial, as a reader works through it: its blocks in one bash, and their output on a terminal."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from testing.install import TEMPORAL_CLI, installed
from testing.processes import eventually, free_ports
from tests.docs.pages import BLOCK
from tests.servers.live import ENVIRONMENT
from tests.terminal import terminal

pytestmark = pytest.mark.server

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
PORT = "7233"
MARK = "=== the end of block"
COLUMNS = 80
ENDS_WITHIN = 900.0
OF_THIS_RUN = (
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "HH:MM:SS"),
    # how long something has lasted or will last, but no time that a spec or a simulation says
    (re.compile(r"\b(for|in|oldest|read|Drained) \d[\dhms]*[hms]\b"), r"\1 AGE"),
    # columns are as wide as the ages in them
    (re.compile(r"(?<=\S)  +"), "  "),
    # a long line of a log is broken after its blank
    (re.compile(r" +$", re.MULTILINE), ""),
)


class Step(NamedTuple):
    """A block of commands, and what the page says that it prints, if it says anything."""

    commands: str
    shown: str


def steps() -> Iterator[Step]:
    found = BLOCK.findall(PAGE.read_text())
    for (language, commands), (next_language, text) in pairwise([*found, ("", "")]):
        if language == "bash":
            yield Step(commands, text if next_language == "text" else "")


def normal(text: str) -> str:
    for pattern, replacement in OF_THIS_RUN:
        text = pattern.sub(replacement, text)
    return text


def is_printed(shown: str, printed: str) -> bool:
    """Nothing but what the page shows, and any lines in place of a line of `[...]`."""
    lines = (
        r"(?:.*\n)*" if line == "[...]\n" else re.escape(line)
        for line in normal(shown).splitlines(keepends=True)
    )
    return bool(re.fullmatch("".join(lines), normal(printed)))


def worked_through(folder: Path) -> list[str]:
    """What a terminal shows of each block, in an empty folder."""
    (commands := folder / "bin").mkdir()
    (commands / "temporal").symlink_to(installed(TEMPORAL_CLI))
    (home := folder / "home").mkdir()
    [port] = map(str, free_ports(1))
    script = folder / "tutorial.sh"
    text = "".join(f"{step.commands}echo '{MARK}'\n" for step in steps())
    # all that differs from the page: what runs beside this test, or on this machine anyway, has ports as well
    script.write_text(text.replace(PORT, port))
    variables = {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(commands), str(Path(sys.executable).parent), ENVIRONMENT["PATH"]]),
        "TWGEN_IDENTITY": "ana@laptop",
        # as for every test: the oldest server lets a call wait now and then
        "TWGEN_TIMEOUT": "2m",
    }
    with terminal(["bash", "-e", script], home, COLUMNS, variables) as shown:
        pid = shown.process.pid
        try:
            # it has ended, and its number is not yet anybody else's
            eventually(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), ENDS_WITHIN)
        except AssertionError as error:
            error.add_note(shown.screen)
            raise
        finally:
            os.killpg(pid, signal.SIGKILL)
    printed = shown.screen.replace(port, PORT)
    assert shown.process.returncode == 0, printed
    *blocks, rest = printed.split(f"{MARK}\n")
    assert not rest
    return blocks


def test_page_shows_what_its_commands_print_one_after_the_other(tmp_path: Path) -> None:
    blocks = worked_through(tmp_path)
    wrong = [
        f"the page:\n{step.shown}\nthe terminal:\n{printed}"
        for step, printed in zip(steps(), blocks, strict=True)
        if step.shown and not is_printed(step.shown, printed)
    ]
    assert wrong == [], "\n".join(wrong)
    assert len(blocks) > 10
    assert not (tmp_path / "home" / "twgen-tutorial").exists(), "it cleans up"
