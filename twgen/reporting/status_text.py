"""A status as a tree that a person reads in a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from twgen.model.plan import Phase, VersionAction
from twgen.model.world import VersionStatus
from twgen.reporting.laid_out import PHASES, apart, laid_out, warning
from twgen.reporting.printable import printable
from twgen.reporting.status import Status, VersionView, WorkerView
from twgen.reporting.status_words import (
    because_words,
    gate_words,
    next_words,
    outlook_words,
    owner_words,
    percentage_words,
    pods_words,
    state_words,
    summary_words,
)

_STATES = {
    VersionStatus.CURRENT: "green",
    VersionStatus.RAMPING: "cyan",
    VersionStatus.DRAINING: "yellow",
    VersionStatus.UNSPECIFIED: "yellow",
}
_ACTIONS = {VersionAction.NONE: "red", VersionAction.KEEP: "dim"}
_ASCII = str.maketrans("✓…→✗◀│├└─", "+.>x<|+`-")
"""One character for one, so that nothing moves."""

_PERCENTAGE = 1
"""The column whose numbers stand below each other."""

Cell = tuple[str, str]
"""A text and its style."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A version's cells, and what becomes of it on a line of its own."""

    cells: tuple[Cell, Cell, Cell, Cell, Cell]
    outlook: Cell = ("", "")


def status_text(status: Status, *, colour: bool, width: int, ascii_only: bool) -> str:
    """The status, a tree for each worker; `width` in characters."""
    trees = [_tree(worker, status.now) for worker in status.workers]
    summary = [Text(summary_words(status), "bold")] if len(trees) > 1 else []
    parts = [*apart([*summary, *trees]), *map(_warning, status.warnings)]
    text = laid_out(parts, colour=colour, width=width)
    return in_ascii(text) if ascii_only else text


def in_ascii(text: str) -> str:
    """The text for a terminal that may know ASCII alone."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def _tree(worker: WorkerView, now: datetime) -> Tree:
    spec, phase = worker.plan.versions.spec, worker.plan.routing.phase
    sign, style = PHASES[phase]
    title = Text.assemble(
        (f"{sign} {spec.worker_deployment}", f"bold {style}"),
        (f"  {phase}", style),
        (f"  Temporal namespace {spec.temporal_namespace}", "dim"),
    )
    tree = Tree(Group(title, Padding(_details(worker, now), (0, 0, 0, 2))), guide_style="dim")
    for label in _aligned([*(_row(version, now) for version in worker.versions), *_unversioned(worker)]):
        tree.add(label)
    return tree


def _details(worker: WorkerView, now: datetime) -> RenderableType:
    style = PHASES[worker.plan.routing.phase][1]
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text, of_text in (
        ("target", because_words(worker), style if worker.plan.routing.phase is Phase.BLOCKED else ""),
        ("next", next_words(worker, now), style),
        ("gate", gate_words(worker), ""),
        ("owner", owner_words(worker), ""),
        ("pods", "" if _cluster_was_read(worker) else "the cluster was not read", ""),
    ):
        if text:
            table.add_row(Text(name, "dim"), Text(text, of_text))
    warnings = (_warning(text) for text in worker.plan.versions.warnings)
    return Group(table, *warnings)


def _row(version: VersionView, now: datetime) -> _Row:
    plan = version.plan
    return _Row(
        cells=(
            (printable(plan.build_id), "bold" if version.is_target else ""),
            (percentage_words(version.percentage), ""),
            (state_words(version, now), _STATES.get(plan.status, "dim")),
            (pods_words(version) if version.cluster_was_read else "", _pods_style(version)),
            ("◀ target" if version.is_target else "", "bold"),
        ),
        outlook=(outlook_words(version, now), _ACTIONS.get(plan.action, "yellow")),
    )


def _unversioned(worker: WorkerView) -> Iterator[_Row]:
    if worker.unversioned_percentage is not None:
        share = percentage_words(worker.unversioned_percentage)
        yield _Row((("unversioned workers", ""), (share, ""), ("", ""), ("", ""), ("", "")))


def _cluster_was_read(worker: WorkerView) -> bool:
    return all(version.cluster_was_read for version in worker.versions)


def _pods_style(version: VersionView) -> str:
    live = version.plan.live
    if not live:
        return "dim"
    if live.available_replicas >= live.replicas:
        return ""
    return "yellow" if live.available_replicas else "red"


def _aligned(rows: Sequence[_Row]) -> Iterator[RenderableType]:
    widths = [
        max(len(text) for text, _ in column) for column in zip(*(row.cells for row in rows), strict=True)
    ]
    for row in rows:
        label = Text()
        for index, ((text, style), width) in enumerate(zip(row.cells, widths, strict=True)):
            if width:
                label.append(text.rjust(width) if index == _PERCENTAGE else text.ljust(width), style)
                label.append("  ")
        label.rstrip()
        outlook = Padding(Text(*row.outlook), (0, 0, 0, 2))
        yield Group(label, outlook) if row.outlook[0] else label


def _warning(text: str) -> Text:
    return warning(printable(text))
