"""Where in their files problems stand."""

from collections.abc import Iterable

from twgen.model.paths import parse_path
from twgen.model.problem import MOST_TOLD_IN_ALL, Place, Problem, shortened
from twgen.reading.documents import Sources
from twgen.yaml.limits import DEFAULT


def located(
    problems: Iterable[Problem], sources: Sources, most: int = DEFAULT.text_bytes
) -> list[tuple[Problem, int | None]]:
    """Each problem with its line (from 1; None: there is none), file by file in the order of lines.

    The place that a message refers to stands at its end: `the other is at pay.yaml:14`. Of very many, only
    that there are more.
    """
    problems = tuple(shortened(tuple(problems), MOST_TOLD_IN_ALL))
    places: dict[str, set[tuple[int, str]]] = {}
    for item in problems:
        for place in (item, item.other):
            if place:
                places.setdefault(place.document.source, set()).add((place.document.index, place.path))
    lines: dict[tuple[str, int, str], int | None] = {}
    for source, wanted in places.items():
        from twgen.yaml.mistakes import lines_of  # most runs find nothing wrong

        steps = [(index, *parse_path(path)) for index, path in wanted]
        found_lines = lines_of(sources.text(source, most), steps)
        lines |= {(source, *at): line for at, line in zip(wanted, found_lines, strict=True)}

    def line(place: Problem | Place) -> int | None:
        return lines[place.document.source, place.document.index, place.path]

    found: dict[str, list[tuple[Problem, int | None]]] = {}
    for item in problems:
        told = item
        if item.other:
            at = ":".join(str(part) for part in (item.other.document.source, line(item.other)) if part)
            told = item._replace(message=f"{item.message} {at}", other=None)
        found.setdefault(item.document.source, []).append((told, line(item)))
    return [place for items in found.values() for place in sorted(items, key=lambda item: item[1] or 0)]
