"""Where in its file a problem is: a second, slower look, taken only when there is something to report."""

from collections.abc import Iterable

from twgen.model.paths import parse_path
from twgen.model.problem import Problem
from twgen.reading.documents import Sources
from twgen.yaml.lines import line_of

_MOST_IN_ONE_FILE = 100
"""Each look reads the file again; who has more problems in one file looks again anyway."""


def located(problems: Iterable[Problem], sources: Sources) -> list[tuple[Problem, int | None]]:
    """Each problem with its line (from 1), file by file in the order of lines."""
    by_source: dict[str, list[Problem]] = {}
    for problem in problems:
        by_source.setdefault(problem.document.source, []).append(problem)
    found: list[tuple[Problem, int | None]] = []
    for source, items in by_source.items():
        text = sources.text(source)
        placed = [(item, _line(text, item)) for item in items[:_MOST_IN_ONE_FILE]]
        found += sorted(placed, key=lambda place: place[1] or 0)
        found += [(item, None) for item in items[_MOST_IN_ONE_FILE:]]
    return found


def _line(text: bytes, problem: Problem) -> int | None:
    return line_of(text, problem.document.index, parse_path(problem.path))
