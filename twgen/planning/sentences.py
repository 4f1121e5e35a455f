"""Durations, numbers and names as they appear in sentences."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from twgen.model.plan import RoutingAction
from twgen.model.times import write_duration

_UNTIL = re.compile(r"( \(at [0-9:]+ UTC); until [0-9: -]+ UTC\)")
_PART = re.compile("[0-9]+[hms]")


def spoken(length: timedelta, units: int = 2) -> str:
    """A duration in a spec's format, cut to its largest units (two by default): `26h30m`, `5m`, `0s`."""
    parts = _PART.findall(write_duration(max(length, timedelta())))
    return "".join(parts[:units])


def in_days(length: timedelta) -> str:
    """A duration in days and hours. A duration of less than a day has the format of `spoken`."""
    days, remainder = divmod(length, timedelta(days=1))
    hours = remainder // timedelta(hours=1)
    return f"{days}d{f' {hours}h' if hours else ''}" if days else spoken(length)


def clock_time(moment: datetime, now: datetime) -> str:
    """The time of day in UTC, with the date if it is not today."""
    day = "" if moment.date() == now.date() else f"{moment:%Y-%m-%d} "
    return f"{day}{moment:%H:%M:%S} UTC"


def timed(sentence: str, now: datetime, due: datetime | None) -> str:
    """Add the times `now` and `due` to a sentence about the remaining time, because it may be read later."""
    return f"{sentence} (at {clock_time(now, now)}; until {clock_time(due, now)})" if due else sentence


def untimed(sentence: str) -> str:
    """Remove the time `due` from a sentence that `timed` returned."""
    return _UNTIL.sub(r"\1)", sentence)


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Join names as in a sentence: `a, b and c`. If there are more than `most`, count the remaining names."""
    if most is not None and len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def rounded_percentage(percentage: float) -> float:
    """The percentage without the rounding error in Temporal's API, which returns 33.3 as 33.2999992."""
    return round(percentage, 3)


def plain_percentage(percentage: float) -> float:
    """The percentage as people write it, without decimals if it is a whole number."""
    rounded = rounded_percentage(percentage)
    return int(rounded) if rounded == int(rounded) else rounded


def version_name(build_id: str | None) -> str:
    """The name of a version, or `unversioned workers` for an empty build ID or None."""
    return build_id or "unversioned workers"


def shares_sentence(shares: Mapping[str, float]) -> str:
    """The share of each version, such as `25% of new workflows go to v3, 75% to v1`."""
    parts = [
        f"{plain_percentage(share)}%{' of new workflows go' if not index else ''} to {version_name(build_id)}"
        for index, (build_id, share) in enumerate(shares.items())
    ]
    return ", ".join(parts)


def how_to_resume(deployment: str, namespace: str) -> str:
    """The command that resumes a paused Deployment."""
    return f"kubectl rollout resume deployment/{deployment} -n {namespace}"


def described_change(action: RoutingAction, build_id: str | None, percentage: float | None) -> str:
    """A traffic change as an instruction, such as `send 25% of new workflows to v3`."""
    match action:
        case RoutingAction.SET_CURRENT:
            return f"make {build_id} current"
        case RoutingAction.SET_RAMP:
            return f"send {percentage}% of new workflows to {build_id}"
        case RoutingAction.CLEAR_RAMP:
            return "end the ramp"
        case RoutingAction.NONE:
            return "no change of traffic"
