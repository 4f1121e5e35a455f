"""Text that a person can read safely, wherever it came from."""

from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import is_not
from typing import Any, TypeVar

from twgen.model.credentials import without_credentials

Value = TypeVar("Value")

_LOOKED_AT = 2**15
"""Characters of what a server says: it may say a lot."""


def printable(text: str) -> str:
    """The text with every character that moves the cursor, turns or hides others, or ends a line escaped.

    It shows no credential that has been sent.
    """
    text = without_credentials(text)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def said(text: str, secrets: tuple[str, ...] = (), most: int = 1000) -> str:
    """What a server says, on one line of so many characters, and nothing of these."""
    # a credential that the first cut parts in two is behind the second one
    text = without_credentials(text[: 2 * _LOOKED_AT], secrets)[:_LOOKED_AT]
    return printable(" ".join(text.split()))[:most]


def printable_copy(value: Value) -> Value:
    """A plan, status or timeline with every text in it printable: where each report for people begins.

    Documents are left as they are: no report shows one.
    """
    copied: Value = _printable(value)
    return copied


def _printable(value: Any) -> Any:
    kind: Any = type(value)
    if kind is str:  # a member of a StrEnum has another type and needs no escape
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
