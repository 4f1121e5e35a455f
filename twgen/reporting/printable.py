"""Text that a person can read safely, wherever it came from."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from json.encoder import encode_basestring
from operator import is_not
from typing import Any, TypeVar

Value = TypeVar("Value")

_SHORT = {repr(value): json.dumps(value) for value in (None, True, False, *range(100), [], {})}
"""The JSON of what reports mostly hold beside texts."""


def printable(text: str) -> str:
    """The text with every character that moves the cursor, turns or hides others, or ends a line escaped."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def json_text(document: Mapping[str, Any]) -> str:
    """A report as JSON that a person can read too."""
    return _indented(document, "\n") + "\n"


def _indented(value: Any, line: str) -> str:
    """As `json.dumps` with an indent of 2, which runs in Python and takes twice as long."""
    if isinstance(value, str):
        return encode_basestring(value)
    below = line + "  "
    if value and isinstance(value, dict):
        entries = [f"{encode_basestring(key)}: {_indented(item, below)}" for key, item in value.items()]
        return f"{{{below}{f',{below}'.join(entries)}{line}}}"
    if value and isinstance(value, list | tuple):
        return f"[{below}{f',{below}'.join([_indented(item, below) for item in value])}{line}]"
    return _SHORT.get(repr(value)) or json.dumps(value)


def printable_copy(value: Value) -> Value:
    """A plan, status or timeline with every text in it printable: where each report for people begins.

    Documents are left as they are: no report shows one.
    """
    copied: Value = _printable(value)
    return copied


def _printable(value: Any) -> Any:
    kind: Any = type(value)
    if kind is str:  # not a word of an enumeration
        return printable(value)
    if kind is tuple:
        items = tuple([_printable(item) for item in value])
        return items if any(map(is_not, items, value)) else value
    changes = {}
    for name in _names(kind):
        old = getattr(value, name)
        new = _printable(old)
        if new is not old:
            changes[name] = new
    return replace(value, **changes) if changes else value


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; of any other type none."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
