"""The one YAML writer: block style, every value in full, and text that all readers read the same way."""

from collections.abc import Iterable
from typing import Any

from twgen.yaml.scalars import json_number
from twgen.yaml.strings import block, quote

_LONGEST_KEY = 1000  # characters; from 1024 on readers want a key marked by "? "


def write_documents(documents: Iterable[Any]) -> str:
    """Return values as read_documents gives them as YAML, each document led by `---`.

    Keys keep their order, lists stand at their parent's column, shared values are written in full, no line is
    folded. Raises ValueError for infinity and NaN, TypeError for what JSON does not have.
    """
    writer = _Writer()
    for document in documents:
        writer.document(document)
    return "".join(writer.lines)


class _Inline(dict[str, str]):
    """Strings as YAML on one line, remembered: manifests repeat themselves."""

    def __missing__(self, text: str) -> str:
        written = self[text] = quote(text)
        return written


class _Writer:
    """The lines written so far."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._inline = _Inline()

    def document(self, value: Any) -> None:
        """Write one document."""
        if value and isinstance(value, dict | list):
            self.lines.append("---\n")
            self._collection(value, "", "")
        else:
            written = self._inline[value] if isinstance(value, str) else _constant(value)
            self.lines.append(f"--- {written}\n")

    def _collection(self, value: Any, lead: str, pad: str) -> None:
        """Write a mapping or list whose first line begins with `lead`, all others with `pad`."""
        if value.__class__ is dict:
            self._mapping(value, lead, pad)
        else:
            self._list(value, lead, pad)

    def _mapping(self, mapping: dict[str, Any], lead: str, pad: str) -> None:
        add, inline = self.lines.append, self._inline
        for key, value in mapping.items():
            name = inline[key]
            if len(name) > _LONGEST_KEY:
                name = f"? {name}\n{pad}"
            if value.__class__ is str:
                written = self._text(value, pad) if "\n" in value else inline[value]
                add(f"{lead}{name}: {written}\n")
            elif value and value.__class__ is dict:
                add(f"{lead}{name}:\n")
                self._mapping(value, pad + "  ", pad + "  ")
            elif value and value.__class__ is list:
                add(f"{lead}{name}:\n")
                self._list(value, pad, pad)
            else:
                add(f"{lead}{name}: {_constant(value)}\n")
            lead = pad

    def _list(self, values: list[Any], lead: str, pad: str) -> None:
        add, inline = self.lines.append, self._inline
        for value in values:
            if value.__class__ is str:
                written = self._text(value, pad) if "\n" in value else inline[value]
                add(f"{lead}- {written}\n")
            elif value and (value.__class__ is dict or value.__class__ is list):
                self._collection(value, f"{lead}- ", pad + "  ")
            else:
                add(f"{lead}- {_constant(value)}\n")
            lead = pad

    def _text(self, text: str, pad: str) -> str:
        return block(text, pad) or self._inline[text]


def _constant(value: Any) -> str:
    if value is None:
        return "null"
    if value.__class__ is bool:
        return "true" if value else "false"
    if value.__class__ is int:
        return str(value)
    if value.__class__ is float:
        return _float(value)
    if value in ({}, []):
        return "{}" if value.__class__ is dict else "[]"
    raise TypeError(f"a document cannot hold a {type(value).__name__}")


def _float(value: float) -> str:
    written = str(json_number(value))
    # YAML 1.1 readers know an exponent only behind a point
    return written.replace("e", ".0e") if "e" in written and "." not in written else written
