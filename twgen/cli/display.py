"""Shows the progress of workers during a watch or a rollout, as a repainted tree or as log lines."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Literal, Protocol

from twgen.cli.observer import Observation
from twgen.cli.output import is_terminal, say, wants_colour, warn, width, write, writes_unicode
from twgen.cli.settings import clock
from twgen.model.status import Status
from twgen.model.times import format_time
from twgen.planning.sentences import spoken
from twgen.records.rollout_status import STATUS
from twgen.reporting.printable import printable
from twgen.reporting.status.lines import StatusLine, news, status_lines

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

    from twgen.reporting.status.trees import Layout

FRAME_SECONDS = 1.0
"""The screen is repainted at this interval, because it shows ages in seconds."""
_REST = 9
"""After each frame, the screen pauses for this many times as long as painting took, to limit CPU usage."""


@contextmanager
def display(
    output: str, color: str, leaving: str = "Ctrl-C to exit", *, detailed: bool = True
) -> "Iterator[Screen | Log]":
    """A Screen if stdout is a terminal, or else a Log. `leaving` is the Screen's hint on how to exit."""
    if output != "text" or not is_terminal():
        yield Log(as_json=output == "json")
        return
    with painted(color, leaving, detailed=detailed) as screen:
        yield screen


@contextmanager
def painted(color: str, leaving: str = "Ctrl-C to exit", *, detailed: bool) -> "Iterator[Screen]":
    """A Screen on the terminal. `leaving` is its hint on how to exit."""
    from rich.console import Console
    from rich.live import Live

    # twgen has already decided whether this is a terminal and whether it gets color, so rich must not
    system: Literal["auto"] | None = "auto" if wants_colour(color) else None
    console = Console(force_terminal=True, color_system=system, highlight=False)
    with Live(console=console, auto_refresh=False, redirect_stdout=False) as live:
        screen = Screen(live, color, leaving, detailed=detailed)
        try:
            yield screen
        finally:
            screen.leave()


class Paintable(Protocol):
    """The result of one read, which can be painted later."""

    @property
    def read_at(self) -> datetime:
        """The time of the read, by this machine's clock."""

    def tree(self, now: datetime, layout: "Layout") -> str:
        """A tree with the state at time `now`."""


def layout_for(color: str, *, detailed: bool) -> "Layout":
    """The layout of text that is printed once, with the colors, width and characters that stdout supports."""
    from twgen.reporting.status.trees import Layout

    return Layout(wants_colour(color), width(), not writes_unicode(), detailed=detailed)


class Screen:
    """Paints the state of every worker repeatedly on a terminal."""

    def __init__(self, live: "Live", color: str, leaving: str, *, detailed: bool) -> None:
        self._live, self._color, self._leaving = live, color, leaving
        self._detailed = detailed
        self._size = live.console.size
        self._shown: tuple[Callable[[], Paintable], str] | None = None
        self._due = 0.0
        """The `monotonic` time at which the next frame may be painted."""

    def show(self, reading: Paintable, failure: str = "") -> None:
        """Paint the last successful read with up-to-date ages, and the error of a newer read, if any."""
        self._shown = (lambda: reading), failure
        self._paint()

    def show_part(self, _: Observation, whole: Callable[[], Observation]) -> None:
        """After a read of one worker, paint all workers (`whole`), unless the last frame is too recent."""
        self._shown = whole, ""
        self.repaint()

    def repaint(self) -> None:
        """Paint the last read again with up-to-date ages, unless the last frame is too recent."""
        if monotonic() >= self._due:
            self._paint()

    def _paint(self) -> None:
        began, console = monotonic(), self._live.console
        if self._size != console.size:  # a resized terminal wraps the lines of the last frame differently
            console.clear()
            self._size = console.size
        if self._shown:
            whole, failure = self._shown
            self._live.update(self._frame(whole(), failure), refresh=True)
        ended = monotonic()
        self._due = ended + _REST * (ended - began)

    def leave(self) -> None:
        """Paint a last frame without the hint on how to exit."""
        self._leaving = ""
        self._paint()

    def say(self, line: str) -> None:
        """Print a permanent line above the painted frame."""
        self._live.console.print(printable(f"{clock():%H:%M:%S} {line}"), markup=False)

    def _frame(self, reading: Paintable, failure: str) -> "Group":
        from rich.console import Group
        from rich.text import Text

        from twgen.reporting.status.trees import Layout, in_ascii

        now, ascii_only = clock(), not writes_unicode()
        columns, rows = self._size
        age = spoken(now - reading.read_at)
        read_at = f"{now:%H:%M:%S} UTC, read {age} ago"
        heading = [Text("; ".join(filter(None, (read_at, self._leaving))), "dim")]
        if failure:
            failure = printable(f"the last successful read was {age} ago: {failure}")
            heading.append(Text(in_ascii(failure) if ascii_only else failure, "bold red"))
        rows_left = rows - sum(len(line.wrap(self._live.console, columns)) for line in heading) - 1
        layout = Layout(wants_colour(self._color), columns, ascii_only, rows_left, self._detailed)
        tree = reading.tree(now, layout)
        return Group(*heading, "", Text.from_ansi(tree.rstrip("\n"), no_wrap=True, overflow="crop"))


class Log:
    """Prints one line for each change. With JSON, prints one document after each read that shows changes."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._printed: list[StatusLine] = []
        self._parts: dict[str, list[StatusLine]] = {}
        """The lines that `show_part` last printed for each worker."""
        self._of_all: list[StatusLine] = []
        self._failure = ""

    def show(self, observation: Observation, failure: str = "") -> None:
        """Print the changes since the last read. Print each new failure once."""
        if failure not in {"", self._failure}:
            warn([f"{printable(failure)}; trying again"])
        if self._failure and not failure:
            say("twgen: reads succeed again")
        self._failure = failure
        status = observation.status
        before, self._printed = self._printed, status_lines(status)
        self._print(news(before, self._printed), status, lambda: status)

    def show_part(self, part: Observation, whole: Callable[[], Observation]) -> None:
        """Print the changes of one worker. With JSON, print all workers (`whole`) if there are changes."""
        [worker] = part.plan.workers
        name, lines = worker.spec.worker_deployment, status_lines(part.status)
        changes = news([*self._parts.get(name, ()), *self._of_all], lines)
        self._parts[name], self._of_all = lines, [line for line in lines if line.is_of_all]
        self._print(changes, part.status, lambda: whole().status)

    def _print(self, changes: list[str], status: Status, whole: Callable[[], Status]) -> None:
        if changes and self._as_json:
            write(json.dumps(STATUS.write(whole()), ensure_ascii=False) + "\n")
        elif changes:
            write("".join(f"{format_time(status.now)} {printable(line)}\n" for line in changes))

    def repaint(self) -> None:
        """Do nothing, because printed lines cannot be repainted."""

    def say(self, line: str) -> None:
        """Print a line with the current time. With JSON, print the line to stderr instead of stdout."""
        if self._as_json:
            warn([line])
        else:
            write(f"{format_time(clock())} {printable(line)}\n")
