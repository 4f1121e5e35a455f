"""Reading documents as Kubernetes does, within limits, by walking the parser's events."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from yaml import YAMLError
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from twgen.yaml.aliases import Aliases, error_at
from twgen.yaml.errors import YamlError
from twgen.yaml.json_text import read_json
from twgen.yaml.limits import DEFAULT, Limits
from twgen.yaml.scalars import NotAScalar, Scalar, key_text, resolve_key, resolve_plain, resolve_tagged, token
from twgen.yaml.source import decode, describe

_MERGE_TAG = "tag:yaml.org,2002:merge"
_MOST_REMEMBERED = 20_000  # distinct plain scalars: more than manifests have, bounded for hostile text


def read_documents(text: bytes | str, limits: Limits = DEFAULT) -> list[Any]:
    """Return the value of each YAML or JSON document (None for an empty one); raises YamlError.

    The rules are those of sigs.k8s.io/yaml with strict keys; what `<<` brought may be overridden below it.
    What an alias stands for is shared, not copied.
    """
    if len(text) > limits.bytes:
        raise YamlError(f"more than {limits.bytes} bytes: split the file")
    content = decode(text)
    found = read_json(content, limits)
    return _Reader(content, limits).documents() if found is None else [found]


class _Reader:
    """One pass over a text: the parser, the scalars it has seen, and what counts towards the limits."""

    def __init__(self, text: str, limits: Limits) -> None:
        self._text = text
        self._limits = limits
        self._next: Callable[[], Any] = CParser(text).get_event
        # all loops share this iterator, and so count keys and items together at no cost
        self._counted: Iterator[Any] = islice(iter(self._next, None), limits.nodes)
        self._plain: dict[str, Any] = {}
        self._keys: dict[str, str] = {}
        self._aliases = Aliases(limits)
        self._deepest = 0
        self._last: Any = None

    def documents(self) -> list[Any]:
        """Return the value of each document."""
        try:
            return list(self._documents())
        except YAMLError as error:
            raise describe(error, self._text) from None

    def _documents(self) -> Iterator[Any]:
        count = 0
        for event in self._counted:
            if event.__class__ is DocumentStartEvent:
                count += 1
                if count > self._limits.documents:
                    raise error_at(event, f"more than {self._limits.documents} documents: split the file")
                self._aliases.start_document()
                yield self._node(self._next(), 0)
        if (event := self._next()) is not None:
            raise self._too_many(event)

    def _sequence(self, depth: int) -> list[Any]:
        found: list[Any] = []
        plain = self._plain
        for event in self._counted:
            kind = event.__class__
            if kind is SequenceEndEvent:
                self._last = event
                return found
            # the conditions of _is_plain, in place: a call would cost as much as all else here
            if kind is ScalarEvent and event.implicit[0] and event.tag is None and event.anchor is None:
                value = plain.get(event.value, event)
                found.append(self._node(event, depth) if value is event else value)
            else:
                found.append(self._node(event, depth))
        raise self._too_many(self._next())

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: set[str] = set()
        keys, plain, following = self._keys, self._plain, self._next
        for event in self._counted:
            kind, key = event.__class__, None
            if kind is MappingEndEvent:
                self._last = event
                return found
            if kind is ScalarEvent and event.implicit[0] and event.tag is None and event.anchor is None:
                key = keys.get(event.value)
            if key is None:
                if _is_merge(event):
                    merged |= self._merge(found, depth)
                    continue
                key = self._key(event, depth)
            if key in found:
                if key not in merged:
                    raise error_at(event, f"the key {token(key)} is there twice")
                merged.remove(key)
            node = value = following()
            if (
                node.__class__ is ScalarEvent
                and node.implicit[0]
                and node.tag is None
                and node.anchor is None
            ):
                value = plain.get(node.value, node)
            found[key] = self._node(node, depth) if value is node else value
        raise self._too_many(self._next())

    def _node(self, event: Any, depth: int) -> Any:
        if event.__class__ is ScalarEvent:
            return self._scalar(event)
        if event.__class__ is AliasEvent:
            anchor = self._aliases.resolve(event, depth)
            self._deepest = max(self._deepest, depth + anchor.height)
            return anchor.value
        if depth == self._limits.depth:
            raise error_at(event, f"nested deeper than {depth} levels")
        if depth >= self._deepest:
            self._deepest = depth + 1
        read = self._mapping if event.__class__ is MappingStartEvent else self._sequence
        return read(depth + 1) if event.anchor is None else self._anchored(event, depth, read)

    def _anchored(self, event: Any, depth: int, read: Callable[[int], Any]) -> Any:
        anchor = self._aliases.start(event.anchor)
        expanded, deepest = self._aliases.expanded, self._deepest
        self._deepest = depth + 1
        anchor.value = read(depth + 1)
        added = self._aliases.expanded - expanded
        anchor.characters = self._last.end_mark.index - event.start_mark.index + added
        anchor.height = self._deepest - depth
        self._deepest = max(deepest, self._deepest)
        return anchor.value

    def _scalar(self, event: Any) -> Scalar:
        value = _scalar_value(event)
        if event.anchor is not None:
            anchor = self._aliases.start(event.anchor)
            anchor.value = value
            anchor.characters = event.end_mark.index - event.start_mark.index
        elif _is_plain(event) and len(self._plain) < _MOST_REMEMBERED:
            self._plain[event.value] = value
        return value

    def _key(self, event: Any, depth: int) -> str:
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            raise error_at(event, "a key must be a text, not a mapping or a list")
        try:
            key = resolve_key(event.value) if _is_plain(event) else key_text(self._node(event, depth))
        except NotAScalar as error:
            raise error_at(event, str(error)) from None
        if _is_plain(event) and len(self._keys) < _MOST_REMEMBERED:
            self._keys[event.value] = key
        return key

    def _merge(self, found: dict[str, Any], depth: int) -> set[str]:
        event = self._next()
        value = self._node(event, depth)
        added: dict[str, Any] = {}
        for mapping in reversed(value) if event.__class__ is SequenceStartEvent else [value]:
            if not isinstance(mapping, dict):
                raise error_at(event, "<< takes a mapping or a list of mappings")
            self._aliases.expand(event, len(mapping))
            added.update(mapping)
        for key in found.keys() & added.keys():
            raise error_at(event, f"the key {token(key)} is there before << brings it: put << first")
        found.update(added)
        return set(added)

    def _too_many(self, event: Any) -> YamlError:
        return error_at(event, f"more than {self._limits.nodes} keys and list items: split the file")


def _is_plain(event: Any) -> bool:
    return event.__class__ is ScalarEvent and event.implicit[0] and event.anchor is None and event.tag is None


def _scalar_value(event: Any) -> Scalar:
    try:
        if event.tag is not None:
            return resolve_tagged(event.tag, event.value)
        return resolve_plain(event.value) if event.implicit[0] else str(event.value)
    except NotAScalar as error:
        raise error_at(event, str(error)) from None


def _is_merge(event: Any) -> bool:
    if event.__class__ is not ScalarEvent or event.value != "<<":
        return False
    return bool(event.implicit[0]) or event.tag == _MERGE_TAG
