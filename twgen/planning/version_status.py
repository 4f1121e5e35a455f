"""The meaning of Temporal's fields: a version's status if they disagree, its share, a server's release."""

import re
from collections.abc import Mapping

from twgen.model.temporal import Routing, Version, VersionStatus, WorkerDeployment

IN_ROUTING = frozenset({VersionStatus.CURRENT, VersionStatus.RAMPING})
"""New workflows go to versions with these statuses."""
LOOKS_IDLE = frozenset({VersionStatus.INACTIVE, VersionStatus.DRAINED})
"""Temporal reports that nothing runs on such a version, but does not check all workflows pinned to it."""
UNREGISTERED = frozenset({VersionStatus.NOT_REGISTERED, VersionStatus.CREATED})
"""No worker of such a version has polled yet."""
HAD_TRAFFIC = frozenset({VersionStatus.DRAINING, VersionStatus.DRAINED})
"""New workflows went to versions with these statuses, and no longer do."""
_MAY_BE_STALE = {VersionStatus.INACTIVE, VersionStatus.UNSPECIFIED}
_WITHOUT_WORK = {VersionStatus.NOT_REGISTERED, VersionStatus.INACTIVE, VersionStatus.DRAINED}
"""By `status_of`: there, a version that was ever active is Draining, never Inactive."""
WITH_LAST_CURRENT = (1, 30)
"""The first release of a server that reports when a version became current."""


def status_of(build_id: str, version: Version | None, temporal: WorkerDeployment | None) -> VersionStatus:
    """The status of a version (None: unlisted); to be safe, Draining if Temporal contradicts itself."""
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
    """Workflows may run on a version (None: unlisted) that has this status.

    None run on a version that Temporal does not know; the age of its Deployment shows whether it may soon.
    """
    return status not in _WITHOUT_WORK or (version is not None and bool(version.open_workflows))


def ever_active(version: Version) -> bool:
    """The version has been current or ramping, so workflows may run on it."""
    return any((version.first_activated_at, version.last_current_at, version.last_deactivated_at))


def _was_active_since(version: Version) -> bool:
    """The version was created, or got or lost traffic, after the time at which Temporal says it drained."""
    drained = version.drainage.changed_at if version.drainage else None
    times = (
        version.created_at,
        version.first_activated_at,
        version.last_current_at,
        version.last_deactivated_at,
    )
    return drained is not None and any(time > drained for time in times if time)


def routed_build_ids(temporal: WorkerDeployment | None) -> set[str]:
    """The versions that new workflows go to."""
    routing = temporal.routing if temporal else Routing()
    ends = (routing.current, routing.ramping)
    return {end.build_id for end in ends if end and end.build_id}


def shares(routing: Routing) -> Mapping[str, float]:
    """The percentage of new workflows that each build ID gets; empty: unversioned workers."""
    ramp = routing.ramping
    current = routing.current.build_id if routing.current else ""
    of_ramp = {ramp.build_id: ramp.percentage} if ramp else {}
    remaining = 100 - sum(of_ramp.values())
    return of_ramp | {current: remaining + of_ramp.get(current, 0)}


def release_of(server_version: str) -> tuple[int, int] | None:
    """The major and the minor number of a server's release; None: it does not report them."""
    match = re.match(r"(\d+)\.(\d+)(?:\.|$)", server_version)
    return (int(match[1]), int(match[2])) if match else None
