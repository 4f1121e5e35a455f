"""Every credential that was made here, and whether one is in what programs have written."""

import base64
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PIECE = 16
"""A part of a credential that is found wherever it is; of a longer one, any part of twice that length."""

_RUN = re.compile(rb"[\w+/=-]{%d,}" % _PIECE)
_ENDINGS = (".log", ".termination")
_made: set[str] = set()


def credential(text: str) -> str:
    """The same text, which from now on nobody may show."""
    _made.add(text)
    return text


def leaks(content: bytes) -> set[str]:
    """The pieces of credentials that are in it, as they are or in base64."""
    pieces = _pieces(frozenset(_made))
    found: set[bytes] = set()
    for run in set(_RUN.findall(content)):
        windows = (run[start : start + _PIECE] for start in range(len(run) - _PIECE + 1))
        found |= pieces.intersection(windows)
    return {piece.decode() for piece in found}


def leaks_below(folder: Path) -> dict[str, set[str]]:
    """Of each log below a folder that shows a credential, which pieces."""
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
    """What of it is secret, in each form that it may have in a text."""
    # without its signature, which comes last, a token is worth nothing, and says what others say too
    secret = text.rpartition(".")[2]
    yield from (line.encode() for line in secret.splitlines())
    for before in range(3):
        # the characters at both ends also depend on what stands there
        yield base64.b64encode(b" " * before + secret.encode())[4:-4]
