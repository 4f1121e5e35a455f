"""Marks: what people and rollouts decide about a version, as its metadata in Temporal keeps it."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any, Self

from twgen.model.times import format_time, parse_time
from twgen.model.values import dataclass


class Lifetime(Enum):
    """What ends a mark, beside the command that takes it back.

    A stay of a version begins when it is created, gets a share of the traffic, becomes current, or loses its
    share. The value completes the sentence "the mark of a version counts until ...".
    """

    STAY = "it gets or loses its share, or becomes current"
    RETURN = "it becomes current, or gets traffic again after losing it"
    RETIREMENT = "any version gets traffic again"
    DRAINAGE = "it gets traffic again"


class MarkKey(StrEnum):
    """The key of a mark in the metadata of a version; its docstring says what the mark does."""

    lifetime: Lifetime

    def __new__(cls, key: str, lifetime: Lifetime) -> Self:
        """Make the key, which cannot be declared without a lifetime."""
        made = str.__new__(cls, key)
        made._value_, made.lifetime = key, lifetime
        return made

    # what stops a rollout survives the end of its ramp: a person who pauses a version and then takes its
    # share away by hand does not want it back a second later
    PAUSED = "twgen.io/paused", Lifetime.RETURN
    """`twgen pause`, or a rollout whose policy pauses it: the share of the version does not grow."""
    ABORTED = "twgen.io/aborted", Lifetime.RETURN
    """`twgen abort`, or a rollout that failed: the version loses its share and gets none."""
    RETIRED = "twgen.io/retired", Lifetime.RETIREMENT
    """`twgen retire`: workers without a version keep the traffic."""
    GATE_ATTEMPT = "twgen.io/gate-attempt", Lifetime.STAY
    """`twgen retry`, or a gate of a step that failed: the attempt at its gates that counts (`attempt`)."""
    MOVED_BY = "twgen.io/moved-by", Lifetime.STAY
    """Every change of traffic: its author, the new share (`percentage`) and the `gates` that it is past."""
    MEASURED_SINCE = "twgen.io/measured-since", Lifetime.STAY
    """`twgen retry`, `resume` or `promote` after a failed analysis: earlier measurements no longer count."""
    DRAINED_BY = "twgen.io/drained-by", Lifetime.DRAINAGE
    """`twgen tick` or `twgen drain`: the entries of its policy's `draining` that have begun."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One decision about a version."""

    key: MarkKey
    by: str = ""
    """The identity of the author; empty: it does not say."""
    at: datetime | None = None
    """The time, by the author's clock; None: unknown."""
    because: str = ""
    """The reason of a rollout; empty: a person decided."""
    stay: datetime | None = None
    """When the stay began that it was made in, as Temporal said then; None: it does not say."""
    was_ramping: bool = False
    """The version had a share of the traffic then; only where it says of which stay it is."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Other entries of a mark with this key."""

    @property
    def made_in(self) -> datetime | None:
        """A moment of the stay that it belongs to; None: it does not say."""
        # two clocks are never compared where the stay is recorded; a mark written by hand has only its time
        return self.stay or self.at


_OWN_FIELDS = {"by", "at", "because", "stay", "ramping"}


def read_mark(key: MarkKey, value: Any) -> Mark | None:
    """A mark as metadata holds it; None: there is none, or a command took it back (`false`)."""
    if value is None or value is False:
        return None
    if not isinstance(value, Mapping):
        return Mark(key)
    by, because = (text if isinstance(text := value.get(name), str) else "" for name in ("by", "because"))
    details = {name: detail for name, detail in value.items() if name not in _OWN_FIELDS}
    at, stay = (_moment(value.get(name)) for name in ("at", "stay"))
    return Mark(key, by, at, because, stay, value.get("ramping") is True, details)


def write_mark(mark: Mark) -> dict[str, Any]:
    """The mark as metadata holds it; `read_mark` reads it back."""
    entries = {
        "by": mark.by,
        "at": format_time(mark.at) if mark.at else "",
        "because": mark.because,
        "stay": format_time(mark.stay) if mark.stay else "",
    }
    ramping = {"ramping": True} if mark.was_ramping else {}
    return {name: text for name, text in entries.items() if text} | ramping | dict(mark.details)


def _moment(text: Any) -> datetime | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None
