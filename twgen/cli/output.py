"""Where text goes: data to stdout in one piece, all else to stderr."""

import os
import sys
from collections.abc import Iterable
from shutil import get_terminal_size

_WIDE = 120


def write(text: str) -> None:
    """Print data, whole."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def warn(lines: Iterable[str]) -> None:
    """Print a warning a line."""
    for line in lines:
        print(f"warning: {line}", file=sys.stderr)  # noqa: T201 - stderr is where it belongs


def wants_colour(color: str) -> bool:
    """Whether stdout gets colour: https://no-color.org, and only a terminal unless it is forced."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def is_terminal() -> bool:
    """Whether stdout is a terminal that can be painted on."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def wants_tree(color: str) -> bool:
    """Whether stdout gets text that is laid out for eyes: a terminal, or colour."""
    return sys.stdout.isatty() or wants_colour(color)


def writes_unicode() -> bool:
    """Whether stdout can hold more than ASCII, whatever it is."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def width() -> int:
    """The characters of a line: the terminal's, else enough for a log."""
    return get_terminal_size((_WIDE, 0)).columns if sys.stdout.isatty() else _WIDE
