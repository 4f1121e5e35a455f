"""A worker's lanes on the page, which show the worker's versions over time, according to its status."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from twgen.model.plan import RoutingAction, VersionAction
from twgen.model.status import VersionReport, WorkerReport
from twgen.model.temporal import VersionStatus
from twgen.planning.sentences import in_days, plain_percentage, version_name
from twgen.reporting.status.lines import workflows_phrase

_ACTIONS = {VersionAction.SCALE_DOWN: "no pods", VersionAction.DROP: "gone"}
"""The state of a version's Deployment after each sunset action."""
_UNVERSIONED = version_name(None)
_MOST_MOMENTS = 12


class Stretch(NamedTuple):
    """A period in which a version does not change."""

    says: str
    """The cell's text, or empty if the state is unknown."""
    stage: str
    """The version's status in lower case, `gone`, or `unknown`."""
    columns: int
    is_to_come: bool


class VersionLane(NamedTuple):
    """The lane of one version, or of unversioned workers."""

    build_id: str
    is_target: bool
    stretches: tuple[Stretch, ...]


class Lanes(NamedTuple):
    """A worker's versions over time. Each column is the period between two moments."""

    columns: tuple[str, ...]
    """The beginning of each column's period, in words, from the oldest to the latest."""
    lanes: tuple[VersionLane, ...]


_Event = tuple[datetime, str]
"""The time and the description of a change to a version's pods or workflows."""


class _Traffic(NamedTuple):
    """Each version's percentage of new workflows, starting at a certain moment. The sum is 100."""

    at: datetime
    shares: Mapping[str, float]


def lanes_of(worker: WorkerReport, now: datetime) -> Lanes:
    """A worker's lanes.

    A status contains only the last traffic change and the next traffic change. Therefore, at each moment,
    either all shares are known or no share is known.
    """
    now, versions = _whole(now), worker.versions
    traffic = _traffic(worker, now)
    events = {version.build_id: list(_events(worker, version, now)) for version in versions}
    begins = [_whole(version.since) for version in versions if version.since]
    happens = [at for of_version in events.values() for at, _ in of_version]
    moments = {*begins, *happens, *(part.at for part in traffic)}
    # if there are too many moments, only show the moments closest to the present
    past = sorted(moment for moment in moments if moment < now)[-_MOST_MOMENTS // 2 :]
    to_come = sorted(moment for moment in moments if moment > now)[: _MOST_MOMENTS // 2]
    shown = [*past, now, *to_come]
    lanes = [
        VersionLane(
            version.build_id,
            version.is_target,
            _stretches([_cell(version, events[version.build_id], traffic, at, now) for at in shown]),
        )
        for version in versions
    ]
    if any(_UNVERSIONED in part.shares for part in traffic):
        cells = []
        for moment in shown:
            share = _share(_UNVERSIONED, traffic, moment)
            says = f"{plain_percentage(share)}%" if share is not None else ""
            cells.append(Stretch(says, "ramping" if says else "unknown", 1, moment >= now))
        lanes.append(VersionLane(_UNVERSIONED, is_target=False, stretches=_stretches(cells)))
    return Lanes(tuple(_when(moment, now) for moment in shown), tuple(lanes))


def _traffic(worker: WorkerReport, now: datetime) -> list[_Traffic]:
    """The known traffic: since the last traffic change, and after the next traffic change."""
    taking = [version for version in worker.versions if version.percentage is not None]
    shares = {version.build_id: version.percentage or 0.0 for version in taking}
    without_version = worker.unversioned_percentage
    if without_version is not None:
        shares[_UNVERSIONED] = without_version
    begins = [_whole(version.since) for version in taking if version.since]
    # a status does not contain the time at which unversioned workers got their share
    is_known = bool(taking) and len(begins) == len(taking) and without_version is None
    known = [_Traffic(min(now, max(begins)) if is_known else now, shares)] if shares else []
    change = worker.next
    if change and change.at and _whole(change.at) > now:
        current = [version.build_id for version in taking if version.status is VersionStatus.CURRENT]
        share = 100.0 if change.action is RoutingAction.SET_CURRENT else change.percentage or 0.0
        after = {(current or [_UNVERSIONED])[0]: 100.0 - share, change.build_id or _UNVERSIONED: share}
        taken = {build_id: part for build_id, part in after.items() if part}
        known.append(_Traffic(_whole(change.at), taken))
    return known


def _events(worker: WorkerReport, version: VersionReport, now: datetime) -> Iterator[_Event]:
    for scheduled in worker.draining:
        if scheduled.build_id == version.build_id and not scheduled.is_begun:
            types = ", ".join(scheduled.workflow_types) or "all workflows"
            yield max(_whole(scheduled.at), now), f"{scheduled.action}: {types}"
    if (later := version.next) and later.action in _ACTIONS:
        yield max(_whole(later.at), now), _ACTIONS[later.action]


def _cell(
    version: VersionReport, events: list[_Event], traffic: list[_Traffic], at: datetime, now: datetime
) -> Stretch:
    is_to_come = at >= now
    if at < now and not (version.since and _whole(version.since) <= at):
        return Stretch("", "unknown", 1, is_to_come)
    _, happens = max((event for event in events if event[0] <= at), default=(at, ""))
    if happens == _ACTIONS[VersionAction.DROP]:
        return Stretch(happens, happens, 1, is_to_come)
    share, status = _share(version.build_id, traffic, at), version.status
    if traffic and now < traffic[-1].at <= at:
        status = _status_after(version, traffic)
    words = [status.value, *([f"{plain_percentage(share)}%"] if share is not None else [])]
    if at == now:
        words += [f"{version.pods.available}/{version.pods.wanted} pods"] if version.pods else []
        words.append(workflows_phrase(version, now))
    words.append(happens)
    return Stretch(", ".join(filter(None, words)), status.lower(), 1, is_to_come)


def _status_after(version: VersionReport, traffic: list[_Traffic]) -> VersionStatus:
    after = traffic[-1].shares.get(version.build_id)
    if after is None:
        return version.status if version.percentage is None else VersionStatus.DRAINING
    if version.status is VersionStatus.CURRENT or after == 100.0:
        return VersionStatus.CURRENT
    return VersionStatus.RAMPING


def _share(build_id: str, traffic: list[_Traffic], at: datetime) -> float | None:
    known = [part for part in traffic if part.at <= at]
    return known[-1].shares.get(build_id) if known else None


def _stretches(cells: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """Merge each group of equal adjacent cells into one cell."""
    return tuple(same._replace(columns=sum(cell.columns for cell in cells)) for same, cells in groupby(cells))


def _whole(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def _when(moment: datetime, now: datetime) -> str:
    if moment == now:
        return "now"
    length = in_days(abs(now - moment))
    return f"{length} ago" if moment < now else f"in {length}"
