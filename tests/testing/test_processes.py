"""What servers of tests are started with."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from testing import processes
from testing.processes import eventually, free_ports
from twgen.errors import OutOfTime

FIRST = random.randrange(15_000, 31_000)  # noqa: S311 - any will do
FEW = range(FIRST, FIRST + 20)
"""Other ports than those of another run of the tests, which has its own until it ends."""


def test_port_is_given_once_also_while_nobody_listens_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = f"\0twgen-test-{os.getpid()}-"  # the same test of another clone would have taken them all
    monkeypatch.setattr(processes, "_PORTS", FEW)
    monkeypatch.setattr(processes, "_CLAIM", claim)
    given = free_ports(len(FEW))
    assert given
    program = (
        f"from testing import processes\nprocesses._PORTS, processes._CLAIM = {FEW!r}, {claim!r}\n"
        f"print(processes.free_ports({len(FEW)}))"
    )
    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(given) & set(free_ports(len(FEW)))
    assert not any(f"{port}" in elsewhere.stdout for port in given)


NOTHING: list[list[str]] = []


def unanswered() -> str:
    raise OutOfTime("the server did not answer within 20 s")


def unpacked() -> str:
    [one] = NOTHING
    return str(one)


@pytest.mark.parametrize(
    "fails",
    [
        unpacked,
        lambda: NOTHING[0],
        lambda: dict(NOTHING)["phase"],
        lambda: max(NOTHING),
        lambda: next(iter(NOTHING)),
        lambda: json.loads('{"phase": '),
        Path("/nowhere").read_text,
        unanswered,
    ],
    ids=[
        *("unpacked", "index", "key", "greatest of none", "next of none", "half a document", "no file"),
        "no answer",
    ],
)
def test_condition_that_cannot_be_read_yet_is_asked_again(fails: Callable[[], object]) -> None:
    answers = iter([fails, lambda: "it is there"])

    def asked() -> object:
        return next(answers)()

    assert eventually(asked) == "it is there"


def test_condition_that_is_wrong_itself_is_not_asked_again() -> None:
    with pytest.raises(TypeError):
        eventually(lambda: len(5))  # type: ignore[arg-type]


def test_deadline_names_the_last_answer_or_the_last_error() -> None:
    with pytest.raises(AssertionError, match="not within 0 s; the last answer was 0"):
        eventually(lambda: 0, 0)
    with pytest.raises(AssertionError, match=r"not within 0 s; the last error was KeyError\('phase'\)"):
        eventually(lambda: dict(NOTHING)["phase"], 0)
    with pytest.raises(AssertionError, match="it is Blocked"):
        eventually(lambda: stands("Blocked"), 0)


def stands(phase: str) -> bool:
    assert phase == "Settled", f"it is {phase}"
    return True
