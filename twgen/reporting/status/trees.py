"""The status of workers and their versions as trees for a terminal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice, zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from twgen.model.plan import Phase, VersionAction
from twgen.model.problem import counted
from twgen.model.status import Status, VersionReport, WorkerReport
from twgen.model.temporal import VersionStatus
from twgen.planning.sentences import listed, version_name
from twgen.planning.version_status import UNREGISTERED
from twgen.reporting.layout import (
    ALARM,
    STYLES,
    heading,
    in_columns,
    labelled,
    lines_of_rows,
    name_cell,
    phase_counts,
    sign_and_style,
    warning,
    workers_line,
    wrapped,
    written,
)
from twgen.reporting.phrases import SIGNS, folded, folded_warnings, several
from twgen.reporting.printable import printable_copy
from twgen.reporting.status.lines import (
    head_phrases,
    next_phrase,
    outlook_phrase,
    percentage_text,
    phase_phrase,
    pods_phrase,
    state_phrase,
    target_phrase,
    trouble_phrases,
    urgency_of,
)

_ASCII = str.maketrans("✓…→✗◀│├└─", "+.>x<|+`-")
"""The ASCII replacement of each character. Each is a single character, so columns stay aligned."""
_BRANCHES = ("├── ", "│   ")
_LAST_BRANCH = ("└── ", "    ")

Block = list[Text]
"""The lines about one version: its state, then its problems and its next change."""


class Layout(NamedTuple):
    """The terminal's capabilities, and how much to show."""

    colour: bool
    width: int
    """The width in characters."""
    ascii_only: bool
    rows: int | None = None
    """The maximum number of lines to print. None means no limit."""
    detailed: bool = True
    """Whether to draw a tree for each worker even if there are several."""


def status_text(status: Status, layout: Layout) -> str:
    """A tree for each worker, the most urgent first. Without `detailed`, several workers get one line each.

    If there is no room for all trees, one line lists all settled workers, and another line lists the least
    urgent of the other workers.
    """
    status = printable_copy(status)
    width, rows = layout.width, layout.rows
    if len(status.workers) > 1 and not layout.detailed:
        lines = one_line_each(status, width, rows)
    else:
        lines = list(islice(worst_first(status, width, _tree), rows and rows + 1))
        if rows and len(lines) > rows:
            lines = _worst(status, width, rows)
    text = written(lines, colour=layout.colour)
    return in_ascii(text) if layout.ascii_only else text


def in_ascii(text: str) -> str:
    """The text with every non-ASCII character replaced."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def worst_first(
    status: Status, width: int, drawn: Callable[[WorkerReport, datetime, int], Iterable[Text]]
) -> Iterator[Text]:
    """The number of workers if there are several, then the lines of each worker, the most urgent first."""
    workers = sorted(status.workers, key=urgency_of)
    if len(workers) > 1:
        yield from workers_line([worker.phase for worker in workers], width)
        yield Text()
    for index, worker in enumerate(workers):
        if index:
            yield Text()
        yield from drawn(worker, status.now, width)
    for text in status.warnings:
        yield from warning(text, width)


def cells_of_line(worker: WorkerReport, now: datetime) -> list[Text]:
    """The cells of a worker's line: name, phase, and either the alarm or the next change with its reason."""
    look = sign_and_style(worker.phase, worker.alarm)
    last = worker.alarm or "; ".join(filter(None, (next_phrase(worker, now), target_phrase(worker))))
    state = Text(phase_phrase(worker, now), look[1])
    return [name_cell(look, worker.worker), state, Text(last, look[1] if worker.alarm else "")]


def one_line_each(
    status: Status,
    width: int,
    rows: int | None = None,
    cells: Callable[[WorkerReport, datetime], Sequence[Text]] = cells_of_line,
) -> list[Text]:
    """A line for each worker, the most urgent last. A line above them counts the workers that do not fit."""
    workers = sorted(status.workers, key=urgency_of)
    warned = sum(len([*folded_warnings(worker)]) for worker in workers)
    head = [*workers_line([worker.phase for worker in workers], width, warned)]
    ends = [line for text in status.warnings for line in warning(text, width)]
    if rows and len(ends) > 1 and len(head) + len(workers) + len(ends) > rows:
        ends = [_number_of_warnings(status)]
    room = len(workers) if rows is None else max(1, rows - len(head) - len(ends))
    # the line about the omitted workers needs room too
    shown = workers if len(workers) <= room else workers[: max(1, room - 1)]
    if more := workers[len(shown) :]:
        left_out = f"{len(more)} more: {phase_counts([worker.phase for worker in more])}"
        head.append(_named(left_out, more, "dim", width))
    worst_last = sorted(shown, key=urgency_of, reverse=True)
    return [*head, *lines_of_rows([cells(worker, status.now) for worker in worst_last], width), *ends]


def _number_of_warnings(status: Status) -> Text:
    return Text(f"and {counted(len(status.warnings), 'warning')}", "bold yellow")


def _worst(status: Status, width: int, rows: int) -> list[Text]:
    """The most urgent workers that fit, a line for omitted workers, and a line for settled workers."""
    workers = sorted(status.workers, key=urgency_of)
    lines = [*workers_line([worker.phase for worker in workers], width)] if len(workers) > 1 else []
    urgent: list[WorkerReport] = []
    settled: list[WorkerReport] = []
    for worker in workers:
        is_settled = worker.phase is Phase.SETTLED and not worker.alarm
        (settled if is_settled and urgent else urgent).append(worker)
    sign, style = SIGNS[Phase.SETTLED], STYLES[Phase.SETTLED]
    ends = [_named(f"{sign} {len(settled)} Settled", settled, style, width)] if settled else []
    if status.warnings:
        ends.append(_number_of_warnings(status))
    shown = 0
    for worker in urgent:
        room = rows - len(lines) - bool(lines) - len(ends) - (len(urgent) > shown + 1)
        if len(_tree(worker, status.now, width)) > room and shown:
            break
        lines += [*([Text()] if lines else []), *_tree(worker, status.now, width, room)]
        shown += 1
    if more := urgent[shown:]:
        left_out = f"and {len(more)} more: {phase_counts([worker.phase for worker in more])}"
        lines.append(_named(left_out, more, "bold", width))
    return lines + ends


def _named(line: str, workers: Sequence[WorkerReport], style: str, width: int) -> Text:
    """The line, followed by as many worker names as fit."""
    names = [worker.worker for worker in workers]
    for shown in range(len(names), 0, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        full = f"{line}: {', '.join(names[:shown])}{more}"
        if cell_len(full) <= width:
            return Text(full, style)
    return Text(line, style)


def _tree(worker: WorkerReport, now: datetime, width: int, rows: int | None = None) -> list[Text]:
    lines, blocks = [*head(worker, now, width)], _version_blocks(worker, now, width)
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


_STATES: Mapping[VersionStatus, str] = {
    VersionStatus.CURRENT: "green",
    VersionStatus.RAMPING: "cyan",
    VersionStatus.DRAINING: "yellow",
    VersionStatus.UNSPECIFIED: "yellow",
}
_ACTIONS = {VersionAction.NONE: "red", VersionAction.KEEP: "dim"}


def head(worker: WorkerReport, now: datetime, width: int) -> Iterator[Text]:
    """The lines about a worker that are shown above its versions."""
    look = sign_and_style(worker.phase, worker.alarm)
    namespace = worker.temporal_namespace
    more = Text(f"  Temporal namespace {namespace}" if namespace else "", "dim")
    yield from heading(look, worker.worker, phase_phrase(worker, now), more, width)
    if worker.alarm:
        yield from wrapped(Text(worker.alarm, ALARM[1]), width, "  ")
    target = [version for version in worker.versions if version.is_target]
    stands_out = worker.phase is Phase.BLOCKED or any(item.status in UNREGISTERED for item in target)
    styles = {"next": look[1], "target": look[1] if stands_out else ""}
    for label, text in head_phrases(worker, now):
        yield from labelled(label, Text(text, styles.get(label, "")), width, "  ", len("manager"))
    for text in folded_warnings(worker):
        yield from warning(text, width, "  ")


def _version_blocks(worker: WorkerReport, now: datetime, width: int) -> list[Block]:
    groups = folded(
        worker.versions,
        lambda version: (
            None
            if version.is_target or version.percentage is not None
            else (version.status, version.action, version.reason, pods_phrase(version))
        ),
    )
    rows = [_cells(group, now) for group in groups]
    if worker.unversioned_percentage is not None:
        share = Text(percentage_text(worker.unversioned_percentage), justify="right")
        rows.append([Text(version_name(None)), share, Text(), Text(), Text()])
    widths = [max(cell_len(cell.plain) for cell in column) for column in zip(*rows, strict=True)]
    if len(_LAST_BRANCH[0]) + sum(item + 2 for item in widths if item) - 2 > width:
        widths = [0] * len(widths)
    blocks = []
    for row, group in zip_longest(rows, groups, fillvalue=()):
        # leave out empty columns
        shown = [index for index, cell in enumerate(row) if widths[index] or cell.plain]
        line = in_columns([row[index] for index in shown], [widths[index] for index in shown])
        line.rstrip()
        blocks.append([line, *(_below(group[0], worker, now) if group else ())])
    return blocks


def _cells(group: Sequence[VersionReport], now: datetime) -> list[Text]:
    version = group[0]
    pods, status = version.pods, version.status
    missing = pods is not None and pods.available < pods.wanted
    style = ("red" if pods and not pods.available else "yellow") if missing else "" if pods else "dim"
    return [
        Text(several([item.build_id for item in group]), "bold" if version.is_target else ""),
        Text(percentage_text(version.percentage), justify="right"),
        Text(state_phrase(version, now) if len(group) == 1 else status.value, _STATES.get(status, "dim")),
        Text(pods_phrase(version) if version.cluster_was_read else "", style),
        Text("◀ target" if version.is_target else "", "bold"),
    ]


def _below(version: VersionReport, worker: WorkerReport, now: datetime) -> Iterator[Text]:
    for trouble in trouble_phrases(version, worker.worker.partition("/")[0]):
        yield Text(trouble, "red")
    if outlook := outlook_phrase(version, now):
        yield Text(outlook, _ACTIONS.get(version.action, "yellow"))
    if ready := [f"{item.kind} {item.name}" for item in version.attached if item.is_ready]:
        yield Text(f"has {listed(ready)}", "dim")
