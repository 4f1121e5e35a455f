"""Paths of values in documents: `spec.rollout.steps[1]`, `metadata.labels['a.b/c']`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[Any, str | int] | str | None
"""The path of a value in a document: the path of the enclosing mapping or list, and the value's key or index.

None is the path of the document itself. A path can also begin with a string. `written_path` converts a path
to a string, but only for a message, because the conversion takes time."""

_MAPPINGS = (dict, Mapping)  # `dict` comes first, because checking for `dict` is four times as fast
_PLAIN_KEY = re.compile(r"[^\s.\[\]'\\\x00-\x1f\x7f-\x9f]+")
_STEP = re.compile(r"\[(?P<index>[0-9]+)\]|\['(?P<quoted>[^']*)'\]|(?P<dot>\.?)(?P<key>[^\s.\[\]'\\]+)")
# these characters are escaped, because a path is part of a one-line message
_ESCAPED = re.compile(r"[\\'\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")


def join_path(path: str, *steps: str | int) -> str:
    """Append keys (strings) and list indexes (from 0) to a path. The path of the document itself is empty."""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            path += f".{step}" if path else step
        else:
            escaped = _ESCAPED.sub(lambda character: f"\\u{ord(character[0]):04x}", step)
            path += f"['{escaped}']"
    return path


def written_path(path: Path, start: str = "") -> str:
    """Convert a path to a string. `start` is the path of the value where the path begins."""
    steps: list[str | int] = []
    while isinstance(path, tuple):
        path, step = path
        steps.append(step)
    return join_path(path or start, *reversed(steps))


def parse_path(path: str) -> tuple[str | int, ...]:
    """Split a path from join_path into keys and indexes. Raises ValueError for any other string."""
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        matched = _STEP.match(path, position)
        # each key except the first follows a dot
        if not matched or (matched["key"] is not None and bool(matched["dot"]) != (position > 0)):
            raise ValueError(f"not a path at character {position + 1}")
        if matched["index"] is not None:
            steps.append(int(matched["index"]))
        elif matched["quoted"] is not None:
            steps.append(_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), matched["quoted"]))
        else:
            steps.append(matched["key"])
        position = matched.end()
    return tuple(steps)


def value_at(value: Any, *keys: str) -> Any:
    """The value at this path of keys in nested mappings, or None if a key is missing."""
    for key in keys:
        if value is None:
            return None
        value = value.get(key) if isinstance(value, _MAPPINGS) else None
    return value


def list_at(value: Any, *keys: str) -> list[Any]:
    """The list at this path of keys, or an empty list if there is another value."""
    found = value_at(value, *keys)
    return found if isinstance(found, list) else []


def differing_paths(first: Any, second: Any, path: str = "") -> Iterator[str]:
    """The paths of all values that differ between two mappings or lists."""
    if isinstance(first, _MAPPINGS) and isinstance(second, _MAPPINGS):
        for key in sorted(first.keys() | second.keys(), key=str):
            yield from differing_paths(first.get(key), second.get(key), join_path(path, str(key)))
    elif isinstance(first, list | tuple) and isinstance(second, list | tuple) and len(first) == len(second):
        for at, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from differing_paths(one, other, join_path(path, at))
    elif first != second:
        yield path
