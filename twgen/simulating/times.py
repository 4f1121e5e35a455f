"""Arithmetic of moments that stays within the calendar."""

from datetime import UTC, datetime, timedelta

FOREVER = datetime.max.replace(tzinfo=UTC)
"""A moment that never comes."""


def later(moment: datetime, length: timedelta) -> datetime:
    """The moment that much later; FOREVER when the calendar has no such day."""
    try:
        return moment + length
    except OverflowError:
        return FOREVER


def first_check(begin: datetime, interval: timedelta, not_before: datetime | None) -> datetime:
    """The first of the moments one, two, three intervals after the beginning that is not before the limit."""
    first = later(begin, interval)
    if not_before is None or not_before <= first:
        return first
    return later(first, -(-(not_before - first) // interval) * interval)


def next_tick(begin: datetime, interval: timedelta, after: datetime) -> datetime:
    """The first moment after `after` that is a whole number of intervals from the beginning."""
    return later(begin, ((after - begin) // interval + 1) * interval)
