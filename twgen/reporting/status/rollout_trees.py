"""Rollouts and their versions as trees, from the statuses that they wrote in their cluster."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from rich.text import Text

from twgen.model.plan import Phase, RoutingAction
from twgen.model.status import RolloutStatus
from twgen.model.temporal import VersionStatus
from twgen.model.times import parse_time
from twgen.planning.sentences import clock_time, described_change, plain_percentage, spoken
from twgen.reporting.layout import heading, sign_and_style
from twgen.reporting.printable import printable
from twgen.reporting.status.fleet import if_readable, request_phrase, troubles
from twgen.reporting.status.lines import percentage_text, status_phrase
from twgen.reporting.status.trees import (
    STATE_STYLES,
    Drawn,
    Layout,
    Tree,
    head_lines,
    trees_text,
    version_blocks,
)

_Document = Mapping[str, Any]


def fleet_text(
    statuses: Sequence[RolloutStatus], strays: Sequence[str], now: datetime, layout: Layout
) -> str:
    """A tree for each rollout, from the statuses that they wrote in their cluster.

    `strays` are lines about objects that are no longer rendered.
    """
    trees = [
        Tree(
            printable(status.worker),
            status.phase,
            printable(status.failing),
            partial(if_readable, status, partial(_rollout, now=now, width=layout.width)),
            f"{status.phase} for {spoken(now - status.since)}",
            printable(f"{status.target}: {status.message}"),
            _number_of_warnings(status),
        )
        for status in statuses
    ]
    return trees_text(trees, strays, layout)


def _number_of_warnings(status: RolloutStatus) -> int:
    """Of a worker, by its status; 0 if another release or a person wrote that in another form."""
    worker = next(iter(status.document.get("workers") or ()), None)
    warnings = worker.get("warnings") if isinstance(worker, dict) else None
    return len(warnings) if isinstance(warnings, list) else 0


def _rollout(status: RolloutStatus, now: datetime, width: int) -> Drawn:
    worker: _Document = next(iter(status.document.get("workers") or ()), {})
    look = sign_and_style(status.phase, status.failing)
    style = look[1]
    is_blocked = status.phase is Phase.BLOCKED
    why = f" ({status.reason})" if is_blocked else ""
    namespace = worker.get("temporalNamespace")
    more = Text(printable(f"  Temporal namespace {namespace}") if namespace else "", "dim")
    state = printable(f"{status.phase}{why} for {spoken(now - status.since)}")
    title = heading(look, printable(status.worker), state, more, width)
    owner = (worker.get("owner") or {}).get("identity")
    labels = (
        ("target", printable(f"{status.target}: {status.message}"), style if is_blocked else ""),
        ("next", printable(_next(worker.get("next"), now)), style),
        ("owner", printable(owner or ""), ""),
        ("request", printable(request_phrase(status, now)), ""),
    )
    warnings = map(printable, worker.get("warnings") or ())
    head = [*title, *head_lines(printable(status.failing), labels, warnings, width)]
    versions = [
        (_cells_of(version, now), [Text(printable(trouble), "red") for trouble in troubles(version)])
        for version in worker.get("versions") or ()
    ]
    return head, version_blocks(versions, worker.get("unversionedPercentage"), width)


def _next(change: _Document | None, now: datetime) -> str:
    if not change:
        return ""
    described = described_change(RoutingAction(change["action"]), change["buildID"], change["percentage"])
    if not change["at"]:
        return f"{described} now"
    at = parse_time(change["at"])
    return f"{described} in {spoken(at - now)} ({clock_time(at, now)})"


def _cells_of(version: _Document, now: datetime) -> list[Text]:
    status, share, pods = VersionStatus(version["status"]), version["percentage"], version["pods"]
    since = parse_time(version["since"]) if version["since"] else None
    are_missing = pods and pods["available"] < pods["wanted"]
    of_pods = f"{pods['available']}/{pods['wanted']} pods" if pods else ""
    return [
        Text(printable(version["buildID"]), "bold" if version["isTarget"] else ""),
        Text(percentage_text(None if share is None else plain_percentage(share))),
        Text(status_phrase(status, since, version["openWorkflows"], now), STATE_STYLES.get(status, "dim")),
        Text(of_pods, "yellow" if are_missing else ""),
        Text("◀ target" if version["isTarget"] else "", "bold"),
    ]
