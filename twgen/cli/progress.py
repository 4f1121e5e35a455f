"""How far a command has come that says nothing for long, told to whoever sits at the terminal."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from twgen.cli.output import say_for_now

_EACH = 1.0
"""Seconds from one line to the next, and until the first: most runs are over by then."""


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Callable[[Sequence[Any]], Sequence[Any]]]:
    """Makes a sequence say, while it is gone through, how many of its items have been worked on.

    `what` is what they are called. A terminal on stderr gets one line, which goes in the end; else nobody.
    """
    is_seen = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not quiet
    try:
        yield (lambda items: _Counted(items, what)) if is_seen else lambda items: items
    finally:
        if is_seen:
            say_for_now("")


class _Counted(Sequence[Any]):
    def __init__(self, items: Sequence[Any], what: str) -> None:
        self._items = items
        self._what = what

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __iter__(self) -> Iterator[Any]:
        last = monotonic()
        for done, item in enumerate(self._items):
            if monotonic() >= last + _EACH:
                last = monotonic()
                say_for_now(f"{done} of {len(self)} {self._what}")
            yield item
