"""Parsed documents, and the problems found in them, each with a path."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

from twgen.model.paths import join_path
from twgen.model.values import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML or JSON document, or one item of a Kubernetes List in a document."""

    source: str
    """The file, or `-` for stdin."""
    index: int
    """The index of the document in the file, from 0."""
    value: Any
    path: str = ""
    """The path of this List item in the file's document, such as `items[2]`. Empty if this is not a List
    item."""


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
"""Invisible characters, and spaces other than the ordinary space.

A joiner is allowed between two emoji, or between two letters of a script that uses joiners."""
_MOST_SHOWN = 80
_CREDENTIALS = re.compile(r"^.*@(?!sha[0-9]+:)", re.DOTALL)
_NUMBERS = {"a number", _NOUNS[int]}
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(%)?")
_MOST_COMPARED = 60
"""The maximum number of names that are searched for a similar name. Comparing more names would take too
long."""

MOST_REPORTED = 100
"""The maximum number of problems, unknown fields or warnings that are shown for one document."""
MOST_REPORTED_IN_ALL = 10_000
"""The maximum number of problems, unknown fields or warnings that are shown for all documents of a run."""


class Rule(NamedTuple):
    """A kind of finding. Reports contain the rule's ID, so that people can mute all findings of this kind.

    A rule is declared in the module that reports the findings.
    """

    id: str
    """The rule's ID, which consists of words and hyphens. The ID never changes, because people use it in
    their settings."""
    help: str
    """A description of the mistake and its consequence."""

    def __call__(self, message: str) -> "Message":
        """A message about one finding of this kind."""
        return Message(message, self)


class Message(str):
    """A message with its rule."""

    __slots__ = ("rule",)
    rule: Rule

    def __new__(cls, text: str, rule: Rule) -> Self:
        """Create a message from its text and its rule."""
        message = super().__new__(cls, text)
        message.rule = rule
        return message


INVALID = Rule("invalid-value", "A value breaks a rule of its field, so the document is rejected.")
"""The default rule, for messages that have no other rule."""
WRONG_TYPE = Rule("wrong-type", "A value has the wrong type, such as a string in place of a number.")
UNKNOWN_FIELD = Rule(
    "unknown-field", "A field does not exist. An API server rejects it, or drops it silently."
)
MISSING_FIELD = Rule("missing-field", "A required field is absent.")
DUPLICATE = Rule("duplicate", "Two entries or documents have the same name, so only one of them could count.")
CONFLICT = Rule("conflicting-fields", "Of these fields, a document must have exactly one, or at most one.")
NO_EFFECT = Rule("no-effect", "A field, an annotation or a document changes nothing.")
DEPRECATED = Rule("deprecated-name", "A field or a kind has a new name. The old one still works.")
UNLIKELY = Rule("unlikely-value", "A value is allowed, but is usually a mistake in its unit.")
NOT_RENDERED = Rule(
    "not-rendered", "A text still has a variable or placeholder: a tool should have filled it in."
)
SET_BY_TWGEN = Rule(
    "set-by-twgen", "A document must not contain a value that twgen, Argo CD or Kubernetes sets."
)
REQUIRED = MISSING_FIELD("is required")


def rule_of(message: str) -> Rule:
    """The rule of a message. The default rule is INVALID."""
    return message.rule if isinstance(message, Message) else INVALID


class DocumentPath(NamedTuple):
    """A path in the file's document, such as `spec.rollout.steps[1]`."""

    document: Document
    path: str


class Finding(NamedTuple):
    """A problem or warning at a path such as `spec.rollout.steps[1]`. The document is not included."""

    path: str
    message: str
    other: DocumentPath | None = None
    """A second path, whose file and line are shown at the end of the message."""
    instead_of: str = ""
    """The path of the field that was probably meant. twgen does not report this field as missing too."""


class Problem(NamedTuple):
    """A problem or warning at a path in a file's document. The message is one sentence for the author."""

    document: Document
    path: str
    message: str
    other: DocumentPath | None = None
    """A second path, whose file and line are shown at the end of the message."""
    instead_of: str = ""
    """The path of the field that was probably meant. twgen does not report this field as missing too."""

    @classmethod
    def at(
        cls,
        document: Document,
        path: str,
        message: str,
        other: DocumentPath | None = None,
        instead_of: str = "",
    ) -> Self:
        """Create a problem from paths inside the document, which may be an item of a List."""
        meant = path_in_file(document, instead_of) if instead_of else ""
        return cls(document, path_in_file(document, path), message, other, meant)

    @property
    def rule(self) -> Rule:
        """The kind of finding."""
        return rule_of(self.message)


Found = TypeVar("Found", Finding, Problem)


def path_in_file(document: Document, path: str) -> str:
    """Convert a path inside an item of a List to a path inside the file's document."""
    joint = "." if document.path and path and not path.startswith("[") else ""
    return f"{document.path}{joint}{path}"


def most_reported(documents: int) -> int:
    """The maximum number of findings in each list of a document, given the number of documents.

    This maximum limits the memory that all findings need.
    """
    return max(2, min(MOST_REPORTED, MOST_REPORTED_IN_ALL // max(1, documents)))


def shortened(findings: Sequence[Found], most: int) -> Iterator[Found]:
    """The first findings. If there are more, an additional finding says so."""
    yield from findings[:most]
    for finding in findings[most : most + 1]:
        more = rule_of(finding.message)(f"there are more: only the first {most} are shown")
        yield finding._replace(message=more, other=None, instead_of="")


def did_you_mean(written: str, possible: Iterable[str]) -> str:
    """A hint such as `; did you mean replicas?` for `replica`. Empty if no possible name is similar."""
    similar = _similar(written, possible)
    return f"; did you mean {similar}?" if similar else ""


def unknown_field(
    above: str, name: str, possible: Iterable[str], wrong: str = "no such field", elsewhere: str = ""
) -> Finding:
    """The finding about a field that does not exist in the mapping at the path `above`.

    If no possible name is similar, the field probably belongs in the mapping at the path `elsewhere`.
    """
    path, similar = join_path(above, name), _similar(name, possible)
    if hidden := hidden_character(name):
        wrong = f"{wrong}: {hidden}"
    if similar:
        message = UNKNOWN_FIELD(f"{wrong}; did you mean {similar}?")
        return Finding(path, message, instead_of=join_path(above, similar))
    if elsewhere:
        hint = f"; the fields of this kind belong in {elsewhere}"
        return Finding(path, UNKNOWN_FIELD(wrong + hint), instead_of=join_path(elsewhere, name))
    return Finding(path, UNKNOWN_FIELD(wrong))


def _similar(written: str, possible: Iterable[str]) -> str:
    """A similar name, or else the only name that ends with the given name, as `secretName` for `name`."""
    from difflib import get_close_matches  # imported here, because most runs find no problem

    by_lower_case = {name.lower(): name for name in islice(possible, _MOST_COMPARED)}
    start = written[:_MOST_SHOWN].lower()
    similar = get_close_matches(start, by_lower_case, n=1)
    if not similar and len(start) >= 4:
        ends = [name for name in by_lower_case if name.endswith(start)]
        similar = ends if len(ends) == 1 else []
    return by_lower_case[similar[0]] if similar else ""


def noun(kind: type) -> str:
    """A description of a value of this type, such as `a list` or `true or false`."""
    return _NOUNS.get(kind, "a value of another kind")


def wrong_type(wanted: str, value: Any) -> Message:
    """A message such as `must be a string, not a whole number; put it in quotes`.

    The message does not show the value, which may be a secret.
    """
    hint = ""
    if wanted == noun(str) and isinstance(value, int | float):
        hint = "; put it in quotes"
    elif wanted in _NUMBERS and isinstance(value, str) and (number := _NUMBER.fullmatch(value)):
        hint = "; remove the %" if number[1] else "; remove the quotes"
    return WRONG_TYPE(f"must be {wanted}, not {noun(type(value))}{hint}")


def counted(number: int, noun: str) -> str:
    """The number with the noun in the singular or plural: `1 workflow`, `2 workflows`, `2 policies`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"


def quoted(text: str) -> str:
    """The text in quotes, on one line. A long text is truncated, and credentials before an @ are hidden."""
    text = _CREDENTIALS.sub("...@", text)
    hidden = hidden_character(text)
    shown = repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")
    return f"{shown} ({hidden})" if hidden else shown


def hidden_character(text: str) -> str:
    """A description of the first invisible character, such as `character 4 is zero width space, U+200B`.

    Empty if there is no invisible character.
    """
    if text.isascii() or not (hidden := _HIDDEN.search(text)):
        return ""
    from unicodedata import name  # imported here, because most texts have no such character

    character = hidden[0]
    called = name(character, "a control character").lower()
    return f"character {hidden.start() + 1} is {called}, U+{ord(character):04X}"
