"""Conflict markers that a merge left in a file of ours."""

import re
from dataclasses import dataclass

from twgen.yaml.errors import YamlError

_START = re.compile(rb"^<<<<<<< ", re.MULTILINE)
_MARKER = re.compile(r"(?P<marker><{7}|\|{7}|={7}|>{7})(?: (?P<label>.*))?")


@dataclass(frozen=True, slots=True)
class Sides:
    """The two texts that a merge could not make one of, and what it called them."""

    ours: str
    theirs: str
    our_name: str = ""
    their_name: str = ""


def sides_of(text: str) -> Sides | None:
    """The texts of both sides; None: there is no conflict marker."""
    kept: dict[str, list[str]] = {"<<<<<<<": [], ">>>>>>>": []}
    names = {"<<<<<<<": "", ">>>>>>>": ""}
    goes_to: tuple[str, ...] = tuple(kept)
    for line in text.splitlines(keepends=True):
        matched = _MARKER.fullmatch(line.rstrip("\r\n"))
        if not matched:
            for side in goes_to:
                kept[side].append(line)
            continue
        marker = matched["marker"]
        # what both sides come from (|||||||) is neither's
        goes_to = {"<<<<<<<": ("<<<<<<<",), "|||||||": (), "=======": (">>>>>>>",)}.get(marker, tuple(kept))
        if marker in names:
            names[marker] = names[marker] or matched["label"] or ""
    if not any(names.values()):
        return None
    return Sides("".join(kept["<<<<<<<"]), "".join(kept[">>>>>>>"]), names["<<<<<<<"], names[">>>>>>>"])


def why_unreadable(source: str, content: bytes, error: YamlError, known: str = "") -> str:
    """`file:line: what is wrong` of a file that is not YAML.

    Conflict markers come first, with what to do; then `known`, what the caller found, if anything.
    """
    if marker := _START.search(content):
        from twgen.records.ledger import FOLDER  # most runs find nothing wrong

        line = content.count(b"\n", 0, marker.start()) + 1
        is_ledger = FOLDER in source.replace("\\", "/").split("/")[:-1]
        remedy = "run `twgen lock`" if is_ledger else "resolve them"
        return f"{source}:{line}: a merge left conflict markers: {remedy}"
    place = f"{source}:{error.line}" if error.line else source
    return f"{place}: {known or error.message}"
