"""Lengths of time, and times counted back from the present of the tests."""

from datetime import datetime, timedelta

from tests.strategies import NOW

SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))


def ago(length: timedelta) -> datetime:
    """The time this long before now."""
    return NOW - length
