"""Pages about a fleet of workers or a simulation, each as one self-contained HTML document."""

from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from twgen.model.operator import Links
from twgen.model.plan import Phase
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import Verb
from twgen.model.status import RolloutStatus, StepPlace, StepView, WorkerReport
from twgen.model.timeline import Timeline
from twgen.model.times import format_time
from twgen.planning.requests import advised
from twgen.planning.sentences import clock_time, plain_percentage, spoken, version_name
from twgen.planning.worker_status import URGENCY, has_failed, urgency
from twgen.reporting.page.lanes import Lanes, lanes_of
from twgen.reporting.phrases import SIGNS
from twgen.reporting.printable import printable
from twgen.reporting.status.lines import command_of, request_phrase, trouble_phrases
from twgen.reporting.timeline.picture import timeline_svg
from twgen.reporting.timeline.summary import OUTCOMES, offset, route

if TYPE_CHECKING:
    from jinja2 import Environment


Offers = Callable[[RolloutStatus], Collection[Verb]]
"""Returns the verbs for a worker's buttons, according to the worker's status."""
_NO_LINKS = Links()
_COLUMNS = {
    "Phase": "Settled: nothing is left to do. Moving: a change is due. Waiting: for time or a person."
    " Blocked: a person must act.",
    "Worker": "The namespace and the name of the worker.",
    "Target": "The build ID of the newest version in Git.",
    "New workflows": "The share of new workflows that each version gets, and the steps of a ramping target.",
    "For": "The time since the phase or the reason last changed.",
    "Reason": "The reason for the phase, any failures, and the command that continues the rollout.",
}
"""The columns on a fleet's page, and their descriptions."""
_MEANING = {
    Verb.PAUSE: "keep the share of {target} as it is until it is resumed",
    Verb.RESUME: "let the rollout of {target} continue",
    Verb.ABORT: "end the ramp of {target}, and send it no traffic until it is retried",
    Verb.PROMOTE: "take the next step of {target} now",
    Verb.RETRY: "let the rollout of {target} continue, and repeat failed gates and replays",
}


class Share(NamedTuple):
    """A version's share of new workflows."""

    build_id: str
    percentage: float
    begins: float
    """Where the share's bar begins: the sum of the shares before it, in percent."""
    kind: str
    """`target`, `other` or `unversioned`."""


class Step(NamedTuple):
    """A step of a ramping target."""

    share: str
    place: str
    """`done`, `present` or `ahead`."""
    word: str
    """The condition in addition to the pause, such as `gate` or `person`, or empty if there is none."""


class RampSteps(NamedTuple):
    """The steps of a ramping target."""

    says: str
    """A description of the current step."""
    steps: tuple[Step, ...]


def fleet_page(  # noqa: PLR0913 - the parts of a page
    statuses: Sequence[RolloutStatus],
    now: datetime,
    offers: Offers = lambda _: (),
    links: Links = _NO_LINKS,
    *,
    title: str = "",
    refreshed_every: float = 0,
) -> str:
    """The page about a fleet of workers. `refreshed_every` is in seconds, and 0 means no refresh."""
    fleet = _fleet(statuses, now, offers, links)
    return _page(title=title or "Temporal workers", now=now, refreshed_every=refreshed_every, **fleet)


def fleet_part(
    statuses: Sequence[RolloutStatus],
    now: datetime,
    offers: Offers = lambda _: (),
    links: Links = _NO_LINKS,
) -> str:
    """The part of a fleet's page that a refresh replaces."""
    return _environment().get_template("fleet.html").render(now=now, **_fleet(statuses, now, offers, links))


def simulation_page(timeline: Timeline) -> str:
    """The page about a simulation, with a picture and a table of events for each worker."""
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
    if not environment.loader:
        raise AssertionError("the environment loads from this package")
    for kind, name in (("style", "page.css"), ("script", "page.js")):
        text = values[kind] = environment.loader.get_source(environment, name)[0]
        # the page's Content-Security-Policy contains this hash, so a browser rejects injected text
        values[f"{kind}_hash"] = f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
    return environment.get_template("page.html").render(**values)


def _fleet(
    statuses: Sequence[RolloutStatus], now: datetime, offers: Offers, links: Links
) -> Mapping[str, Any]:
    rows = sorted((_row(status, now, offers(status), links) for status in statuses), key=itemgetter("order"))
    phases = [status.phase for status in statuses]
    numbers = [(SIGNS[phase], phase, phases.count(phase)) for phase in URGENCY if phase in phases]
    # if there are many workers, settled workers are collapsed into one line
    folded = [row for row in rows if row["look"] == "quiet"] if len(rows) > 200 else []
    shown = [row for row in rows if row["look"] != "quiet"] if folded else rows
    return {"rows": shown, "folded": folded, "numbers": numbers, "columns": _COLUMNS.items()}


def _row(status: RolloutStatus, now: datetime, verbs: Collection[Verb], links: Links) -> Mapping[str, Any]:
    """The values for the template `row.html`, which shows a worker."""
    worker = status.details
    # if the intent cannot be read, the traffic is unknown
    is_read = status.reason != RoutingReason.INVALID_INTENT
    alarms = [status.failing or (worker.unserved if worker else ""), *(_troubles(worker) if worker else ())]
    is_failing = any(alarms) or has_failed(status.phase, status.reason)
    is_quiet = status.phase is Phase.SETTLED and not is_failing
    return {
        "order": (*urgency(status.phase, is_alarm=any(alarms)), status.since, status.worker),
        "look": "failing" if is_failing else "quiet" if is_quiet else "",
        "worker": status.worker,
        "phase": status.phase,
        "sign": SIGNS[status.phase],
        "alarms": [alarm for alarm in alarms if alarm],
        "target": status.target,
        "shares": _shares(worker, status.target) if worker and is_read else (),
        "steps": _steps(worker, status.reason) if worker and is_read else None,
        "length": spoken(now - status.since),
        "since": status.since,
        "reason": status.reason,
        "says": status.message,
        "request": request_phrase(status, now),
        "command": command_of(verb, status.worker) if (verb := advised(status)) else "",
        "buttons": [(verb, _MEANING[verb].format(target=status.target)) for verb in verbs],
        "links": list(_links(worker, links)) if worker else [],
        "report": worker,
        "lanes": lanes_of(worker, now) if worker and is_read else Lanes((), ()),
        "changes": _changes(worker, now) if worker else (),
    }


def _links(worker: WorkerReport, links: Links) -> Iterator[tuple[str, str]]:
    """The names and URLs of a worker's pages in Temporal and Argo CD."""
    if links.temporal and worker.temporal_namespace:
        namespace, name = quote(worker.temporal_namespace, safe=""), quote(worker.worker, safe="")
        # newer releases of Temporal's UI redirect from this path to /workers/deployments
        path = f"namespaces/{namespace}/worker-deployments/{name}"
        yield "Temporal", f"{links.temporal.rstrip('/')}/{path}"
    moves = (version.moved_by for version in worker.versions if version.moved_by)
    application = next((moved.application for moved in moves if moved.application), "")
    if links.argocd and application:
        # Argo CD joins the namespace and the name of an application with an underscore
        path = "/".join(quote(part, safe="") for part in application.partition("_") if part not in {"_", ""})
        yield "Argo CD", f"{links.argocd.rstrip('/')}/applications/{path}"


def _shares(worker: WorkerReport, target: str) -> Sequence[Share]:
    drawn, begins = [], 0.0
    shares = [(version.build_id, version.percentage) for version in worker.versions]
    shares.append(("", worker.unversioned_percentage))
    for build_id, percentage in sorted(shares, key=lambda share: share[0] != target):
        if percentage:
            kind = "target" if build_id == target else "other" if build_id else "unversioned"
            drawn.append(Share(version_name(build_id), percentage, begins, kind))
            begins += percentage
    return drawn


def _troubles(worker: WorkerReport) -> Iterator[str]:
    """The problems of the target and of other versions that get new workflows."""
    for version in worker.versions:
        if version.is_target or version.percentage is not None:
            for trouble in trouble_phrases(version, worker.worker.partition("/")[0]):
                yield f"{version.build_id}: {trouble}"


def _steps(worker: WorkerReport, reason: str) -> RampSteps | None:
    """The target's steps, or None if the target is not ramping."""
    steps = tuple(
        Step(f"{step.percentage:g}", step.place.lower(), _word(step, reason)) for step in worker.steps
    )
    places = [step.place for step in worker.steps]
    if StepPlace.PRESENT not in places:
        return RampSteps(f"before step 1 of {len(steps)}", steps) if steps else None
    number = places.index(StepPlace.PRESENT) + 1
    present = steps[number - 1]
    word = f", {present.word}" if present.word else ""
    return RampSteps(f"step {number} of {len(steps)}: {present.share}%{word}", steps)


def _word(step: StepView, reason: str) -> str:
    """A step's condition in addition to its pause: `paused`, a gate, a person's promotion, or empty."""
    if step.place is StepPlace.PRESENT and reason == RoutingReason.PAUSED:
        return "paused"
    words = ["gate"] if step.gate and step.place is StepPlace.AHEAD else []
    if step.until_promoted and step.place is not StepPlace.DONE:
        words.append("person")
    return ", ".join(words)


def _changes(worker: WorkerReport, now: datetime) -> Sequence[tuple[str, str]]:
    """The time and a description of each version's last change, newest first."""
    changes = []
    for version in worker.versions:
        says = f"{version.build_id}: {version.status}"
        if moved := version.moved_by:
            share = plain_percentage(version.percentage or 0)
            by = moved.application or moved.identity
            says = f"{by} sent {share}% of new workflows to {version.build_id}"
        if version.since:
            changes.append((version.since, says))
    return [(clock_time(at, now), says) for at, says in sorted(changes, reverse=True)]


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("twgen.reporting", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["time"] = format_time
    environment.filters["percent"] = lambda value: f"{plain_percentage(value)}%"
    return environment
