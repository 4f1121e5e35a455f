"""`twgen status --watch`: reading again and again, and showing what was read."""

import gc
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic, sleep
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from twgen.cli.observer import Observation, Observer
from twgen.cli.output import is_terminal, say, wants_colour, warn, write, writes_unicode
from twgen.cli.settings import Settings, clock
from twgen.errors import InvalidDocuments, NegativeAnswer, TwgenError
from twgen.model.plan import Phase
from twgen.model.status import Status
from twgen.model.times import format_time
from twgen.planning.sentences import spoken
from twgen.reporting.printable import printable
from twgen.reporting.status.document import status_document
from twgen.reporting.status.lines import StatusLine, news, status_lines

if TYPE_CHECKING:
    from rich.console import Group

_TICK = 1.0
"""Seconds between two frames; what is shown counts seconds."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read last, and why nothing newer was; no failure: it is the newest."""

    observation: Observation
    failure: str = ""


def watch_status(settings: Settings, output: str, color: str, interval: float) -> None:
    """Show what changes: on a terminal until it is interrupted, else until no rollout goes on by itself.

    Raises NegativeAnswer when one is blocked then, and as reading does when the first read fails.
    """
    gc.enable()  # what a render leaves to the end of the process would add up here
    # without a worker all would be settled at once, and a script would go on after a rollout that never was
    with Observer(settings, needs_worker=True) as observer:
        seen = _seen(observer, interval)
        if output == "text" and is_terminal():
            with Screen(color) as screen:
                for moment in seen:
                    screen.paint(moment)
        else:
            _follow(seen, as_json=output == "json")


def _seen(observer: Observer, interval: float) -> Iterator[Seen]:
    """What is known, at every new read and every tick."""
    seen = Seen(_read(observer))
    pool = ThreadPoolExecutor(1)
    reading: Future[Observation] | None = None
    due = monotonic() + interval
    try:
        while True:
            yield seen
            if reading is None and monotonic() >= due:
                reading = pool.submit(_read, observer)
            if reading is None:
                sleep(min(_TICK, max(0.0, due - monotonic())))
            elif wait([reading], _TICK).done:
                seen, reading, due = _newer(reading, seen), None, monotonic() + interval
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _read(observer: Observer) -> Observation:
    observation = observer.observe()
    observation.status()  # what cannot be planned was not read well
    return observation


def _newer(reading: Future[Observation], seen: Seen) -> Seen:
    try:
        return Seen(reading.result())
    except InvalidDocuments as error:
        more = len(error.problems) - 1
        return replace(seen, failure=error.problems[0] + (f" and {more} more" if more else ""))
    except TwgenError as error:
        return replace(seen, failure=str(error))


class Screen:
    """A terminal on which where every worker stands is painted again and again."""

    def __init__(self, color: str, leaving: str = "Ctrl-C ends") -> None:
        from rich.console import Console
        from rich.live import Live

        self._color, self._leaving = color, leaving
        # whether it is a terminal, and in colour, has been decided
        system: Literal["auto"] | None = "auto" if wants_colour(color) else None
        self._console = Console(force_terminal=True, color_system=system, highlight=False)
        self._size = self._console.size
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def paint(self, seen: Seen) -> None:
        """Show what was read last, as of now."""
        if self._size != self._console.size:  # the terminal has broken the lines of the last frame anew
            self._console.clear()
            self._size = self._console.size
        self._live.update(self._frame(seen), refresh=True)

    def say(self, line: str) -> None:
        """Print a line that stays, above what is painted."""
        self._console.print(printable(line), markup=False)

    def _frame(self, seen: Seen) -> "Group":
        from rich.console import Group
        from rich.text import Text

        from twgen.reporting.status.tree import in_ascii, status_text

        now, ascii_only = clock(), not writes_unicode()
        columns, rows = self._console.size
        age = spoken(now - seen.observation.read_at)
        heading = [Text(f"{now:%H:%M:%S} UTC, read {age} ago; {self._leaving}", "dim")]
        if seen.failure:
            failure = printable(f"this is from {age} ago: {seen.failure}")
            heading.append(Text(in_ascii(failure) if ascii_only else failure, "bold red"))
        tree = status_text(
            seen.observation.status(now),
            colour=wants_colour(self._color),
            width=columns,
            ascii_only=ascii_only,
            rows=rows - sum(len(line.wrap(self._console, columns)) for line in heading) - 1,
        )
        return Group(*heading, "", Text.from_ansi(tree.rstrip("\n"), no_wrap=True, overflow="crop"))


def _follow(seen: Iterator[Seen], *, as_json: bool) -> None:
    log = StatusLog(as_json=as_json)
    failure = ""
    for moment in seen:
        if moment.failure not in {"", failure}:
            warn([f"{printable(moment.failure)}; trying again"])
        if failure and not moment.failure:
            say("twgen: reading works again")
        failure = moment.failure
        status = moment.observation.status()
        log.tell(status)
        if not _goes_on(status):
            return


class StatusLog:
    """Prints what changes from one status to the next: a line for each change, or a JSON document."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._told: list[StatusLine] = []

    def tell(self, status: Status) -> None:
        """Print what is new since the last time, if anything is."""
        lines = status_lines(status)
        changes = news(self._told, lines)
        self._told = lines
        if changes and self._as_json:
            write(json.dumps(status_document(status), ensure_ascii=False) + "\n")
        elif changes:
            self.say(changes, status.now)

    def say(self, lines: Iterable[str], now: datetime) -> None:
        """Print lines with their time; where JSON is printed, for people on stderr."""
        if self._as_json:
            warn(lines)
        else:
            write("".join(f"{format_time(now)} {printable(line)}\n" for line in lines))


def _goes_on(status: Status) -> bool:
    """Some rollout can still move by itself; raises NegativeAnswer when none can and one is blocked."""
    phases = [worker.plan.routing.phase for worker in status.workers]
    if any(phase not in {Phase.SETTLED, Phase.BLOCKED} for phase in phases):
        return True
    blocked = [
        worker.plan.versions.spec.worker_deployment
        for worker, phase in zip(status.workers, phases, strict=True)
        if phase is Phase.BLOCKED
    ]
    if blocked:
        raise NegativeAnswer(f"blocked: {', '.join(blocked)}")
    return False
