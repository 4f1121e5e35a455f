"""The walk through a stored pod template or attached object that checks every value by its rules."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from twgen.model.paths import join_path
from twgen.model.problem import Finding, quoted
from twgen.specs.validation import attached, pods
from twgen.specs.validation.rules import Steps
from twgen.specs.validation.syntax import Check, Range, filled, one_of
from twgen.versioning.kubernetes_types import LIST, MAP, Field, struct_fields

_FIELDS = pods.FIELDS | attached.FIELDS
_STRUCTS = pods.STRUCTS | attached.STRUCTS
_MAY_BE_EMPTY = {"HTTPHeader.value", "Sysctl.value"}
_UNCHECKED = {"MetricIdentifier.selector"}
"""What a metric is selected by is between its adapter and whoever wrote it."""

# Notes what is wrong below a place.
_Walk = Callable[[Any, Steps, dict[Steps, str]], None]


@dataclass(frozen=True, slots=True)
class _Row:
    """What is checked of one field: its value or `each` item of it, the keys of the items, what is below."""

    checks: tuple[Check, ...]
    each: bool
    keys: Sequence[str]
    below: _Walk | None


def refusals(stored: Mapping[str, Any], struct: str, path: str) -> list[Finding]:
    """What an API server would refuse of a value that `stored_form` has no problem with, each place once.

    `struct` is what kubernetes_types calls it, `path` where it stands in its document.
    """
    found: dict[Steps, str] = {}
    if walk := _walk_of(struct):
        walk(stored, (), found)
    return [Finding(join_path(path, *steps), message) for steps, message in found.items()]


@cache
def _walk_of(type_name: str) -> _Walk | None:
    """The walk through a type of the table; None when nothing in it has a rule."""
    if type_name.startswith(LIST):
        return _list_walk(_walk_of(type_name.removeprefix(LIST)))
    if type_name.startswith(MAP):
        return None
    if not type_name[0].isupper():
        return None
    return _struct_walk(type_name)


def _struct_walk(struct: str) -> _Walk | None:
    rows = {field.name: row for field in struct_fields(struct) if (row := _row(struct, field))}
    across = _STRUCTS.get(struct, ())
    if not rows and not across:
        return None

    def walk(value: Any, steps: Steps, found: dict[Steps, str]) -> None:
        for name, item in value.items():
            if item is not None and (row := rows.get(name)):
                _check(row, item, (*steps, name), found)
        for rule in across:
            for at, message in rule(value):
                found.setdefault((*steps, *at), message)

    return walk


def _row(struct: str, field: Field) -> _Row | None:
    if f"{struct}.{field.name}" in _UNCHECKED:
        return None
    each = field.type.startswith(LIST) and bool(field.enum or f"{struct}.{field.name}[]" in _FIELDS)
    row = _Row(tuple(checks_of(struct, field)), each, field.keys, _walk_of(field.type))
    return row if row.checks or row.keys or row.below else None


def _list_walk(below: _Walk | None) -> _Walk | None:
    if below is None:
        return None

    def walk(items: Any, steps: Steps, found: dict[Steps, str]) -> None:
        for index, item in enumerate(items):
            below(item, (*steps, index), found)

    return walk


def _check(row: _Row, value: Any, steps: Steps, found: dict[Steps, str]) -> None:
    places = [((*steps, index), item) for index, item in enumerate(value)] if row.each else [(steps, value)]
    for check in row.checks:
        for place, item in places:
            if message := check(item):
                found.setdefault(place, message)
    for at, message in _repetitions(value, row.keys) if row.keys else ():
        found.setdefault((*steps, *at), message)
    if row.below:
        row.below(value, steps, found)


def checks_of(struct: str, field: Field) -> Iterator[Check]:
    """The checks of one field, or of each item of a list: those of the table of types, and our own."""
    name = f"{struct}.{field.name}"
    if field.enum:
        # an absent text is an empty one where Go leaves it out
        absent = ("",) if field.written == "filled" and not field.required else ()
        yield _absent_or(one_of(tuple(field.enum))) if absent else one_of(tuple(field.enum))
    if field.minimum is not None:
        yield Range(field.minimum)
    if field.nonempty or (field.written == "always" and field.type == "string" and name not in _MAY_BE_EMPTY):
        yield filled
    if check := _FIELDS.get(name) or _FIELDS.get(f"{name}[]"):
        yield check


def _absent_or(check: Check) -> Check:
    return lambda value: check(value) if value else ""


def _repetitions(items: list[Mapping[str, Any]], keys: Sequence[str]) -> Iterator[tuple[Steps, str]]:
    seen = set()
    for index, item in enumerate(items):
        key = tuple(item.get(name) for name in keys)
        if key in seen:
            shown = " and ".join(
                f"{name} {quoted(value) if isinstance(value, str) else value}"
                for name, value in zip(keys, key, strict=True)
            )
            yield (index, keys[0]), f"{shown} is there twice"
        seen.add(key)
