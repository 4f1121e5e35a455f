"""Whether the target is a version that traffic left only lately, and returns to at once."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twgen.planning.routing.target import Target

_SAME_CHANGE = timedelta(seconds=5)
"""Two times within it belong to one change of routing."""
_FIRST_WITH_LAST_CURRENT = (1, 30)


def is_rollback(target: "Target") -> bool:
    """The target was current before, is older than the current version, and was left lately.

    What is not known makes a plan slower: without a current version, or its age, there is no rollback.
    """
    version, current = target.version, target.versions.get(target.current or "")
    if not version or not version.created_at or not current or not current.created_at:
        return False
    current_since = target.temporal.routing.current.since if target.temporal.routing.current else None
    was_current = version.last_current_at is not None or (
        _release(target.temporal.server_version) < _FIRST_WITH_LAST_CURRENT
        and _together(version.last_deactivated_at, current_since)
    )
    if not was_current or version.created_at > current.created_at:
        return False
    # when a ramp to it ended it was deactivated too, but nothing became current then
    became_current = (current_since, *(other.last_current_at for other in target.temporal.versions))
    was_replaced = any(_together(version.last_deactivated_at, became) for became in became_current)
    times = (version.last_current_at, version.last_deactivated_at if was_replaced else None)
    left = max((time for time in times if time), default=None)
    return left is not None and target.now - left <= target.spec.policy.rollback_window


def auto_upgrade_to_count(target: "Target") -> tuple[str, ...]:
    """The build IDs whose open auto-upgrade workflows a rollback would move back to the target's code."""
    return (target.current,) if target.current and target.is_rollback else ()


def _together(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= _SAME_CHANGE


def _release(server_version: str) -> tuple[int, ...]:
    """The major and minor number; that of no server when it is not known."""
    numbers = [part for part in server_version.split(".")[:2] if part.isdigit()]
    return tuple(int(part) for part in numbers) if len(numbers) > 1 else _FIRST_WITH_LAST_CURRENT
