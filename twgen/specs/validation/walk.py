"""Apply the rules to every value in the stored form of a pod template or attached object."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from twgen.model.paths import Path, written_path
from twgen.model.problem import DUPLICATE, MOST_REPORTED, Finding, quoted
from twgen.specs.validation.checks import Check, Range, Steps, Wrong, not_empty, one_of, when_filled
from twgen.specs.validation.rules import FIELDS, STRUCTS
from twgen.versioning.stored_form import LIST, struct_fields

MAY_BE_EMPTY = {"HTTPHeader.value", "Sysctl.value"}
"""Required strings that can be empty. An API server treats an absent string as empty."""
_UNCHECKED = {"MetricIdentifier.selector"}
"""Structs that are not checked, because only the metrics adapter knows which selectors are valid."""


class _FieldRules(NamedTuple):
    """The checks for a field or `each` item in it, the key fields of its items, and its struct (`below`)."""

    checks: Sequence[Check]
    each: bool
    keys: Sequence[str]
    below: str
    is_list: bool


def refusals(
    stored: Mapping[str, Any],
    struct: str,
    path: str,
    most: int = MOST_REPORTED,
    problems: Sequence[Finding] = (),
) -> list[Finding]:
    """The problems that an API server would report about a stored value, at most one for each path.

    `problems` were found when the value was converted to its stored form, and their paths are not checked
    again. If there are more than `most` of them, nothing is checked. The result has at most `most` + 1
    problems, so that the caller can see that there are more. `struct` is the name of the value's type in
    kubernetes_types, and `path` its path in the document.
    """
    if len(problems) > most:
        return []
    # the paths of problems, whose values are None, and all parent paths
    unsound = {
        problem.path[:end]
        for problem in problems
        for end, character in enumerate(f"{problem.path}.")
        if character in ".[" or not end
    }
    findings: dict[Path, str] = {}

    def is_sound(at: Path) -> bool:
        return not unsound or written_path(at, path) not in unsound

    for at, message in _walk(struct, stored, None, is_sound):
        findings.setdefault(at, message)
        if len(findings) > most:
            break
    return [Finding(written_path(at, path), message) for at, message in findings.items()]


def _walk(
    struct: str, value: Mapping[str, Any] | None, path: Path, is_sound: Callable[[Path], bool]
) -> Iterator[tuple[Path, str]]:
    value = value or {}
    for name, item in value.items():
        if item is None or not (rules := _rules_of(struct, name)):
            continue
        at = (path, name)
        if (rules.checks or rules.keys) and is_sound(at):
            yield from _below(at, _checked(rules, item))
        if rules.below and rules.is_list:
            for index, entry in enumerate(item):
                yield from _walk(rules.below, entry, (at, index), is_sound)
        elif rules.below:
            yield from _walk(rules.below, item, at, is_sound)
    if struct in STRUCTS and is_sound(path):
        for rule in STRUCTS[struct]:
            yield from _below(path, rule(value))


def _below(path: Path, wrong: Wrong) -> Iterator[tuple[Path, str]]:
    for steps, message in wrong:
        at = path
        for step in steps:
            at = (at, step)
        yield at, message


def _checked(rules: _FieldRules, value: Any) -> Wrong:
    items: list[tuple[Steps, Any]] = [((), value)]
    if rules.each:
        items = [((index,), item) for index, item in enumerate(value)]
    for check in rules.checks:
        for steps, item in items:
            if message := check(item):
                yield steps, message
    seen = set()
    for index, item in enumerate(value if rules.keys else ()):
        key = tuple(item.get(name) for name in rules.keys)
        if key in seen:
            shown = " with ".join(
                f"{name} {quoted(value) if isinstance(value, str) else value}"
                for name, value in zip(rules.keys, key, strict=True)
            )
            yield (index, rules.keys[0]), DUPLICATE(f"{shown} appears twice")
        seen.add(key)


# the rules are built on demand, because a template uses few of the table's fields
@cache
def _rules_of(struct: str, name: str) -> _FieldRules | None:
    field = next(field for field in struct_fields(struct) if field.name == name)
    place = f"{struct}.{name}"
    if place in _UNCHECKED:
        return None
    checks: list[Check] = []
    if field.enum:
        is_one = one_of(tuple(field.enum))
        # if Go's encoder omits an empty string, an empty string is as valid as an absent one
        checks.append(when_filled(is_one) if field.written == "filled" and not field.required else is_one)
    if field.minimum is not None:
        checks.append(Range(field.minimum))
    is_always_written = field.written == "always" and field.type == "string"
    if field.nonempty or (is_always_written and place not in MAY_BE_EMPTY):
        checks.append(not_empty)
    if check := FIELDS.get(place) or FIELDS.get(f"{place}[]"):
        checks.append(check)
    item = field.type.removeprefix(LIST)
    is_list, below = item != field.type, item if item[0].isupper() else ""
    each = is_list and bool(field.enum or f"{place}[]" in FIELDS)
    return _FieldRules(checks, each, field.keys, below, is_list) if checks or field.keys or below else None
