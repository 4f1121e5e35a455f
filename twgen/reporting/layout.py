"""Lay out text in lines of a given width, for the reports to a terminal or a log.

The lines are made here rather than by rich's tables, which crop what does not fit, and take most of the time
of a long report. Rich knows how wide characters are, where words break, and what a terminal makes of a style.
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
"""The sign and the style of what comes before everything else."""

_GAP = "  "
_CUT = " …"
_NARROWEST = 20
"""If the last column has fewer characters, a table becomes blocks."""


def written(lines: Iterable[Text], *, colour: bool) -> str:
    """The lines as one text, without blanks at their ends; with the codes of a terminal when in colour."""
    if not colour:
        return "".join(f"{line.plain.rstrip()}\n" for line in lines)
    text = StringIO()
    console = Console(file=text, force_terminal=True, highlight=False, emoji=False, soft_wrap=True)
    for line in lines:
        line.rstrip()
        console.print(line)
    return text.getvalue()


def wrapped(text: Text, width: int, indent: str = "", hanging: str | None = None) -> Iterator[Text]:
    """The text in lines of at most `width` characters, the first behind `indent`, the others `hanging`."""
    hanging = indent if hanging is None else hanging
    room = max(1, width - max(len(indent), len(hanging)))
    pieces = [text] if cell_len(text.plain) <= room else text.wrap(_console(), room)
    for index, piece in enumerate(pieces):
        yield Text.assemble((hanging if index else indent, "dim"), piece)


def sign_and_style(phase: Phase, alarm: str) -> tuple[str, str]:
    """The sign before the name of a worker, and the style of its line."""
    return ALARM if alarm else (SIGNS[phase], STYLES[phase])


def name_cell(look: tuple[str, str], worker: str) -> Text:
    """The name of a worker, by its sign and its style."""
    sign, style = look
    return Text(f"{sign} {worker}", f"bold {style}")


def heading(look: tuple[str, str], worker: str, state: str, more: Text | str, width: int) -> Iterator[Text]:
    """The first line of all that a report has about a worker: its name, its phase, and `more`."""
    title = Text.assemble(name_cell(look, worker), (f"  {state}", look[1]), more)
    return wrapped(title, width, "", "  ")


def labelled(label: str, text: Text | str, width: int, indent: str, column: int = 0) -> Iterator[Text]:
    """A label and its text. If the labels have a width, the text has a column of its own."""
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
    """Rows below the names of their columns, only the last of which is wrapped; too narrow: a block a row."""
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
    """The cells of a row in columns of these widths, each with a gap after it."""
    line = Text()
    for cell, width in zip(row, widths, strict=True):
        blank, is_number = " " * (width - cell_len(cell.plain)), cell.justify == "right"
        line.append(blank if is_number else "").append_text(cell)
        line.append(_GAP if is_number else blank + _GAP)
    return line


def phase_counts(phases: Sequence[Phase]) -> str:
    """How many workers are in which phase: `1 Blocked, 3 Settled`."""
    return ", ".join(f"{phases.count(phase)} {phase}" for phase in reversed(Phase) if phase in phases)


def workers_line(phases: Sequence[Phase], width: int, hidden_warnings: int | None = None) -> Iterator[Text]:
    """How many workers there are: `30 workers: 1 Blocked, 29 Settled`.

    If their details are hidden, with so many warnings, the line says how they are shown.
    """
    parts = [f"{counted(len(phases), 'worker')}: {phase_counts(phases)}"]
    if hidden_warnings is not None:
        parts += [*([counted(hidden_warnings, "warning")] if hidden_warnings else ()), "details: -v"]
    return wrapped(Text("; ".join(parts), "bold"), width)


def lines_of_rows(rows: Sequence[Sequence[Text]], width: int) -> Iterator[Text]:
    """A line for each row: its cells in columns; the last cell is cut at the end of the line."""
    widths = [max(cell_len(cell.plain) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        line = in_columns(row, widths)
        line.rstrip()
        if cell_len(line.plain) > width:
            room = line.copy()
            room.truncate(width - len(_CUT))
            # a word that ends exactly at the limit is whole
            is_whole = line.plain[len(room) :].startswith(" ")
            words = room.plain if is_whole else room.plain.rpartition(" ")[0]
            # a single word that is longer than the line is cut all the same
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
    """A warning of a plan."""
    return wrapped(Text.assemble(("warning: ", "bold yellow"), text), width, indent, f"{indent}  ")


@cache
def _console() -> Console:
    return Console(file=StringIO(), width=1000)
