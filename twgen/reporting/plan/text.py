"""A plan as text for a terminal or a log."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from rich.text import Text

from twgen.model.plan import VersionAction
from twgen.model.status import Status, WorkerReport
from twgen.reporting.layout import table, written
from twgen.reporting.phrases import COLUMNS, several, version_rows
from twgen.reporting.printable import printable_copy
from twgen.reporting.status.trees import cells_of_line, head, one_line_each, worst_first

_ACTIONS = {
    VersionAction.CREATE: "green",
    VersionAction.KEEP: "",
    VersionAction.UPDATE: "cyan",
    VersionAction.SCALE_DOWN: "yellow",
    VersionAction.DROP: "red",
    VersionAction.NONE: "red",
}


def plan_text(status: Status, *, colour: bool, width: int, detailed: bool = True) -> str:
    """Each worker's plan: the next change and its reason, then every version.

    Without `detailed`, if there are several workers, each has one line, and the most urgent worker is last.
    """
    status = printable_copy(status)
    if len(status.workers) > 1 and not detailed:
        lines = one_line_each(status, width, cells=_cells)
    else:
        lines = [*worst_first(status, width, _worker)]
    return written(lines, colour=colour)


def _cells(worker: WorkerReport, now: datetime) -> list[Text]:
    """The cells from `cells_of_line`, with a cell for the number of actions by kind before the last cell."""
    name, state, next_change = cells_of_line(worker, now)
    actions = Counter(version.action for version in worker.versions)
    del actions[VersionAction.KEEP]
    counts = ", ".join(f"{actions[action]} {action}" for action in _ACTIONS if actions[action])
    return [name, state, Text(counts), next_change]


def _worker(worker: WorkerReport, now: datetime, width: int) -> Iterator[Text]:
    yield from head(worker, now, width)
    rows: list[list[Text | str]] = []
    for versions, (status, action, replicas, because) in version_rows(worker):
        names = Text(several([version.build_id for version in versions]))
        names.stylize("bold" if versions[0].is_target else "")
        size = Text(replicas, justify="right")
        rows.append([names, status, Text(action, _ACTIONS[versions[0].action]), size, because])
    yield from table(COLUMNS, rows, width, "  ")
