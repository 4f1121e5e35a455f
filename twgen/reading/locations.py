"""Where in its file a problem is: a second, slower look, taken only when there is something to report."""

from collections.abc import Iterable

from twgen.model.problem import Problem
from twgen.reading.documents import Sources
from twgen.yaml.lines import lines_of


def located(problems: Iterable[Problem], sources: Sources) -> list[tuple[Problem, int | None]]:
    """Each problem with its line (from 1), in the order of files and lines."""
    by_source: dict[str, list[Problem]] = {}
    for problem in problems:
        by_source.setdefault(problem.document.source, []).append(problem)
    found: list[tuple[Problem, int | None]] = []
    for source, items in by_source.items():
        places = [(problem.document.index, problem.path) for problem in items]
        lines = lines_of(sources.text(source), places)
        found.extend(sorted(zip(items, lines, strict=True), key=lambda item: item[1] or 0))
    return found
