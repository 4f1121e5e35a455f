"""Interprets Temporal's fields: the status of a version, its share, and its periods in the routing.

During one period (called a `stay` in names), a version is ramping, is current, or has no traffic. A mark in
the version's metadata can expire with the period in which the mark was made.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from twgen.model.temporal import RampingVersion, Routing, Version, VersionStatus, WorkerDeployment
from twgen.versioning.names import Lifetime, Mark, MarkKey, read_mark

IN_ROUTING = frozenset({VersionStatus.CURRENT, VersionStatus.RAMPING})
"""Versions with these statuses get new workflows."""
LOOKS_IDLE = frozenset({VersionStatus.INACTIVE, VersionStatus.DRAINED})
"""With these statuses, Temporal reports no workflows, but pinned workflows may still exist."""
UNREGISTERED = frozenset({VersionStatus.NOT_REGISTERED, VersionStatus.CREATED})
"""None of the workers of a version with one of these statuses has polled yet."""
HAD_TRAFFIC = frozenset({VersionStatus.DRAINING, VersionStatus.DRAINED})
"""Versions with these statuses got new workflows in the past."""
_MAY_BE_STALE = {VersionStatus.INACTIVE, VersionStatus.UNSPECIFIED}
_WITHOUT_WORK = LOOKS_IDLE | {VersionStatus.NOT_REGISTERED}
"""Only for results of `status_of`, which returns Draining for an Inactive version that was active."""
WITH_LAST_CURRENT = (1, 30)
"""The first server release that reports when a version became current."""
CLOCKS_DIFFER = timedelta(minutes=5)
"""How much the clocks of two computers may differ. Times further in the future are invalid."""
_SAME_CHANGE = timedelta(seconds=5)
"""Two times that differ by at most this belong to the same routing change."""
_SAME_MOMENT = timedelta(seconds=1)
"""A server's next response may report the same moment a few milliseconds earlier or later."""
ALL_TRAFFIC = 100
"""All new workflows, in percent."""


def status_of(build_id: str, version: Version | None, temporal: WorkerDeployment | None) -> VersionStatus:
    """The status of a version. If Temporal contradicts itself, the status is Draining, which is safe.

    `version` is None if Temporal does not list the version.
    """
    routing = temporal.routing if temporal else Routing()
    if routing.current and routing.current.build_id == build_id:
        return VersionStatus.CURRENT
    if routing.ramping and routing.ramping.build_id == build_id:
        return VersionStatus.RAMPING
    if not version:
        return VersionStatus.NOT_REGISTERED
    drainage = version.drainage.status if version.drainage else None
    if (
        version.status in IN_ROUTING
        or (version.status in _MAY_BE_STALE and ever_active(version))
        or drainage is VersionStatus.DRAINING
        or (version.status is VersionStatus.DRAINED and drainage is VersionStatus.UNSPECIFIED)
        or (version.status is VersionStatus.DRAINED and _was_active_since(version))
        or (version.status is VersionStatus.INACTIVE and drainage is not None)
    ):
        return VersionStatus.DRAINING
    return version.status


def may_have_work(status: VersionStatus, version: Version | None) -> bool:
    """Whether workflows may run on a version with this status.

    `version` is None if Temporal does not list it. No workflow can run on a version that Temporal does not
    know, although the version may still register soon.
    """
    return status not in _WITHOUT_WORK or (version is not None and bool(version.open_workflows))


def ever_active(version: Version) -> bool:
    """Whether the version has ever been current or ramping, so that workflows may run on it."""
    return any((version.first_activated_at, version.last_current_at, version.last_deactivated_at))


def _was_active_since(version: Version) -> bool:
    """Whether the version was created, or got or lost traffic, after the time at which it drained."""
    drained = version.drainage.changed_at if version.drainage else None
    active = (version.first_activated_at, version.last_current_at, version.last_deactivated_at)
    return drained is not None and any(time > drained for time in (version.created_at, *active) if time)


def routed_build_ids(temporal: WorkerDeployment | None) -> set[str]:
    """The versions that new workflows go to."""
    return {build_id for build_id in shares(temporal.routing if temporal else Routing()) if build_id}


def shares(routing: Routing) -> Mapping[str, float]:
    """The percentage of new workflows by build ID. The empty build ID means unversioned workers."""
    ramp = routing.ramping
    current = routing.current.build_id if routing.current else ""
    of_ramp = {ramp.build_id: ramp.percentage} if ramp else {}
    remaining = 100 - sum(of_ramp.values())
    return of_ramp | {current: remaining + of_ramp.get(current, 0)}


def release_of(version: str) -> tuple[int, ...]:
    """The numbers in a server's version, such as (1, 29, 1) for `v1.29.1-rc1`, or empty if it has none."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, match[1].split("."))) if match else ()


def stay_began(version: Version, temporal: WorkerDeployment) -> datetime | None:
    """When a version's current period in the routing began, or None if unknown.

    A ramping version's period begins with the ramp, and the server no longer reports earlier periods.
    """
    if ramp := _ramp(version, temporal):
        return ramp.since or ramp.percentage_changed_at
    moments = (version.created_at, _became_current(version, temporal), version.last_deactivated_at)
    return max(filter(None, moments), default=None)


def is_retired(version: Version, temporal: WorkerDeployment) -> bool:
    """Whether a mark in this version's metadata, still in force, says that a person retired the worker."""
    mark = read_mark(MarkKey.RETIRED, (version.metadata or {}).get(MarkKey.RETIRED))
    return mark is not None and is_in_force(mark, version, temporal)


def is_in_force(mark: Mark, version: Version, temporal: WorkerDeployment) -> bool:
    """Whether a mark in a version's metadata is still in force."""
    if mark.key.lifetime is Lifetime.RETIREMENT:
        # `retire` writes the mark before it moves the traffic to unversioned workers
        has_traffic = temporal.routing.current or temporal.routing.ramping
        is_over = _has_returned(mark, version, temporal) or _had_traffic_since(mark, temporal)
        return not (has_traffic or is_over)
    if status_of(version.build_id, version, temporal) is VersionStatus.CURRENT:
        return False
    if mark.key.lifetime is Lifetime.RETURN:
        return not _has_returned(mark, version, temporal)
    # these marks may speed up a rollout, so they must name the current period, as twgen's own marks do
    return _names_stay(mark, stay_began(version, temporal))


def recently_current(version: Version, temporal: WorkerDeployment, now: datetime, window: timedelta) -> bool:
    """Whether a version that is older than the current version was itself replaced within the window."""
    routing = temporal.routing
    current_id = routing.current.build_id if routing.current else None
    current = next((other for other in temporal.versions if other.build_id == current_id), None)
    # the current version's own times would match
    if version is current or not version.created_at or not current or not current.created_at:
        return False
    current_since = routing.current.since if routing.current else None
    was_current = version.last_current_at is not None or _was_replaced_when_deactivated(version, temporal)
    if not was_current or version.created_at > current.created_at:
        return False
    # a version is also deactivated when its ramp ends, but then no version becomes current
    became_current = (current_since, *(other.last_current_at for other in temporal.versions))
    was_replaced = any(_together(version.last_deactivated_at, moment) for moment in became_current)
    times = (version.last_current_at, version.last_deactivated_at if was_replaced else None)
    left_at = max((time for time in times if time), default=None)
    return left_at is not None and -CLOCKS_DIFFER <= now - left_at <= window


def _was_replaced_when_deactivated(version: Version, temporal: WorkerDeployment) -> bool:
    """Whether the current version replaced this one, for servers that do not report `last_current_at`."""
    release, current = release_of(temporal.server_version), temporal.routing.current
    if not release or release >= WITH_LAST_CURRENT or current is None:
        return False
    return _together(version.last_deactivated_at, current.since)


def _names_stay(mark: Mark, stay: datetime | None) -> bool:
    """Whether the mark names the period that began at this time."""
    return mark.stay is not None and stay is not None and abs(mark.stay - stay) <= _SAME_MOMENT


def _may_be_of_stay(mark: Mark, stay: datetime | None) -> bool:
    """Whether the mark may have been made in the period that began at this time.

    If the mark does not name its period, this depends on the time at which the mark was made.
    """
    is_by_time = not mark.stay and mark.at is not None and stay is not None and mark.at >= stay
    return stay is None or is_by_time or _names_stay(mark, stay)


def _has_returned(mark: Mark, version: Version, temporal: WorkerDeployment) -> bool:
    """Whether the version, after the mark was made, became current, or lost its traffic and ramps again."""
    made_in = mark.made_in
    if made_in is None or _may_be_of_stay(mark, stay_began(version, temporal)):
        return False
    after = made_in + _SAME_MOMENT
    became_current = _became_current(version, temporal) or _was_made_current(version)
    left_at = version.last_deactivated_at
    if became_current and became_current > after:
        return True
    if not _ramp(version, temporal):
        return False
    # a pause made at exactly the time of the first ramp counts as made before that ramp
    was_active = version.first_activated_at is not None and version.first_activated_at <= made_in
    return bool(left_at and left_at > after) or (mark.was_ramping if mark.stay else was_active)


def _had_traffic_since(mark: Mark, temporal: WorkerDeployment) -> bool:
    """Whether any version became current or got its first traffic after the mark was made."""
    # the loss of traffic proves nothing: `retire` itself takes the traffic away just after it makes the mark
    first = (version.first_activated_at for version in temporal.versions)
    last = (_became_current(version, temporal) for version in temporal.versions)
    newest = max(filter(None, (*first, *last)), default=None)
    # the mark's period says nothing about other versions, so its time is compared, and clocks may differ
    return mark.at is not None and newest is not None and newest > mark.at + CLOCKS_DIFFER


def _ramp(version: Version, temporal: WorkerDeployment) -> RampingVersion | None:
    ramp = temporal.routing.ramping
    return ramp if ramp and ramp.build_id == version.build_id else None


def _became_current(version: Version, temporal: WorkerDeployment) -> datetime | None:
    """The latest time at which the version may have become current, or None if Temporal reports none."""
    current = temporal.routing.current
    since = current.since if current and current.build_id == version.build_id else None
    # servers before 1.30 only report when a version was deactivated
    replaced_at = version.last_deactivated_at if _was_replaced_when_deactivated(version, temporal) else None
    return since or version.last_current_at or replaced_at


def _was_made_current(version: Version) -> datetime | None:
    """When twgen made the version current, from twgen's mark. Servers before 1.30 do not report this time."""
    mark = read_mark(MarkKey.MOVED_BY, (version.metadata or {}).get(MarkKey.MOVED_BY))
    return mark.stay if mark and mark.details.get("percentage") == ALL_TRAFFIC else None


def _together(first: datetime | None, second: datetime | None) -> bool:
    return first is not None and second is not None and abs(first - second) <= _SAME_CHANGE
