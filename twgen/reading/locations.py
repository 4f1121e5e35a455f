"""Where in its file a problem is: a second, slower look, taken only when there is something to report."""

from collections.abc import Iterable
from dataclasses import replace

from twgen.model.document import Document
from twgen.model.paths import parse_path
from twgen.model.problem import Problem
from twgen.reading.documents import Sources
from twgen.yaml.lines import line_of

_MOST_IN_ONE_FILE = 100
"""Each look reads the file again; who has more problems in one file looks again anyway."""


def located(problems: Iterable[Problem], sources: Sources) -> list[tuple[Problem, int | None]]:
    """Each problem with its line (from 1), file by file in the order of lines.

    The place that a message refers to stands at its end: `the other is at pay.yaml:14`.
    """
    by_source: dict[str, list[Problem]] = {}
    for problem in problems:
        by_source.setdefault(problem.document.source, []).append(problem)
    found: list[tuple[Problem, int | None]] = []
    for items in by_source.values():
        placed = [
            (_with_other_place(item, sources), _line(sources, item.document, item.path))
            for item in items[:_MOST_IN_ONE_FILE]
        ]
        found += sorted(placed, key=lambda place: place[1] or 0)
        found += [(item, None) for item in items[_MOST_IN_ONE_FILE:]]
    return found


def _with_other_place(problem: Problem, sources: Sources) -> Problem:
    if not problem.other:
        return problem
    line = _line(sources, problem.other.document, problem.other.path)
    place = ":".join(str(part) for part in (problem.other.document.source, line) if part is not None)
    return replace(problem, message=f"{problem.message} {place}", other=None)


def _line(sources: Sources, document: Document, path: str) -> int | None:
    return line_of(sources.text(document.source), document.index, parse_path(path))
