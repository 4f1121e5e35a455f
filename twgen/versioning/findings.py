"""What a walk through a pod template or an attached object finds, and where."""

from dataclasses import dataclass, field
from typing import Any

from twgen.model.paths import join_path
from twgen.model.problem import MOST_TOLD, Finding, did_you_mean

_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a fraction",
    str: "a string",
    list: "a list",
    dict: "a mapping",
}

# The last step of a path and the path before it: written out only when there is something to report.
Path = tuple[Any, str | int]


@dataclass(frozen=True, slots=True)
class Findings:
    """The problems and the unknown fields found so far in a `kind`, such as `a pod template`.

    Of both, one more than `most` is kept, which tells that there are more.
    """

    kind: str
    most: int = MOST_TOLD
    problems: list[Finding] = field(default_factory=list)
    unknown: list[Finding] = field(default_factory=list)

    def add_problem(self, path: Path, message: str) -> None:
        """Report a value that an API server refuses."""
        if len(self.problems) <= self.most:
            self.problems.append(Finding(_written(path), message))

    def add_wrong_type(self, path: Path, expected: str, value: object) -> None:
        """Report a value of another type than `expected`, which is given in words."""
        hint = "; put it in quotes" if expected == "a string" and isinstance(value, int | float) else ""
        self.add_problem(path, f"must be {expected}, not {_kind(value)}{hint}")

    def add_unknown(self, path: Path, known: dict[str, str]) -> None:
        """Report a field that is not kept, because it is none of the known ones."""
        if len(self.unknown) <= self.most:
            hint = did_you_mean(str(path[1]), known)
            self.unknown.append(Finding(_written(path), f"is not a field of {self.kind}{hint}"))


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "null")


def _written(path: Path) -> str:
    steps = []
    while path[0] is not None:
        path, step = path
        steps.append(step)
    return join_path(str(path[1]), *reversed(steps))
