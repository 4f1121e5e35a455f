"""How far an installation is, at a terminal and elsewhere."""

import os
import sys
from pathlib import Path

import pytest

from testing.progress import Steps, in_words
from tests.terminal import terminal

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from testing.progress import Steps
with Steps({"etcd": 60, "redis": 120}).shown() as steps:
    with steps.step("etcd"):
        sys.stderr.write("a line of the build\\n")
    with steps.step("redis"):
        pass
"""


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.mark.usefixtures("two_cores")
def test_lines_say_each_step_and_how_long_all_that_are_left_take(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps({"etcd": 60, "redis": 120}).shown() as steps:
        with steps.step("etcd"):
            pass
        assert steps.left == "less than a minute", "the first took no time, so the others are fast as well"
        with steps.step("redis"):
            pass
    said = ["[1/2] etcd; about 3 minutes left", "[2/2] redis; less than a minute left"]
    assert capsys.readouterr().err.splitlines() == said


@pytest.mark.parametrize(("cores", "minutes"), [(1, 38), (2, 19), (4, 10), (8, 5), (64, 5)])
def test_more_cores_are_faster_but_not_without_end(
    cores: int, minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert Steps({"all": 19 * 60}).left == f"about {minutes} minutes"


def test_terminal_shows_a_bar_that_ends_at_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    with terminal([sys.executable, tmp_path / "program.py"], ROOT, 100, {"PYTHONPATH": str(ROOT)}) as shown:
        assert shown.end() == 0
    assert "a line of the build" in shown.text
    assert "100%" in shown.text


@pytest.mark.usefixtures("two_cores")
def test_step_that_fails_is_not_over() -> None:
    steps = Steps({"etcd": 60})
    with pytest.raises(ValueError, match="no network"), steps.shown(), steps.step("etcd"):
        raise ValueError("no network")
    assert steps.left == "about 1 minute"


def test_length_in_words() -> None:
    assert [in_words(seconds) for seconds in (20, 61, 1140)] == [
        "less than a minute",
        "about 1 minute",
        "about 19 minutes",
    ]
