"""Measuring whole commands side by side, and what is measured as a ratio to something else."""

import math
import statistics
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
    """The seconds of every run, in the order of the rounds, and the most MiB of any."""

    runs: tuple[float, ...]
    mib: float

    @property
    def seconds(self) -> float:
        """The least: what else the machine does only ever adds."""
        return min(self.runs)

    def __str__(self) -> str:
        return f"{self.seconds:.3f} s (median {statistics.median(self.runs):.3f}), {self.mib:.0f} MiB"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, what it should reach, and whether it does."""

    what: str
    measured: str
    reach: str
    holds: bool

    def __str__(self) -> str:
        verdict = "yes" if self.holds else "NO"
        return f"{verdict:3}  {self.what}: {self.measured}; reach: {self.reach}"


def times(what: str, pair: tuple[Cost, Cost], most: float, than: str, most_mib: float = math.inf) -> Row:
    """A row for a cost that should be at most so many times the other one of the pair, from the same rounds.

    It holds by the least of all rounds; the ratios of the single rounds say how noisy the machine was.
    """
    ours, theirs = pair
    ratio = ours.seconds / theirs.seconds
    pairs = [mine / other for mine, other in zip(ours.runs, theirs.runs, strict=True)]
    spread = f"{min(pairs):.3g} to {max(pairs):.3g}, median {statistics.median(pairs):.3g}"
    reach = f"{most:.3g} times {than}" + (f", {most_mib:.0f} MiB" if most_mib < math.inf else "")
    holds = ratio <= most and ours.mib <= most_mib
    return Row(what, f"{ratio:.3g} times ({spread}): {ours}; {than} {theirs}", reach, holds)


def measured(*commands: Sequence[str], rounds: int = ROUNDS) -> list[Cost]:
    """The cost of each command, run in turns so that all see the same noise; one round is not counted."""
    costs: list[list[tuple[float, float]]] = [[] for _ in commands]
    for _ in range(rounds + 1):
        for found, command in zip(costs, commands, strict=True):
            found.append(_once(command))
    return [Cost(tuple(seconds for seconds, _ in all_[1:]), max(mib for _, mib in all_)) for all_ in costs]


def _once(command: Sequence[str]) -> tuple[float, float]:
    with tempfile.NamedTemporaryFile() as output:
        run = subprocess.run(
            [*RUN_ONE, output.name, *command], stdout=subprocess.PIPE, text=True, check=False
        )
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, command)
    seconds, kib = run.stdout.split()
    return float(seconds), int(kib) / 1024
