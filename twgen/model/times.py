"""Times as Kubernetes and twgen's documents write them, RFC 3339 in UTC, and sums within the calendar."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

TIME_PATTERN = (
    "^(19[7-9]|2[01][0-9])[0-9]-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$(?!\n)"
)
"""The pattern of a time in schemas: from 1970 to 2199, so that no sum of a time and a delay overflows."""

SUCH_AS = "a time from 1970 to 2199 such as 2026-11-21T12:00:00Z"
"""The text in messages about a time that does not match."""
_TIME = re.compile(TIME_PATTERN)

FOREVER = datetime.max.replace(tzinfo=UTC)
"""A moment that never comes."""


@lru_cache  # one moment changes several things
def parse_time(text: str) -> datetime:
    """The moment of `2026-11-21T12:00:00Z`; ValueError for anything else, a time without zone included."""
    if not _TIME.match(text):
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def format_time(moment: datetime) -> str:
    """The moment to the microsecond, shortest form."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def later(moment: datetime, length: timedelta) -> datetime:
    """The moment so much later; FOREVER if the calendar has no such day."""
    try:
        return moment + length
    except OverflowError:
        return FOREVER
