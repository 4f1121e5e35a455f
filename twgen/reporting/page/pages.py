"""The page: a fleet of workers, or a simulation, as one HTML document that needs nothing else."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from twgen.model.plan import Phase
from twgen.model.reasons.routing import RoutingReason
from twgen.model.status import RolloutStatus
from twgen.model.timeline import Timeline
from twgen.model.times import parse_time
from twgen.planning.sentences import clock_time, plain_percentage, spoken
from twgen.planning.worker_status import URGENCY, urgency
from twgen.reporting.page.lanes import Lanes, lanes_of
from twgen.reporting.plan.phrases import SIGNS
from twgen.reporting.printable import printable
from twgen.reporting.timeline.phrases import OUTCOMES, offset, route, version_name
from twgen.reporting.timeline.picture import timeline_svg

if TYPE_CHECKING:
    from jinja2 import Environment


class Share(NamedTuple):
    """A version's part of the new workflows, in percent."""

    build_id: str
    percentage: float
    begins: float
    """The shares before it together."""
    kind: str
    """`target`, `other` or `unversioned`."""


class _Shown(NamedTuple):
    """A row of the page, and the values that it is sorted by."""

    html: Any
    is_alarm: bool
    phase: Phase
    since: datetime
    worker: str


class Row(NamedTuple):
    """A worker of the fleet, as the page shows it."""

    worker: str
    phase: Phase
    sign: str
    alarm: str
    """The most urgent problem; empty: none."""
    target: str
    shares: tuple[Share, ...]
    length: str
    """How long it has been in this phase."""
    since: datetime
    reason: str
    says: str
    document: Mapping[str, Any]
    """Its part of a Status document; empty: none."""
    lanes: Lanes
    changes: tuple[tuple[str, str], ...]
    """The time and the text of the last change of each version, newest first."""


def fleet_page(statuses: Sequence[RolloutStatus], now: datetime, *, refreshed_every: float = 0) -> str:
    """The page of many workers as they are now; `refreshed_every` is in seconds, 0: never."""
    return _page(title="Temporal workers", now=now, refreshed_every=refreshed_every, **_fleet(statuses, now))


def fleet_part(statuses: Sequence[RolloutStatus], now: datetime) -> str:
    """The part of that page that a refresh replaces."""
    return _environment().get_template("fleet.html").render(now=now, **_fleet(statuses, now))


def simulation_page(timeline: Timeline) -> str:
    """The page of a simulated rollout: a picture of each worker, and what happens when."""
    alone = [
        {
            "worker": worker,
            "outcome": f"{OUTCOMES[worker.outcome][0]} {worker.outcome}",
            "route": route(worker),
            "picture": timeline_svg(replace(timeline, workers=(worker,)), titled=False),
            "events": [
                (offset(event.at), version_name(event.build_id), event.says) for event in worker.events
            ],
        }
        for worker in timeline.workers
    ]
    return _page(title="Simulated rollouts", now=None, refreshed_every=0, timelines=alone)


def _page(**values: Any) -> str:
    environment = _environment()
    style, script = (_source(name) for name in ("page.css", "page.js"))
    hashes = {"style_hash": _hash(style), "script_hash": _hash(script)}
    return environment.get_template("page.html").render(style=style, script=script, **hashes, **values)


def _fleet(statuses: Sequence[RolloutStatus], now: datetime) -> Mapping[str, Any]:
    rows = sorted((_shown(status, now) for status in statuses), key=_urgency)
    numbers = [(phase, sum(row.phase is phase for row in rows)) for phase in URGENCY]
    return {"rows": rows, "numbers": [(SIGNS[phase], phase, number) for phase, number in numbers if number]}


def _urgency(row: _Shown) -> tuple[object, ...]:
    return (*urgency(row.phase, is_alarm=row.is_alarm), row.since, row.worker)


def _shown(status: RolloutStatus, now: datetime) -> _Shown:
    """A worker's row; without the version data if another release or a person wrote it in another form."""
    from markupsafe import Markup

    template = _environment().get_template("row.html")
    try:
        row = _row(status, now)
        html = template.render(row=row)
    except Exception:  # noqa: BLE001 - a broken ConfigMap of one worker must not hide the others
        unread = "the version data in its status cannot be read"
        row = _row(replace(status, document={}, failing=status.failing or unread), now)
        html = template.render(row=row)
    return _Shown(Markup(html), bool(row.alarm), row.phase, row.since, row.worker)  # noqa: S704 - rendered here


def _row(status: RolloutStatus, now: datetime) -> Row:
    document: Mapping[str, Any] = next(iter(status.document.get("workers") or ()), {})
    # if the intent cannot be read, its traffic is unknown
    is_read = status.reason != RoutingReason.INVALID_INTENT
    return Row(
        worker=status.worker,
        phase=status.phase,
        sign=SIGNS[status.phase],
        alarm=status.failing or document.get("unserved") or "",
        target=status.target,
        shares=tuple(_shares(document, status.target)) if is_read else (),
        length=spoken(now - status.since),
        since=status.since,
        reason=status.reason,
        says=status.message,
        document=document,
        lanes=lanes_of(document, now) if is_read else Lanes((), ()),
        changes=tuple(_changes(document, now)),
    )


def _shares(document: Mapping[str, Any], target: str) -> Sequence[Share]:
    found, begins = [], 0.0
    shares = [(version["buildID"], version["percentage"]) for version in document.get("versions", ())]
    shares.append(("", document.get("unversionedPercentage")))
    for build_id, percentage in sorted(shares, key=lambda share: share[0] != target):
        if percentage:
            kind = "target" if build_id == target else "other" if build_id else "unversioned"
            found.append(Share(build_id or "unversioned workers", percentage, begins, kind))
            begins += percentage
    return found


def _changes(document: Mapping[str, Any], now: datetime) -> Sequence[tuple[str, str]]:
    found = []
    for version in document.get("versions", ()):
        if moved := version.get("movedBy"):
            share = plain_percentage(version["percentage"] or 0)
            by = moved["application"] or moved["identity"]
            found.append((moved["at"], f"{by} sent {share}% of new workflows to {version['buildID']}"))
        elif version["since"]:
            found.append((version["since"], f"{version['buildID']}: {version['status']}"))
    ordered = sorted((parse_time(at), says) for at, says in found if at)
    return [(clock_time(at, now), says) for at, says in reversed(ordered)]


def _source(name: str) -> str:
    environment = _environment()
    if not environment.loader:
        raise AssertionError("the environment loads from this package")
    return environment.loader.get_source(environment, name)[0]


def _hash(text: str) -> str:
    """The hash by which a browser runs only this text, whatever else the page contains."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _safe(value: Any) -> Any:
    """Text of the page that a person can read safely: no character hides or turns it."""
    return printable(value) if type(value) is str else value


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("twgen.reporting", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_safe,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda value: f"{plain_percentage(value)}%"
    return environment
