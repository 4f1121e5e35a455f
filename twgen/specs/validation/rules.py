"""Rules that hold between the fields of one struct."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from twgen.specs.validation.syntax import LABEL_VALUE, Check, qualified_name

Steps = tuple[str | int, ...]
Wrong = Iterator[tuple[Steps, str]]
"""The steps from the struct to a place, and what is wrong there."""
Rule = Callable[[Mapping[str, Any]], Wrong]

_MOST_ANNOTATIONS = 256 * 1024
_MOST_NAMED = 5


def required(*names: str) -> Rule:
    """Fields that must be there and not be empty, though Go's types let one leave them out."""

    def rule(struct: Mapping[str, Any]) -> Wrong:
        for name in names:
            if not struct.get(name):
                yield (name,), "is required" if struct.get(name) is None else "must not be empty"

    return rule


def exactly_one(*names: str) -> Rule:
    """Of these fields one must be there, and no more."""

    def rule(struct: Mapping[str, Any]) -> Wrong:
        present = [name for name in names if name in struct]
        if not present:
            *others, last = names[:_MOST_NAMED]
            more = " ..." if len(names) > _MOST_NAMED else ""
            yield (), f"needs {', '.join(others)} or {last}{more}"
        for name in present[1:]:
            yield (name,), f"conflicts with {present[0]}: set only one of them"

    return rule


def at_most_one(*names: str) -> Rule:
    """Of these fields no more than one may be there."""

    def rule(struct: Mapping[str, Any]) -> Wrong:
        for name in [name for name in names if name in struct][1:]:
            first = next(other for other in names if other in struct)
            yield (name,), f"conflicts with {first}: set only one of them"

    return rule


def named_secret(field: str) -> Rule:
    """A reference to a Secret that may be left out, but not its name."""

    def rule(struct: Mapping[str, Any]) -> Wrong:
        if struct.get(field) is not None and not struct[field].get("name"):
            yield (field, "name"), "is required"

    return rule


def forbidden(**reasons: str) -> Rule:
    """Fields that must not be there, each with the reason."""

    def rule(struct: Mapping[str, Any]) -> Wrong:
        for name, reason in reasons.items():
            if struct.get(name):
                yield (name,), reason

    return rule


def in_order(least: str, most: str, when_absent: int | None = None) -> Rule:
    """The first number must not be above the second, which counts as `when_absent` when it is left out."""

    def rule(struct: Mapping[str, Any]) -> Wrong:
        low, high = struct.get(least), struct.get(most, when_absent)
        if low is not None and high is not None and low > high:
            said = f"{most} ({high})" if most in struct else f"the default of {most} ({high})"
            yield (least,), f"{low} is above {said}"

    return rule


def labels(name: str) -> Rule:
    """The labels in a field."""

    def rule(struct: Mapping[str, Any]) -> Wrong:
        for key, value in (struct.get(name) or {}).items():
            if wrong := qualified_name(key) or LABEL_VALUE(value):
                yield (name, key), wrong

    return rule


def annotations(struct: Mapping[str, Any]) -> Wrong:
    """The annotations of an object."""
    found: Mapping[str, str] = struct.get("annotations") or {}
    for key in found:
        if wrong := qualified_name(key.lower()):
            yield ("annotations", key), wrong
    if sum(len(key.encode()) + len(value.encode()) for key, value in found.items()) > _MOST_ANNOTATIONS:
        yield ("annotations",), f"are larger than {_MOST_ANNOTATIONS // 1024} KiB together"


def requirement(value_check: Check | None) -> Rule:
    """A requirement of a selector: how many values its operator takes, and what they look like."""

    def rule(struct: Mapping[str, Any]) -> Wrong:
        operator, values = struct["operator"], struct.get("values") or []
        if operator in {"In", "NotIn"} and not values:
            yield ("values",), f"is required: {operator} needs at least one value"
        if operator in {"Exists", "DoesNotExist"} and values:
            yield ("values",), f"must be left out: {operator} takes no values"
        if operator in {"Gt", "Lt"} and len(values) != 1:
            yield ("values",), f"must hold one value: {operator} takes one"
        for index, value in enumerate(values if value_check else ()):
            if value_check and (wrong := value_check(value)):
                yield ("values", index), wrong

    return rule
