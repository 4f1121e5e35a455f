"""The state of many rollouts, from the statuses that they wrote in their cluster."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from twgen.model.reasons.routing import RoutingReason
from twgen.model.requests import Verb
from twgen.model.status import Ownership, RolloutStatus
from twgen.model.times import format_time
from twgen.planning.diagnosis.findings import findings_of_strays
from twgen.planning.requests import has_ended
from twgen.planning.sentences import plain_percentage, spoken
from twgen.reporting.printable import printable
from twgen.versioning.names import TWGEN_API

Drawing = TypeVar("Drawing")

_NO_REASON = "its status gives no reason"
_RECENT = timedelta(hours=1)
"""People are shown the answer to a request for so long."""


def fleet_lines(statuses: Sequence[RolloutStatus], now: datetime) -> list[str]:
    """A line for each rollout: its phase, for how long, and why."""
    return [printable("; ".join(_clauses(status, now))) for status in statuses]


def _clauses(status: RolloutStatus, now: datetime) -> Iterator[str]:
    length = spoken(now - status.since)
    yield f"{status.worker}: {status.phase} for {length}, target {status.target}{_shares(status)}"
    yield f"{status.reason}: {status.message}"
    yield from _waiting_phrases(status, now)


def if_readable(status: RolloutStatus, draw: Callable[[RolloutStatus], Drawing]) -> Drawing:
    """The drawing; without the version data if another release or a person wrote it in another form."""
    try:
        return draw(status)
    except Exception:  # noqa: BLE001 - a broken ConfigMap of one worker must not hide the others
        unread = "the version data in its status cannot be read"
        return draw(replace(status, document={}, failing=status.failing or unread))


def request_phrase(status: RolloutStatus, now: datetime) -> str:
    """What people requested of a rollout, and how that was answered; empty: nothing, or long ago."""
    phrases = _waiting_phrases(status, now) or [
        f"{answer.request}: {answer.state}: {answer.message}"
        for answer in status.answers
        if abs(now - answer.request.at) < _RECENT
    ]
    return "; ".join(phrases)


def _waiting_phrases(status: RolloutStatus, now: datetime) -> list[str]:
    """What is requested and not answered yet, and what is no request."""
    phrases = []
    for pending in status.pending:
        if request := pending.waiting:
            is_left = has_ended(status) or status.reason == RoutingReason.ROLLOUT_NOT_BEGUN
            state = when_answered(status, request.verb) if is_left else "its Job has not taken it yet"
            state = "it is being carried out" if pending.answer_to_it else state
            phrases.append(f"{request} {spoken(now - request.at)} ago: {state}")
        elif not pending.request:
            phrases.append(pending.wrong)
    return phrases


def when_answered(status: RolloutStatus, verb: Verb) -> str:
    """When a request is answered, as far as the status tells."""
    if status.reason == RoutingReason.ROLLOUT_NOT_BEGUN:
        return "its Job answers once it has begun"
    if has_ended(status):
        command = command_of(verb, status.worker)
        return f"its Job has ended: `twgen tick` takes the request, or run `{command}`"
    return "its Job answers within seconds"


def command_of(verb: Verb, worker: str) -> str:
    """The command that requests it of a rollout."""
    namespace, _, name = worker.partition("/")
    return f"twgen {verb.lower()} worker/{shlex.quote(name)} -n {shlex.quote(namespace)}"


def troubles(version: Mapping[str, Any]) -> Iterator[str]:
    """The problems of the pods and attached objects of a version of a Status document."""
    pods = version["pods"] or {}
    if stalled := pods.get("stalled"):
        yield f"its Deployment cannot progress: {stalled}"
    if problem := pods.get("problem"):
        yield f"its newest Pod {problem}"
    for item in version["attached"]:
        if item["message"]:
            yield f"{item['kind']} {item['name']}: {item['message']}"


def _request(status: RolloutStatus) -> dict[str, Any] | None:
    """The last request, and its answer."""
    pending = next((each for each in status.pending if each.waiting), None)
    answer = pending.answer_to_it if pending else next(iter(status.answers), None)
    request = pending.request if pending else answer.request if answer else None
    if not request:
        return None
    return {
        "id": request.id,
        "verb": request.verb.value,
        "targetBuildID": request.target,
        "by": request.by,
        "at": format_time(request.at),
        "state": answer.state.value if answer else "Pending",
        "message": answer.message if answer else "",
    }


def stray_lines(strays: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each worker that no intent names any more, with its remaining Deployments."""
    return [
        printable(f"{finding.about}: {finding.says}: {finding.because}; {finding.remedy}")
        for finding in findings_of_strays(strays)
    ]


def _shares(status: RolloutStatus) -> str:
    """The versions that have the traffic, as far as that was read."""
    share = "" if status.percentage is None else f" at {plain_percentage(status.percentage)}%"
    return share if status.current is None else f"{share}, current {status.current or 'none'}"


def fleet_document(
    statuses: Sequence[RolloutStatus], now: datetime, strays: Sequence[str] = ()
) -> dict[str, Any]:
    """The Status document of all rollouts, each as its rollout wrote it; `strays` are lines."""
    return {
        "apiVersion": TWGEN_API,
        "kind": "Status",
        "now": format_time(now),
        "workers": [
            {**worker, "request": _request(status)}
            for status in statuses
            for worker in status.document.get("workers") or [_unread(status)]
        ],
        "warnings": [
            f"{status.worker}: {status.phase}: {status.message}"
            for status in statuses
            if not status.document.get("workers")
        ]
        + list(strays),
    }


def _unread(status: RolloutStatus) -> dict[str, Any]:
    """A worker of the Status document whose rollout wrote no details, such as one that has not begun."""
    return {
        "worker": status.worker,
        "temporalNamespace": "",
        "targetBuildID": status.target,
        "phase": status.phase.value,
        "reason": status.reason,
        "because": status.message or _NO_REASON,
        "unserved": "",
        "next": None,
        "waitsUntil": None,
        "owner": {"identity": "", "relation": Ownership.UNKNOWN.value},
        "lastModifierIdentity": "",
        "steps": [],
        "gates": [],
        "analysis": [],
        "draining": [],
        "unversionedPercentage": None,
        "versionCount": None,
        "versions": [],
        "warnings": [],
    }
