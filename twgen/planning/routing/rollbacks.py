"""Whether a version was current until recently, so that traffic goes back to it at once."""

from datetime import datetime, timedelta

from twgen.model.temporal import Version, WorkerDeployment
from twgen.planning.version_status import WITH_LAST_CURRENT, release_of

CLOCKS_DIFFER = timedelta(minutes=5)
"""A time that is later than that is no time that was."""
_SAME_CHANGE = timedelta(seconds=5)
"""Two times within it belong to one change of routing."""


def left_lately(version: Version, temporal: WorkerDeployment, now: datetime, window: timedelta) -> bool:
    """It was current, is older than the current version, and was left for that within the window."""
    routing = temporal.routing
    current_id = routing.current.build_id if routing.current else None
    current = next((other for other in temporal.versions if other.build_id == current_id), None)
    # of the current version it would be true too, by its own times
    if version is current or not version.created_at or not current or not current.created_at:
        return False
    current_since = routing.current.since if routing.current else None
    was_current = version.last_current_at is not None or was_replaced_when_deactivated(version, temporal)
    if not was_current or version.created_at > current.created_at:
        return False
    # when a ramp to it ended it was deactivated too, but nothing became current then
    became_current = (current_since, *(other.last_current_at for other in temporal.versions))
    was_replaced = any(_together(version.last_deactivated_at, became) for became in became_current)
    times = (version.last_current_at, version.last_deactivated_at if was_replaced else None)
    left = max((time for time in times if time), default=None)
    return left is not None and -CLOCKS_DIFFER <= now - left <= window


def was_replaced_when_deactivated(version: Version, temporal: WorkerDeployment) -> bool:
    """It was current until the present current version took its place, on a server that tells no more."""
    release, current = release_of(temporal.server_version), temporal.routing.current
    tells_no_more = release is not None and release < WITH_LAST_CURRENT
    return tells_no_more and current is not None and _together(version.last_deactivated_at, current.since)


def _together(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= _SAME_CHANGE
