"""From bytes to the text that the parser sees, and the one error of all readers."""

import re
from typing import Any

from yaml import MarkedYAMLError, YAMLError
from yaml.reader import ReaderError

from twgen.errors import InvalidInput


class YamlError(InvalidInput):
    """Text that is not acceptable YAML or JSON: a one-line `message`, and the `line` from 1, where known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.message = message
        self.line = line


def error_at(event: Any, message: str) -> YamlError:
    """Return an error with the line where one of the parser's events starts."""
    return YamlError(message, event.start_mark.line + 1)


_SURROGATE = re.compile("[\ud800-\udfff]")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MOST_TAG_DIRECTIVES = 100
_HINTS = {
    "mapping values are not allowed in this context": "mend the indentation, or quote the text",
    "found character that cannot start any token": "quote the text",
    "could not find expected ':'": "a key needs a colon and a space after it",
    "did not find expected key": "mend the indentation, or quote the text",
    "found invalid Unicode character escape code": "write the character itself",
}


def replace_surrogates(text: str) -> str:
    """Return the text with U+FFFD for every lone surrogate, as Go's decoders do."""
    return _SURROGATE.sub("\ufffd", text)


def decode(content: bytes | str) -> str:
    """Return the text of UTF-8 (or UTF-16 with a byte order mark) without that mark; raises YamlError."""
    text = _decode_bytes(content) if isinstance(content, bytes) else content.removeprefix("\ufeff")
    # libyaml compares every directive with all before it: a file of nothing else would take hours
    if text.count("%TAG") > _MOST_TAG_DIRECTIVES:
        raise YamlError(f"more than {_MOST_TAG_DIRECTIVES} %TAG directives: write the tags in full")
    return text if isinstance(content, bytes) or text.isascii() else replace_surrogates(text)


def describe(error: YAMLError, text: str) -> YamlError:
    """Return our error for one of the parser's: what is wrong and the line, nothing of the content."""
    if isinstance(error, ReaderError):
        problem = f"U+{error.character:04X} is not allowed: write it as an escape in double quotes"
        return YamlError(problem, _line(text.encode()[: error.position]))
    mark = (error.problem_mark or error.context_mark) if isinstance(error, MarkedYAMLError) else None
    problem = getattr(error, "problem", None) or "this is not YAML"
    if mark is None:
        return YamlError(problem)
    if text[mark.index : mark.index + 1] == "\t":
        return YamlError("a tab cannot indent: use spaces", mark.line + 1)
    hint = _HINTS.get(problem)
    return YamlError(f"{problem}: {hint}" if hint else problem, mark.line + 1)


def _decode_bytes(content: bytes) -> str:
    encoding = "utf-16" if content.startswith(_UTF16_MARKS) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = _line(content[: error.start]) if encoding == "utf-8-sig" else None
        raise YamlError("this is not UTF-8 text: save the file as UTF-8", line) from None


def _line(before: bytes) -> int:
    return before.count(b"\n") + 1
