"""Measuring whole commands side by side."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TWGEN = str(Path(sys.executable).with_name("twgen"))
RUN_ONE = [sys.executable, "-I", "-S", str(Path(__file__).with_name("run_one.py"))]
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Cost:
    """The least seconds and the most MiB of several runs."""

    seconds: float
    mib: float

    def __str__(self) -> str:
        return f"{self.seconds:.3f} s, {self.mib:.0f} MiB"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, what it should reach, and whether it does (None: nothing to compare with)."""

    what: str
    measured: str
    reach: str
    holds: bool | None


def measured(*commands: Sequence[str], rounds: int = ROUNDS) -> list[Cost]:
    """The cost of each command, run in turns so that all see the same noise."""
    costs: list[list[Cost]] = [[] for _ in commands]
    for _ in range(rounds):
        for found, command in zip(costs, commands, strict=True):
            found.append(_once(command))
    return [Cost(min(one.seconds for one in all_), max(one.mib for one in all_)) for all_ in costs]


def _once(command: Sequence[str]) -> Cost:
    with tempfile.NamedTemporaryFile() as output:
        run = subprocess.run(
            [*RUN_ONE, output.name, *command], stdout=subprocess.PIPE, text=True, check=False
        )
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, command)
    seconds, kib = run.stdout.split()
    return Cost(float(seconds), int(kib) / 1024)
