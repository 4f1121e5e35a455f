"""Workers and their versions as trees that a person reads in a terminal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from twgen.model.plan import Phase, VersionAction
from twgen.model.problem import counted
from twgen.model.status import Status, VersionView, WorkerView
from twgen.model.temporal import VersionStatus
from twgen.planning.sentences import listed, version_name
from twgen.planning.version_status import UNREGISTERED
from twgen.planning.worker_status import urgency
from twgen.reporting.layout import (
    ALARM,
    STYLES,
    heading,
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
from twgen.reporting.plan.phrases import (
    SIGNS,
    actions_of_versions,
    actions_phrase,
    folded,
    folded_warnings,
    judgement_phrase,
    phase_phrase,
    several,
)
from twgen.reporting.printable import printable_copy
from twgen.reporting.status.lines import (
    gate_phrase,
    next_phrase,
    outlook_phrase,
    owner_phrase,
    percentage_text,
    pods_phrase,
    state_phrase,
    target_phrase,
    trouble_phrases,
)

_ASCII = str.maketrans("✓…→✗◀│├└─", "+.>x<|+`-")
"""One character for one, so that nothing moves."""
_BRANCHES = ("├── ", "│   ")
_LAST_BRANCH = ("└── ", "    ")

Block = list[Text]
"""The lines of one version: first its state, then what happens to it."""
Drawn = tuple[Block, list[Block]]
"""The lines of a worker: its own, and those of each version."""


class Tree(NamedTuple):
    """A worker, and how to draw it."""

    worker: str
    phase: Phase
    alarm: str
    """Its most urgent problem, such as a target that no worker polls for; empty: none."""
    draw: Callable[[], Drawn]
    state: str
    """The phase in words."""
    because: str
    """What comes next, and why."""
    warnings: int


class Layout(NamedTuple):
    """What a terminal can show."""

    colour: bool
    width: int
    """Characters of a line."""
    ascii_only: bool
    rows: int | None = None
    """The most lines to print; None: all that there are."""
    detailed: bool = True
    """Draw a tree for each worker, also if there are several."""


def trees_text(trees: Iterable[Tree], warnings: Sequence[str], layout: Layout) -> str:
    """The trees, worst first; without details, a line for each of several workers, worst last.

    If there is no room for all trees, settled workers share a line, and the others are counted.
    """
    width, rows = layout.width, layout.rows
    ordered = sorted(trees, key=_urgency)
    if len(ordered) > 1 and not layout.detailed:
        lines = _one_line_each(ordered, warnings, width, rows)
    else:
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
        yield from workers_line([tree.phase for tree in trees], width)
        yield Text()
    for index, tree in enumerate(trees):
        if index:
            yield Text()
        yield from _tree(tree.draw(), width)
    for text in warnings:
        yield from warning(text, width)


def _one_line_each(
    trees: Sequence[Tree], warnings: Sequence[str], width: int, rows: int | None
) -> list[Text]:
    """A line for each worker, the most urgent last; those that have no room are counted above them."""
    warned = sum(tree.warnings for tree in trees)
    head = [*workers_line([tree.phase for tree in trees], width, warned)]
    ends = [line for text in warnings for line in warning(text, width)]
    if rows and len(ends) > 1 and len(head) + len(trees) + len(ends) > rows:
        ends = [Text(f"and {counted(len(warnings), 'warning')}", "bold yellow")]
    room = len(trees) if rows is None else max(1, rows - len(head) - len(ends))
    # counting them takes a line too
    shown = trees if len(trees) <= room else trees[: max(1, room - 1)]
    if more := trees[len(shown) :]:
        left_out = f"{len(more)} more: {phase_counts([tree.phase for tree in more])}"
        head.append(_named(left_out, more, "dim", width))
    worst_last = sorted(shown, key=_urgency, reverse=True)
    return [*head, *lines_of_rows([_cells_of_line(tree) for tree in worst_last], width), *ends]


def _cells_of_line(tree: Tree) -> list[Text]:
    look = sign_and_style(tree.phase, tree.alarm)
    because = Text(tree.alarm or tree.because, look[1] if tree.alarm else "")
    return [name_cell(look, tree.worker), Text(tree.state, look[1]), because]


def _urgency(tree: Tree) -> tuple[bool, int]:
    return urgency(tree.phase, is_alarm=bool(tree.alarm))


def _worst(trees: Sequence[Tree], warnings: Sequence[str], width: int, rows: int) -> list[Text]:
    """As much as fits: the most urgent workers, then a line for the settled and one for the others."""
    lines = [*workers_line([tree.phase for tree in trees], width)] if len(trees) > 1 else []
    urgent: list[Tree] = []
    settled: list[Tree] = []
    for tree in trees:
        is_settled = tree.phase is Phase.SETTLED and not tree.alarm
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


STATE_STYLES: Mapping[VersionStatus, str] = {
    VersionStatus.CURRENT: "green",
    VersionStatus.RAMPING: "cyan",
    VersionStatus.DRAINING: "yellow",
    VersionStatus.UNSPECIFIED: "yellow",
}
_ACTIONS = {VersionAction.NONE: "red", VersionAction.KEEP: "dim"}


def head_lines(
    alarm: str, labels: Iterable[tuple[str, str, str]], warnings: Iterable[str], width: int
) -> Iterator[Text]:
    """The lines between the heading and the versions; `labels` are names with a text and its style."""
    if alarm:
        yield from wrapped(Text(alarm, ALARM[1]), width, "  ")
    for name, text, style in labels:
        if text:
            yield from labelled(name, Text(text, style), width, "  ", len("target"))
    for text in warnings:
        yield from warning(text, width, "  ")


def version_blocks(
    versions: Sequence[tuple[list[Text], Block]], unversioned: float | None, width: int
) -> list[Block]:
    """The lines of each version, from its cells and the lines below them."""
    rows = [cells for cells, _ in versions]
    if unversioned is not None:
        share = Text(percentage_text(unversioned))
        rows.append([Text(version_name(None)), share, Text(), Text(), Text()])
    below = [*(lines for _, lines in versions), []]
    return [[line, *lines] for line, lines in zip(in_columns(rows, width), below, strict=False)]


def status_text(status: Status, layout: Layout) -> str:
    """The status, a tree for each worker, as `trees_text` lays them out."""
    status = printable_copy(status)
    trees = [
        Tree(
            worker.plan.spec.worker_deployment,
            worker.plan.routing.phase,
            worker.plan.unserved,
            partial(_worker, worker, status.now, layout.width),
            phase_phrase(worker.plan.routing),
            "; ".join(filter(None, (next_phrase(worker, status.now), target_phrase(worker)))),
            len([*folded_warnings(worker.plan)]),
        )
        for worker in status.workers
    ]
    return trees_text(trees, status.warnings, layout)


def _worker(worker: WorkerView, now: datetime, width: int) -> Drawn:
    plan = worker.plan
    spec, phase = plan.spec, plan.routing.phase
    look = sign_and_style(phase, plan.unserved)
    style = look[1]
    namespace = Text(f"  Temporal namespace {spec.temporal_namespace}", "dim")
    title = heading(look, spec.worker_deployment, phase_phrase(plan.routing), namespace, width)
    target = [version for version in worker.versions if version.is_target]
    stands_out = phase is Phase.BLOCKED or any(item.plan.status in UNREGISTERED for item in target)
    cluster_was_read = all(version.cluster_was_read for version in worker.versions)
    labels = (
        ("target", target_phrase(worker), style if stands_out else ""),
        ("next", next_phrase(worker, now), style),
        ("gate", gate_phrase(worker), ""),
        *(("metric", judgement_phrase(judged), "") for judged in plan.judgements),
        *(
            ("drains", actions_phrase(scheduled_actions, now), "")
            for scheduled_actions in actions_of_versions(plan)
        ),
        ("owner", owner_phrase(worker), ""),
        ("pods", "" if cluster_was_read else "the cluster was not read", ""),
    )
    head = [*title, *head_lines(plan.unserved, labels, folded_warnings(plan), width)]
    versions = [
        (_cells(group, now), [*_below(group[0], spec.namespace, now)])
        for group in folded(worker.versions, _likeness)
    ]
    return head, version_blocks(versions, worker.unversioned_percentage, width)


def _likeness(version: VersionView) -> object:
    plan = version.plan
    if version.is_target or version.percentage is not None:
        return None
    return (plan.status, plan.action, plan.reason, pods_phrase(version))


def _cells(group: Sequence[VersionView], now: datetime) -> list[Text]:
    version = group[0]
    live, status = version.plan.live, version.plan.status
    missing = live is not None and live.available_replicas < live.replicas
    style = (
        ("red" if live and not live.available_replicas else "yellow") if missing else "" if live else "dim"
    )
    return [
        Text(several([item.plan.build_id for item in group]), "bold" if version.is_target else ""),
        Text(percentage_text(version.percentage)),
        Text(
            state_phrase(version, now) if len(group) == 1 else status.value, STATE_STYLES.get(status, "dim")
        ),
        Text(pods_phrase(version) if version.cluster_was_read else "", style),
        Text("◀ target" if version.is_target else "", "bold"),
    ]


def _below(version: VersionView, namespace: str, now: datetime) -> Iterator[Text]:
    for trouble in trouble_phrases(version, namespace):
        yield Text(trouble, "red")
    if outlook := outlook_phrase(version, now):
        yield Text(outlook, _ACTIONS.get(version.plan.action, "yellow"))
    if ready := [f"{item.kind} {item.name}" for item in version.attached if item.is_ready]:
        yield Text(f"has {listed(ready)}", "dim")
