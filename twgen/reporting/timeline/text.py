"""A simulation as text for a terminal or a log."""

from collections.abc import Iterator
from datetime import datetime

from rich.text import Text

from twgen.model.timeline import Event, Happening, Timeline, WorkerTimeline
from twgen.planning.sentences import version_name
from twgen.reporting.layout import heading, labelled, table, wrapped, written
from twgen.reporting.printable import printable_copy
from twgen.reporting.timeline.summary import (
    OUTCOMES,
    assumptions,
    beginning,
    offset,
    rollout_phrase,
    route,
    summary,
    sunset_phrase,
)

_STYLES = {
    Happening.CREATED: "green",
    Happening.GATE_FAILED: "red",
    Happening.RAMPED: "cyan",
    Happening.TAKEN_BACK: "bold red",
    Happening.BECAME_CURRENT: "bold cyan",
    Happening.SCALED_DOWN: "yellow",
    Happening.DROPPED: "red",
}


def timeline_text(timeline: Timeline, *, colour: bool, width: int) -> str:
    """Each worker's events and outcome, in lines of at most `width` characters."""
    timeline = printable_copy(timeline)
    lines: list[Text] = []
    for worker in timeline.workers:
        lines += [*([Text()] if lines else []), *_worker(worker, timeline, width)]
    return written(lines, colour=colour)


def _worker(worker: WorkerTimeline, timeline: Timeline, width: int) -> Iterator[Text]:
    more = f"  {route(worker)}, Temporal namespace {worker.temporal_namespace}"
    yield from heading(OUTCOMES[worker.outcome], worker.worker, worker.outcome, more, width)
    yield from labelled("rollout:", rollout_phrase(worker.rollout), width, "  ")
    yield from labelled("sunset:", sunset_phrase(worker), width, "  ")
    real = " (--snapshot begins with the present state)" if timeline.is_usual else ""
    yield from labelled("begins:", f"{beginning(worker, timeline)}{real}", width, "  ")
    assumed = ", ".join(f"{phrase} ({option})" for phrase, option in assumptions(worker, timeline))
    yield from labelled("assumed:", assumed, width, "  ")
    for note in worker.notes:
        yield from wrapped(Text.assemble(("note: ", "bold yellow"), note), width, "  ", "    ")
    yield Text()
    columns = ("offset", *(["time (UTC)"] if timeline.begins else []), "version", "what happens")
    yield from table(columns, list(_rows(worker, timeline.begins)), width, "  ")
    yield Text()
    yield Text("  in short:", "bold")
    for sentence in summary(worker):
        yield from wrapped(Text(sentence), width, "    ")


def _rows(worker: WorkerTimeline, begins: datetime | None) -> Iterator[list[Text | str]]:
    before: Event | None = None
    for event in worker.events:
        is_later = before is None or event.at != before.at
        moment = begins + event.at if begins else None
        if moment and (before is None or begins is None or (begins + before.at).date() != moment.date()):
            yield ["", Text(f"{moment:%Y-%m-%d}", "dim"), "", ""]
        when = [offset(event.at), *([f"{moment:%H:%M:%S}"] if moment else [])]
        is_target = event.build_id == worker.target_build_id
        yield [
            *(when if is_later else [""] * len(when)),
            Text(version_name(event.build_id), "bold" if is_target else ""),
            Text(event.says, _STYLES.get(event.happening, "")),
        ]
        before = event
