"""Reading a document field by field, collecting what is wrong instead of stopping at it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from twgen.model.problem import Finding
from twgen.specs.durations import parse_duration

Choice = TypeVar("Choice", bound=StrEnum)

_INT32 = range(-(2**31), 2**31)
_NOUNS: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
}


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with one document: problems, fields that its kind does not have, and warnings."""

    problems: list[Finding] = field(default_factory=list)
    unknown: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)


class Fields:
    """The fields of one mapping; a field of null is absent, as for an API server."""

    __slots__ = ("_read", "findings", "path", "value")

    def __init__(self, value: Any, path: str, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        self._read: set[str] = set()
        self.value: Mapping[str, Any] = value if isinstance(value, dict) else {}
        if value is not None and not isinstance(value, dict):
            self.problem("", f"must be a mapping, not {noun(value)}")

    def problem(self, name: str, message: str) -> None:
        """Note what is wrong with a field, or with the mapping itself (empty name)."""
        self.findings.problems.append(Finding(self.at(name), message))

    def warning(self, name: str, message: str) -> None:
        """Note what is doubtful about a field."""
        self.findings.warnings.append(Finding(self.at(name), message))

    def at(self, name: str) -> str:
        """The path of a field."""
        if not name or not self.path or name.startswith("["):
            return self.path + name
        return f"{self.path}.{name}"

    def has(self, name: str) -> bool:
        """The field is there and not null."""
        return self.value.get(name) is not None

    def raw(self, name: str) -> Any:
        """The field as it is, None when absent."""
        self._read.add(name)
        return self.value.get(name)

    def text(self, name: str, default: str = "", *, required: bool = False) -> str:
        """A string; required: not empty either."""
        value = self._typed(name, str)
        if required and not value and not self._refused(name):
            self.problem(name, "is required")
        return default if value is None else value

    def integer(self, name: str, default: int | None = None, *, least: int | None = None) -> int | None:
        """A whole 32-bit number."""
        value: int | None = self._typed(name, int)
        if value is None:
            return default
        if value not in _INT32:
            self.problem(name, f"{value} does not fit into 32 bits")
        elif least is not None and value < least:
            self.problem(name, f"{value} is below {least}")
        return value

    def duration(self, name: str, default: timedelta) -> timedelta:
        """A Go duration."""
        value = self._typed(name, str)
        if value is None:
            return default
        try:
            return parse_duration(value)
        except ValueError:
            self.problem(name, f"{value!r} is not a duration such as 90s or 1h30m")
            return default

    def choice(self, name: str, kind: type[Choice], default: Choice) -> Choice:
        """One of an enumeration's values."""
        value = self._typed(name, str)
        if value is None:
            return default
        return self._chosen(name, value, kind) or default

    def choices(self, name: str, kind: type[Choice], default: tuple[Choice, ...]) -> tuple[Choice, ...]:
        """A list of an enumeration's values."""
        values = self.texts(name) if self.has(name) else None
        if values is None:
            return default
        chosen = (self._chosen(f"{name}[{index}]", value, kind) for index, value in enumerate(values))
        return tuple(item for item in chosen if item)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        items = self._typed(name, list) or []
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self.problem(f"{name}[{index}]", f"must be a string, not {noun(item)}")
        return tuple(item for item in items if isinstance(item, str))

    def mapping(self, name: str) -> "Fields":
        """The fields of a mapping; none when it is absent."""
        return Fields(self.raw(name), self.at(name), self.findings)

    def mappings(self, name: str) -> "Iterator[Fields]":
        """The fields of each mapping in a list."""
        for index, item in enumerate(self._typed(name, list) or []):
            yield Fields({} if item is None else item, f"{self.at(name)}[{index}]", self.findings)

    def close(self, *also: str) -> None:
        """Note every field that was not asked for, less those named."""
        for name in self.value:
            if name not in self._read and name not in also:
                self.findings.unknown.append(Finding(self.at(str(name)), "no such field"))

    def _typed(self, name: str, kind: type) -> Any:
        value = self.raw(name)
        if value is None or self._refused(name):
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            wanted = "a whole number" if kind is int else _NOUNS[kind]
            self.problem(name, f"must be {wanted}, not {noun(value)}")
            return None
        return value

    def _chosen(self, name: str, value: str, kind: type[Choice]) -> Choice | None:
        try:
            return kind(value)
        except ValueError:
            self.problem(name, f"{value!r} is not one of {', '.join(kind)}")
            return None

    def _refused(self, name: str) -> bool:
        path = self.at(name)
        return any(finding.path == path for finding in self.findings.problems)


def noun(value: Any) -> str:
    """What a value is, for people: `a list`, `the number 5`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"the number {value}"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    return _NOUNS.get(type(value), "null")
