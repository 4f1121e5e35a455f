"""What `twgen validate` reports: the only declaration of the Validation document."""

from typing import Annotated, NamedTuple

from twgen.model.problem import Problem
from twgen.model.record_shapes import Mark, Name, Named
from twgen.model.shapes import whole_number
from twgen.model.values import dataclass


class Located(NamedTuple):
    """A problem and its line."""

    problem: Annotated[Problem, Mark.INTERNAL]
    line: Annotated[int | None, whole_number(1)]
    """The line in the file, from 1. Null: not known."""

    @property
    def file(self) -> str:
        """The file. -: standard input."""
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
    """Fields and kinds written with an old name."""
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
