"""A simulation as text that a person reads in a terminal or a log."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from twgen.model.timeline import Event, Happening, Outcome, Timeline, WorkerTimeline
from twgen.reporting.laid_out import apart, laid_out
from twgen.reporting.timeline_words import (
    assumption_words,
    offset_words,
    rollout_words,
    route_words,
    summary_words,
    sunset_words,
    version_words,
)

_OUTCOMES = {
    Outcome.SETTLED: ("✓", "green"),
    Outcome.WAITING: ("…", "yellow"),
    Outcome.BLOCKED: ("✗", "red"),
    Outcome.UNFINISHED: ("…", "yellow"),
}
_STYLES = {
    Happening.CREATED: "green",
    Happening.GATE_FAILED: "red",
    Happening.RAMPED: "cyan",
    Happening.BECAME_CURRENT: "bold cyan",
    Happening.SCALED_DOWN: "yellow",
    Happening.DROPPED: "red",
}


def timeline_text(timeline: Timeline, *, colour: bool, width: int) -> str:
    """The simulation, worker by worker: what happens when, and what it comes to; `width` in characters."""
    workers = apart(_worker(worker, timeline) for worker in timeline.workers)
    return laid_out(workers, colour=colour, width=width)


def _worker(worker: WorkerTimeline, timeline: Timeline) -> RenderableType:
    sign, style = _OUTCOMES[worker.outcome]
    title = Text.assemble(
        (f"{sign} {worker.worker}", f"bold {style}"),
        (f"  {worker.outcome}", style),
        f"  {route_words(worker)}, Temporal namespace {worker.temporal_namespace}",
    )
    details: list[RenderableType] = [
        _labelled("rollout", rollout_words(worker.rollout)),
        _labelled("sunset", sunset_words(worker)),
        _assumed(worker, timeline),
        *(_labelled("note", note, "bold yellow") for note in worker.notes),
        Text(),
        _events(worker, timeline.begins),
        Text(),
        Text("in short:", "bold"),
        *(Padding(sentence, (0, 0, 0, 2)) for sentence in summary_words(worker)),
    ]
    return Group(title, Padding(Group(*details), (0, 0, 0, 2)))


def _assumed(worker: WorkerTimeline, timeline: Timeline) -> Text:
    text = Text.assemble(("assumed: ", "bold"))
    for index, (words, option) in enumerate(assumption_words(worker, timeline)):
        text.append(", " if index else "")
        text.append(words)
        text.append(f" ({option})", "dim")
    return text


def _labelled(label: str, words: str, style: str = "bold") -> Text:
    return Text.assemble((f"{label}: ", style), words)


def _events(worker: WorkerTimeline, begins: datetime | None) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    columns = ("offset", *(["time (UTC)"] if begins else []), "version", "what happens")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column not in {"version", "what happens"})
    for cells in _rows(worker, begins):
        table.add_row(*cells)
    return table


def _rows(worker: WorkerTimeline, begins: datetime | None) -> Iterator[list[RenderableType]]:
    before: Event | None = None
    for event in worker.events:
        is_later = before is None or event.at != before.at
        moment = begins + event.at if begins else None
        if moment and (before is None or begins is None or (begins + before.at).date() != moment.date()):
            yield ["", Text(f"{moment:%Y-%m-%d}", "dim"), "", ""]
        when = [offset_words(event.at), *([f"{moment:%H:%M:%S}"] if moment else [])]
        is_target = event.build_id == worker.target_build_id
        yield [
            *(when if is_later else [""] * len(when)),
            Text(version_words(event.build_id), "bold" if is_target else ""),
            Text(event.says, _STYLES.get(event.happening, "")),
        ]
        before = event
