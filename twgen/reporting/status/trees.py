"""Trees of workers and their versions, as a person reads them in a terminal, cut to its rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from twgen.model.plan import Phase
from twgen.planning.sentences import counted
from twgen.planning.worker_status import urgency
from twgen.reporting.layout import STYLES, warning, wrapped, written
from twgen.reporting.plan.phrases import SIGNS
from twgen.reporting.status.phrases import phase_counts

_ASCII = str.maketrans("✓…→✗◀│├└─", "+.>x<|+`-")
"""One character for one, so that nothing moves."""
_BRANCHES = ("├── ", "│   ")
_LAST_BRANCH = ("└── ", "    ")

Block = list[Text]
"""The lines of one version: first its state, then what happens to it."""


class Drawn(NamedTuple):
    """The lines of a worker."""

    head: Block
    versions: list[Block]


class Tree(NamedTuple):
    """A worker, and how to draw it."""

    worker: str
    phase: Phase
    is_alarm: bool
    """It has a most urgent problem, such as a target that no worker polls for."""
    draw: Callable[[], Drawn]


class Layout(NamedTuple):
    """What a terminal can show."""

    colour: bool
    width: int
    """Characters of a line."""
    ascii_only: bool
    rows: int | None = None
    """The most lines to print; None: all that there are."""


def trees_text(trees: Iterable[Tree], warnings: Sequence[str], layout: Layout) -> str:
    """The trees, worst first.

    If there is no room for all of them, settled workers share a line, and the others are counted.
    """
    width, rows = layout.width, layout.rows
    ordered = sorted(trees, key=lambda tree: urgency(tree.phase, is_alarm=tree.is_alarm))
    lines = list(islice(_lines(ordered, warnings, width), rows and rows + 1))
    if rows and len(lines) > rows:
        lines = _worst(ordered, warnings, width, rows)
    text = written(lines, colour=layout.colour)
    return in_ascii(text) if layout.ascii_only else text


def in_ascii(text: str) -> str:
    """The text for a terminal that may support only ASCII."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def in_columns(rows: Sequence[Sequence[Text]], width: int) -> list[Text]:
    """The cells of each row in columns, percentages flush right; an empty column takes no room."""
    widths = [max(cell_len(cell.plain) for cell in column) for column in zip(*rows, strict=True)]
    if len(_LAST_BRANCH[0]) + sum(item + 2 for item in widths if item) - 2 > width:
        widths = [0] * len(widths)
    return [_aligned(row, widths) for row in rows]


def _lines(trees: Sequence[Tree], warnings: Sequence[str], width: int) -> Iterator[Text]:
    if len(trees) > 1:
        yield from _summary(trees, width)
        yield Text()
    for index, tree in enumerate(trees):
        if index:
            yield Text()
        yield from _tree(tree.draw(), width)
    for text in warnings:
        yield from warning(text, width)


def _summary(trees: Sequence[Tree], width: int) -> Iterator[Text]:
    summary = f"{counted(len(trees), 'worker')}: {phase_counts([tree.phase for tree in trees])}"
    return wrapped(Text(summary, "bold"), width)


def _worst(trees: Sequence[Tree], warnings: Sequence[str], width: int, rows: int) -> list[Text]:
    """As much as fits: the most urgent workers, then a line for the settled and one for the others."""
    lines = list(_summary(trees, width)) if len(trees) > 1 else []
    urgent: list[Tree] = []
    settled: list[Tree] = []
    for tree in trees:
        is_settled = tree.phase is Phase.SETTLED and not tree.is_alarm
        (settled if is_settled and urgent else urgent).append(tree)
    sign, style = SIGNS[Phase.SETTLED], STYLES[Phase.SETTLED]
    ends = [_named(f"{sign} {len(settled)} Settled", settled, style, width)] if settled else []
    if warnings:
        ends.append(Text(f"and {counted(len(warnings), 'warning')}", "bold yellow"))
    shown = 0
    for tree in urgent:
        drawn = tree.draw()
        room = rows - len(lines) - bool(lines) - len(ends) - (len(urgent) > shown + 1)
        if len(_tree(drawn, width)) > room and shown:
            break
        lines += [*([Text()] if lines else []), *_tree(drawn, width, room)]
        shown += 1
    if more := urgent[shown:]:
        left_out = f"and {len(more)} more: {phase_counts([tree.phase for tree in more])}"
        lines.append(_named(left_out, more, "bold", width))
    return lines + ends


def _named(line: str, trees: Sequence[Tree], style: str, width: int) -> Text:
    """The line, with the names of as many of the workers as it has room for."""
    names = [tree.worker for tree in trees]
    for shown in range(len(names), 0, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        full = f"{line}: {', '.join(names[:shown])}{more}"
        if cell_len(full) <= width:
            return Text(full, style)
    return Text(line, style)


def _tree(drawn: Drawn, width: int, rows: int | None = None) -> list[Text]:
    head, blocks = drawn
    lines = list(head)
    room = None if rows is None else max(rows - len(lines), 1)
    kept: list[Block] = []
    used = 0
    for block in blocks:
        branch = _branch(block, width, _BRANCHES)
        is_last = len(kept) + 1 == len(blocks)
        if room is not None and used + len(branch) + (not is_last) > room:
            break
        kept.append(block)
        used += len(branch)
    if len(kept) < len(blocks):
        kept.append([Text(f"and {counted(len(blocks) - len(kept), 'more version')}", "bold")])
    for block in kept:
        lines += _branch(block, width, _LAST_BRANCH if block is kept[-1] else _BRANCHES)
    return lines


def _branch(block: Block, width: int, guides: tuple[str, str]) -> list[Text]:
    first, others = guides
    lines = list(wrapped(block[0], width, first, f"{others}  "))
    for line in block[1:]:
        lines += wrapped(line, width, f"{others}  ")
    return lines


def _aligned(row: Sequence[Text], widths: Sequence[int]) -> Text:
    """The cells in columns of these widths."""
    line = Text()
    for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
        blank = " " * (width - cell_len(cell.plain))
        if width or cell.plain:
            line.append(blank if index == 1 else "").append_text(cell)
            line.append("" if index == 1 else blank).append("  ")
    line.rstrip()
    return line
