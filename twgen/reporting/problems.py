"""The results of `twgen validate`: lines for people, and reports for other programs.

The schema of the Validation document is generated from the classes here.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from twgen.model.problem import Problem, Rule
from twgen.model.record_shapes import FieldName, FieldRule, Name, document_of, record_of
from twgen.model.shapes import whole_number
from twgen.model.values import dataclass
from twgen.reporting.json_text import json_text
from twgen.reporting.printable import printable
from twgen.versioning.names import TWGEN_API


class Located(NamedTuple):
    """A problem and its line number."""

    problem: Annotated[Problem, FieldRule.INTERNAL]
    line: Annotated[int | None, whole_number(1)]
    """The line number in the file, counted from 1, or null if it is unknown."""

    @property
    def file(self) -> str:
        """The file, or a hyphen for standard input."""
        return self.problem.document.source

    @property
    def path(self) -> str:
        """The field's path, such as spec.rollout.steps[1], or empty for the whole document."""
        return self.problem.path

    @property
    def message(self) -> Name:
        """One sentence about the problem and how to fix it."""
        return self.problem.message


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of `twgen validate`."""

    files: tuple[str, ...]
    """The files that could be read, without duplicates."""
    unreadable: tuple[Name, ...]
    """A message for each file that is not valid YAML."""
    problems: Annotated[tuple[Located, ...], FieldRule.INTERNAL]
    warnings: tuple[Located, ...]
    """The warnings, or empty with --strict, because warnings then count as problems."""
    deprecations: tuple[Located, ...]
    """The deprecated names of fields and kinds that the files use."""
    refused: tuple[Located, ...] = ()
    """Warnings that `--strict` treats as problems."""

    @property
    def failures(self) -> Annotated[tuple[Located, ...], FieldName("problems")]:
        """The errors. With --strict, warnings and unknown fields count as errors."""
        if not self.refused:
            return self.problems
        by_file: dict[str, list[Located]] = {}
        for item in (*self.problems, *self.refused):
            by_file.setdefault(item.file, []).append(item)
        return tuple(
            item for items in by_file.values() for item in sorted(items, key=lambda item: item.line or 0)
        )


VALIDATION = document_of(
    TWGEN_API,
    "Validation",
    Validation,
    attributes=("unreadable", "failures", "warnings", "deprecations"),
    shapes={Located: record_of(Located, "file", "line", "path", "message", is_printed=True)},
    is_printed=True,
)


def problem_lines(problems: Iterable[Located]) -> list[str]:
    """A line for each problem: `file:line: path: message`."""
    return [_line(problem, line) for problem, line in problems]


def validation_text(validation: Validation) -> str:
    """All problems as text, with one problem on each line."""
    return "".join(
        f"{line}\n" for line in [*map(printable, validation.unreadable), *problem_lines(validation.failures)]
    )


def validation_junit(validation: Validation) -> str:
    """A JUnit report, in which each file is a test case and all of a file's problems are one failure."""
    problems = _by_file(validation.failures)
    doubts = _by_file([*validation.warnings, *validation.deprecations])
    invalid = {problem.document.source for problem, _ in validation.problems}
    cases = []
    for file in validation.files:
        rule = "invalid" if file in invalid else "doubtful"
        failed = _failed("failure", rule, problems[file]) if file in problems else ""
        output = "\n".join(doubts.get(file, ()))
        cases.append(_case(file, failed + (f"<system-out>{_xml(output)}</system-out>" if output else "")))
    for line in validation.unreadable:
        match = _PLACE.fullmatch(line)
        cases.append(_case(match[1] if match else line, _failed("error", "unreadable", [printable(line)])))
    counts = f'tests="{len(cases)}" failures="{len(problems)}" errors="{len(validation.unreadable)}"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="twgen validate" {counts} time="0">\n'
        f'<testsuite name="twgen validate" {counts} skipped="0" time="0">\n'
        f"{''.join(cases)}</testsuite>\n</testsuites>\n"
    )


_UNREADABLE = Rule("unreadable", "A file cannot be read, or is not valid YAML or JSON.")
_RESULTS = 25_000
"""The maximum number of results. GitHub rejects reports with more results, and shows only 5,000."""
_MESSAGE = 1024
"""The maximum length of a message. GitLab omits results with longer messages, and omits all results if most
messages are longer."""
_PLACE = re.compile(r"(.+?):(\d+): (.*)", re.DOTALL)


def validation_sarif(validation: Validation, source: str = "") -> str:
    """A SARIF 2.1.0 report, for example for GitHub code scanning. `source` is twgen's public URL."""
    from twgen import __version__

    found: list[tuple[Rule, str, dict[str, Any]]] = []
    for line in validation.unreadable:
        match = _PLACE.fullmatch(line)
        file, number, why = match.groups() if match else (".", 1, line)
        found.append((_UNREADABLE, "error", _result(file, int(number), "", why)))
    for level, items in (
        ("error", validation.problems),
        ("error", validation.refused),
        ("warning", validation.warnings),
        ("note", validation.deprecations),
    ):
        for problem, at in items:
            result = _result(problem.document.source, at or 1, problem.path, problem.message)
            found.append((problem.rule, level, result))
    # a rule gets the level of its first result, although its other results may have different levels
    levels: dict[Rule, str] = {}
    for rule, level, _ in found[:_RESULTS]:
        levels.setdefault(rule, level)
    index_of = {rule: index for index, rule in enumerate(levels)}
    results = [
        {"ruleId": rule.id, "ruleIndex": index_of[rule], "level": level, **result}
        for rule, level, result in found[:_RESULTS]
    ]
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.help},
            "fullDescription": {"text": rule.help},
            "help": {"text": rule.help},
            "defaultConfiguration": {"level": level},
        }
        for rule, level in levels.items()
    ]
    driver: dict[str, Any] = {"name": "twgen", "version": __version__, "rules": rules}
    if source:
        driver["informationUri"] = source
    run = {"tool": {"driver": driver}, "results": results}
    schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
    return json_text({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _result(source: str, line: int, path: str, message: str) -> dict[str, Any]:
    from posixpath import normpath
    from urllib.parse import quote

    file = "stdin" if source == "-" else quote(normpath(source), errors="surrogateescape")
    uri = f"file://{file}" if file.startswith("/") else file
    place: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
    }
    if path:
        place["logicalLocations"] = [{"fullyQualifiedName": printable(path)}]
    text = printable(f"{path}: {message}" if path else message)
    if len(text) > _MESSAGE:
        text = f"{text[: _MESSAGE - 1]}…"
    return {"message": {"text": text}, "locations": [place]}


def _by_file(problems: Iterable[Located]) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {}
    for problem, line in problems:
        lines.setdefault(problem.document.source, []).append(_line(problem, line))
    return lines


def _case(name: str, inside: str) -> str:
    name = _xml(printable(name))
    return f'<testcase classname="twgen.validate" name="{name}" file="{name}" time="0">{inside}</testcase>\n'


def _failed(kind: str, rule: str, lines: list[str]) -> str:
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    text = "\n".join(lines)
    return f'<{kind} type="{rule}" message="{_xml(lines[0] + more)}">{_xml(text)}</{kind}>'


def _xml(text: str) -> str:
    """Escape the text for XML. `printable` has already escaped the characters that XML cannot contain."""
    from html import escape

    return escape(text)


def _line(problem: Problem, line: int | None) -> str:
    place = ":".join(str(part) for part in (problem.document.source, line) if part is not None)
    return printable(": ".join(part for part in (place, problem.path, problem.message) if part))
