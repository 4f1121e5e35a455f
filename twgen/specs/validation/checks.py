"""Checks of single values against Kubernetes' formats, and rules between the fields of a struct.

The formats are from k8s.io/apimachinery/pkg/util/validation. A check takes a value of the right type and
returns an error message, or "". A rule takes a struct whose fields have the right types.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from twgen.model.problem import CONFLICT, MISSING_FIELD, REQUIRED, did_you_mean, quoted
from twgen.model.values import dataclass
from twgen.versioning.quantities import quantity_nanos

Check = Callable[[Any], str]
Steps = tuple[str | int, ...]
Struct = Mapping[str, Any]
Wrong = Iterator[tuple[Steps, str]]
"""Error messages about values in a struct, each with the path from the struct to the value."""
StructRule = Callable[[Struct], Wrong]


@dataclass(frozen=True, slots=True)
class Range:
    """Checks that a whole number is between `least` and `most` (None means no upper limit)."""

    least: int
    most: int | None = None

    def __call__(self, value: int) -> str:
        """An error message; empty if the value is valid."""
        if self.least <= value and (self.most is None or value <= self.most):
            return ""
        end = f"at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"
        return f"must be {end}, not {value}"


def form(pattern: str, longest: int, words: str) -> Check:
    """A check that a text matches a pattern. `words` describe the pattern (`a DNS label such as main`)."""

    def check(value: str) -> str:
        if not value:
            return f"is empty: it must be {words}"
        if len(value) > longest:
            return f"is longer than {longest} characters"
        return "" if re.fullmatch(pattern, value) else f"{quoted(value)} is not {words}"

    return check


def one_of(values: tuple[str, ...]) -> Check:
    """A check that a text is one of these values."""
    shown = ", ".join(values[:8]) + (" ..." if len(values) > 8 else "")  # there are 65 signals

    def check(value: str) -> str:
        return (
            "" if value in values else f"{quoted(value)} is not one of {shown}{did_you_mean(value, values)}"
        )

    return check


def not_empty(value: Any) -> str:
    """Check that a text or a list is not empty."""
    return "" if value else "must not be empty"


def when_filled(check: Check) -> Check:
    """The same check, except that an empty value is valid."""
    return lambda value: check(value) if value else ""


_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_LONGEST_SUBDOMAIN = 253
_LONGEST_NAME = 63

DNS_LABEL = form(_LABEL, _LONGEST_NAME, "a DNS label: lower-case letters and digits, and - between them")
SUBDOMAIN = form(
    rf"{_LABEL}(\.{_LABEL})*",
    _LONGEST_SUBDOMAIN,
    "a DNS name: lower-case letters and digits, and - or . between them",
)
LABEL_VALUE = when_filled(
    form(_NAME, _LONGEST_NAME, "a label value: letters and digits, and -, _ or . between them")
)
PORT_NAME = form(
    r"(?=[-0-9]*[a-z])[a-z0-9]+(-[a-z0-9]+)*",
    15,
    "a port name: lower-case letters (at least one) and digits, and single - between them",
)
VARIABLE_NAME = form(r"[ -<>-~]+", 2**20, "a variable name: printable ASCII characters except =")
CONFIG_KEY = form(
    r"(?!\.\.)(?!\.$)[-._a-zA-Z0-9]+",
    _LONGEST_SUBDOMAIN,
    "a key: letters, digits, -, _ and ., without .. at the start",
)
HEADER_NAME = form(r"[-A-Za-z0-9]+", 2**20, "an HTTP header name: letters, digits and -")
PATH_SEGMENT = form(r"(?!\.{1,2}$)[^/%]+", 2**20, "a name: it must not be . or .., or contain / or %")
_FINALIZERS = {"foregroundDeletion", "kubernetes", "orphan"}
PORT = Range(1, 65535)


@lru_cache(maxsize=4096)
def qualified_name(value: str) -> str:
    """Check the key of a label or annotation: a name with an optional prefix, which is a DNS name and `/`."""
    prefix, slash, name = value.rpartition("/")
    if slash and SUBDOMAIN(prefix):
        return f"{quoted(value)} has a prefix that is not a DNS name"
    if len(name) > _LONGEST_NAME:
        return f"{quoted(value)} is longer than {_LONGEST_NAME} characters"
    if not re.fullmatch(_NAME, name):
        return f"{quoted(value)} is not a name: letters and digits, and -, _ or . between them"
    return ""


def finalizer(value: str) -> str:
    """Check a finalizer. With an unknown finalizer, a ReplicaSet silently creates no pods."""
    if "/" in value or value in _FINALIZERS:
        return qualified_name(value)
    return f"{quoted(value)} needs a domain as prefix, such as example.com/{value}"


def port(value: int | str) -> str:
    """Check the port of a probe: a number or a name."""
    return PORT_NAME(value) if isinstance(value, str) else PORT(value)


def api_version(value: str) -> str:
    """Check an API version, such as `v1` or `apps/v1`."""
    return f"{quoted(value)} is not an API version such as apps/v1" if value.count("/") > 1 else ""


def inner_path(value: str) -> str:
    """Check a path inside a volume."""
    if value.startswith("/"):
        return f"{quoted(value)} must be relative"
    return path_without_backsteps(value)


def file_in_volume(value: str) -> str:
    """Check the path of a file inside a volume."""
    if value.startswith("..") and not value.startswith("../"):
        return f"{quoted(value)} must not begin with .."
    return inner_path(value) or not_empty(value)


def path_without_backsteps(value: str) -> str:
    """Check that a path does not contain `..`."""
    return f"{quoted(value)} must not contain .." if ".." in value.split("/") else ""


def not_negative(value: str | float) -> str:
    """Check that a quantity is zero or more."""
    return "" if quantity_nanos(value) >= 0 else f"must not be negative, but is {value}"


def positive(value: str | float) -> str:
    """Check that a quantity is above zero."""
    return "" if quantity_nanos(value) > 0 else f"must be above 0, not {value}"


def share(value: int | str) -> str:
    """Check a number of pods, or a percentage of them."""
    if isinstance(value, int):
        return Range(0)(value)
    if not re.fullmatch(r"[0-9]+%", value):
        return f"{quoted(value)} is not a percentage such as 25%"
    return "" if re.fullmatch(r"0*(100|[0-9]{1,2})%", value) else f"{quoted(value)} is above 100%"


def required(*names: str) -> StructRule:
    """A rule that these fields must be set and not empty, although Go's types make them optional."""

    def rule(struct: Struct) -> Wrong:
        for name in names:
            if not struct.get(name):
                yield (name,), REQUIRED if struct.get(name) is None else "must not be empty"

    return rule


def exactly_one(*names: str) -> StructRule:
    """A rule that exactly one of these fields must be set."""
    *others, last = names
    needed = f"needs {', '.join(others)} or {last}"

    def rule(struct: Struct) -> Wrong:
        present = [name for name in names if name in struct]
        if not present:
            yield (), CONFLICT(needed)
        yield from _conflicts(present)

    return rule


def at_most_one(*names: str) -> StructRule:
    """A rule that at most one of these fields can be set."""
    return lambda struct: _conflicts([name for name in names if name in struct])


def one_besides(*others: str) -> StructRule:
    """A rule that in addition to these fields, at most one field can be set."""
    return lambda struct: _conflicts(sorted(struct.keys() - set(others)))


def _conflicts(present: list[str]) -> Wrong:
    for name in present[1:]:
        yield (name,), CONFLICT(f"conflicts with {present[0]}: set only one of them")


def inside(name: str, rule: StructRule) -> StructRule:
    """The same rule, applied to the struct in a field that is always present."""

    def inner(struct: Struct) -> Wrong:
        for steps, wrong in rule(struct[name]):
            yield (name, *steps), wrong

    return inner


def in_order(least: str, most: str, when_absent: int | None = None) -> StructRule:
    """A rule that field `least` must not exceed field `most`, whose default is `when_absent`."""

    def rule(struct: Struct) -> Wrong:
        low, high = struct.get(least), struct.get(most, when_absent)
        if low is not None and high is not None and low > high:
            limit = f"{most} ({high})" if most in struct else f"the default of {most} ({high})"
            yield (least,), f"{low} is above {limit}"

    return rule


def labels(name: str) -> StructRule:
    """A rule that the labels in this field must be valid."""

    def rule(struct: Struct) -> Wrong:
        for key, value in (struct.get(name) or {}).items():
            if wrong := qualified_name(key) or LABEL_VALUE(value):
                yield (name, key), wrong

    return rule


def annotations(struct: Struct) -> Wrong:
    """The rule that annotations must be valid."""
    for key in struct.get("annotations") or ():
        if wrong := qualified_name(key.lower()):
            yield ("annotations", key), wrong


def requirement(struct: Struct) -> Wrong:
    """The rule that a selector requirement must have as many values as its operator takes."""
    operator, values = struct["operator"], struct.get("values") or []
    if operator in {"In", "NotIn"} and not values:
        yield ("values",), MISSING_FIELD(f"is required: {operator} needs at least one value")
    if operator in {"Exists", "DoesNotExist"} and values:
        yield ("values",), f"must be left out: {operator} takes no values"
    if operator in {"Gt", "Lt"} and len(values) != 1:
        yield ("values",), f"must have one value: {operator} takes one"
