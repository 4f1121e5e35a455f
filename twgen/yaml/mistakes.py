"""For messages only: libyaml's errors in words for people, and the lines of fields."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from yaml import MarkedYAMLError, YAMLError
from yaml._yaml import CParser
from yaml.events import CollectionEndEvent, CollectionStartEvent, MappingStartEvent, NodeEvent, ScalarEvent
from yaml.reader import ReaderError

from twgen.yaml.scalars import NotAScalar, resolve_key
from twgen.yaml.source import ODD_BLANK, YamlError, decode, line_after

Place = tuple[str | int, ...]
"""The index of a document, as in read_documents, from 0; then keys and list indexes."""

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
# these are reported at the line of the opening bracket or quote
_AT_OPENING = {_QUOTE_OPEN, _FLOW_OPEN.format("[", "]"), _FLOW_OPEN.format("{", "}")}
_ODD_INDENTATION = re.compile(r"^ *[^\S\x00-\x7f]", re.MULTILINE)
_NO_SEPARATOR = re.compile(r"^(?:--|-{4,})[ \t]*$", re.MULTILINE)


def describe(error: YAMLError, text: str) -> YamlError:
    """Return twgen's error for an error of the parser: the mistake and its line, without any content."""
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
        # the parser took it for the end of an earlier quote
        begins = text.rfind(quote, 0, at - 1)
        continues = f"the text continues after its closing quote: double every {quote} inside"
        problem, at = (_QUOTE_OPEN, begins) if "\n" in text[begins:at] else (continues, at)
    elif error.context == "while parsing a flow node":
        problem = "a [ or { is not closed before this, or a value is missing"
    elif problem in _AT_OPENING:
        at = opening
    return YamlError(problem, text.count("\n", 0, at) + 1)


def lines_of(text: bytes | str, places: Sequence[Place]) -> list[int | None]:
    """Return the line (from 1) of each place, or of its deepest ancestor that the text has, in one pass.

    None if the text has no such document.
    """
    ancestors = [[place[:length] for length in range(len(place), 0, -1)] for place in places]
    targets = {place for prefixes in ancestors for place in prefixes}
    deepest = max(map(len, places), default=0)
    lines: dict[Place, int] = {}
    # of each open collection (the outermost is the list of documents): the last index or key, and whether a
    # key is next (None: it is a list)
    steps: list[Any] = [-1]
    key_is_next: list[bool | None] = [None]
    next_event: Callable[[], Any] = CParser(decode(text)).get_event
    with suppress(YAMLError):  # the part before the error is still there
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
    """The key in a place; None: a place cannot name it."""
    if not isinstance(event, ScalarEvent):
        return None
    with suppress(NotAScalar):
        return resolve_key(event.value) if event.implicit[0] and event.tag is None else event.value
    return None
