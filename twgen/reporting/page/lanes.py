"""The lanes of a worker on the page: each of its versions through time, as far as its status tells."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from twgen.model.temporal import VersionStatus
from twgen.model.times import parse_time
from twgen.planning.sentences import counted, in_days, plain_percentage

_ACTIONS = {"ScaleDown": "no pods", "Drop": "gone"}
"""What becomes of a version's Deployment, by what its sunset brings."""
_STAGES = {status.value: status.value.lower() for status in VersionStatus}
_MOST_MOMENTS = 12
_NOW = "now"


class Stretch(NamedTuple):
    """A time during which a version stays as it is."""

    says: str
    """Empty: nothing is known of it."""
    stage: str
    """The status of Temporal in small letters, or `gone`."""
    columns: int
    is_to_come: bool


class Lane(NamedTuple):
    """One version through time."""

    build_id: str
    is_target: bool
    stretches: tuple[Stretch, ...]


class Lanes(NamedTuple):
    """The versions of a worker through time, in columns from one moment to the next."""

    columns: tuple[str, ...]
    """When each begins, in words; the first one when the oldest thing that is known began."""
    lanes: tuple[Lane, ...]


class _Change(NamedTuple):
    """What a version is from a moment on."""

    at: datetime
    says: str
    stage: str


def lanes_of(worker: Mapping[str, Any], now: datetime) -> Lanes:
    """The lanes of a worker of a Status document."""
    changes = {
        version["buildID"]: [
            change._replace(at=change.at.replace(microsecond=0)) for change in _changes(worker, version, now)
        ]
        for version in worker.get("versions", ())
    }
    moments = {now, *(change.at for found in changes.values() for change in found)}
    ordered = sorted(moments)
    # of many versions the latest past and the nearest future are told
    past = [moment for moment in ordered if moment < now][-_MOST_MOMENTS // 2 :]
    to_come = [moment for moment in ordered if moment > now][: _MOST_MOMENTS // 2]
    shown = [*past, now, *to_come]
    lanes = tuple(
        Lane(
            version["buildID"],
            version["isTarget"],
            tuple(_stretches(changes[version["buildID"]], shown, now)),
        )
        for version in worker.get("versions", ())
    )
    return Lanes(tuple(_when(moment, now) for moment in shown), lanes)


def _changes(worker: Mapping[str, Any], version: Mapping[str, Any], now: datetime) -> Iterator[_Change]:
    status, since = version["status"], version["since"]
    stage = _STAGES.get(status, "unknown")
    yield _Change(min(parse_time(since), now) if since else now, _stands(version, now), stage)
    for ending in worker.get("draining", ()):
        if ending["buildID"] == version["buildID"] and not ending["begun"]:
            types = ", ".join(ending["workflowTypes"]) or "all workflows"
            yield _Change(max(parse_time(ending["at"]), now), f"{ending['action']}: {types}", stage)
    change = worker.get("next")
    if change and change["at"] and change["buildID"] == version["buildID"]:
        is_all = change["action"] == "SetCurrent"
        share = "all of the traffic" if is_all else f"{plain_percentage(change['percentage'])} %"
        wanted = VersionStatus.CURRENT if is_all else VersionStatus.RAMPING
        yield _Change(parse_time(change["at"]), share, wanted.value.lower())
    if (later := version.get("next")) and later["action"] in _ACTIONS:
        says = _ACTIONS[later["action"]]
        yield _Change(parse_time(later["at"]), says, "gone" if later["action"] == "Drop" else stage)


def _stands(version: Mapping[str, Any], now: datetime) -> str:
    words = [version["status"]]
    if version["percentage"] is not None:
        words.append(f"{plain_percentage(version['percentage'])} %")
    if pods := version["pods"]:
        words.append(f"{pods['available']}/{pods['wanted']} pods")
    if version["openWorkflows"]:
        held = counted(version["openWorkflows"], "open workflow")
        oldest = version["oldestOpenAt"]
        words.append(f"{held}, the oldest {in_days(now - parse_time(oldest))} old" if oldest else held)
    return ", ".join(words)


def _stretches(changes: list[_Change], shown: list[datetime], now: datetime) -> Iterator[Stretch]:
    """From change to change, and anew from now on; the last one stays so."""
    begins = {0, shown.index(now), *(shown.index(change.at) for change in changes if change.at in shown)}
    ordered = sorted(begins)
    for begin, end in zip(ordered, [*ordered[1:], len(shown)], strict=True):
        told = [change for change in changes if change.at <= shown[begin]]
        last = max(told, key=lambda change: change.at, default=None)
        yield Stretch(
            says=last.says if last else "",
            stage=last.stage if last else "unknown",
            columns=end - begin,
            is_to_come=shown[begin] >= now,
        )


def _when(moment: datetime, now: datetime) -> str:
    if moment == now:
        return _NOW
    length = in_days(abs(now - moment))
    return f"{length} ago" if moment < now else f"in {length}"
