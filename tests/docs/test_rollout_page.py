"""The page for who rolls out names commands, options, codes and marks that there are."""

import re
import shlex
from pathlib import Path

import pytest

from testing.forking import forker
from tests.docs.test_documentation import BLOCK, EXAMPLE
from tests.servers.live import ENVIRONMENT
from twgen import errors
from twgen.versioning import names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rollout.md").read_text()
SHOWN = [line for language, block in BLOCK.findall(PAGE) if not language for line in block.splitlines()]
NAMED = re.findall(r"^\| `(twgen [^`]+)` \|", PAGE, re.MULTILINE)
CHANGING = sorted({*NAMED, *(line for line in SHOWN if line.startswith("twgen ") and ">" not in line)})
MARKS = {names.ABORTED, names.PAUSED, names.GATE_ATTEMPT, names.GATE_SKIPPED}


@pytest.mark.parametrize("command", CHANGING)
def test_command_of_the_page_asks_temporal_first(command: str) -> None:
    unreachable = ("--no-cluster", "--via", "temporal.example.com:7233=127.0.0.1:1")
    ended = forker().run([*shlex.split(command)[1:], *unreachable], EXAMPLE, ENVIRONMENT)
    assert (ended.returncode, ended.stdout) == (3, ""), ended.stderr
    assert "cannot be reached" in ended.stderr


def test_page_lists_the_exit_codes_of_a_rollout() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE)}
    raised = {error.exit_code for error in errors.TwgenError.__subclasses__()}
    assert listed == {0} | raised


def test_page_lists_the_marks() -> None:
    assert set(re.findall(r"^\| `(twgen\.io/[\w-]+)` \|", PAGE, re.MULTILINE)) == MARKS
