"""Where in its file a problem is: a second, slower look, taken only when there is something to report."""

from collections.abc import Iterable
from dataclasses import replace

from twgen.model.paths import parse_path
from twgen.model.problem import Place, Problem
from twgen.reading.documents import Sources
from twgen.yaml.lines import line_of

_MOST_IN_ONE_FILE = 100
"""Each look reads the file again; who has more problems in one file looks again anyway."""
_MOST_BYTES = 2**27
"""What the looks into one file read in all: some seconds."""


def located(problems: Iterable[Problem], sources: Sources) -> list[tuple[Problem, int | None]]:
    """Each problem with its line (from 1; None: not looked for), file by file in the order of lines.

    The place that a message refers to stands at its end: `the other is at pay.yaml:14`.
    """
    by_source: dict[str, list[Problem]] = {}
    for problem in problems:
        by_source.setdefault(problem.document.source, []).append(problem)
    found: list[tuple[Problem, int | None]] = []
    for source, items in by_source.items():
        text = sources.text(source)
        looks = max(1, min(_MOST_IN_ONE_FILE, _MOST_BYTES // max(1, len(text))))
        placed = [
            (_with_other_place(item, sources), _line(text, Place(item.document, item.path)))
            for item in items[:looks]
        ]
        found += sorted(placed, key=lambda place: place[1] or 0)
        found += [(item, None) for item in items[looks:]]
    return found


def _with_other_place(problem: Problem, sources: Sources) -> Problem:
    if not problem.other:
        return problem
    source = problem.other.document.source
    line = _line(sources.text(source), problem.other)
    place = f"{source}:{line}" if line else source
    return replace(problem, message=f"{problem.message} {place}", other=None)


def _line(text: bytes, place: Place) -> int | None:
    return line_of(text, place.document.index, parse_path(place.path))
