"""Times (RFC 3339 in UTC) and durations in documents, and additions that do not overflow.

Durations have Go's format: https://pkg.go.dev/time#ParseDuration.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache

from twgen.model.problem import quoted

TIME_PATTERN = (
    "^(19[7-9]|2[01][0-9])[0-9]-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$(?!\n)"
)
"""The pattern of a time in schemas: from 1970 to 2199, so that a time plus a delay never overflows."""

SUCH_AS = "a time from 1970 to 2199 such as 2026-11-21T12:00:00Z"
"""The end of the error message for a time that does not match the pattern."""
_TIME = re.compile(TIME_PATTERN)

FOREVER = datetime.max.replace(tzinfo=UTC)
"""A time that is never reached."""

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_LONGEST_SECONDS = (2**63 - 1) / 1e9
"""Go stores a duration as a 64-bit number of nanoseconds, which is at most 292 years."""
_TOO_LONG = f"is too long: at most {int(_LONGEST_SECONDS / 3600)}h"
LONGEST_DURATION = 100
"""The maximum number of characters in a duration. Matching a longer text could take hundreds of times the
text's size in memory."""
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"\+?(?:{_PART.pattern})+")
DURATION_PATTERN = rf"^(-0|\+?(0|({_PART.pattern})+))$(?!\n)"
"""The pattern of a duration in the schemas."""
_SPOKEN_PART = r"([0-9]+(?:\.[0-9]+)?) ?([a-z]+)[ ,]*"
_SPOKEN_UNITS = {
    "w": 604_800, "week": 604_800, "weeks": 604_800,
    "d": 86_400, "day": 86_400, "days": 86_400,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
}  # fmt: skip


@lru_cache  # a document often contains the same time several times
def parse_time(text: str) -> datetime:
    """Parse a time such as `2026-11-21T12:00:00Z`.

    Raises ValueError for any other text, including a time without a time zone.
    """
    if not _TIME.match(text):
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def format_time(moment: datetime) -> str:
    """The time in its shortest form, with microseconds only if they are not zero."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def later(moment: datetime, length: timedelta) -> datetime:
    """The moment plus the length, or FOREVER if the sum is too late for a `datetime`."""
    try:
        return moment + length
    except OverflowError:
        return FOREVER


@cache
def parse_duration(text: str) -> timedelta:
    """Parse a duration such as `90s`, `1h30m` or `0`.

    Raises ValueError for any other text, including a negative duration. If possible, the error message
    suggests a valid duration.
    """
    if text in {"0", "+0", "-0"}:
        return timedelta()
    if len(text) > LONGEST_DURATION:
        raise ValueError(f"{quoted(text)} is longer than {LONGEST_DURATION} characters")
    if not _WHOLE.fullmatch(text):
        if text.startswith("-") and _WHOLE.fullmatch(text[1:]):
            raise ValueError(f"{quoted(text)} is negative")
        if (_spoken_seconds(text) or 0) > _LONGEST_SECONDS:
            raise ValueError(f"{quoted(text)} {_TOO_LONG}")
        written = _go_duration(text)
        such_as = f": write {written}" if written else " such as 90s or 1h30m"
        if text.isdecimal():
            such_as = f" such as {text}s, {text}m or {text}h"
        raise ValueError(f"{quoted(text)} is not a duration{such_as}")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if seconds > _LONGEST_SECONDS:
        raise ValueError(f"{quoted(text)} {_TOO_LONG}")
    return timedelta(seconds=seconds)


def parse_spoken_duration(text: str) -> timedelta:
    """Parse a duration in Go's format, or in words such as `2d`. Raises ValueError like parse_duration."""
    return parse_duration(_go_duration(text) or text)


def _go_duration(text: str) -> str:
    """A duration in words, converted to Go's format: `1d 2h` becomes `26h`. Empty for any other text."""
    seconds = _spoken_seconds(text)
    if seconds is None or not 1 <= seconds <= _LONGEST_SECONDS:
        return ""
    return write_duration(timedelta(seconds=seconds))


def write_duration(length: timedelta) -> str:
    """The duration in whole hours, minutes and seconds, such as `1h30m`."""
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0s"


def _spoken_seconds(text: str) -> float | None:
    seconds, end = 0.0, 0
    lower = text.strip().lower()[:40]
    for part in re.finditer(_SPOKEN_PART, lower):
        unit = _SPOKEN_UNITS.get(part[2])
        if part.start() != end or not unit:
            return None
        seconds, end = seconds + float(part[1]) * unit, part.end()
    return seconds if end == len(lower) else None
