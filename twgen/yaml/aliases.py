"""What aliases stand for, and what they would add when written out."""

from dataclasses import dataclass
from typing import Any

from twgen.yaml.errors import YamlError
from twgen.yaml.limits import Limits
from twgen.yaml.scalars import token


def error_at(event: Any, message: str) -> YamlError:
    """Return an error with the line where one of the parser's events starts."""
    return YamlError(message, event.start_mark.line + 1)


@dataclass(slots=True)
class Anchor:
    """What an anchor names, its characters (None while it is being read) and its levels of nesting."""

    value: Any = None
    characters: int | None = None
    height: int = 0


class Aliases:
    """The anchors of one document, and what the aliases of the whole text have added so far."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._anchors: dict[str, Anchor] = {}
        self.expanded = 0

    def start_document(self) -> None:
        """Forget the anchors: they name things of their own document."""
        self._anchors.clear()

    def start(self, name: str) -> Anchor:
        """Return a new anchor, to be filled when what it names has been read."""
        anchor = self._anchors[name] = Anchor()
        return anchor

    def resolve(self, event: Any, depth: int) -> Anchor:
        """Return the anchor that an alias at this depth stands for; raises YamlError."""
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise error_at(event, f"no anchor {token(event.anchor)} comes before this alias")
        if anchor.characters is None:
            raise error_at(event, f"the anchor {token(event.anchor)} contains itself")
        self.expand(event, anchor.characters)
        if depth + anchor.height > self._limits.depth:
            raise error_at(event, f"nested deeper than {self._limits.depth} levels")
        return anchor

    def expand(self, event: Any, characters: int) -> None:
        """Count what an alias or a merge adds; raises YamlError beyond the limit."""
        self.expanded += characters
        if self.expanded > self._limits.expansion:
            most = self._limits.expansion
            raise error_at(event, f"aliases add more than {most} characters: write out what they stand for")
