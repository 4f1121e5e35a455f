"""Where something stands in a text: a second, slower pass, for messages only."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from yaml import YAMLError
from yaml._yaml import CParser
from yaml.events import (
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
)

from twgen.yaml.scalars import NotAScalar, resolve_key
from twgen.yaml.source import decode

Place = tuple[str | int, ...]
"""A document, counted as read_documents does, from 0; then keys and list indexes."""


def lines_of(text: bytes | str, places: Sequence[Place]) -> list[int | None]:
    """Return the line (from 1) of each place, or of its deepest ancestor that the text has, in one pass.

    None where the text has no such document.
    """
    wanted: dict[Any, Any] = {}
    for place in places:
        below = wanted
        for step in place:
            below = below.setdefault(step, {})
    found: dict[Place, int] = {}
    events = _events(decode(text))
    documents = (event for event in events if isinstance(event, DocumentStartEvent))
    for index in range(max(wanted, default=-1) + 1):
        if next(documents, None) is None or (node := next(events, None)) is None:
            break
        if index in wanted:
            found[index,] = node.start_mark.line + 1
        _visit(events, node, (index,), wanted.get(index), found)
    ancestors = ((place[:length] for length in range(len(place), 0, -1)) for place in places)
    return [next((found[place] for place in own if place in found), None) for own in ancestors]


def _events(text: str) -> Iterator[Any]:
    parser = CParser(text)
    try:
        yield from iter(parser.get_event, None)
    except YAMLError:
        return  # what stands before the error is still there


def _visit(events: Iterator[Any], node: Any, path: Place, wanted: Any, found: dict[Place, int]) -> None:
    """Read to the end of a node, and note where what is wanted of it begins."""
    if not wanted or not isinstance(node, CollectionStartEvent):
        _skip(events, node)
        return
    for index, event in enumerate(events):
        if isinstance(event, CollectionEndEvent):
            return
        step: Any = index
        value = event
        if isinstance(node, MappingStartEvent):
            step = None
            if isinstance(event, ScalarEvent):
                with suppress(NotAScalar):
                    is_plain = event.implicit[0] and event.tag is None
                    step = resolve_key(event.value) if is_plain else event.value
            _skip(events, event)
            value = next(events, None)
        if step in wanted:
            found.setdefault((*path, step), event.start_mark.line + 1)
        _visit(events, value, (*path, step), wanted.get(step), found)


def _skip(events: Iterator[Any], event: Any) -> None:
    depth = 0
    while True:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth <= 0:
            return
        event = next(events, None)
        if event is None:
            return
