"""A plan as text that a person reads in a terminal or a log."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from twgen.model.plan import Plan, RoutingPlan, VersionAction, VersionPlan, WorkerPlan
from twgen.reporting.laid_out import PHASES, apart, laid_out, warning
from twgen.reporting.words import change_words, replicas_words

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
    workers = apart(_worker(worker, plan.now) for worker in plan.workers)
    return laid_out([*workers, *map(warning, plan.warnings)], colour=colour, width=width)


def _worker(worker: WorkerPlan, now: datetime) -> RenderableType:
    spec, routing = worker.versions.spec, worker.routing
    sign, style = PHASES[routing.phase]
    title = Text.assemble(
        (f"{sign} {spec.worker_deployment}", f"bold {style}"),
        (f"  {routing.phase}", style),
        f"  target {spec.build_id}, Temporal namespace {spec.temporal_namespace}",
    )
    details: list[RenderableType] = [_next(routing, now, worker.manager), *_gates(worker), _versions(worker)]
    details += map(warning, worker.versions.warnings)
    return Group(title, Padding(Group(*details), (0, 0, 0, 2)))


def _next(routing: RoutingPlan, now: datetime, manager: str) -> Text:
    claim = f", claiming it from {manager or 'nobody'}" if routing.claim_manager else ""
    due = f" (due {_due(routing.due_at, now)})" if routing.due_at else ""
    return Text.assemble(("next: ", "bold"), f"{change_words(routing)}{claim}: {routing.because}{due}")


def _due(due_at: datetime, now: datetime) -> str:
    day = "" if due_at.date() == now.date() else f"{due_at:%Y-%m-%d} "
    return f"{day}{due_at:%H:%M:%S} UTC"


def _gates(worker: WorkerPlan) -> Iterator[Text]:
    for gate in worker.gates:
        yield Text.assemble(
            ("gate: ", "bold"),
            f"start {gate.workflow_type} on task queue {gate.task_queue} ({gate.workflow_id})",
        )


def _versions(worker: WorkerPlan) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column in ("version", "status", "action", "replicas", "because"):
        table.add_column(column, overflow="fold", no_wrap=column != "because")
    for version in worker.versions.versions:
        table.add_row(*_row(version, worker.versions.spec.build_id))
    return table


def _row(version: VersionPlan, target: str) -> tuple[RenderableType, ...]:
    style = _ACTIONS[version.action]
    return (
        Text(version.build_id, "bold" if version.build_id == target else ""),
        version.status.value,
        Text(version.action.value, style),
        Text(replicas_words(version), justify="right"),
        version.because,
    )
