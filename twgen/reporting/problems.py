"""The results of `twgen validate`: lines for people, and reports for other programs.

The classes here are the only declaration of the Validation document.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from twgen.model.problem import Problem
from twgen.model.record_shapes import Mark, Name, Named, document_of, record_of
from twgen.model.shapes import whole_number
from twgen.model.values import dataclass
from twgen.reporting.json_text import json_text
from twgen.reporting.printable import printable
from twgen.versioning.names import TWGEN_API


class Located(NamedTuple):
    """A problem and its line."""

    problem: Annotated[Problem, Mark.INTERNAL]
    line: Annotated[int | None, whole_number(1)]
    """The line in the file, from 1. Null: unknown."""

    @property
    def file(self) -> str:
        """The file. A hyphen means standard input."""
        return self.problem.document.source

    @property
    def path(self) -> str:
        """The field, such as spec.rollout.steps[1]. Empty: the whole document."""
        return self.problem.path

    @property
    def message(self) -> Name:
        """One sentence about the problem and how to fix it."""
        return self.problem.message


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of `twgen validate`."""

    files: tuple[str, ...]
    """The readable files, each once."""
    unreadable: tuple[Name, ...]
    """The files that are not valid YAML, with a line for each."""
    problems: Annotated[tuple[Located, ...], Mark.INTERNAL]
    warnings: tuple[Located, ...]
    """The warnings. Empty with --strict."""
    deprecations: tuple[Located, ...]
    """The old names of fields and kinds that the specs use."""
    refused: tuple[Located, ...] = ()
    """Warnings that `--strict` treats as problems."""

    @property
    def failures(self) -> Annotated[tuple[Located, ...], Named("problems")]:
        """The errors. With --strict, also warnings and unknown fields."""
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
    """All problems as text, one on each line."""
    return "".join(
        f"{line}\n" for line in [*map(printable, validation.unreadable), *problem_lines(validation.failures)]
    )


def validation_junit(validation: Validation) -> str:
    """A JUnit report: each file is a test case, whose one failure contains all problems of the file."""
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


_RULES = {
    "unreadable": ("error", "A file cannot be read, or is not valid YAML or JSON."),
    "invalid": ("error", "A document breaks a rule of its kind or of the API server."),
    "doubtful": ("warning", "A document is valid, but probably not what was intended."),
    "deprecated": ("note", "A deprecated spelling: it still works, but there is a newer one."),
}
"""The default level and the description of each rule in a SARIF report."""
_RESULTS = 25_000
"""The most results: GitHub rejects a report with more, and shows only 5,000. The mildest are left out."""
_MESSAGE = 1024
"""The longest message: GitLab omits a result with a longer one, and all results if most are longer."""
_PLACE = re.compile(r"(.+?):(\d+): (.*)", re.DOTALL)


def validation_sarif(validation: Validation, source: str = "") -> str:
    """A SARIF 2.1.0 report, for GitHub code scanning and others. `source` is twgen's public address."""
    from twgen import __version__

    results = []
    for line in validation.unreadable:
        match = _PLACE.fullmatch(line)
        file, number, why = match.groups() if match else (".", 1, line)
        results.append(_result("unreadable", file, int(number), "", why))
    for rule, level, items in (
        ("invalid", "error", validation.problems),
        ("doubtful", "error", validation.refused),
        ("doubtful", "warning", validation.warnings),
        ("deprecated", "note", validation.deprecations),
    ):
        for problem, at in items:
            result = _result(rule, problem.document.source, at or 1, problem.path, problem.message)
            results.append({**result, "level": level})
    rules = [
        {
            "id": rule,
            "shortDescription": {"text": text},
            "fullDescription": {"text": text},
            "help": {"text": "The Reference section of twgen's documentation lists every field."},
            "defaultConfiguration": {"level": level},
        }
        for rule, (level, text) in _RULES.items()
    ]
    driver = {"name": "twgen", "version": __version__, "rules": rules}
    if source:
        driver["informationUri"] = source
    run = {"tool": {"driver": driver}, "results": results[:_RESULTS]}
    schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
    return json_text({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _result(rule: str, source: str, line: int, path: str, message: str) -> dict[str, Any]:
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
    level = _RULES[rule][0]
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": level,
        "message": {"text": text},
        "locations": [place],
    }


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
    """The text escaped for XML; printable() has escaped the characters that XML cannot contain."""
    from html import escape

    return escape(text)


def _line(problem: Problem, line: int | None) -> str:
    place = ":".join(str(part) for part in (problem.document.source, line) if part is not None)
    return printable(": ".join(part for part in (place, problem.path, problem.message) if part))
