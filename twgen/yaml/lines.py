"""Where something stands in a text: a second, slower pass, for messages only."""

from collections.abc import Iterator
from typing import Any

from yaml import YAMLError
from yaml._yaml import CParser
from yaml.events import (
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from twgen.yaml.scalars import NotAScalar, resolve_key
from twgen.yaml.source import decode


def line_of(text: bytes | str, document_index: int, path: tuple[str | int, ...]) -> int | None:
    """Return the line (from 1) of what a path leads to, or of its deepest ancestor that the text has.

    The index counts documents as read_documents does, from 0; the path is keys and list indexes as
    twgen.model.paths.parse_path gives them. None when the text has no such document.
    """
    found = None
    for event in _along(_events(decode(text)), document_index, path):
        found = event.start_mark.line + 1
    return found


def _events(text: str) -> Iterator[Any]:
    parser = CParser(text)
    try:
        yield from iter(parser.get_event, None)
    except YAMLError:
        return  # what stands before the error is still there


def _along(events: Iterator[Any], document_index: int, path: tuple[str | int, ...]) -> Iterator[Any]:
    """Yield where each step along the path begins, starting with the document, as far as the text goes."""
    starts = (event for event in events if isinstance(event, DocumentStartEvent))
    for _ in range(document_index + 1):
        if next(starts, None) is None:
            return
    node = next(events, None)
    if node is not None:
        yield node
    for step in path:
        place = None
        if isinstance(node, MappingStartEvent) and isinstance(step, str):
            place = _find_key(events, step)
            node = next(events, None)
        elif isinstance(node, SequenceStartEvent) and isinstance(step, int):
            place = node = _find_item(events, step)
        if place is None:
            return
        yield place


def _find_key(events: Iterator[Any], key: str) -> Any:
    for event in events:
        if isinstance(event, MappingEndEvent):
            return None
        if isinstance(event, ScalarEvent) and _key(event) == key:
            return event
        _skip(events, event)
        _skip(events, next(events, None))
    return None


def _find_item(events: Iterator[Any], index: int) -> Any:
    for event in events:
        if isinstance(event, SequenceEndEvent):
            return None
        if index == 0:
            return event
        _skip(events, event)
        index -= 1
    return None


def _skip(events: Iterator[Any], event: Any) -> None:
    depth = 0
    while True:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth <= 0:
            return
        event = next(events, None)
        if event is None:
            return


def _key(event: ScalarEvent) -> str | None:
    try:
        return resolve_key(event.value) if event.implicit[0] and event.tag is None else event.value
    except NotAScalar:
        return None
