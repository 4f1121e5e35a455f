"""Durations as Go writes them (https://pkg.go.dev/time#ParseDuration)."""

import re
from datetime import timedelta
from functools import cache

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_LONGEST_SECONDS = (2**63 - 1) / 1e9
"""Go counts a duration in 64-bit nanoseconds: 292 years."""
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


@cache
def parse_duration(text: str) -> timedelta:
    """The length of `90s`, `1h30m` or `0`; ValueError for anything else, a negative length included."""
    if text in {"0", "+0", "-0"}:
        return timedelta()
    unsigned = text.removeprefix("+")
    if not _WHOLE.fullmatch(unsigned):
        raise ValueError(text)
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(unsigned))
    if seconds > _LONGEST_SECONDS:
        raise ValueError(text)
    return timedelta(seconds=seconds)
