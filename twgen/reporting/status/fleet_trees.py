"""Many rollouts as trees for a terminal, from the statuses that they wrote in their cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from rich.text import Text

from twgen.model.plan import Phase, RoutingAction
from twgen.model.status import AttachedState, RolloutStatus
from twgen.model.temporal import VersionStatus
from twgen.model.times import parse_time
from twgen.planning.sentences import clock_time, described_change, plain_percentage, spoken
from twgen.reporting.layout import ALARM, STYLES, labelled, warning, wrapped
from twgen.reporting.plan.phrases import SIGNS
from twgen.reporting.printable import printable
from twgen.reporting.status.phrases import percentage_text, status_phrase
from twgen.reporting.status.tree import STATES
from twgen.reporting.status.trees import Block, Drawn, Layout, Tree, in_columns, trees_text

_TROUBLES = {AttachedState.MISSING, AttachedState.FAILING}
_Document = Mapping[str, Any]


def fleet_text(
    statuses: Sequence[RolloutStatus], strays: Sequence[str], now: datetime, layout: Layout
) -> str:
    """A tree for each rollout; `strays` are lines about objects that are no longer rendered."""
    trees = [
        Tree(
            printable(status.worker),
            status.phase,
            bool(status.failing),
            partial(_drawn, status, now, layout.width),
        )
        for status in statuses
    ]
    return trees_text(trees, strays, layout)


def _drawn(status: RolloutStatus, now: datetime, width: int) -> Drawn:
    """The tree; without the version data if another release or a person wrote it in another form."""
    try:
        return _of(status, now, width)
    except Exception:  # noqa: BLE001 - a broken ConfigMap of one worker must not hide the others
        unread = "the version data in its status cannot be read"
        return _of(replace(status, document={}, failing=status.failing or unread), now, width)


def _of(status: RolloutStatus, now: datetime, width: int) -> Drawn:
    worker: _Document = next(iter(status.document.get("workers") or ()), {})
    return Drawn([*_head(status, worker, now, width)], [*_versions(worker, now, width)])


def _head(status: RolloutStatus, worker: _Document, now: datetime, width: int) -> Iterator[Text]:
    sign, style = ALARM if status.failing else (SIGNS[status.phase], STYLES[status.phase])
    why = f" ({status.reason})" if status.phase is Phase.BLOCKED else ""
    namespace = worker.get("temporalNamespace")
    title = Text.assemble(
        (f"{sign} {printable(status.worker)}", f"bold {style}"),
        (printable(f"  {status.phase}{why} for {spoken(now - status.since)}"), style),
        (printable(f"  Temporal namespace {namespace}") if namespace else "", "dim"),
    )
    yield from wrapped(title, width, "", "  ")
    if status.failing:
        yield from wrapped(Text(printable(status.failing), ALARM[1]), width, "  ")
    owner = (worker.get("owner") or {}).get("identity")
    of_text = style if status.phase is Phase.BLOCKED else ""
    for name, text in (
        ("target", f"{status.target}: {status.message}"),
        ("next", _next(worker.get("next"), now)),
        ("owner", owner),
    ):
        if text:
            said = Text(printable(text), style if name == "next" else of_text if name == "target" else "")
            yield from labelled(name, said, width, "  ", len("target"))
    for text in worker.get("warnings") or ():
        yield from warning(printable(text), width, "  ")


def _next(change: _Document | None, now: datetime) -> str:
    if not change:
        return ""
    described = described_change(RoutingAction(change["action"]), change["buildID"], change["percentage"])
    if not change["at"]:
        return f"{described} now"
    at = parse_time(change["at"])
    return f"{described} in {spoken(at - now)} ({clock_time(at, now)})"


def _versions(worker: _Document, now: datetime, width: int) -> Iterator[Block]:
    versions: Sequence[_Document] = worker.get("versions") or ()
    rows = [_cells(version, now) for version in versions]
    if (share := worker.get("unversionedPercentage")) is not None:
        rows.append([Text("unversioned workers"), Text(percentage_text(share)), Text(), Text(), Text()])
    for index, line in enumerate(in_columns(rows, width)):
        troubles = _troubles(versions[index]) if index < len(versions) else ()
        yield [line, *(Text(printable(trouble), "red") for trouble in troubles)]


def _cells(version: _Document, now: datetime) -> list[Text]:
    status, share, pods = VersionStatus(version["status"]), version["percentage"], version["pods"]
    since = parse_time(version["since"]) if version["since"] else None
    are_missing = pods and pods["available"] < pods["wanted"]
    of_pods = f"{pods['available']}/{pods['wanted']} pods" if pods else ""
    return [
        Text(printable(version["buildID"]), "bold" if version["isTarget"] else ""),
        Text(percentage_text(None if share is None else plain_percentage(share))),
        Text(status_phrase(status, since, version["openWorkflows"], now), STATES.get(status, "dim")),
        Text(of_pods, "yellow" if are_missing else ""),
        Text("◀ target" if version["isTarget"] else "", "bold"),
    ]


def _troubles(version: _Document) -> Iterator[str]:
    pods = version["pods"] or {}
    if stalled := pods.get("stalled"):
        yield f"its Deployment cannot progress: {stalled}"
    if problem := pods.get("problem"):
        yield f"its newest Pod {problem}"
    for item in version["attached"]:
        if item["state"] in _TROUBLES:
            yield f"{item['kind']} {item['name']}: {item['message']}"
