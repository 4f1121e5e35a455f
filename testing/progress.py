"""Shows the progress of an installation: a bar at a terminal, otherwise a line for each step."""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_MEASURED_ON = 2
"""The cores of the machine on which the steps were measured."""
_MOST_CORES = 8
"""More cores do not help, because each program is linked on one core."""
_NEARLY = 0.95
"""The largest fraction of a running step that is shown."""


class Steps:
    """The steps of an installation, with the seconds that each took on two idle cores."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        faster = min(os.cpu_count() or 1, _MOST_CORES) / _MEASURED_ON
        self._seconds = {name: expected / faster for name, expected in seconds.items()}
        self._over: dict[str, float] = {}
        """The seconds that each finished step took."""
        self._bar: Progress | None = None
        self._task = TaskID(0)

    @property
    def left(self) -> str:
        """The time for the remaining steps, in words, based on the speed of the finished steps."""
        expected = sum(self._seconds[name] for name in self._over)
        pace = sum(self._over.values()) / expected if expected else 1.0
        seconds = sum(length for name, length in self._seconds.items() if name not in self._over)
        return in_words(seconds * pace)

    @contextmanager
    def shown(self) -> Iterator["Steps"]:
        """Show the progress until the block ends."""
        with ExitStack() as opened:
            if sys.stderr.isatty():
                columns = (
                    TextColumn("{task.description}"),
                    BarColumn(),
                    TextColumn("{task.percentage:.0f}%"),
                )
                console = Console(stderr=True)
                self._bar = opened.enter_context(Progress(*columns, TimeElapsedColumn(), console=console))
                self._task = self._bar.add_task("", total=sum(self._seconds.values()))
            yield self

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Wraps one step."""
        began, ended = time.monotonic(), Event()
        place = f"[{len(self._over) + 1}/{len(self._seconds)}]"
        if self._bar is None:
            sys.stderr.write(f"{place} {name}; {self.left} left\n")
        watching = Thread(target=self._watch, args=(name, f"{place} {name}", ended), daemon=True)
        watching.start()
        try:
            yield
            self._over[name] = time.monotonic() - began
        finally:
            ended.set()
            watching.join()
            self._advance(0.0, name)

    def _watch(self, name: str, description: str, ended: Event) -> None:
        began = time.monotonic()
        while self._bar is not None and not ended.wait(0.5):
            spent = min(time.monotonic() - began, self._seconds[name] * _NEARLY)
            self._advance(spent, f"{description}, {self.left} left")

    def _advance(self, spent: float, description: str) -> None:
        if self._bar is not None:
            over = sum(self._seconds[name] for name in self._over)
            self._bar.update(self._task, completed=over + spent, description=description)


def in_words(seconds: float) -> str:
    """A time in words, such as `about 19 minutes`."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes} minute{'' if minutes == 1 else 's'}"
