"""Remembers all credentials that tests create, and finds them in the output of programs."""

import base64
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PIECE = 16
"""The length of the pieces that are searched: any part of a credential with twice this length is found."""

_RUN = re.compile(rb"[\w+/=-]{%d,}" % _PIECE)
_ENDINGS = (".log", ".termination")
_made: set[str] = set()


def credential(text: str) -> str:
    """Remember a credential, which no program may show; returns it."""
    _made.add(text)
    return text


def leaks(content: bytes) -> set[str]:
    """The pieces of credentials in the content, in plain text or base64."""
    pieces = _pieces(frozenset(_made))
    found: set[bytes] = set()
    for run in set(_RUN.findall(content)):
        windows = (run[start : start + _PIECE] for start in range(len(run) - _PIECE + 1))
        found |= pieces.intersection(windows)
    return {piece.decode() for piece in found}


def leaks_below(folder: Path) -> dict[str, set[str]]:
    """The logs below a folder that show pieces of credentials, with the pieces."""
    logs = (file for file in folder.rglob("*") if file.name.endswith(_ENDINGS) and file.is_file())
    return {str(file): found for file in logs if (found := leaks(file.read_bytes()))}


@cache
def _pieces(made: frozenset[str]) -> frozenset[bytes]:
    return frozenset(
        part[start : start + _PIECE]
        for text in made
        for part in _parts(text)
        for start in range(0, len(part) - _PIECE + 1, _PIECE)
    )


def _parts(text: str) -> Iterator[bytes]:
    """The secret parts of a credential, in all forms that may appear in a text."""
    # only the signature of a token, at its end, is secret; the rest is the same in other tokens
    secret = text.rpartition(".")[2]
    yield from (line.encode() for line in secret.splitlines())
    for before in range(3):
        # the characters at both ends depend on the surrounding text
        yield base64.b64encode(b" " * before + secret.encode())[4:-4]
