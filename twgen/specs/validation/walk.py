"""The walk through a stored pod template or attached object that checks every value by its rules."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from twgen.model.paths import join_path
from twgen.model.problem import MOST_TOLD, Finding, quoted
from twgen.specs.validation import attached, pods
from twgen.specs.validation.rules import Steps, Wrong
from twgen.specs.validation.syntax import Check, Range, not_empty, one_of
from twgen.versioning.kubernetes_types import LIST, Field, struct_fields

_FIELDS = pods.FIELDS | attached.FIELDS
_STRUCTS = pods.STRUCTS | attached.STRUCTS
_MAY_BE_EMPTY = {"HTTPHeader.value", "Sysctl.value"}
_UNCHECKED = {"MetricIdentifier.selector"}
"""What a metric is selected by is between its adapter and whoever wrote it."""


class _Row(NamedTuple):
    """What is checked of one field: its value or `each` item, the keys of the items, the struct below."""

    checks: tuple[Check, ...]
    each: bool
    keys: Sequence[str]
    below: str
    is_list: bool


def refusals(stored: Mapping[str, Any], struct: str, path: str, most: int = MOST_TOLD) -> list[Finding]:
    """What an API server would refuse of a value that `stored_form` has no problem with, each place once.

    Of more than `most` places, one more than that is told.
    `struct` is what kubernetes_types calls it, `path` where it stands in its document.
    """
    found: dict[Steps, str] = {}
    for steps, message in _walk_struct(struct, stored, ()):
        found.setdefault(steps, message)
        if len(found) > most:
            break
    return [Finding(join_path(path, *steps), message) for steps, message in found.items()]


def _walk_struct(struct: str, value: Mapping[str, Any], steps: Steps) -> Wrong:
    for name, item in value.items():
        if item is not None and (row := _row(struct, name)):
            yield from _check(row, item, (*steps, name))
    for rule in _STRUCTS.get(struct, ()):
        for at, message in rule(value):
            yield (*steps, *at), message


# of the whole table, a template uses few fields
@cache
def _row(struct: str, name: str) -> _Row | None:
    field = next(field for field in struct_fields(struct) if field.name == name)
    if f"{struct}.{name}" in _UNCHECKED:
        return None
    is_list = field.type.startswith(LIST)
    each = is_list and bool(field.enum or f"{struct}.{name}[]" in _FIELDS)
    item = field.type.removeprefix(LIST)
    below = item if item[0].isupper() else ""
    row = _Row(tuple(checks_of(struct, field)), each, field.keys, below, is_list)
    return row if row.checks or row.keys or row.below else None


def _check(row: _Row, value: Any, steps: Steps) -> Wrong:
    for check in row.checks:
        if not row.each:
            if message := check(value):
                yield steps, message
            continue
        for index, item in enumerate(value):
            if message := check(item):
                yield (*steps, index), message
    for at, message in _repetitions(value, row.keys) if row.keys else ():
        yield (*steps, *at), message
    if row.below and row.is_list:
        for index, item in enumerate(value):
            yield from _walk_struct(row.below, item, (*steps, index))
    elif row.below:
        yield from _walk_struct(row.below, value, steps)


def checks_of(struct: str, field: Field) -> Iterator[Check]:
    """The checks of one field, or of each item of a list: those of the table of types, and our own."""
    name = f"{struct}.{field.name}"
    if field.enum:
        # an absent text is an empty one where Go leaves it out
        may_be_empty = field.written == "filled" and not field.required
        is_one = one_of(tuple(field.enum))
        yield (lambda value: is_one(value) if value else "") if may_be_empty else is_one
    if field.minimum is not None:
        yield Range(field.minimum)
    if field.nonempty or (field.written == "always" and field.type == "string" and name not in _MAY_BE_EMPTY):
        yield not_empty
    if check := _FIELDS.get(name) or _FIELDS.get(f"{name}[]"):
        yield check


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
