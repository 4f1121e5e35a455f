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


def width() -> int:
    """The characters of a line: the terminal's, else enough for a log."""
    return get_terminal_size((_WIDE, 0)).columns if sys.stdout.isatty() else _WIDE
