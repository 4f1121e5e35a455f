"""Workers that one look could not read, in few lines: one server may have hundreds of them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from twgen.errors import OutOfTime, StateUnavailable, TwgenError

_ONE_LINE_FROM = 3
"""Workers with the same failure; fewer have a line each."""
_OF_ONE_WORKER = re.compile(r", namespace '[^']*' \(for [^)]*\)")


class Unread(NamedTuple):
    """A worker that could not be read."""

    address: str
    """The address of its Temporal."""
    why: str
    is_busy: bool = False
    """Its server limits the rate of calls: the next look may be answered."""
    is_late: bool = False
    """Its server did not answer in time."""


def unread_error(unread: Sequence[Unread]) -> TwgenError:
    """The error of a command that could not read these workers."""
    kind = OutOfTime if all(one.is_late for one in unread) else StateUnavailable
    return kind("; ".join(unread_lines(unread)))


def unread_lines(unread: Iterable[Unread]) -> list[str]:
    """Why workers were not read: one line for those of one server that fail alike."""
    alike: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for one in unread:
        alike[one.address, _OF_ONE_WORKER.sub("", one.why)].append(one.why)
    lines: dict[str, None] = {}
    for (address, _), reasons in alike.items():
        if len(reasons) >= _ONE_LINE_FROM and address in reasons[0]:
            lines[f"{len(reasons)} workers of {address} were not read: {reasons[0]}"] = None
        else:
            lines |= dict.fromkeys(reasons)
    return list(lines)
