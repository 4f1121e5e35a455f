"""Whether the target is a version that traffic left only lately, and returns to at once."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from twgen.model.world import Version
from twgen.planning.routing.target import Target

_SAME_CHANGE = timedelta(seconds=5)
"""Two times within it belong to one change of routing."""
_FIRST_WITH_LAST_CURRENT = (1, 30)


def is_rollback(target: Target) -> bool:
    """The target was current before, is older than the current version, and was left lately.

    What is not known makes a plan slower: without a current version, or its age, there is no rollback.
    """
    version = target.version
    if not version or not _was_current(target, version) or not _is_older(target, version):
        return False
    left = _left_at(target, version)
    return left is not None and target.now - left <= target.spec.policy.rollback_window


def auto_upgrade_to_count(target: Target) -> tuple[str, ...]:
    """The build IDs whose open auto-upgrade workflows a rollback would move back to the target's code."""
    return (target.current,) if target.current and is_rollback(target) else ()


def _was_current(target: Target, version: Version) -> bool:
    if version.last_current_at:
        return True
    current = target.temporal.routing.current
    older = _release(target.temporal.server_version) < _FIRST_WITH_LAST_CURRENT
    return older and current is not None and _together(version.last_deactivated_at, current.since)


def _is_older(target: Target, version: Version) -> bool:
    current = target.versions.get(target.current or "")
    if not current or not current.created_at or not version.created_at:
        return False
    return version.created_at <= current.created_at


def _left_at(target: Target, version: Version) -> datetime | None:
    left = version.last_deactivated_at
    replaced = any(_together(left, became) for became in _became_current(target))
    times = [version.last_current_at, left if replaced else None]
    return max((time for time in times if time), default=None)


def _became_current(target: Target) -> Iterator[datetime | None]:
    current = target.temporal.routing.current
    yield current.since if current else None
    yield from (version.last_current_at for version in target.temporal.versions)


def _together(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= _SAME_CHANGE


def _release(server_version: str) -> tuple[int, ...]:
    """The major and minor number; that of no server when it is not known."""
    numbers = [part for part in server_version.split(".")[:2] if part.isdigit()]
    return tuple(int(part) for part in numbers) if len(numbers) > 1 else _FIRST_WITH_LAST_CURRENT
