"""The walk through a stored pod template or attached object that checks every value by its rules."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from twgen.model.paths import Path, parse_path, written_path
from twgen.model.problem import MOST_TOLD, Finding, quoted
from twgen.specs.validation import attached, pods
from twgen.specs.validation.rules import Steps
from twgen.specs.validation.syntax import Check, Range, not_empty, one_of
from twgen.versioning.kubernetes_types import LIST, Field, struct_fields

_FIELDS = pods.FIELDS | attached.FIELDS
_STRUCTS = pods.STRUCTS | attached.STRUCTS
_MAY_BE_EMPTY = {"HTTPHeader.value", "Sysctl.value"}
_UNCHECKED = {"MetricIdentifier.selector"}
"""What a metric is selected by is between its adapter and whoever wrote it."""


class _FieldRules(NamedTuple):
    """What is checked of one field: its value or `each` item, the keys of the items, the struct below."""

    checks: tuple[Check, ...]
    each: bool
    keys: Sequence[str]
    below: str
    is_list: bool


def refusals(
    stored: Mapping[str, Any],
    struct: str,
    path: str,
    most: int = MOST_TOLD,
    problems: Sequence[Finding] = (),
) -> list[Finding]:
    """What an API server would refuse of a value as `stored_form` has it, each place once.

    Where that has `problems`, only what they leave whole is checked; nothing when there are more than `most`.
    Of more than `most` places, one more than that is told.
    `struct` is what kubernetes_types calls it, `path` where it stands in its document.
    """
    if len(problems) > most:
        return []
    unsound = {above for problem in problems for above in _upwards(problem.path, path)}
    found: dict[Path, str] = {}
    for at, message in _walk_struct(struct, stored, None, unsound):
        found.setdefault(at, message)
        if len(found) > most:
            break
    return [Finding(written_path(at, path), message) for at, message in found.items()]


def _upwards(written: str, start: str) -> Iterator[Path]:
    """The path of a problem in what is at `start`, and of all that holds it."""
    path: Path = None
    yield path
    for step in parse_path(written.removeprefix(start).removeprefix(".")):
        path = (path, step)
        yield path


def _walk_struct(
    struct: str, value: Mapping[str, Any] | None, path: Path, unsound: set[Path]
) -> Iterator[tuple[Path, str]]:
    """What is wrong from here on; `unsound` are the places of problems, where None is, and those above."""
    value = value or {}
    for name, item in value.items():
        if item is None or not (rules := _rules_of(struct, name)):
            continue
        at = (path, name)
        if (rules.checks or rules.keys) and at not in unsound:
            yield from _check(rules, item, at)
        if rules.below and rules.is_list:
            for index, entry in enumerate(item):
                yield from _walk_struct(rules.below, entry, (at, index), unsound)
        elif rules.below:
            yield from _walk_struct(rules.below, item, at, unsound)
    for rule in () if path in unsound else _STRUCTS.get(struct, ()):
        for steps, message in rule(value):
            yield _below(path, steps), message


def _check(rules: _FieldRules, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    for check in rules.checks:
        if not rules.each:
            if message := check(value):
                yield path, message
            continue
        for index, item in enumerate(value):
            if message := check(item):
                yield (path, index), message
    for steps, message in _repetitions(value, rules.keys) if rules.keys else ():
        yield _below(path, steps), message


def _below(path: Path, steps: Steps) -> Path:
    for step in steps:
        path = (path, step)
    return path


# of the whole table, a template uses few fields
@cache
def _rules_of(struct: str, name: str) -> _FieldRules | None:
    field = next(field for field in struct_fields(struct) if field.name == name)
    if f"{struct}.{name}" in _UNCHECKED:
        return None
    is_list = field.type.startswith(LIST)
    each = is_list and bool(field.enum or f"{struct}.{name}[]" in _FIELDS)
    item = field.type.removeprefix(LIST)
    below = item if item[0].isupper() else ""
    rules = _FieldRules(tuple(checks_of(struct, field)), each, field.keys, below, is_list)
    return rules if rules.checks or rules.keys or rules.below else None


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
            shown = " with ".join(
                f"{name} {quoted(value) if isinstance(value, str) else value}"
                for name, value in zip(keys, key, strict=True)
            )
            yield (index, keys[0]), f"{shown} appears twice"
        seen.add(key)
