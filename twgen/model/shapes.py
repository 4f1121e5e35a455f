"""How a value stands in a document, described once: read from it, written to it, and as a JSON Schema.

Reading collects every problem with its path and goes on; what it returns is of use only when there is none.
"""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from math import isfinite
from typing import Any, NamedTuple

from twgen.model.paths import Path, written_path
from twgen.model.problem import Finding, noun, quoted
from twgen.model.times import SUCH_AS, TIME_PATTERN, format_time, parse_time

Findings = list[Finding]
Schema = dict[str, Any]

_MOST_TOLD = 1000
_LARGEST = 2**63 - 1


class Shape(NamedTuple):
    """One kind of value: how it is read, how it is written, and what its JSON Schema is."""

    read: Callable[[Any, Path, Findings], Any]
    write: Callable[[Any], Any]
    schema: Schema
    plain: type | None = None
    """Every value of this class is right, and read as it is: `read` need not be called."""
    fixed: str = ""
    """The only value that documents have; it is no part of what is read."""


def refuse(findings: Findings, path: Path, message: str) -> None:
    """Note what is wrong at a path; of very many, only that there are more: a finding takes memory."""
    if len(findings) > _MOST_TOLD:
        findings.append(findings[-1])
        return
    if len(findings) == _MOST_TOLD:
        message = f"is wrong, and there may be more: fix the first {_MOST_TOLD} problems"
    findings.append(Finding(written_path(path), message))


def described(value: Any) -> str:
    """What a value is, for people: `a list`, `'Sleeping'`."""
    return quoted(value) if isinstance(value, str) else noun(type(value))


def text(pattern: str = "", such_as: str = "", *, least: int = 0) -> Shape:
    """A string of at least so many characters; one that does not match is told what it should be like."""

    def read(value: Any, path: Path, findings: Findings) -> str:
        if value.__class__ is not str:
            refuse(findings, path, f"must be a string, not {described(value)}")
        elif len(value) < least:
            refuse(findings, path, "must not be empty")
        elif pattern and not re.match(pattern, value):
            refuse(findings, path, f"{quoted(value)} is not {such_as}")
        return str(value)

    schema: Schema = {"type": "string"}
    schema |= {"pattern": pattern} if pattern else {}
    schema |= {"minLength": least} if least else {}
    return Shape(read, unchanged, schema, None if pattern or least else str)


def whole_number(least: int = 0, most: int = _LARGEST) -> Shape:
    """A whole number within limits."""

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not int:
            refuse(findings, path, f"must be a whole number, not {described(value)}")
        elif not least <= value <= most:
            wanted = f"is below {least}" if value < least else f"is above {most}"
            refuse(findings, path, f"{value} {wanted}")
        return value

    return Shape(read, unchanged, {"type": "integer", "minimum": least, "maximum": most})


def number(least: int, most: int) -> Shape:
    """A number within limits; a fraction of nothing is written as a whole one."""

    def read(value: Any, path: Path, findings: Findings) -> float:
        if value.__class__ is not int and value.__class__ is not float:
            refuse(findings, path, f"must be a number, not {described(value)}")
        elif least <= value <= most:
            return float(value)
        else:
            refuse(findings, path, f"{value} is not from {least} to {most}")
        return least

    def write(value: float) -> int | float:
        return int(value) if value.is_integer() else value

    return Shape(read, write, {"type": "number", "minimum": least, "maximum": most})


def _read_number(value: Any, path: Path, findings: Findings) -> Any:
    if value.__class__ is not int and value.__class__ is not float:
        refuse(findings, path, f"must be a number, not {described(value)}")
    elif not isfinite(value):
        refuse(findings, path, f"{value} is not a finite number")
    else:
        return float(value)
    return 0.0


def constant(value: str) -> Shape:
    """This string and no other."""

    def read(found: Any, path: Path, findings: Findings) -> str:
        if found != value:
            refuse(findings, path, f"must be {value}")
        return value

    return Shape(read, unchanged, {"const": value}, fixed=value)


def choice(*items: StrEnum) -> Shape:
    """One of these values of an enumeration."""
    values = {item.value: item for item in items}

    def read(value: Any, path: Path, findings: Findings) -> Any:
        found = values.get(value) if value.__class__ is str else None
        if found is None:
            refuse(findings, path, f"must be one of {', '.join(values)}, not {described(value)}")
        return found

    return Shape(read, str, {"enum": list(values)})


def listing(item: Shape, key: Callable[[Any], Any] | None = None, noun: str = "", *, least: int = 0) -> Shape:
    """A list of at least so many items, read as a tuple; two items of the same `key` are refused.

    The key (None: the item is like no other) is asked for only where the items themselves are right.
    """
    read_item, write_item = item.read, item.write

    def read(value: Any, path: Path, findings: Findings) -> tuple[Any, ...]:
        if value.__class__ is not list:
            refuse(findings, path, f"must be a list, not {described(value)}")
            return ()
        if len(value) < least:
            refuse(findings, path, "must not be empty")
        before = len(findings)
        found = tuple([read_item(entry, (path, index), findings) for index, entry in enumerate(value)])
        if key is not None and len(findings) == before:
            seen: dict[Any, int] = {}
            for index, name in enumerate(map(key, found)):
                first = seen.setdefault(name, index)
                if first != index and name is not None:
                    said = " ".join(name) if isinstance(name, tuple) else name
                    refuse(findings, (path, index), f"{noun} {said} appears twice, first at [{first}]")
        return found

    def write(items: Sequence[Any]) -> list[Any]:
        return [write_item(entry) for entry in items]

    schema = {"type": "array", "items": item.schema}
    return Shape(read, write, schema | ({"minItems": least} if least else {}))


def mapping(item: Shape | None = None) -> Shape:
    """A mapping of names to values of one shape, or to anything; it is read and written as it is."""

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not dict:
            refuse(findings, path, f"must be a mapping, not {described(value)}")
        elif item is not None:
            for name, entry in value.items():
                if entry.__class__ is not item.plain:
                    item.read(entry, (path, name), findings)
        return value

    schema: Schema = {"type": "object"}
    return Shape(read, unchanged, schema | ({"additionalProperties": item.schema} if item else {}))


def unchanged(value: Any) -> Any:
    """The value itself: how a Shape is written whose values stand in documents as they are."""
    return value


def _read_time(value: Any, path: Path, findings: Findings) -> Any:
    try:
        return parse_time(value)
    except (ValueError, TypeError):
        refuse(findings, path, f"must be {SUCH_AS}, not {described(value)}")
        return None


def _read_flag(value: Any, path: Path, findings: Findings) -> Any:
    if value.__class__ is not bool:
        refuse(findings, path, f"must be true or false, not {described(value)}")
    return value


TEXT = text()
NUMBER = Shape(_read_number, unchanged, {"type": "number"})
"""Any but infinity."""
TIME = Shape(_read_time, format_time, {"type": "string", "pattern": TIME_PATTERN})
FLAG = Shape(_read_flag, unchanged, {"type": "boolean"}, bool)
COUNT = whole_number()
TEXTS = mapping(TEXT)
"""A mapping of names to strings, such as labels."""
