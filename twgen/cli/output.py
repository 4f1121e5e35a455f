"""Writes data to stdout in one piece. Writes messages and progress to stderr, as lines of printable text."""

import errno
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from twgen.errors import InvalidInput
from twgen.reporting.printable import printable

_WIDE = 120
_OPENED_INSTEAD = (os.O_WRONLY, os.O_RDONLY, os.O_RDWR)
"""The modes for opening the null device in place of a closed stdin, stdout or stderr.

In these modes, reading stdin and writing stdout still fail.
"""


class _Stdout(io.FileIO):
    """Raises BrokenPipeError if the reader has closed the pipe, and InvalidInput for other errors."""

    def write(self, data: "bytes | memoryview") -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            reason = "stdout is closed" if error.errno == errno.EBADF else error.strerror
            raise InvalidInput(f"cannot write to stdout: {reason}") from error


def open_streams() -> None:
    """Open stdin, stdout and stderr if they are closed, and make them blocking.

    Otherwise, the first opened file would get the number of a closed stderr, and print() would send text for
    stderr to stdout. Text that libraries write to stderr is discarded: a library that panics may print its
    input, which can contain a credential.
    """
    for number, flags in enumerate(_OPENED_INSTEAD):
        try:
            os.set_blocking(number, True)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # noqa: FBT003 - the lowest free number: this one
    encoding = sys.stdout.encoding if sys.stdout else "utf-8"
    raw = _Stdout(1, "w", closefd=False)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors="backslashreplace")
    encoding = sys.stderr.encoding if sys.stderr else "utf-8"
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding=encoding, errors="backslashreplace")
    os.dup2(nowhere := os.open(os.devnull, os.O_WRONLY), 2)
    os.close(nowhere)


def write(data: str | bytes) -> None:
    """Print all data to stdout. Bytes in file names that are not UTF-8 are escaped as in JSON."""
    if data:
        sys.stdout.buffer.write(data if isinstance(data, bytes) else data.encode(errors="backslashreplace"))
        sys.stdout.buffer.flush()


_until_exit: list[object] = []


def keep(*values: object) -> None:
    """Keep references to these values until the process ends, because freeing the values takes time."""
    _until_exit.extend(values)


def say(line: str) -> None:
    """Print one line to stderr. If stderr is closed, do nothing."""
    with suppress(OSError):
        print(printable(line), file=sys.stderr)  # noqa: T201 - stderr is where it belongs


def say_for_now(text: str) -> None:
    """Replace the temporary line on the terminal (stderr). An empty text removes the line."""
    with suppress(OSError):
        print(f"\r{printable(text)}\x1b[K", end="", file=sys.stderr, flush=True)  # noqa: T201 - as above


def warn(lines: Iterable[str]) -> None:
    """Print one warning for each line."""
    for line in lines:
        say(f"warning: {line}")


def wants_colour(color: str) -> bool:
    """Whether to color stdout. By default, only a terminal gets color (https://no-color.org)."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def is_terminal() -> bool:
    """Whether stdout is a terminal that can be repainted."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def wants_tree(color: str) -> bool:
    """Whether stdout gets a layout for people, because it is a terminal or gets color."""
    return sys.stdout.isatty() or wants_colour(color)


def writes_unicode() -> bool:
    """Whether stdout accepts Unicode, even if stdout is not a terminal."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def width() -> int:
    """The line width in characters: the terminal's width, or a width that suits logs."""
    if not sys.stdout.isatty():
        return _WIDE
    from shutil import get_terminal_size

    return get_terminal_size((_WIDE, 0)).columns


def confirm(change: str, *, yes: bool, always: bool = True) -> None:
    """Ask the user at the terminal to confirm the change, unless `yes` is set.

    Without a terminal, it raises InvalidInput if `always` is set, and otherwise accepts the change.
    """
    if yes:
        return
    if sys.stdin and sys.stdin.isatty():
        from click import confirm as ask

        ask(change, abort=True, err=True)
    elif always:
        raise InvalidInput(f"{change}? There is no terminal for this question: give --yes to confirm")


_LINE_SECONDS = 1.0
"""The time between two progress lines, in seconds. Most runs end before the first progress line."""


@contextmanager
def counting(noun: str, total: int, *, quiet: bool) -> Iterator[Iterator[object]]:
    """Show how many of `total` items are finished. Each `next` call counts one item.

    `noun` names the items. The line is shown only if stderr is a terminal, and removed at the end.
    """
    is_shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not quiet

    def counted() -> Iterator[object]:
        last = monotonic()
        for number in range(total if is_shown else 0):
            if monotonic() >= last + _LINE_SECONDS:
                last = monotonic()
                say_for_now(f"{number} of {total} {noun}")
            yield number

    try:
        yield counted()
    finally:
        if is_shown:
            say_for_now("")
