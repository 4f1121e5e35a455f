"""The fast path for YAML as programs write it: ASCII, block style, one key or list item on a line.

It understands a subset and leaves all else, errors included, to the reader: there is one set of rules.
"""

import re
from collections.abc import Iterable
from typing import Any

from twgen.yaml.limits import Budget
from twgen.yaml.scalars import NotAScalar, resolve_key, resolve_plain

_KEY = r"[A-Za-z_](?:[A-Za-z0-9_./-]|:(?=\S)){0,99}"
# no indicator first; then a colon only before a character, a space only before one that begins no comment
_PLAIN = (
    r"(?:[A-Za-z0-9_/.]|-(?=[A-Za-z0-9-]))(?:[A-Za-z0-9_/.\-+@=~%$*!?;()<>,'\"]++|:(?=[^\s])|\ (?=[^\s#:]))*+"
)
_VALUE = rf"""{_PLAIN}|"[ -!#-\[\]-~]*"|'[ -&(-~]*'|\{{\}}|\[\]"""
_LINE = re.compile(rf"^( *+)((?:-\ )*)(?:({_KEY}):(?:\ ({_VALUE}))?|({_VALUE})|\#[ -~]*+)?$", re.MULTILINE)
_WINDOW = 2**16
_MOST_REMEMBERED = 20_000  # distinct keys and plain scalars, as in the reader


def read_block(text: str, budget: Budget) -> list[Any] | None:
    """Return the value of each document, or None for a text that only the reader understands."""
    if not text.isascii():
        return None
    reading = _Reading(budget.limits.depth)
    position = 0
    try:
        while position < len(text):
            # a window at a time: what the pattern finds in a text needs ten times its memory
            end = text.find("\n", position + _WINDOW) + 1 or len(text)
            has_end = text[end - 1] == "\n"
            lines = _LINE.findall(text, position, end - has_end)
            if len(lines) != text.count("\n", position, end) + (not has_end):
                return None
            reading.take(lines)
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
        self._keys: dict[str, str] = {}
        self._plain: dict[str, Any] = {}

    @property
    def count(self) -> int:
        """How many documents have begun."""
        return len(self._documents) + self._is_open

    def documents(self) -> list[Any]:
        """Return the value of each document; an empty one is None."""
        return [*self._documents, self._root] if self._is_open else self._documents

    def take(self, lines: Iterable[tuple[str, str, str, str, str]]) -> None:
        """Read on; raises _NotBlock and NotAScalar."""
        keys = self._keys
        for indent, dashes, key, value, item in lines:
            if dashes:
                mapping = self._item(len(indent), dashes, item)
                if mapping is None:
                    continue
            elif key:
                mapping = self._mapping(len(indent))
            elif item:
                self._start_document(indent + item)
                continue
            else:
                continue
            name = keys.get(key) or self._key(key)
            if name in mapping:
                raise _NotBlock
            self.nodes += 1
            if value:
                mapping[name] = self._value(value)
                self._awaited = None
            else:
                mapping[name] = None
                self._awaited = (mapping, name, len(indent) + len(dashes))

    def _start_document(self, line: str) -> None:
        if line != "---":
            raise _NotBlock
        if self._is_open:
            self._documents.append(self._root)
        self._is_open = True
        self._root = self._awaited = None
        self._open.clear()

    def _item(self, column: int, dashes: str, item: str) -> dict[str, Any] | None:
        """Begin a list item: the mapping whose first key it holds, or None when it holds a scalar."""
        items = self._list(column)
        self.nodes += len(dashes) // 2
        for nested in range(2, len(dashes), 2):
            items.append([])
            items = self._opened(column + nested, items[-1])
        if item:
            items.append(self._value(item))
            return None
        items.append({})
        found: dict[str, Any] = self._opened(column + len(dashes), items[-1])
        return found

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

    def _key(self, text: str) -> str:
        if not text:
            raise _NotBlock  # dashes, and nothing behind them
        found = resolve_key(text)
        if len(self._keys) < _MOST_REMEMBERED:
            self._keys[text] = found
        return found

    def _value(self, text: str) -> Any:
        plain = self._plain
        if text in plain:
            return plain[text]
        if text[0] in "\"'":
            return text[1:-1]
        if text[0] in "{[":
            return {} if text == "{}" else []
        value = resolve_plain(text)
        if len(plain) < _MOST_REMEMBERED:
            plain[text] = value
        return value
