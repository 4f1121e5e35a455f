"""Use libyaml's events to read documents as Kubernetes does, and to find the lines of fields.

Plain sentences replace libyaml's error messages.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, repeat
from operator import length_hint
from typing import Any

from yaml import MarkedYAMLError, YAMLError
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.reader import ReaderError

from twgen.yaml.scalars import (
    NO_TEXT,
    NotAScalar,
    Scalar,
    key_text,
    resolve_key,
    resolve_plain,
    resolve_tagged,
)
from twgen.yaml.source import ODD_BLANK, Budget, YamlError, decode, line_after

FieldPath = tuple[str | int, ...]
"""A document's index in the result of read_documents, followed by keys and list indexes."""

_FLOW_OPEN = "the {} that opens here is not closed: write , between its items, and {} at its end"
_QUOTE_OPEN = "the quote that opens here is not closed"
_TAB = "a tab cannot indent: use spaces"
_TAG = "a text that begins with ! needs quotes"
_SENTENCES = {
    "mapping values are not allowed in this context": (
        "a colon makes this a key, but no key is allowed here: fix the indentation, or quote the text"
    ),
    "mapping keys are not allowed in this context": "a key is not allowed here: fix the indentation",
    "block sequence entries are not allowed in this context": (
        "a list cannot begin here: put its - below the key, on its own line"
    ),
    "found character that cannot start any token": "text cannot begin with this character: quote the text",
    "could not find expected ':'": "a key needs a colon and a space after it",
    "did not find expected key": "a key is missing here: fix the indentation, or quote the text",
    "did not find expected '-' indicator": "this line is in a list but has no -: fix the indentation",
    "did not find expected ',' or ']'": _FLOW_OPEN.format("[", "]"),
    "did not find expected ',' or '}'": _FLOW_OPEN.format("{", "}"),
    "did not find expected node content": "a value is missing here, or it needs quotes",
    "did not find expected <document start>": "a document ends before this: write --- between two documents",
    "did not find expected alphabetic or numeric character": "a text that begins with * or & needs quotes",
    "did not find expected comment or line break": "no text may follow | or > on the same line",
    "found unknown escape character": (
        "there is no such escape: write two backslashes for one, or use single quotes"
    ),
    "found invalid Unicode character escape code": "no character has this escape: write the character itself",
    "found undefined tag handle": _TAG,
    "did not find expected tag URI": _TAG,
    "did not find the expected '>'": _TAG,
    "found unexpected document indicator": _QUOTE_OPEN,
    "found unexpected end of stream": _QUOTE_OPEN,
    "found a tab character that violates indentation": _TAB,
    "found a tab character where an indentation space is expected": _TAB,
}
# errors that are reported at the line of the opening bracket or quote
_AT_OPENING = {_QUOTE_OPEN, _FLOW_OPEN.format("[", "]"), _FLOW_OPEN.format("{", "}")}
_ODD_INDENTATION = re.compile(r"^ *[^\S\x00-\x7f]", re.MULTILINE)
_NO_SEPARATOR = re.compile(r"^(?:--|-{4,})[ \t]*$", re.MULTILINE)


def describe(error: YAMLError, text: str) -> YamlError:
    """Convert a parser error to one that describes the mistake and its line without quoting the text."""
    if isinstance(error, ReaderError):
        problem = f"U+{error.character:04X} is not allowed: write it as an escape in double quotes"
        return YamlError(problem, line_after(text.encode()[: error.position]))
    mark = (error.problem_mark or error.context_mark) if isinstance(error, MarkedYAMLError) else None
    if not isinstance(error, MarkedYAMLError) or mark is None:
        return YamlError("this is not YAML")
    at, opening = mark.index, (error.context_mark or mark).index
    begin = text.rfind("\n", 0, opening) + 1
    separator, odd_blank = _NO_SEPARATOR.search(text, begin, at), _ODD_INDENTATION.search(text, begin, at + 1)
    quote = text[at - 1 : at]
    problem = _SENTENCES.get(error.problem or "", "this is not YAML: fix the indentation, or quote the text")
    if text[at : at + 1] == "\t":
        problem = _TAB
    elif odd_blank:
        problem, at = ODD_BLANK, odd_blank.start()
    elif separator:
        problem, at = "write three dashes (---) between two documents", separator.start()
    elif quote in {"'", '"'} and error.problem == "did not find expected key":
        # the parser has read this quote as the end of an earlier quoted text
        begins = text.rfind(quote, 0, at - 1)
        continues = f"the text continues after its closing quote: double every {quote} inside"
        problem, at = (_QUOTE_OPEN, begins) if "\n" in text[begins:at] else (continues, at)
    elif error.context == "while parsing a flow node":
        problem = "a [ or { is not closed before this, or a value is missing"
    elif problem in _AT_OPENING:
        at = opening
    return YamlError(problem, text.count("\n", 0, at) + 1)


def lines_of(text: bytes | str, places: Sequence[FieldPath]) -> list[int | None]:
    """Return the line (from 1) of each field, or of its nearest existing parent.

    If the text does not contain the document, the line is None.
    """
    ancestors = [[place[:length] for length in range(len(place), 0, -1)] for place in places]
    targets = {place for prefixes in ancestors for place in prefixes}
    deepest = max(map(len, places), default=0)
    lines: dict[FieldPath, int] = {}
    # Both lists have an entry for each open collection, of which the list of documents is the outermost. The
    # entries are the collection's last index or key, and whether a key comes next (None in a list).
    steps: list[Any] = [-1]
    key_is_next: list[bool | None] = [None]
    next_event: Callable[[], Any] = CParser(decode(text)).get_event
    with suppress(YAMLError):  # the lines before an error are still useful
        for event in iter(next_event, None):
            line = event.start_mark.line + 1
            if isinstance(event, CollectionEndEvent):
                steps.pop()
                key_is_next.pop()
            if not isinstance(event, NodeEvent):
                continue
            if key_is_next[-1] is None:
                steps[-1] += 1
            elif key_is_next[-1]:
                steps[-1] = _step(event)
            if key_is_next[-1] is not False and len(steps) <= deepest and (place := tuple(steps)) in targets:
                lines.setdefault(place, line)
            if key_is_next[-1] is not None:
                key_is_next[-1] = not key_is_next[-1]
            if isinstance(event, CollectionStartEvent):
                is_mapping = isinstance(event, MappingStartEvent)
                steps.append(None if is_mapping else -1)
                key_is_next.append(True if is_mapping else None)
    return [next((lines[place] for place in prefixes if place in lines), None) for prefixes in ancestors]


def _step(event: Any) -> str | None:
    """Return a key as a step of a path, or None if the key cannot be part of a path."""
    if not isinstance(event, ScalarEvent):
        return None
    with suppress(NotAScalar):
        return resolve_key(event.value) if event.implicit[0] and event.tag is None else event.value
    return None


_MERGE_TAG = "tag:yaml.org,2002:merge"
_SECRET = re.compile(r"kind[\"']?\s*:\s*[\"']?Secret")
_SHOWN = 20
_SEPARATE = "; write --- between two documents"


def read_all(text: str, budget: Budget) -> list[Any]:
    """Return the value of each document in any text. This is slower than the fast paths of read_documents."""
    try:
        return list(_Reader(text, budget).documents())
    except YAMLError as error:
        raise describe(error, text) from None


@dataclass(slots=True)
class _Anchor:
    """An anchor's value, its length in characters (None until it is read), and its levels of nesting."""

    value: Any = None
    characters: int | None = None
    height: int = 0


class _Reader:
    """One pass over a text: the parser, the anchors of the document, and the remaining budget."""

    def __init__(self, text: str, budget: Budget) -> None:
        self._text = text
        self._budget = budget
        self._limits = budget.limits
        self._next: Callable[[], Any] = CParser(text).get_event
        # all loops share this iterator, so it counts all keys and items at no extra cost
        self._nodes_left = repeat(True, budget.limits.nodes - budget.nodes)  # noqa: FBT003 - any true value
        self._counted: Iterator[Any] = compress(iter(self._next, None), self._nodes_left)
        self._anchors: dict[str, _Anchor] = {}
        self._deepest = 0
        self._last: Any = None

    def documents(self) -> Iterator[Any]:
        """Yield the value of each document. Raises YamlError, or the parser's own YAMLError."""
        budget = self._budget
        for event in self._counted:
            if event.__class__ is DocumentStartEvent:
                budget.documents += 1
                if budget.documents > self._limits.documents:
                    raise _error_at(event, budget.spent(f"{self._limits.documents} documents"))
                self._anchors.clear()
                yield self._node(self._next(), 0)
        if (event := self._next()) is not None:
            raise self._too_many(event)
        budget.nodes = self._limits.nodes - length_hint(self._nodes_left)

    def _node(self, event: Any, depth: int) -> Any:
        if event.anchor is None:
            return self._scalar(event) if event.__class__ is ScalarEvent else self._collection(event, depth)
        if event.__class__ is AliasEvent:
            return self._alias(event, depth)
        if len(self._anchors) == self._limits.anchors:
            raise _error_at(event, f"more than {self._limits.anchors} anchors: split the document")
        anchor = self._anchors[event.anchor] = _Anchor()
        expansion, deepest, self._deepest = self._budget.expansion, self._deepest, depth
        if event.__class__ is ScalarEvent:
            anchor.value, self._last = self._scalar(event), event
        else:
            anchor.value = self._collection(event, depth)
        added = self._budget.expansion - expansion
        anchor.characters = self._last.end_mark.index - event.start_mark.index + added
        anchor.height = self._deepest - depth
        self._deepest = max(deepest, self._deepest)
        return anchor.value

    def _scalar(self, event: Any) -> Scalar:
        try:
            if event.tag is not None:
                return resolve_tagged(event.tag, event.value)
            return resolve_plain(event.value) if event.implicit[0] else event.value
        except NotAScalar as error:
            raise _error_at(event, str(error)) from None

    def _collection(self, event: Any, depth: int) -> Any:
        if depth == self._limits.depth:
            raise _error_at(event, f"nested deeper than {depth} levels")
        self._deepest = max(self._deepest, depth + 1)
        if event.__class__ is MappingStartEvent:
            return self._mapping(depth + 1)
        items: list[Any] = []
        for item in self._counted:
            if item.__class__ is SequenceEndEvent:
                self._last = item
                return items
            items.append(self._node(item, depth + 1))
        raise self._too_many(self._next())

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: set[str] = set()
        for event in self._counted:
            kind = event.__class__
            if kind is MappingEndEvent:
                self._last = event
                return mapping
            if kind is ScalarEvent and event.value == "<<" and (event.implicit[0] or event.tag == _MERGE_TAG):
                merged |= self._merge(mapping, depth)
                continue
            key = self._key(event, depth)
            if key in mapping:
                if key not in merged:
                    hint = _SEPARATE if depth == 1 and key in {"apiVersion", "kind"} else ""
                    raise _error_at(event, f"{self._key_in_words(key)} appears twice{hint}")
                merged.remove(key)
            mapping[key] = self._node(self._next(), depth)
        raise self._too_many(self._next())

    def _key(self, event: Any, depth: int) -> str:
        at = event.start_mark.index
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            braces = "; {{ }} needs quotes" if self._text[at - 1 : at + 1] == "{{" else ""
            raise _error_at(event, NO_TEXT + braces)
        try:
            if event.anchor is not None or event.tag is not None or not event.implicit[0]:
                return key_text(self._node(event, depth))
            key = resolve_key(event.value)
        except NotAScalar as error:
            raise _error_at(event, str(error)) from None
        if not event.value[:1].isascii() and event.value[0].isspace():
            raise _error_at(event, ODD_BLANK)
        return key

    def _alias(self, event: Any, depth: int) -> Any:
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise _error_at(
                event, "there is no such anchor before this line: text that begins with * needs quotes"
            )
        if anchor.characters is None:
            raise _error_at(event, "this alias is inside its own anchor")
        self._expand(event, anchor.characters)
        if depth + anchor.height > self._limits.depth:
            raise _error_at(event, f"nested deeper than {self._limits.depth} levels")
        self._deepest = max(self._deepest, depth + anchor.height)
        return anchor.value

    def _expand(self, event: Any, characters: int) -> None:
        """Count the characters that an alias or a merge adds when it is expanded."""
        self._budget.expansion += characters
        if self._budget.expansion > self._limits.expansion:
            raise _error_at(event, self._budget.spent(f"{self._limits.expansion} characters from aliases"))

    def _merge(self, mapping_so_far: dict[str, Any], depth: int) -> set[str]:
        event = self._next()
        value = self._node(event, depth)
        added: dict[str, Any] = {}
        for mapping in reversed(value) if event.__class__ is SequenceStartEvent else [value]:
            if not isinstance(mapping, dict):
                raise _error_at(event, "<< takes a mapping or a list of mappings")
            self._expand(event, len(mapping))
            added.update(mapping)
        for key in mapping_so_far.keys() & added.keys():
            raise _error_at(event, f"{self._key_in_words(key)} is set before << adds it: put << first")
        mapping_so_far.update(added)
        return set(added)

    def _key_in_words(self, key: str) -> str:
        """`the key ...` with the key's first characters, or just `a key` if the text contains a Secret."""
        if _SECRET.search(self._text):
            return "a key"
        return f"the key {key if len(key) <= _SHOWN else f'{key[:_SHOWN]}...'!r}"

    def _too_many(self, event: Any) -> YamlError:
        return _error_at(event, self._budget.spent(f"{self._limits.nodes} keys and list items"))


def _error_at(event: Any, message: str) -> YamlError:
    """Return an error with the line where one of the parser's events starts."""
    return YamlError(message, event.start_mark.line + 1)
