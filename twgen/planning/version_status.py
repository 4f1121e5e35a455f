"""What Temporal's fields mean: a version's status when they disagree, its share, the release of a server."""

import re
from collections.abc import Mapping

from twgen.model.temporal import Routing, Version, VersionStatus, WorkerDeployment

IN_ROUTING = frozenset({VersionStatus.CURRENT, VersionStatus.RAMPING})
"""New workflows go to a version of these."""
LOOKS_IDLE = frozenset({VersionStatus.INACTIVE, VersionStatus.DRAINED})
"""Temporal says that nothing runs on it, but does not look for everything that is pinned to it."""
_MAY_BE_STALE = {VersionStatus.INACTIVE, VersionStatus.UNSPECIFIED}
_WITHOUT_WORK = {VersionStatus.NOT_REGISTERED, VersionStatus.INACTIVE, VersionStatus.DRAINED}
"""As `status_of` has them: what was ever active is Draining there, and never Inactive."""
WITH_LAST_CURRENT = (1, 30)
"""The first release of a server that reports when a version became current."""


def status_of(build_id: str, version: Version | None, temporal: WorkerDeployment | None) -> VersionStatus:
    """The status of a version (None: unlisted); Draining where Temporal contradicts itself, to be careful."""
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
    """Temporal does not say of a version (None: unlisted), of this status, that nothing runs on it.

    One that Temporal does not know has none; the age of its Deployment shows whether it may know it soon.
    """
    return status not in _WITHOUT_WORK or (version is not None and bool(version.open_workflows))


def ever_active(version: Version) -> bool:
    """The version has been current or ramping, so workflows may run on it."""
    return any((version.first_activated_at, version.last_current_at, version.last_deactivated_at))


def _was_active_since(version: Version) -> bool:
    """The version was made, traffic came to it, or left it, after it is said to have drained."""
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
    taken = {ramp.build_id: ramp.percentage} if ramp else {}
    rest = 100 - sum(taken.values())
    return taken | {current: rest + taken.get(current, 0)}


def release_of(server_version: str) -> tuple[int, int] | None:
    """The major and the minor number of a server; None: it does not say them."""
    found = re.match(r"(\d+)\.(\d+)(?:\.|$)", server_version)
    return (int(found[1]), int(found[2])) if found else None
