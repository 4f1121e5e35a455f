"""The only YAML writer. Its output has block style and no aliases, and all YAML readers agree on it."""

import json
import re
from collections.abc import Iterable
from typing import Any

from twgen.errors import InvalidInput
from twgen.yaml.scalars import NotAScalar, json_number, resolve_plain
from twgen.yaml.source import DEFAULT

# the first character must not be an indicator
_BEGINS_PLAIN = re.compile(r"[^\s:#\-?,\[\]{}&*!|>'\"%@`]|[-?:](?=[\w./-])")
# a plain text must not contain a possible line break, ": " or " #", or end with a space or colon
_NEVER_PLAIN = re.compile(r"[^\S ]|[\x00-\x1f\x7f-\x9f\ufeff\ufffe\uffff]|:(?!\S)|\ #|\ \Z")
# Kubernetes reads these as strings, but other readers as numbers, dates or special values
_AMBIGUOUS = re.compile(
    r"=|<<|---.*|\.\.\..*"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"
    r"|(?=[-+.0-9])[-+]?[0-9a-fA-FxXoO.]*_[0-9a-fA-F_.+-]*"
)
_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)}
_NOT_IN_BLOCKS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_LONGEST_KEY = 1000  # characters; from 1024 characters on, readers require "? " before a key
_LONGEST_REMEMBERED = 200  # characters
_MOST_REMEMBERED = 100_000  # strings
_PACKED_LINES = 10_000
"""Lines are joined into bytes after this many lines, because separate strings need four times the memory."""
_MOST_BYTES = 96 * 2**20
"""The output limit. Indentation and aliases can turn a few MiB of text into hundreds of MiB."""


def _is_plain(text: str) -> bool:
    """Whether Kubernetes, YAML 1.1 and YAML 1.2 all read the unquoted text as exactly this string."""
    if not _BEGINS_PLAIN.match(text) or _NEVER_PLAIN.search(text) or _AMBIGUOUS.fullmatch(text):
        return False
    try:
        return resolve_plain(text) == text
    except NotAScalar:
        return False


def in_one_line(value: Any) -> str:
    """Return the value as JSON on one line, which all YAML readers read the same way."""
    return json.dumps(value, ensure_ascii=False).translate(_ESCAPED)


def _block(text: str, pad: str) -> str | None:
    """Return a multi-line string as a literal block that is indented by `pad`, or None if it needs quotes."""
    first = text.lstrip("\n")[:1]
    if not first or _NOT_IN_BLOCKS.search(text):
        return None
    indentation = "2" if first in " \t" else ""
    chomping = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") else ""
    lines = text.removesuffix("\n").split("\n")
    body = "\n".join(f"{pad}  {line}" if line else "" for line in lines)
    return f"|{indentation}{chomping}\n{body}"


def encode_documents(documents: Iterable[Any]) -> bytes:
    """Return the documents as YAML in UTF-8, with `---` before each.

    The values must have the types that read_documents returns. Keys keep their order, lists start at their
    parent's column, shared values are repeated, and lines are not folded. Raises ValueError for infinity and
    NaN, TypeError for types that JSON does not have, and InvalidInput if the text is too long.
    """
    writer = _Writer()
    for document in documents:
        writer.document(document)
    return b"".join(writer.packed)


def write_documents(documents: Iterable[Any]) -> str:
    """Return the result of encode_documents as text."""
    return encode_documents(documents).decode()


class _Inline(dict[str, str]):
    """Strings as YAML on one line, without quotes if possible.

    Short strings are cached, because manifests repeat them.
    """

    def __missing__(self, text: str) -> str:
        if _is_plain(text):
            inline = text
        elif ('"' in text or "\\" in text) and text.isprintable():
            inline = "'" + text.replace("'", "''") + "'"
        else:
            inline = in_one_line(text)
        if len(text) <= _LONGEST_REMEMBERED and len(self) < _MOST_REMEMBERED:
            self[text] = inline
        return inline


class _Writer:
    """The output so far: bytes, and lines that have not been joined into bytes yet."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.packed: list[bytes] = []
        self._bytes = 0
        self._inline = _Inline()

    def document(self, value: Any) -> None:
        if value and isinstance(value, dict | list):
            self._lines.append("---\n")
            self._collection(value, "", "")
        else:
            constant = self._inline[value] if isinstance(value, str) else _constant(value)
            self._lines.append(f"--- {constant}\n")
        self._pack()

    def _pack(self) -> None:
        """Join the lines into bytes. Raises InvalidInput if the output is too large."""
        self.packed.append("".join(self._lines).encode())
        self._lines.clear()
        self._bytes += len(self.packed[-1])
        if self._bytes > _MOST_BYTES:
            raise InvalidInput(f"the output would be more than {_MOST_BYTES} bytes of YAML: {DEFAULT.remedy}")

    def _collection(self, collection: Any, lead: str, pad: str) -> None:
        """Write a mapping or list. The first line starts with `lead`, and all other lines with `pad`."""
        lines, inline = self._lines, self._inline
        add = lines.append
        is_list = collection.__class__ is list
        mark = "-"
        for key in collection:
            if is_list:
                value = key
            else:
                value, name = collection[key], inline[key]
                mark = name + ":" if len(name) <= _LONGEST_KEY else f"? {name}\n{pad}:"
            kind = value.__class__
            if kind is str:
                block = _block(value, pad) if "\n" in value else None
                add(f"{lead}{mark} {block or inline[value]}\n")
            elif not value or (kind is not dict and kind is not list):
                add(f"{lead}{mark} {_constant(value)}\n")
            elif is_list:
                self._collection(value, f"{lead}{mark} ", pad + "  ")
            else:
                add(f"{lead}{mark}\n")
                below = pad + "  " if kind is dict else pad
                self._collection(value, below, below)
            lead = pad
            if len(lines) > _PACKED_LINES:
                self._pack()


def _constant(value: Any) -> str:
    if value is None:
        return "null"
    if value.__class__ is bool:
        return "true" if value else "false"
    if value.__class__ is int:
        return str(value)
    if value.__class__ is float:
        number = str(json_number(value))
        # YAML 1.1 readers accept an exponent only after a decimal point
        return number.replace("e", ".0e") if "e" in number and "." not in number else number
    if value in ({}, []):
        return "{}" if value.__class__ is dict else "[]"
    raise TypeError(f"a document cannot contain a {type(value).__name__}")
