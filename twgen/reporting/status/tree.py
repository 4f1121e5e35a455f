"""A status as a tree that a person reads in a terminal."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from rich.cells import cell_len
from rich.text import Text

from twgen.model.plan import Phase, VersionAction
from twgen.model.status import Status, VersionView, WorkerView
from twgen.model.temporal import VersionStatus
from twgen.planning.sentences import counted
from twgen.planning.worker_status import worst_first
from twgen.reporting.layout import ALARM, STYLES, labelled, warning, wrapped, written
from twgen.reporting.plan.phrases import (
    SIGNS,
    endings_of_versions,
    endings_phrase,
    folded,
    folded_warnings,
    judgement_phrase,
    phase_phrase,
    several,
)
from twgen.reporting.printable import printable_copy
from twgen.reporting.status.phrases import (
    gate_phrase,
    next_phrase,
    outlook_phrase,
    owner_phrase,
    percentage_text,
    phase_counts,
    pods_phrase,
    state_phrase,
    target_phrase,
    trouble_phrases,
)

_STATES = {
    VersionStatus.CURRENT: "green",
    VersionStatus.RAMPING: "cyan",
    VersionStatus.DRAINING: "yellow",
    VersionStatus.UNSPECIFIED: "yellow",
}
_ACTIONS = {VersionAction.NONE: "red", VersionAction.KEEP: "dim"}
_UNREGISTERED = {VersionStatus.NOT_REGISTERED, VersionStatus.CREATED}
_ASCII = str.maketrans("✓…→✗◀│├└─", "+.>x<|+`-")
"""One character for one, so that nothing moves."""
_BRANCHES = ("├── ", "│   ")
_LAST_BRANCH = ("└── ", "    ")

Block = list[Text]
"""The lines of one version: first where it stands, then what becomes of it."""


def status_text(
    status: Status, *, colour: bool, width: int, ascii_only: bool, rows: int | None = None
) -> str:
    """The status, a tree for each worker, worst first; `width` in characters, `rows` the most lines to print.

    In what is too long for that, settled workers share a line, and what is left out is counted.
    """
    status = printable_copy(status)
    lines = list(islice(_lines(status, width), rows and rows + 1))
    if rows and len(lines) > rows:
        lines = _worst(status, width, rows)
    text = written(lines, colour=colour)
    return in_ascii(text) if ascii_only else text


def in_ascii(text: str) -> str:
    """The text for a terminal that may know ASCII alone."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def _lines(status: Status, width: int) -> Iterator[Text]:
    if len(status.workers) > 1:
        yield from _summary(status, width)
        yield Text()
    for index, worker in enumerate(worst_first(status.workers)):
        if index:
            yield Text()
        yield from _tree(worker, status.now, width)
    for text in status.warnings:
        yield from warning(text, width)


def _summary(status: Status, width: int) -> Iterator[Text]:
    summary = f"{counted(len(status.workers), 'worker')}: {phase_counts(status.workers)}"
    return wrapped(Text(summary, "bold"), width)


def _worst(status: Status, width: int, rows: int) -> list[Text]:
    """As much as there is room for: the most urgent workers, then what is settled and what is left out."""
    lines = list(_summary(status, width)) if len(status.workers) > 1 else []
    urgent: list[WorkerView] = []
    settled: list[WorkerView] = []
    for worker in worst_first(status.workers):
        is_settled = worker.plan.routing.phase is Phase.SETTLED and not worker.plan.unserved
        (settled if is_settled and urgent else urgent).append(worker)
    sign, style = SIGNS[Phase.SETTLED], STYLES[Phase.SETTLED]
    ends = [_named(f"{sign} {len(settled)} Settled", settled, style, width)] if settled else []
    if status.warnings:
        ends.append(Text(f"and {counted(len(status.warnings), 'warning')}", "bold yellow"))
    shown = 0
    for worker in urgent:
        room = rows - len(lines) - bool(lines) - len(ends) - (len(urgent) > shown + 1)
        tree = _tree(worker, status.now, width)
        if len(tree) > room and shown:
            break
        lines += [*([Text()] if lines else []), *_tree(worker, status.now, width, room)]
        shown += 1
    if more := urgent[shown:]:
        lines.append(_named(f"and {len(more)} more: {phase_counts(more)}", more, "bold", width))
    return lines + ends


def _named(line: str, workers: Sequence[WorkerView], style: str, width: int) -> Text:
    """The line, with the names of as many of the workers as it has room for."""
    names = [worker.plan.spec.worker_deployment for worker in workers]
    for shown in range(len(names), 0, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        full = f"{line}: {', '.join(names[:shown])}{more}"
        if cell_len(full) <= width:
            return Text(full, style)
    return Text(line, style)


def _tree(worker: WorkerView, now: datetime, width: int, rows: int | None = None) -> list[Text]:
    lines = list(_head(worker, now, width))
    blocks = [*_versions(worker, now, width)]
    room = None if rows is None else max(rows - len(lines), 1)
    kept: list[Block] = []
    used = 0
    for block in blocks:
        drawn = _branch(block, width, _BRANCHES)
        is_last = len(kept) + 1 == len(blocks)
        if room is not None and used + len(drawn) + (not is_last) > room:
            break
        kept.append(block)
        used += len(drawn)
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


def _head(worker: WorkerView, now: datetime, width: int) -> Iterator[Text]:
    plan = worker.plan
    spec, phase = plan.spec, plan.routing.phase
    sign, style = ALARM if plan.unserved else (SIGNS[phase], STYLES[phase])
    title = Text.assemble(
        (f"{sign} {spec.worker_deployment}", f"bold {style}"),
        (f"  {phase_phrase(plan.routing)}", style),
        (f"  Temporal namespace {spec.temporal_namespace}", "dim"),
    )
    yield from wrapped(title, width, "", "  ")
    if plan.unserved:
        yield from wrapped(Text(plan.unserved, ALARM[1]), width, "  ")
    target = [version for version in worker.versions if version.is_target]
    stands_out = phase is Phase.BLOCKED or any(item.plan.status in _UNREGISTERED for item in target)
    cluster_was_read = all(version.cluster_was_read for version in worker.versions)
    for name, text, of_text in (
        ("target", target_phrase(worker), style if stands_out else ""),
        ("next", next_phrase(worker, now), style),
        ("gate", gate_phrase(worker), ""),
        *(("metric", judgement_phrase(judged), "") for judged in plan.judgements),
        *(("drains", endings_phrase(endings, now), "") for endings in endings_of_versions(plan)),
        ("owner", owner_phrase(worker), ""),
        ("pods", "" if cluster_was_read else "the cluster was not read", ""),
    ):
        if text:
            yield from labelled(name, Text(text, of_text), width, "  ", len("target"))
    for text in folded_warnings(plan):
        yield from warning(text, width, "  ")


def _versions(worker: WorkerView, now: datetime, width: int) -> Iterator[Block]:
    groups = folded(worker.versions, _likeness)
    rows = [_cells(group, now) for group in groups]
    if worker.unversioned_percentage is not None:
        share = percentage_text(worker.unversioned_percentage)
        rows.append([Text("unversioned workers"), Text(share), Text(), Text(), Text()])
    widths = [max(cell_len(cell.plain) for cell in column) for column in zip(*rows, strict=True)]
    if len(_LAST_BRANCH[0]) + sum(item + 2 for item in widths if item) - 2 > width:
        widths = [0] * len(widths)
    namespace = worker.plan.spec.namespace
    for index, row in enumerate(rows):
        block = [_aligned(row, widths)]
        if index < len(groups):
            version = groups[index][0]
            block += (Text(trouble, "red") for trouble in trouble_phrases(version, namespace))
            if outlook := outlook_phrase(version, now):
                block.append(Text(outlook, _ACTIONS.get(version.plan.action, "yellow")))
        yield block


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
        Text(state_phrase(version, now) if len(group) == 1 else status.value, _STATES.get(status, "dim")),
        Text(pods_phrase(version) if version.cluster_was_read else "", style),
        Text("◀ target" if version.is_target else "", "bold"),
    ]


def _aligned(row: Sequence[Text], widths: Sequence[int]) -> Text:
    """The cells in columns of these widths, percentages flush right; an empty column takes no room."""
    line = Text()
    for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
        blank = " " * (width - cell_len(cell.plain))
        if width or cell.plain:
            line.append(blank if index == 1 else "").append_text(cell)
            line.append("" if index == 1 else blank).append("  ")
    line.rstrip()
    return line
