"""A terminal is told how far a long command is, and nobody else."""

import io
from contextlib import redirect_stderr

import pytest

from twgen.cli import output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said, of which there is something at each item."""
    said: list[str] = []
    monkeypatch.setattr(output, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(output, "say_for_now", said.append)
    monkeypatch.setenv("TERM", "xterm")
    return said


def count(where: io.StringIO, *, quiet: bool = False) -> None:
    with redirect_stderr(where), output.counting("workers are simulated", 2, quiet=quiet) as steps:
        for _ in range(2):
            next(steps, None)


def test_terminal_is_told_how_many_items_are_done_and_the_line_goes_in_the_end(told: list[str]) -> None:
    count(Terminal())
    assert told == ["0 of 2 workers are simulated", "1 of 2 workers are simulated", ""]


def test_nobody_is_told_before_a_second_is_over(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_LINE_SECONDS", 3600.0)
    count(Terminal())
    assert told == [""]


def test_file_and_who_wants_it_quiet_are_told_nothing(told: list[str]) -> None:
    count(Terminal(), quiet=True)
    count(io.StringIO())
    assert told == []


def test_more_steps_than_items_are_not_counted(told: list[str]) -> None:
    with redirect_stderr(Terminal()), output.counting("workers are read", 2, quiet=False) as items:
        for _ in range(3):
            next(items, None)
    assert told == ["0 of 2 workers are read", "1 of 2 workers are read", ""]
