"""Decoding bytes to the text for the parser, and the error class of all readers."""

import re

from twgen.errors import InvalidInput

ODD_BLANK = "a blank that is not a plain space cannot indent: use spaces"


class YamlError(InvalidInput):
    """Text that is not acceptable YAML or JSON: a one-line `message`, and the `line` from 1, if known."""

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
    """Return the text of UTF-8 (or UTF-16 with a byte order mark) without that mark; raises YamlError."""
    if isinstance(content, bytes):
        encoding = "utf-16" if content.startswith(_UTF16_MARKS) else "utf-8-sig"
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError as error:
            line = line_after(content[: error.start]) if encoding == "utf-8-sig" else None
            raise YamlError("this is not UTF-8 text: save the file as UTF-8", line) from None
    else:
        text = replace_surrogates(content.removeprefix("\ufeff"))
    # libyaml compares every directive with all earlier ones: a file full of them would take hours
    if text.count("%TAG") > _MOST_TAG_DIRECTIVES:
        raise YamlError(f"more than {_MOST_TAG_DIRECTIVES} %TAG directives: write the tags in full")
    return text


def line_after(before: bytes) -> int:
    """Return the line (from 1) on which a text continues after this part of it."""
    return before.count(b"\n") + 1
