"""Decode text for the parser, limit the cost of reading it, and define the error class of all readers.

The limits are generous for files that people write, but too low for a denial-of-service attack.
"""

import re
from dataclasses import dataclass

from twgen.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits for one text (`text_bytes`, `depth`, `anchors`), and for all texts of a run together.

    `depth` counts levels of nesting, `anchors` applies to one document, `nodes` counts keys and list items,
    and `expansion` counts the characters that expanded aliases add. `remedy` is the end of the message about
    an exceeded total.
    """

    text_bytes: int = 16 * 2**20
    depth: int = 100
    anchors: int = 10_000
    bytes: int = 48 * 2**20
    documents: int = 30_000
    nodes: int = 1_000_000
    expansion: int = 8 * 2**20
    remedy: str = "read fewer files at once"


DEFAULT = Limits()
"""With these limits, the most expensive accepted input needs less than 512 MiB of memory."""
WORLD = Limits(
    text_bytes=52 * 2**20, bytes=52 * 2**20, nodes=2_600_000, remedy="no server or snapshot may have more"
)
"""The limits for state from servers or a snapshot. 20,000 deployed versions need 491 MiB of memory."""


@dataclass(slots=True)
class Budget:
    """The limits of a run, and the cost of its texts so far."""

    limits: Limits = DEFAULT
    bytes: int = 0
    documents: int = 0
    nodes: int = 0
    expansion: int = 0
    is_spent: bool = False
    """Whether a total was exceeded, so that nothing more can be read."""

    def spent(self, total: str) -> str:
        """Return the message about an exceeded total, and note that it was exceeded."""
        self.is_spent = True
        return f"more than {total} in all: {self.limits.remedy}"


ODD_BLANK = "a blank that is not a plain space cannot indent: use spaces"


class YamlError(InvalidInput):
    """Invalid or too costly YAML or JSON, with a one-line `message` and, if known, its `line` (from 1)."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.message = message
        self.line = line


_SURROGATE = re.compile("[\ud800-\udfff]")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MOST_TAG_DIRECTIVES = 100


def replace_surrogates(text: str) -> str:
    """Return the text with U+FFFD for every lone surrogate, as Go's decoders do."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def decode(content: bytes | str) -> str:
    """Decode UTF-8, or UTF-16 with a byte order mark, and strip the mark. Raises YamlError."""
    if isinstance(content, bytes):
        encoding = "utf-16" if content.startswith(_UTF16_MARKS) else "utf-8-sig"
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError as error:
            line = line_after(content[: error.start]) if encoding == "utf-8-sig" else None
            raise YamlError("this is not UTF-8 text: save the file as UTF-8", line) from None
    else:
        text = replace_surrogates(content.removeprefix("\ufeff"))
    # libyaml compares each directive with all earlier ones, so a file full of directives would take hours
    if text.count("%TAG") > _MOST_TAG_DIRECTIVES:
        raise YamlError(f"more than {_MOST_TAG_DIRECTIVES} %TAG directives: write the tags in full")
    return text


def line_after(before: bytes) -> int:
    """Return the line number (from 1) of the character that follows this part of a text."""
    return before.count(b"\n") + 1
