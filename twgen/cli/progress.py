"""Showing the progress of a long silent command at the terminal."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from twgen.cli.output import say_for_now

_LINE_SECONDS = 1.0
"""Seconds from one line to the next, and until the first: most runs end before it."""


@contextmanager
def progress(noun: str, *, quiet: bool) -> Iterator[Callable[[Sequence[Any]], Sequence[Any]]]:
    """Makes a sequence show, during its iteration, how many of its items are done.

    `noun` names the items. Only a terminal on stderr gets the line, which is removed at the end.
    """
    is_shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not quiet
    try:
        yield (lambda items: _Counted(items, noun)) if is_shown else lambda items: items
    finally:
        if is_shown:
            say_for_now("")


@contextmanager
def counting(noun: str, total: int, *, quiet: bool) -> Iterator[Iterator[object]]:
    """The same for work that is done at the same time: each `next` counts one of its `total` items."""
    with progress(noun, quiet=quiet) as shown:
        yield iter(shown(range(total)))


class _Counted(Sequence[Any]):
    def __init__(self, items: Sequence[Any], noun: str) -> None:
        self._items = items
        self._noun = noun

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __iter__(self) -> Iterator[Any]:
        last = monotonic()
        for number, item in enumerate(self._items):
            if monotonic() >= last + _LINE_SECONDS:
                last = monotonic()
                say_for_now(f"{number} of {len(self)} {self._noun}")
            yield item
