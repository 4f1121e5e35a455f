"""Documents as they were read, what is wrong with one, and where."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML or JSON document, or one item of a Kubernetes List in it."""

    source: str
    """Its file, or `-`."""
    index: int
    """Its place in the file, from 0."""
    value: Any
    path: str = ""
    """Where an item stands in the file's document: `items[2]`."""


_MOST_SHOWN = 80


class Place(NamedTuple):
    """A path (`spec.rollout.steps[1]`) in the file's document."""

    document: Document
    path: str


class Finding(NamedTuple):
    """Something wrong at a path (`spec.rollout.steps[1]`) of a document that the caller has at hand."""

    path: str
    message: str
    other: Place | None = None
    """A second place, whose file and line are to stand at the end of the message."""


class Problem(NamedTuple):
    """Something wrong at a path of the file's document, in one sentence for the person who wrote it."""

    document: Document
    path: str
    message: str
    other: Place | None = None
    """A second place, whose file and line are to stand at the end of the message."""

    @classmethod
    def at(cls, document: Document, path: str, message: str, other: Place | None = None) -> Self:
        """The problem of a document that may be an item of a List: `path` begins at the item."""
        return cls(document, path_in_file(document, path), message, other)


def path_in_file(document: Document, path: str) -> str:
    """The path from the start of the file's document, of a path that begins at an item of a List."""
    joint = "." if document.path and path and not path.startswith("[") else ""
    return f"{document.path}{joint}{path}"


def did_you_mean(written: str, possible: Iterable[str]) -> str:
    """`; did you mean replicas?` for `replica`; empty when nothing is similar."""
    from difflib import get_close_matches  # most runs find nothing wrong

    by_lower_case = {name.lower(): name for name in possible}
    similar = get_close_matches(written[:_MOST_SHOWN].lower(), by_lower_case, n=1)
    return f"; did you mean {by_lower_case[similar[0]]}?" if similar else ""


def quoted(text: str) -> str:
    """The text in quotes and on one line, cut when it is long."""
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")
