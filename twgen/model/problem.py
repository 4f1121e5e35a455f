"""Documents as they were read, and the problems in them with their paths."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

from twgen.model.paths import join_path
from twgen.model.values import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML or JSON document, or one item of a Kubernetes List in it."""

    source: str
    """Its file, or `-`."""
    index: int
    """Its place in the file, from 0."""
    value: Any
    path: str = ""
    """The path of an item in the file's document: `items[2]`."""


_NOUNS: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a fraction",
    type(None): "null",
}
_HIDDEN = re.compile(
    "[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200b\u200e\u200f\u2028-\u202f"
    "\u205f-\u206f\u3000\u3164\ufeff\uffa0]"
    "|(?<![^\\x00-\\x7f])[\u200c\u200d\ufe00-\ufe0f]|[\u200c\u200d](?![^\\x00-\\x7f])"
)
"""Characters without a width, and blanks other than the ordinary one.

Characters that join letters of other scripts, or signs, are allowed between them."""
_MOST_SHOWN = 80
_CREDENTIALS = re.compile(r"^.*@(?!sha[0-9]+:)", re.DOTALL)
_NUMBERS = {"a number", _NOUNS[int]}
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(%)?")
_MOST_COMPARED = 60
"""At most so many names are compared to find a similar one: more are no fields, and take too long."""

MOST_REPORTED = 100
"""The most findings of one kind in one document. People fix these first."""
MOST_REPORTED_IN_ALL = 10_000
"""The most findings of one kind in all documents of a run."""


class Place(NamedTuple):
    """A path (`spec.rollout.steps[1]`) in the file's document."""

    document: Document
    path: str


class Finding(NamedTuple):
    """A problem at a path (`spec.rollout.steps[1]`) of a document that the caller knows."""

    path: str
    message: str
    other: Place | None = None
    """A second place, whose file and line are to stand at the end of the message."""
    instead_of: str = ""
    """The path of the field that was meant: that it is missing is no second mistake."""


class Problem(NamedTuple):
    """A problem at a path of the file's document, in one sentence for its author."""

    document: Document
    path: str
    message: str
    other: Place | None = None
    """A second place, whose file and line are to stand at the end of the message."""
    instead_of: str = ""
    """The path of the field that was meant: that it is missing is no second mistake."""

    @classmethod
    def at(
        cls,
        document: Document,
        path: str,
        message: str,
        other: Place | None = None,
        instead_of: str = "",
    ) -> Self:
        """The problem of a document that may be an item of a List: the paths begin at the item."""
        meant = path_in_file(document, instead_of) if instead_of else ""
        return cls(document, path_in_file(document, path), message, other, meant)


Found = TypeVar("Found", Finding, Problem)


def path_in_file(document: Document, path: str) -> str:
    """Turn a path that begins at an item of a List into one from the start of the file's document."""
    joint = "." if document.path and path and not path.startswith("[") else ""
    return f"{document.path}{joint}{path}"


def most_reported(documents: int) -> int:
    """The most findings of one kind in each of so many documents, so that all fit into memory."""
    return max(2, min(MOST_REPORTED, MOST_REPORTED_IN_ALL // max(1, documents)))


def shortened(findings: Sequence[Found], most: int) -> Iterator[Found]:
    """The first findings, and a last one that there are more, if there are."""
    yield from findings[:most]
    for finding in findings[most : most + 1]:
        more = f"there are more: only the first {most} are shown"
        yield finding._replace(message=more, other=None, instead_of="")


def did_you_mean(written: str, possible: Iterable[str]) -> str:
    """`; did you mean replicas?` for `replica`; empty: nothing is similar."""
    similar = _similar(written, possible)
    return f"; did you mean {similar}?" if similar else ""


def unknown_field(
    above: str, name: str, possible: Iterable[str], wrong: str = "no such field", elsewhere: str = ""
) -> Finding:
    """The finding about a field that the mapping at `above` cannot have.

    `elsewhere` is the mapping with the document's fields, in which a similar name is looked for next.
    """
    path, similar = join_path(above, name), _similar(name, possible)
    if hidden := hidden_character(name):
        wrong = f"{wrong}: {hidden}"
    if similar:
        return Finding(path, f"{wrong}; did you mean {similar}?", instead_of=join_path(above, similar))
    if elsewhere:
        hint = f"; the fields of this kind belong in {elsewhere}"
        return Finding(path, wrong + hint, instead_of=join_path(elsewhere, name))
    return Finding(path, wrong)


def _similar(written: str, possible: Iterable[str]) -> str:
    """The similar name. Without one, the only name that ends with this one: `secretName` for `name`."""
    from difflib import get_close_matches  # most runs find nothing wrong

    by_lower_case = {name.lower(): name for name in islice(possible, _MOST_COMPARED)}
    start = written[:_MOST_SHOWN].lower()
    similar = get_close_matches(start, by_lower_case, n=1)
    if not similar and len(start) >= 4:
        ends = [name for name in by_lower_case if name.endswith(start)]
        similar = ends if len(ends) == 1 else []
    return by_lower_case[similar[0]] if similar else ""


def noun(kind: type) -> str:
    """The words for a value of a type: `a list`, `true or false`."""
    return _NOUNS.get(kind, "a value of another kind")


def wrong_type(wanted: str, value: Any) -> str:
    """`must be a string, not a whole number; put it in quotes`; the value itself may be a secret."""
    hint = ""
    if wanted == noun(str) and isinstance(value, int | float):
        hint = "; put it in quotes"
    elif wanted in _NUMBERS and isinstance(value, str) and (number := _NUMBER.fullmatch(value)):
        hint = "; remove the %" if number[1] else "; remove the quotes"
    return f"must be {wanted}, not {noun(type(value))}{hint}"


def counted(number: int, noun: str) -> str:
    """A number of things: `1 workflow`, `2 workflows`, `2 policies`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"


def quoted(text: str) -> str:
    """The text in quotes and on one line, cut if it is long, and without credentials before an @."""
    text = _CREDENTIALS.sub("...@", text)
    hidden = hidden_character(text)
    shown = repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")
    return f"{shown} ({hidden})" if hidden else shown


def hidden_character(text: str) -> str:
    """`character 4 is zero width space, U+200B` for the first invisible character; empty: there is none."""
    if text.isascii() or not (hidden := _HIDDEN.search(text)):
        return ""
    from unicodedata import name  # most texts have none

    character = hidden[0]
    called = name(character, "a control character").lower()
    return f"character {hidden.start() + 1} is {called}, U+{ord(character):04X}"
