"""The fast path for YAML as programs write it: ASCII, block style, one key or list item on a line.

It understands a subset and leaves all else, errors included, to the reader: there is one set of rules.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from twgen.yaml.limits import Budget
from twgen.yaml.scalars import NotAScalar, resolve_key, resolve_plain

_KEY = r"[A-Za-z_](?:[A-Za-z0-9_./-]|:(?=\S)){0,99}"
# no indicator first; then a colon only before a character, a space only before one that begins no comment
_PLAIN = (
    r"(?:[A-Za-z0-9_/.]|-(?=[A-Za-z0-9-]))(?:[A-Za-z0-9_/.\-+@=~%$*!?;()<>,'\"]++|:(?=[^\s])|\ (?=[^\s#:]))*+"
)
_VALUE = rf"""{_PLAIN}|"[ -!#-\[\]-~]*"|'[ -&(-~]*'|\{{\}}|\[\]"""
_LINE = re.compile(rf"( *+)((?:-\ )*)(?:({_KEY}):(?:\ ({_VALUE}))?|({_VALUE})|\#[ -~]*+)?")
_WINDOW = 2**16
_MOST_REMEMBERED, _LONGEST_REMEMBERED = 20_000, 200
_START, _BELOW = object(), object()


def read_block(text: str, budget: Budget) -> list[Any] | None:
    """Return the value of each document, or None for a text that only the reader understands."""
    if not text.isascii():
        return None
    reading = _Reading(budget.limits.depth)
    position = 0
    try:
        while position < len(text):
            # a window at a time: short lines by themselves need many times the memory of their text
            end = text.find("\n", position + _WINDOW) + 1 or len(text)
            reading.take(text[position:end].split("\n"))
            nodes = budget.nodes + reading.nodes
            documents = budget.documents + reading.count
            if nodes > budget.limits.nodes or documents > budget.limits.documents:
                return None
            position = end
    except (_NotBlock, NotAScalar):
        return None
    budget.nodes += reading.nodes
    budget.documents += reading.count
    return reading.documents()


class _NotBlock(Exception):
    """A text that is not of the subset, or no YAML at all."""


class _Line(NamedTuple):
    """What stands on a line: so many dashes from a column on, a key, a value; neither on an empty one."""

    column: int
    dashes: int
    key: str
    value: Any
    """`dict` or `list`: a new, empty one; _BELOW: on the next lines, if anywhere; _START: `---`."""


def _line(text: str) -> _Line:
    """Take a line apart; raises _NotBlock and NotAScalar."""
    if text == "---":
        return _Line(0, 0, "", _START)
    if not (matched := _LINE.fullmatch(text)):
        raise _NotBlock
    indent, dashes, key, of_key, item = matched.groups()
    written = of_key or item
    # dashes with nothing behind them, or a text with nothing before it
    if not key and bool(dashes) != bool(item):
        raise _NotBlock
    if not written:
        value: Any = _BELOW if key else None
    elif written[0] in "\"'":
        value = written[1:-1]
    elif written[0] in "{[":
        value = dict if written == "{}" else list
    else:
        value = resolve_plain(written)
    return _Line(len(indent), len(dashes) // 2, resolve_key(key) if key else "", value)


# the files of a repository have most of their lines in common
_remembered = lru_cache(_MOST_REMEMBERED)(_line)


class _Reading:
    """What the lines so far have made: documents, and where in the last one the next line can go on."""

    def __init__(self, depth: int) -> None:
        self.nodes = 0
        self._depth = depth
        self._documents: list[Any] = []
        self._is_open = False
        self._root: Any = None
        # each mapping and list that is open, with the column of its keys or dashes
        self._open: list[tuple[int, Any]] = []
        # where a key on the line before stands whose value may follow below it: mapping, key, column
        self._awaited: tuple[dict[str, Any], str, int] | None = None

    @property
    def count(self) -> int:
        """How many documents have begun."""
        return len(self._documents) + self._is_open

    def documents(self) -> list[Any]:
        """Return the value of each document; an empty one is None."""
        return [*self._documents, self._root] if self._is_open else self._documents

    def take(self, lines: Iterable[str]) -> None:
        """Read on; raises _NotBlock and NotAScalar."""
        for text in lines:
            read = _remembered if len(text) <= _LONGEST_REMEMBERED else _line
            column, dashes, key, value = read(text)
            if value.__class__ is type:
                value = value()
            if dashes:
                items = self._list(column)
                self.nodes += dashes
                for nested in range(1, dashes):
                    items.append([])
                    items = self._opened(column + 2 * nested, items[-1])
                if not key:
                    items.append(value)
                    continue
                items.append({})
                column += 2 * dashes
                mapping = self._opened(column, items[-1])
            elif key:
                mapping = self._mapping(column)
            else:
                if value is _START:
                    self._start_document()
                continue
            if key in mapping:
                raise _NotBlock
            self.nodes += 1
            if value is _BELOW:
                mapping[key] = None
                self._awaited = (mapping, key, column)
            else:
                mapping[key] = value
                self._awaited = None

    def _start_document(self) -> None:
        if self._is_open:
            self._documents.append(self._root)
        self._is_open = True
        self._root = self._awaited = None
        self._open.clear()

    def _list(self, column: int) -> list[Any]:
        awaited, self._awaited = self._awaited, None
        found: list[Any]
        if awaited and column >= awaited[2]:
            found = awaited[0][awaited[1]] = self._opened(column, [])
            return found
        while self._open and self._open[-1][0] > column:
            self._open.pop()
        found = self._current(column, list)
        return found

    def _mapping(self, column: int) -> dict[str, Any]:
        awaited, open_ = self._awaited, self._open
        found: dict[str, Any]
        if awaited and column > awaited[2]:
            found = awaited[0][awaited[1]] = self._opened(column, {})
            return found
        while open_ and (
            open_[-1][0] > column or (open_[-1][0] == column and open_[-1][1].__class__ is list)
        ):
            open_.pop()
        found = self._current(column, dict)
        return found

    def _current(self, column: int, kind: type) -> Any:
        if self._open:
            at, found = self._open[-1]
            if at == column and found.__class__ is kind:
                return found
        if column or self._root is not None:
            raise _NotBlock
        self._is_open = True
        self._root = kind()
        return self._opened(0, self._root)

    def _opened(self, column: int, new: Any) -> Any:
        self._open.append((column, new))
        if len(self._open) > self._depth:
            raise _NotBlock
        return new
