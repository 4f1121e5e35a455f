"""Makes text from any source safe to print."""

from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import is_not
from typing import Any, TypeVar

from twgen.model.credentials import without_credentials

Value = TypeVar("Value")

_LOOKED_AT = 2**15
"""The maximum number of characters of a server's response that are processed."""


def printable(text: str) -> str:
    """Escape all characters that move the cursor, reverse or hide text, or end a line.

    This also removes credentials that twgen has sent to servers.
    """
    text = without_credentials(text)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def said(text: str, secrets: tuple[str, ...] = (), most: int = 1000) -> str:
    """A server's response as one line of at most `most` characters, without `secrets`."""
    # if the first cut splits a credential, the second cut removes its first part
    text = without_credentials(text[: 2 * _LOOKED_AT], secrets)[:_LOOKED_AT]
    return printable(" ".join(text.split()))[:most]


def printable_copy(value: Value) -> Value:
    """A copy of a plan, status or timeline in which all text is printable.

    Every report for people needs such a copy. YAML documents do not change, because no report shows them.
    """
    copied: Value = _printable(value)
    return copied


def _printable(value: Any) -> Any:
    kind: Any = type(value)
    if kind is str:  # false for members of a StrEnum, which need no escapes
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
    """The names of a dataclass's fields, or empty for other types."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
