"""The state of many rollouts, from the statuses that they wrote in their cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from twgen.model.status import Ownership, RolloutStatus
from twgen.model.times import format_time
from twgen.planning.diagnosis.findings import findings_of_strays
from twgen.planning.sentences import plain_percentage, spoken
from twgen.reporting.printable import printable
from twgen.versioning.names import TWGEN_API

Drawing = TypeVar("Drawing")

_RECENT = timedelta(hours=1)
"""People are shown the answer to a request for so long."""


def fleet_lines(statuses: Sequence[RolloutStatus], now: datetime) -> list[str]:
    """A line for each rollout: its phase, for how long, and why."""
    return [
        printable(
            f"{status.worker}: {status.phase} for {spoken(now - status.since)}, target {status.target}"
            f"{_shares(status)}; {status.reason}: {status.message}"
            f"{f'; {request_phrase(status, now)}' if status.pending else ''}"
        )
        for status in statuses
    ]


def if_readable(status: RolloutStatus, draw: Callable[[RolloutStatus], Drawing]) -> Drawing:
    """The drawing; without the version data if another release or a person wrote it in another form."""
    try:
        return draw(status)
    except Exception:  # noqa: BLE001 - a broken ConfigMap of one worker must not hide the others
        unread = "the version data in its status cannot be read"
        return draw(replace(status, document={}, failing=status.failing or unread))


def request_phrase(status: RolloutStatus, now: datetime) -> str:
    """What a person requested of a rollout, and how that was answered; empty: nothing, or long ago."""
    pending, answer = status.pending, status.answer
    if pending and not pending.is_answered:
        if not pending.request:
            return pending.wrong
        age = spoken(now - pending.request.at)
        state = "it is being carried out" if pending.answer_to_it else "its Job has not taken it yet"
        return f"{pending.request} {age} ago: {state}"
    is_recent = answer is not None and abs(now - answer.request.at) < _RECENT
    return f"{answer.request}: {answer.state}: {answer.message}" if answer and is_recent else ""


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
    pending, answer = status.pending, status.answer
    request = (pending.request if pending else None) or (answer.request if answer else None)
    if not request:
        return None
    is_answered = answer is not None and answer.request.id == request.id
    return {
        "id": request.id,
        "verb": request.verb.value,
        "targetBuildID": request.target,
        "by": request.by,
        "at": format_time(request.at),
        "state": answer.state.value if answer and is_answered else "Pending",
        "message": answer.message if answer and is_answered else "",
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
        "because": status.message,
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
