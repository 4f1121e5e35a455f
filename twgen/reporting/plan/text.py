"""A plan as text that a person reads in a terminal or a log; and what its Markdown and a status say alike."""

from collections.abc import Iterator
from datetime import datetime

from rich.text import Text

from twgen.model.plan import Plan, RoutingPlan, VersionAction, VersionPlan, WorkerPlan
from twgen.planning.sentences import change_in_words, clock_time, counted
from twgen.reporting.layout import ALARM, PHASES, folded, labelled, table, warning, wrapped, written
from twgen.reporting.printable import printable_copy

COLUMNS = ("version", "status", "action", "replicas", "because")
_NAMED = 3
"""Versions of a folded row that are named."""
_ACTIONS = {
    VersionAction.CREATE: "green",
    VersionAction.KEEP: "",
    VersionAction.UPDATE: "cyan",
    VersionAction.SCALE_DOWN: "yellow",
    VersionAction.DROP: "red",
    VersionAction.NONE: "red",
}


def plan_text(plan: Plan, *, colour: bool, width: int) -> str:
    """The plan, worker by worker: what happens next and why, then every version; `width` in characters."""
    plan = printable_copy(plan)
    lines: list[Text] = []
    for worker in plan.workers:
        lines += [*([Text()] if lines else []), *_worker(worker, plan.now, width)]
    for text in plan.warnings:
        lines += warning(text, width)
    return written(lines, colour=colour)


def _worker(worker: WorkerPlan, now: datetime, width: int) -> Iterator[Text]:
    spec, routing = worker.spec, worker.routing
    sign, style = ALARM if worker.unserved else PHASES[routing.phase]
    title = Text.assemble(
        (f"{sign} {spec.worker_deployment}", f"bold {style}"),
        (f"  {routing.phase}", style),
        f"  target {spec.build_id}, Temporal namespace {spec.temporal_namespace}",
    )
    yield from wrapped(title, width, "", "  ")
    if worker.unserved:
        yield from wrapped(Text(worker.unserved, ALARM[1]), width, "  ")
    due = f" (due {clock_time(routing.due_at, now)})" if routing.due_at else ""
    yield from labelled("next:", f"{next_with_reason(worker)}{due}", width, "  ")
    for gate in worker.gates:
        starts = f"start {gate.workflow_type} on task queue {gate.task_queue} ({gate.workflow_id})"
        yield from labelled("gate:", starts, width, "  ")
    rows: list[list[Text | str]] = []
    for versions, (status, action, replicas, because) in version_rows(worker):
        names = Text(several([version.build_id for version in versions]))
        names.stylize("bold" if versions[0].build_id == spec.build_id else "")
        size = Text(replicas, justify="right")
        rows.append([names, status, Text(action, _ACTIONS[versions[0].action]), size, because])
    yield from table(COLUMNS, rows, width, "  ")
    for text in folded_warnings(worker):
        yield from warning(text, width, "  ")


def next_with_reason(worker: WorkerPlan) -> str:
    """The next change of traffic, who must first give the worker up for it, and why."""
    routing = worker.routing
    before = f"take the worker over from {worker.manager} and " if worker.manager else "claim the worker and "
    return f"{before if routing.claim_manager else ''}{next_change(routing)}, because {routing.because}"


def next_change(routing: RoutingPlan) -> str:
    """The next change of traffic, as an order."""
    return change_in_words(routing.action, routing.build_id, routing.percentage)


def replicas_cell(version: VersionPlan) -> str:
    """The replicas of a version: as they are, or from what to what."""
    live = version.live.replicas if version.live else None
    if version.action is VersionAction.DROP:
        return f"{live} → gone"
    if not version.is_rendered:
        return "" if live is None else str(live)
    if version.replicas is None:
        return "left out" if live is None else f"{live} (left out)"
    return str(version.replicas) if live in {None, version.replicas} else f"{live} → {version.replicas}"


def version_rows(worker: WorkerPlan) -> Iterator[tuple[list[VersionPlan], tuple[str, ...]]]:
    """The versions of each row and its other cells; those that are alike share one when they are too many."""
    target = worker.spec.build_id

    def likeness(version: VersionPlan) -> object:
        is_target = version.build_id == target
        return None if is_target else (version.status, version.action, replicas_cell(version), version.reason)

    for group in folded(worker.versions.versions, likeness):
        first, *others = group
        because = first.because
        if any(version.because != because for version in others):
            because = f"{because} ({first.build_id})"
        yield group, (first.status.value, first.action.value, replicas_cell(first), because)


def several(names: list[str]) -> str:
    """A few names, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more:,} more"


def folded_warnings(worker: WorkerPlan) -> Iterator[str]:
    """The warnings, with those in one that say the same of one version each: its row has its name already."""
    because = {version.build_id: version.because for version in worker.versions.versions}
    alike: dict[tuple[str, str], list[str]] = {}
    for text in worker.versions.warnings:
        name, _, said = text.partition(": ")
        reason = because.get(name, "")
        rest = said.removeprefix(reason) if reason else said
        alike.setdefault((rest, "") if name in because else (text, text), []).append(text)
    for texts in alike.values():
        if len(texts) <= _NAMED:
            yield from texts
        else:
            yield f"{counted(len(texts), 'version')}, such as {texts[0]}"
