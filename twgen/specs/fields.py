"""Reading a document field by field, collecting what is wrong instead of stopping at it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, TypeVar

from twgen.model.problem import (
    MOST_TOLD,
    Finding,
    Place,
    did_you_mean,
    hidden_character,
    noun,
    quoted,
    unknown_field,
    wrong_type,
)
from twgen.specs.durations import parse_duration
from twgen.specs.limits import (
    BUILD_ID,
    DATA_KEY,
    FILLED,
    HOST_PORT,
    IDENTITY,
    LABEL,
    LINE,
    LONGEST_NAME,
    LONGEST_TEXT,
    MESSAGE_TYPE,
    NAME,
    SERVER_NAME,
    WORKFLOW_TYPE,
)

Choice = TypeVar("Choice", bound=StrEnum)
UNFILLED = "contains a variable that was not filled in: render the file first"
"""What is wrong with a text that is not FILLED."""
_NONE = "None"
"""The word of some enumerations for nothing at all."""
_MANY_PODS = 5000
"""Of one worker: as many as Kubernetes is made to have nodes."""
_YEARS = timedelta(days=730)
_INT32 = range(-(2**31), 2**31)
_WRONG_FORMS = {
    LABEL: "is not a name of lower-case letters, digits and -",
    BUILD_ID: "is not a valid build ID: letters, digits, - _ and .",
    NAME: "is not a name of lower-case letters, digits, - and .",
    FILLED: UNFILLED,
    WORKFLOW_TYPE: "is not a workflow name: one line, without quotes",
    MESSAGE_TYPE: "is not the full name of a protobuf message, such as shop.v1.Order",
    LINE: "must be one line, without blanks or typographic quotes at its ends",
    IDENTITY: "is not an identity such as payments/prod: one line without empty parts",
    DATA_KEY: "is not a key of letters, digits, -, _ and .",
    SERVER_NAME: "is not a host name",
    HOST_PORT: "is not host:port, such as temporal.example.com:7233",
}


@dataclass(eq=False, repr=False)
class Diagnostics:
    """What is wrong with one document: problems, what an API server drops or refuses, and warnings.

    Of each, one more than `most` is kept, which tells that there are more.
    """

    most: int = MOST_TOLD
    problems: list[Finding] = field(default_factory=list)
    unknown: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    def add_problems(self, findings: Iterable[Finding]) -> None:
        """Note problems, but none at or below a place that has one: what is wrong there follows from it."""
        for finding in findings:
            if len(self.problems) > self.most:
                return
            path = finding.path
            above = {path[:end] for end, character in enumerate(path) if character in ".["}
            if self._told.isdisjoint({path, "", *above}):
                self._told.add(path)
                self.problems.append(finding)

    def add_unknown(self, findings: Iterable[Finding]) -> None:
        """Note what an API server would drop or refuse."""
        self.unknown.extend(islice(findings, max(0, self.most + 1 - len(self.unknown))))


class Fields:
    """The fields of one mapping; a field of null is absent, as for an API server."""

    __slots__ = ("_read", "diagnostics", "path", "value")

    def __init__(self, value: Any, path: str, diagnostics: Diagnostics) -> None:
        self.path = path
        self.diagnostics = diagnostics
        self._read: set[str] = set()
        self.value: Mapping[str, Any] = value if isinstance(value, dict) else {}
        if value is not None and not isinstance(value, dict):
            self.problem("", wrong_type(noun(dict), value))

    def problem(self, name: str, message: str, other: Place | None = None) -> None:
        """Note what is wrong with a field, with what is below it (`a.b[1]`), or with the mapping ("")."""
        self.diagnostics.add_problems([Finding(self.at(name), message, other)])

    def warning(self, name: str, message: str) -> None:
        """Note what is doubtful about a field."""
        if len(self.diagnostics.warnings) <= self.diagnostics.most:
            self.diagnostics.warnings.append(Finding(self.at(name), message))

    def refused(self, findings: Iterable[Finding]) -> None:
        """Note what an API server would refuse, but for places that have a problem already."""
        wrong = {finding.path for finding in self.diagnostics.problems}
        self.diagnostics.add_unknown(finding for finding in findings if finding.path not in wrong)

    def at(self, name: str) -> str:
        """The path of a field."""
        if not name or not self.path or name.startswith("["):
            return self.path + name
        return f"{self.path}.{name}"

    def has(self, name: str) -> bool:
        """The field is there and not null."""
        return self.raw(name) is not None

    def raw(self, name: str) -> Any:
        """The field as it is, null when absent."""
        self._read.add(name)
        return self.value.get(name)

    def text(
        self,
        name: str,
        default: str = "",
        *,
        required: bool = False,
        form: str = "",
        most: int = LONGEST_TEXT,
    ) -> str:
        """A string; required: not empty either. `form` is a pattern of specs.limits that it must have."""
        value: str | None = self._typed(name, str)
        if value is None or not value:
            if required:
                self.problem(name, "is required" if value is None else "must not be empty")
            return default if value is None else value
        self._check_text(name, value, form, most)
        return value

    def line(self, name: str, *, required: bool = False) -> str:
        """A name that is not Kubernetes': text on one line."""
        return self.text(name, required=required, form=LINE)

    def identity(self, name: str) -> str:
        """Who manages workers, with `twgen/` before it or without."""
        return self.text(name, form=IDENTITY)

    def object_name(self, name: str, *, required: bool = False) -> str:
        """The name of a Kubernetes object."""
        return self.text(name, required=required, form=NAME, most=LONGEST_NAME)

    def data_key(self, name: str) -> str:
        """The key of a Secret or a ConfigMap, which must be there."""
        return self.text(name, required=True, form=DATA_KEY, most=LONGEST_NAME)

    def boolean(self, name: str) -> bool:
        """True or false; false when absent."""
        return bool(self._typed(name, bool))

    def integer(self, name: str, default: int | None = None, *, least: int | None = None) -> int | None:
        """A whole 32-bit number."""
        value: int | None = self._typed(name, int)
        if value is None:
            return default
        if value not in _INT32:
            self.problem(name, "does not fit into 32 bits")
        elif least is not None and value < least:
            self.problem(name, f"{value} is below {least}")
        return value

    def duration(self, name: str, default: timedelta, *, least: timedelta = timedelta()) -> timedelta:
        """A Go duration; one of less than a second is doubtful, unless it is `least` that it is below."""
        value = self.raw(name)
        if isinstance(value, int) and not isinstance(value, bool) and value in _INT32:
            such_as = f"{abs(value)}s, {abs(value)}m or {abs(value)}h"
            self.problem(name, f"must be a duration such as {such_as}, not the number {value}")
            return default
        value = self._typed(name, str)
        if value is None:
            if default:
                self._warn_of_null(name, "0")
            return default
        try:
            length = parse_duration(value)
        except ValueError as error:
            self.problem(name, str(error))
            return default
        if length < least:
            self.problem(name, f"{value} is shorter than {int(least.total_seconds())}s")
        elif timedelta() < length < timedelta(seconds=1):
            number = value.strip("+").rstrip("nuµμms")
            meant = f": write {number}m for minutes" if number.isdecimal() else ""
            self.warning(name, f"{value} is less than a second{meant}")
        elif length >= _YEARS:
            self.warning(name, f"{value} is {length.days // 365} years: check the unit")
        return length

    def warn_of_many_pods(self, *names: str) -> None:
        """Note each of these numbers of pods that nobody means."""
        for name in names:
            value = self.value.get(name)
            if isinstance(value, int) and value in _INT32 and value >= _MANY_PODS:
                self.warning(name, f"{value} pods are more than one worker needs: check the number")

    def choice(self, name: str, kind: type[Choice], default: Choice, *, hint: str = "") -> Choice:
        """One of an enumeration's values; `hint` ends the message when none of them is similar."""
        value = self._typed(name, str)
        if value is None and default != _NONE and _NONE in set(kind):
            self._warn_of_null(name, _NONE)
        return default if value is None else self._chosen(name, value, kind, hint) or default

    def _warn_of_null(self, name: str, none: str) -> None:
        """Note a null by which a person may mean nothing at all, and gets the default."""
        if name in self.value and self.value[name] is None:
            why = "is null, so the default applies"
            self.warning(name, f"{why}: write {none} if you mean none, or remove it")

    def choices(self, name: str, kind: type[Choice], default: tuple[Choice, ...]) -> tuple[Choice, ...]:
        """A list of an enumeration's values, each once."""
        if not self.has(name):
            return default
        chosen = (self._chosen(f"{name}[{at}]", value, kind) for at, value in self._distinct(name))
        return tuple(item for item in chosen if item)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        return tuple(value for _, value in self._strings(name))

    def lines(self, name: str, *, form: str = LINE) -> tuple[str, ...]:
        """A list of names that are not Kubernetes', each once."""
        found = list(self._distinct(name))
        for at, value in found:
            self._check_text(f"{name}[{at}]", value, form, LONGEST_TEXT)
        return tuple(value for _, value in found)

    def mapping(self, name: str) -> "Fields":
        """The fields of a mapping; none when it is absent."""
        return Fields(self.raw(name), self.at(name), self.diagnostics)

    def mappings(self, name: str) -> "Iterator[Fields]":
        """The fields of each mapping in a list."""
        for index, item in enumerate(self._typed(name, list) or []):
            path = f"{self.at(name)}[{index}]"
            if item is None:
                self.diagnostics.add_problems([Finding(path, wrong_type(noun(dict), item))])
            yield Fields(item, path, self.diagnostics)

    def close(self, *also: str, elsewhere: str = "") -> None:
        """Note every field that nobody has read, but those in `also`: there is no such field.

        `elsewhere` is the mapping that one may belong into whose name is like none of them.
        """
        names = self._read.union(also)
        if names.issuperset(self.value):
            return
        self.diagnostics.add_unknown(
            unknown_field(self.path, name, names, elsewhere=elsewhere)
            for name in self.value
            if name not in names
        )

    def _typed(self, name: str, kind: type) -> Any:
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.problem(name, wrong_type(noun(kind), value))
            return None
        return value

    def _check_text(self, name: str, value: str, form: str, most: int) -> None:
        if len(value) <= most and value.isascii() and value[:1] != "$" and re.search(form, value):
            return
        # where the name of a Secret is wanted, people also write what it holds
        is_secret = "secret" in self.at(name).lower()
        if hidden := hidden_character(value):
            wrong = f"contains an invisible character{f' ({hidden})' if is_secret else ''}: retype it"
        elif len(value) > most:
            wrong = f"is longer than {most} characters"
        elif form and value.startswith("$"):
            wrong = UNFILLED
        elif not form or re.search(form, value):
            return
        elif "{{" in value:
            wrong = "is a Helm template: run `helm template` first"
        elif "${" in value or "$(" in value:
            wrong = UNFILLED
        else:
            wrong = _WRONG_FORMS[form]
        shown = "" if is_secret else f"{quoted(value)} "
        self.problem(name, f"{shown}{wrong}" if value else "must not be empty")

    def _strings(self, name: str) -> Iterator[tuple[int, str]]:
        for index, item in enumerate(self._typed(name, list) or []):
            if isinstance(item, str):
                yield index, item
            else:
                self.problem(f"{name}[{index}]", wrong_type(noun(str), item))

    def _distinct(self, name: str) -> Iterator[tuple[int, str]]:
        seen = set()
        for index, item in self._strings(name):
            if item in seen:
                self.problem(f"{name}[{index}]", f"{quoted(item)} appears twice")
            seen.add(item)
            yield index, item

    def _chosen(self, name: str, value: str, kind: type[Choice], hint: str = "") -> Choice | None:
        try:
            return kind(value)
        except ValueError:
            hint = did_you_mean(value, kind) or hint
            self.problem(name, f"{quoted(value)} is not one of {', '.join(kind)}{hint}")
            return None
