"""Problems as one line each, in the coordinates of the file."""

from collections.abc import Iterable
from typing import Any

from twgen.model.problem import Problem
from twgen.reporting.printable import printable
from twgen.versioning.names import TWGEN_API

Located = tuple[Problem, int | None]


def problem_lines(problems: Iterable[Located]) -> list[str]:
    """`file:line: path: message` for each."""
    return [_line(problem, line) for problem, line in problems]


def problems_document(
    unreadable: Iterable[str],
    problems: Iterable[Located],
    warnings: Iterable[Located],
    deprecations: Iterable[Located],
) -> dict[str, Any]:
    """What `validate -o json` prints."""
    return {
        "apiVersion": TWGEN_API,
        "kind": "Validation",
        "unreadable": list(unreadable),
        "problems": [_item(*item) for item in problems],
        "warnings": [_item(*item) for item in warnings],
        "deprecations": [_item(*item) for item in deprecations],
    }


def _line(problem: Problem, line: int | None) -> str:
    place = ":".join(str(part) for part in (problem.document.source, line) if part is not None)
    return printable(": ".join(part for part in (place, problem.path, problem.message) if part))


def _item(problem: Problem, line: int | None) -> dict[str, Any]:
    return {
        "file": problem.document.source,
        "line": line,
        "path": problem.path,
        "message": problem.message,
    }
