"""A status as a tree that a person reads in a terminal."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from rich.text import Text

from twgen.model.plan import Phase, VersionAction
from twgen.model.status import Status, VersionView, WorkerView
from twgen.model.temporal import VersionStatus
from twgen.planning.sentences import listed
from twgen.reporting.layout import ALARM, STYLES, labelled, warning, wrapped
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
    pods_phrase,
    state_phrase,
    target_phrase,
    trouble_phrases,
)
from twgen.reporting.status.trees import Block, Drawn, Layout, Tree, in_columns, trees_text

STATES = {
    VersionStatus.CURRENT: "green",
    VersionStatus.RAMPING: "cyan",
    VersionStatus.DRAINING: "yellow",
    VersionStatus.UNSPECIFIED: "yellow",
}
_ACTIONS = {VersionAction.NONE: "red", VersionAction.KEEP: "dim"}
_UNREGISTERED = {VersionStatus.NOT_REGISTERED, VersionStatus.CREATED}


def status_text(status: Status, layout: Layout) -> str:
    """The status, a tree for each worker, as `trees_text` lays them out."""
    status, width = printable_copy(status), layout.width

    def draw(worker: WorkerView) -> Drawn:
        return Drawn([*_head(worker, status.now, width)], [*_versions(worker, status.now, width)])

    trees = [
        Tree(
            worker.plan.spec.worker_deployment,
            worker.plan.routing.phase,
            bool(worker.plan.unserved),
            partial(draw, worker),
        )
        for worker in status.workers
    ]
    return trees_text(trees, status.warnings, layout)


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
    namespace = worker.plan.spec.namespace
    for index, line in enumerate(in_columns(rows, width)):
        block = [line]
        if index < len(groups):
            version = groups[index][0]
            block += (Text(trouble, "red") for trouble in trouble_phrases(version, namespace))
            if outlook := outlook_phrase(version, now):
                block.append(Text(outlook, _ACTIONS.get(version.plan.action, "yellow")))
            if ready := [f"{item.kind} {item.name}" for item in version.attached if item.is_ready]:
                block.append(Text(f"has {listed(ready)}", "dim"))
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
        Text(state_phrase(version, now) if len(group) == 1 else status.value, STATES.get(status, "dim")),
        Text(pods_phrase(version) if version.cluster_was_read else "", style),
        Text("◀ target" if version.is_target else "", "bold"),
    ]
