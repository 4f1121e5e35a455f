"""Lays out text in lines of a given width, for reports in a terminal or a log.

This module uses rich for character widths, line breaks and terminal styles, but not for tables: rich's tables
crop long text and are slow in long reports.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from twgen.model.plan import Phase
from twgen.model.problem import counted
from twgen.reporting.phrases import SIGNS

STYLES: Mapping[Phase, str] = {
    Phase.SETTLED: "green",
    Phase.WAITING: "yellow",
    Phase.MOVING: "cyan",
    Phase.BLOCKED: "red",
}
ALARM = ("✗", "bold red")
"""The sign and the style of an alarm."""

_GAP = "  "
_CUT = " …"
_NARROWEST = 20
"""The minimum width of the last column. If there is less space, each row becomes a block of lines."""


def written(lines: Iterable[Text], *, colour: bool) -> str:
    """The lines as one text, without trailing spaces. `colour` adds terminal codes."""
    if not colour:
        return "".join(f"{line.plain.rstrip()}\n" for line in lines)
    text = StringIO()
    console = Console(file=text, force_terminal=True, highlight=False, emoji=False, soft_wrap=True)
    for line in lines:
        line.rstrip()
        console.print(line)
    return text.getvalue()


def wrapped(text: Text, width: int, indent: str = "", hanging: str | None = None) -> Iterator[Text]:
    """The text, wrapped at `width` characters. `hanging` is the indent of all lines after the first."""
    hanging = indent if hanging is None else hanging
    room = max(1, width - max(len(indent), len(hanging)))
    pieces = [text] if cell_len(text.plain) <= room else text.wrap(_console(), room)
    for index, piece in enumerate(pieces):
        yield Text.assemble((hanging if index else indent, "dim"), piece)


def sign_and_style(phase: Phase, alarm: str) -> tuple[str, str]:
    """The sign in front of a worker's name, and the line's style."""
    return ALARM if alarm else (SIGNS[phase], STYLES[phase])


def name_cell(look: tuple[str, str], worker: str) -> Text:
    """A worker's name and sign, in the worker's style."""
    sign, style = look
    return Text(f"{sign} {worker}", f"bold {style}")


def heading(look: tuple[str, str], worker: str, state: str, more: Text | str, width: int) -> Iterator[Text]:
    """A worker's heading in a report: the name, the phase, and `more`."""
    title = Text.assemble(name_cell(look, worker), (f"  {state}", look[1]), more)
    return wrapped(title, width, "", "  ")


def labelled(label: str, text: Text | str, width: int, indent: str, column: int = 0) -> Iterator[Text]:
    """A label and its text. If `column` is not 0, it is the width of a column for labels."""
    name, content = label.ljust(column), Text(text) if isinstance(text, str) else text
    if column and width - len(indent) - column - len(_GAP) >= _NARROWEST:
        hanging = " " * (len(indent) + column + len(_GAP))
        for index, line in enumerate(wrapped(content, width, hanging)):
            yield line if index else Text.assemble(indent, (name, "dim"), _GAP, line[len(hanging) :])
    else:
        style = "dim" if column else "bold"
        yield from wrapped(Text.assemble((f"{label} ", style), content), width, indent, f"{indent}  ")


def table(
    columns: Sequence[str], rows: Sequence[Sequence[Text | str]], width: int, indent: str = ""
) -> Iterator[Text]:
    """A table with a wrapped last column. If the width is too small, each row becomes a block of lines."""
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [
        max(cell_len(name), *(cell_len(row[index].plain) for row in cells)) if cells else cell_len(name)
        for index, name in enumerate(columns[:-1])
    ]
    hanging = len(indent) + sum(item + len(_GAP) for item in widths)
    if width - hanging < _NARROWEST:
        yield from _blocks(columns, cells, width, indent)
        return
    for row in ([Text(name, "dim") for name in columns], *cells):
        head = Text(indent).append_text(in_columns(row[:-1], widths))
        for index, line in enumerate(wrapped(row[-1], width, " " * hanging)):
            yield line if index else head.append_text(line[hanging:])


def in_columns(row: Sequence[Text], widths: Sequence[int]) -> Text:
    """A row's cells, padded to the columns' widths, with a gap after each cell."""
    line = Text()
    for cell, width in zip(row, widths, strict=True):
        blank, is_number = " " * (width - cell_len(cell.plain)), cell.justify == "right"
        line.append(blank if is_number else "").append_text(cell)
        line.append(_GAP if is_number else blank + _GAP)
    return line


def phase_counts(phases: Sequence[Phase]) -> str:
    """The number of workers in each phase: `1 Blocked, 3 Settled`."""
    return ", ".join(f"{phases.count(phase)} {phase}" for phase in reversed(Phase) if phase in phases)


def workers_line(phases: Sequence[Phase], width: int, hidden_warnings: int | None = None) -> Iterator[Text]:
    """The number of workers in total and in each phase: `30 workers: 1 Blocked, 29 Settled`.

    If details are hidden, the line also shows the number of hidden warnings and the option for details.
    """
    parts = [f"{counted(len(phases), 'worker')}: {phase_counts(phases)}"]
    if hidden_warnings is not None:
        parts += [*([counted(hidden_warnings, "warning")] if hidden_warnings else ()), "details: -v"]
    return wrapped(Text("; ".join(parts), "bold"), width)


def lines_of_rows(rows: Sequence[Sequence[Text]], width: int) -> Iterator[Text]:
    """A line for each row, with the cells in columns. A line that is longer than `width` is cut."""
    widths = [max(cell_len(cell.plain) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        line = in_columns(row, widths)
        line.rstrip()
        if cell_len(line.plain) > width:
            room = line.copy()
            room.truncate(width - len(_CUT))
            # keep the last word if it ends exactly at the limit
            is_whole = line.plain[len(room) :].startswith(" ")
            words = room.plain if is_whole else room.plain.rpartition(" ")[0]
            # cut inside a word if the word is longer than the line
            line = line[: len(words.rstrip()) or len(room)].append(_CUT)
        yield line


def _blocks(
    columns: Sequence[str], rows: Sequence[Sequence[Text]], width: int, indent: str
) -> Iterator[Text]:
    longest = max(map(len, columns[1:]))
    for first, *others in rows:
        if first.plain:
            yield from wrapped(first, width, indent, f"{indent}  ")
        for name, cell in zip(columns[1:], others, strict=True):
            if cell.plain:
                yield from labelled(name, cell, width, f"{indent}  ", longest)


def warning(text: str, width: int, indent: str = "") -> Iterator[Text]:
    """The lines of a warning in a report."""
    return wrapped(Text.assemble(("warning: ", "bold yellow"), text), width, indent, f"{indent}  ")


@cache
def _console() -> Console:
    return Console(file=StringIO(), width=1000)
