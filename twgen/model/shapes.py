"""The shape of a value in documents, declared once for reading, writing and the JSON Schema.

A reader records each problem with its path, and continues. Its result is usable only if there is no problem.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

from twgen.model.paths import Path, written_path
from twgen.model.problem import (
    DUPLICATE,
    MOST_REPORTED,
    NOT_RENDERED,
    UNLIKELY,
    DocumentPath,
    Finding,
    Message,
    counted,
    did_you_mean,
    hidden_character,
    noun,
    quoted,
    shortened,
    wrong_type,
)
from twgen.model.times import (
    DURATION_PATTERN,
    LONGEST_DURATION,
    SUCH_AS,
    TIME_PATTERN,
    format_time,
    parse_duration,
    parse_time,
    write_duration,
)

Schema = dict[str, Any]

MOST_OF_A_RECORD = 1000
"""The maximum number of findings shown for a ledger, a snapshot or an OperatorConfig."""

UNFILLED = NOT_RENDERED("contains a variable that was not filled in: render the file first")
_LARGEST = 2**63 - 1
_INT32 = range(-(2**31), 2**31)
_LARGEST_INT32 = _INT32[-1]


class Findings:
    """The findings about one document: problems, fields that an API server drops or rejects, and warnings.

    At most `most` findings of each list are shown. One more is kept to show that the list is incomplete.
    """

    def __init__(self, most: int = MOST_REPORTED) -> None:
        self.most = most
        self.problems: list[Finding] = []
        self.unknown: list[Finding] = []
        self.warnings: list[Finding] = []
        self.count = 0
        """The total number of problems, including problems that are not kept."""
        self._places: set[str] = set()

    def problem(self, path: Path, message: str, other: DocumentPath | None = None) -> None:
        """Add a problem at a path."""
        self.add_problems([Finding(written_path(path), message, other)])

    def add_problems(self, findings: Iterable[Finding]) -> None:
        """Add problems, but skip any problem at or below the path of an earlier problem."""
        for finding in findings:
            self.count += 1
            if len(self.problems) > self.most:
                return
            path = finding.path
            above = {path[:end] for end, character in enumerate(path) if character in ".["}
            if self._places.isdisjoint({path, "", *above}):
                self._places.add(path)
                self.problems.append(finding)

    def add_unknown(self, findings: Iterable[Finding]) -> None:
        """Add findings about fields that an API server would drop or reject."""
        self.unknown.extend(islice(findings, max(0, self.most + 1 - len(self.unknown))))

    def warning(self, path: Path, message: Message) -> None:
        """Add a warning at a path."""
        if len(self.warnings) <= self.most:
            self.warnings.append(Finding(written_path(path), message))

    def shown(self) -> list[Finding]:
        """The problems to print."""
        return list(shortened(self.problems, self.most))


def _unchanged(value: Any) -> Any:
    return value


class Shape(NamedTuple):
    """One kind of value in a document: its reader, its writer and its JSON Schema.

    If a value is invalid, the reader adds a problem, and may return None.
    """

    read: Callable[[Any, Path, Findings], Any]
    write: Callable[[Any], Any] = _unchanged
    """Converts a value for documents. By default, the value is not converted."""
    schema: Schema = {}  # noqa: RUF012 - no reader changes it
    plain: type | None = None
    """If set, every value of this class is valid and remains unchanged, so `read` need not be called."""
    fixed: str = ""
    """The only valid value of a constant. The dataclass has no attribute for it."""
    none: str = ""
    """The string that means "none", such as `0`. Null in a spec gets a warning, because it means the default.
    """
    may_be_empty: bool = False
    """Whether an empty string in an optional field of a spec means that the field is absent."""


def described(value: Any) -> str:
    """The value as described in a message, such as `a list` or `'Sleeping'`."""
    return quoted(value) if isinstance(value, str) else noun(type(value))


def text(pattern: str = "", such_as: str = "", *, wrong: str = "", least: int = 0, most: int = 0) -> Shape:
    """A string with at least `least` characters that matches the pattern.

    The error message for any other string is "is not `such_as`", or `wrong`. Strings in specs have a length
    limit (`most`). Error messages for specs also point out invisible characters and templates that were not
    rendered. They do not show the name of a Secret, because it might be the secret itself.
    """
    wrong = wrong or f"is not {such_as}"

    def read(value: Any, path: Path, findings: Findings) -> str | None:
        if value.__class__ is not str:
            findings.problem(path, wrong_type(noun(str), value))
            return None
        if most:
            if wrong_text := _wrong_text(value, path, pattern, wrong, most):
                findings.problem(path, wrong_text)
        elif len(value) < least:
            findings.problem(path, "must not be empty")
        elif pattern and not re.match(pattern, value):
            findings.problem(path, f"{quoted(value)} {wrong}")
        return str(value)

    schema: Schema = {"type": "string"}
    schema |= {"pattern": pattern} if pattern else {}
    schema |= {"minLength": max(least, 1 if most else 0)} if least or most else {}
    schema |= {"maxLength": most} if most else {}
    plain = None if pattern or least or most else str
    return Shape(read, schema=schema, plain=plain, may_be_empty=bool(most))


def _wrong_text(value: str, path: Path, pattern: str, wrong: str, most: int) -> str:
    """The error message for an invalid string in a spec. Empty if the string is valid."""
    if not value:
        return "must not be empty"
    fits_pattern = bool(re.search(pattern, value))
    if fits_pattern and value.isascii() and len(value) <= most and value[0] != "$":
        return ""
    is_secret = "secret" in written_path(path).lower()
    if hidden := hidden_character(value):
        wrong = f"contains an invisible character{f' ({hidden})' if is_secret else ''}: retype it"
    elif len(value) > most:
        wrong = f"is longer than {most} characters"
    elif pattern and value[0] == "$":
        return UNFILLED if is_secret else NOT_RENDERED(f"{quoted(value)} {UNFILLED}")
    elif fits_pattern:
        return ""
    elif "{{" in value:
        wrong = NOT_RENDERED("is a Helm template: run `helm template` first")
    elif "${" in value or "$(" in value:
        wrong = UNFILLED
    if is_secret:
        return wrong
    shown = f"{quoted(value)} {wrong}"
    return wrong.rule(shown) if isinstance(wrong, Message) else shown


def whole_number(least: int = 0, most: int = _LARGEST, *, too_few: str = "", too_many: str = "") -> Shape:
    """A whole number within limits. `too_few` and `too_many` end the error message for other numbers."""

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not int:
            findings.problem(path, wrong_type(noun(int), value))
            return None
        if most <= _LARGEST_INT32 and value not in _INT32:
            findings.problem(path, "does not fit into 32 bits")
        elif value < least:
            findings.problem(path, f"{value} is below {least}{too_few}")
        elif value > most:
            findings.problem(path, f"{value} is above {most}{too_many}")
        return value

    return Shape(read, schema={"type": "integer", "minimum": least, "maximum": most})


def number(least: float | None = None, most: float | None = None, *, all_of_it: str = "") -> Shape:
    """A finite number within limits. A number without a fraction is written as a whole number.

    If 100 exceeds the limit, the error message for 100 ends with `all_of_it`.
    """

    def read(value: Any, path: Path, findings: Findings) -> float | None:
        if value.__class__ is not int and value.__class__ is not float:
            findings.problem(path, wrong_type("a number", value))
        elif least is not None and most is not None and not least <= value <= most:
            findings.problem(path, _not_within(value, least, most) + (all_of_it if value == 100 else ""))
        elif not _is_finite(value):
            findings.problem(path, f"{value} is not a finite number")
        else:
            return float(value)
        return None

    def write(value: float) -> int | float:
        return int(value) if float(value).is_integer() else value

    limits = {name: limit for name, limit in (("minimum", least), ("maximum", most)) if limit is not None}
    return Shape(read, write, {"type": "number", **limits})


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # a whole number that is too large for a float
        return False


def _not_within(value: float, least: float, most: float) -> str:
    percent = f": {value}% is {value / 100:g}" if most <= 1 <= value <= 100 else ""
    shown = f"{least:f}" if 0 < least < 1e-4 else least
    return f"{value} is not from {shown} to {most}{percent}"


def duration(least: timedelta = timedelta(), most: timedelta = timedelta.max, why: str = "") -> Shape:
    """A Go duration within limits. `why` ends the error message for a duration above the upper limit."""

    def read(value: Any, path: Path, findings: Findings) -> timedelta | None:
        if value.__class__ is int and value in _INT32:
            such_as = f"{abs(value)}s, {abs(value)}m or {abs(value)}h"
            findings.problem(path, f"must be a duration such as {such_as}, not the number {value}")
            return None
        if value.__class__ is not str:
            findings.problem(path, wrong_type(noun(str), value))
            return None
        try:
            length = parse_duration(value)
        except ValueError as error:
            findings.problem(path, str(error))
            return None
        if length < least:
            findings.problem(path, f"{value} is shorter than {int(least.total_seconds())}s")
        elif length > most:
            findings.problem(path, f"is longer than {write_duration(most)}{why}")
        elif warning := _warning_of(value, length):
            findings.warning(path, warning)
        return length

    schema = {"type": "string", "maxLength": LONGEST_DURATION, "pattern": DURATION_PATTERN}
    return Shape(read, write_duration, schema, none="0")


def _warning_of(written: str, length: timedelta) -> Message | None:
    """The warning about a duration that is so short or so long that it is probably a mistake."""
    if timedelta() < length < timedelta(seconds=1):
        number = written.strip("+").rstrip("nuµμms")
        meant = f": write {number}m for minutes" if number.isdecimal() else ""
        return UNLIKELY(f"{written} is less than a second{meant}")
    if length >= timedelta(days=730):
        return UNLIKELY(f"{written} is {length.days // 365} years: check the unit")
    return None


def constant(value: str) -> Shape:
    """Exactly this string."""

    def read(item: Any, path: Path, findings: Findings) -> str:
        if item != value:
            findings.problem(path, f"must be {value}")
        return value

    return Shape(read, schema={"const": value}, fixed=value)


def choice(*items: StrEnum, hint: str = "", guesses: bool = True) -> Shape:
    """One of these enumeration values. The error message suggests a similar value or ends with `hint`."""
    shape = _one_of({item.value: item for item in items}, hint, guesses=guesses)
    return shape._replace(write=str, none="None" if "None" in items else "")


def word(value: str) -> Shape:
    """A setting whose only valid value is this word. The word is read as True."""
    return _one_of({value: True})._replace(write=lambda _: value)


def _one_of(values: Mapping[str, Any], hint: str = "", *, guesses: bool = True) -> Shape:
    """One of the mapping's keys, which is read as the value of that key."""

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not str:
            findings.problem(path, wrong_type(noun(str), value))
            return None
        if value not in values:
            similar = (did_you_mean(value, values) if guesses else "") or hint
            is_one = (
                f"is not one of {', '.join(values)}" if len(values) > 1 else f"is not {next(iter(values))}"
            )
            findings.problem(path, f"{quoted(value)} {is_one}{similar}")
        return values.get(value)

    return Shape(read, schema={"enum": list(values)})


def listing(  # noqa: PLR0913 - the limits of a list
    item: Shape,
    key: Callable[[Any], Any] | None = None,
    noun: str = "item",
    *,
    least: int = 0,
    most: int = 0,
    is_set: bool = False,
) -> Shape:
    """A list with `least` to `most` items, read as a tuple. If `most` is 0, there is no upper limit.

    Items with the same `key` are rejected. Keys are compared only if all items are valid, and an item whose
    key is None is never a duplicate. With `is_set`, identical items are rejected.
    """
    read_item, write_item = item.read, item.write

    def read(value: Any, path: Path, findings: Findings) -> tuple[Any, ...] | None:
        if value.__class__ is not list:
            findings.problem(path, wrong_type(_LIST, value))
            return None
        if len(value) < least:
            findings.problem(path, "must not be empty")
        if most and len(value) > most:
            findings.problem(path, f"has {counted(len(value), noun)}: at most {most} are allowed")
            return None
        if is_set:
            _refuse_twins(value, path, findings)
        before = findings.count
        read_items = [read_item(entry, (path, index), findings) for index, entry in enumerate(value)]
        items = tuple([entry for entry in read_items if entry is not None])
        if key is not None and findings.count == before:
            first_of: dict[Any, int] = {}
            for index, name in enumerate(map(key, items)):
                first = first_of.setdefault(name, index)
                if first != index and name is not None:
                    shown = " ".join(name) if isinstance(name, tuple) else name
                    twice = f"{noun} {shown} appears twice, first at [{first}]"
                    findings.problem((path, index), DUPLICATE(twice))
        return items

    def write(items: Sequence[Any]) -> list[Any]:
        return [write_item(entry) for entry in items]

    schema = {"type": "array", "items": item.schema}
    limits = {"minItems": least, "maxItems": most, "uniqueItems": is_set}
    return Shape(read, write, schema | {name: limit for name, limit in limits.items() if limit})


def _refuse_twins(items: Sequence[Any], path: Path, findings: Findings) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if item.__class__ is str:
            if item in seen:
                findings.problem((path, index), DUPLICATE(f"{quoted(item)} appears twice"))
            seen.add(item)


def mapping(item: Shape | None = None, names: Shape | None = None) -> Shape:
    """A mapping, which is read unchanged. Its names and its values can each have a shape."""

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not dict:
            findings.problem(path, wrong_type(noun(dict), value))
        elif item is not None:
            for name, entry in value.items():
                if names:
                    names.read(name, (path, name), findings)
                if entry.__class__ is not item.plain:
                    item.read(entry, (path, name), findings)
        return value

    schema: Schema = {"type": "object"}
    schema |= {"propertyNames": {"pattern": names.schema["pattern"]}} if names else {}
    return Shape(read, schema=schema | ({"additionalProperties": item.schema} if item else {}))


def printed(schema: Schema, write: Callable[[Any], Any] = _unchanged) -> Shape:
    """A value of a document that twgen prints but never reads."""
    return Shape(lambda value, *_: value, write, schema)


def _rounded(value: float) -> float:
    rounded = round(float(value), 3)
    return int(rounded) if rounded.is_integer() else rounded


def printed_number(most: float | None = None) -> Shape:
    """A number from 0 to an optional limit, printed with at most three decimals."""
    limits = {"minimum": 0} | ({} if most is None else {"maximum": most})
    return printed({"type": "number", **limits}, _rounded)


def _read_time(value: Any, path: Path, findings: Findings) -> Any:
    try:
        return parse_time(value)
    except (ValueError, TypeError):
        findings.problem(path, f"must be {SUCH_AS}, not {described(value)}")
        return None


def _read_flag(value: Any, path: Path, findings: Findings) -> Any:
    if value.__class__ is not bool:
        findings.problem(path, wrong_type(noun(bool), value))
        return None
    return value


def fits(shape: Shape, value: str) -> bool:
    """Whether the text matches the pattern and the maximum length of a shape."""
    return len(value) <= shape.schema["maxLength"] and bool(re.search(shape.schema["pattern"], value))


_LIST = noun(list)
TEXT = text()
NUMBER = number()._replace(write=_unchanged)
"""Any finite number."""
TIME = Shape(_read_time, format_time, {"type": "string", "pattern": TIME_PATTERN})
FLAG = Shape(_read_flag, schema={"type": "boolean"}, plain=bool)
COUNT = whole_number()
INT32 = whole_number(most=_LARGEST_INT32)
POSITIVE = whole_number(1, _LARGEST_INT32)
DURATION = duration()
SECONDS = printed({"type": "number", "minimum": 0}, lambda length: _rounded(length.total_seconds()))
"""A duration, printed in seconds with at most three decimals."""
WHOLE_SECONDS = printed({"type": "integer", "minimum": 0}, lambda length: int(length.total_seconds()))
TEXTS = mapping(TEXT)
"""A mapping from names to strings, such as labels."""
AS_WRITTEN = Shape(lambda value, *_: value)
"""Any value."""
