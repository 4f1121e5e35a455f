"""Workers that one look could not read, in few lines: one server may have hundreds of them."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

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


def unread_lines(unread: Iterable[Unread]) -> list[str]:
    """Why workers were not read: one line for those of one server that fail alike."""
    alike: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for address, why, _ in unread:
        alike[address, _OF_ONE_WORKER.sub("", why)].append(why)
    lines: dict[str, None] = {}
    for (address, _), reasons in alike.items():
        if len(reasons) >= _ONE_LINE_FROM and address in reasons[0]:
            lines[f"{len(reasons)} workers of {address} were not read: {reasons[0]}"] = None
        else:
            lines |= dict.fromkeys(reasons)
    return list(lines)
