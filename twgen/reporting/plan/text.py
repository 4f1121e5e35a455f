"""A plan as text that a person reads in a terminal or a log."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from rich.text import Text

from twgen.model.plan import Plan, VersionAction, WorkerPlan
from twgen.planning.sentences import clock_time
from twgen.planning.worker_status import urgency
from twgen.reporting.layout import (
    ALARM,
    heading,
    labelled,
    lines_of_rows,
    name_cell,
    sign_and_style,
    table,
    warning,
    workers_line,
    wrapped,
    written,
)
from twgen.reporting.plan.phrases import (
    COLUMNS,
    actions_of_versions,
    actions_phrase,
    folded_warnings,
    judgement_phrase,
    next_with_reason,
    phase_with_reason,
    records_phrase,
    several,
    version_rows,
)
from twgen.reporting.printable import printable_copy

_ACTIONS = {
    VersionAction.CREATE: "green",
    VersionAction.KEEP: "",
    VersionAction.UPDATE: "cyan",
    VersionAction.SCALE_DOWN: "yellow",
    VersionAction.DROP: "red",
    VersionAction.NONE: "red",
}


def plan_text(plan: Plan, *, colour: bool, width: int, detailed: bool = True) -> str:
    """The plan, worker by worker: what happens next and why, then every version; `width` in characters.

    Without details, a line for each of several workers, the most urgent last.
    """
    plan = printable_copy(plan)
    lines: list[Text] = []
    if len(plan.workers) > 1 and not detailed:
        by_urgency = sorted(
            plan.workers,
            key=lambda worker: urgency(worker.routing.phase, is_alarm=bool(worker.unserved)),
            reverse=True,
        )
        warned = sum(len([*folded_warnings(worker.each_version, worker.warnings)]) for worker in by_urgency)
        lines += workers_line([worker.routing.phase for worker in by_urgency], width, warned)
        lines += lines_of_rows([_cells(worker, plan.now) for worker in by_urgency], width)
    else:
        for worker in plan.workers:
            lines += [*([Text()] if lines else []), *_worker(worker, plan.now, width)]
    for text in plan.warnings:
        lines += warning(text, width)
    return written(lines, colour=colour)


def _cells(worker: WorkerPlan, now: datetime) -> list[Text]:
    """What one line says of a worker: its name, its phase, and what comes next and why."""
    look = sign_and_style(worker.routing.phase, worker.unserved)
    change = worker.unserved or _next(worker, now)
    actions = Counter(version.action for version in worker.versions.versions)
    del actions[VersionAction.KEEP]
    counts = ", ".join(f"{actions[action]} {action}" for action in _ACTIONS if actions[action])
    return [
        name_cell(look, worker.spec.worker_deployment),
        Text(phase_with_reason(worker.routing.phase, worker.routing.reason), look[1]),
        Text(counts),
        Text(change),
    ]


def _next(worker: WorkerPlan, now: datetime) -> str:
    due_at = worker.routing.due_at
    due = f" (due {clock_time(due_at, now)})" if due_at else ""
    return f"{next_with_reason(worker)}{due}"


def _worker(worker: WorkerPlan, now: datetime, width: int) -> Iterator[Text]:
    spec, routing = worker.spec, worker.routing
    look = sign_and_style(routing.phase, worker.unserved)
    more = f"  target {spec.build_id}, Temporal namespace {spec.temporal_namespace}"
    yield from heading(
        look, spec.worker_deployment, phase_with_reason(routing.phase, routing.reason), more, width
    )
    if worker.unserved:
        yield from wrapped(Text(worker.unserved, ALARM[1]), width, "  ")
    yield from labelled("next:", _next(worker, now), width, "  ")
    for gate in worker.gates:
        starts = f"start {gate.workflow_type} on task queue {gate.task_queue} ({gate.workflow_id})"
        yield from labelled("gate:", starts, width, "  ")
    for judged in worker.judgements:
        yield from labelled("analysis:", judgement_phrase(judged), width, "  ")
    for scheduled_actions in actions_of_versions(worker.scheduled_actions):
        yield from labelled("drains:", actions_phrase(scheduled_actions, now), width, "  ")
    if worker.old_records:
        yield from labelled("prunes:", records_phrase(worker), width, "  ")
    rows: list[list[Text | str]] = []
    for versions, (status, action, replicas, because) in version_rows(worker):
        names = Text(several([version.build_id for version in versions]))
        names.stylize("bold" if versions[0].build_id == spec.build_id else "")
        size = Text(replicas, justify="right")
        rows.append([names, status, Text(action, _ACTIONS[versions[0].action]), size, because])
    yield from table(COLUMNS, rows, width, "  ")
    for text in folded_warnings(worker.each_version, worker.warnings):
        yield from warning(text, width, "  ")
