"""Lengths of time as people say them."""

from datetime import timedelta

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def spoken(length: timedelta, units: int = 2) -> str:
    """The largest units of a length, two unless told: `2d 3h`, `5min`, `0s`."""
    rest = max(0, int(length.total_seconds()))
    parts = []
    for size, unit in _UNITS:
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return " ".join(parts[:units]) or "0s"
