"""A program on a terminal of its own."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from testing.forking import forker

_ENDS_WITHIN = 60.0
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PARTS = re.compile(r"\r|\n|\x1b\[(\d*)([A-Za-z])|\x1b\[[^A-Za-z]*[A-Za-z]|[^\r\n\x1b]+")


@dataclass(slots=True)
class Terminal:
    """The program, and all that it has written to its terminal so far."""

    process: "subprocess.Popen[bytes]"
    reading: Thread
    written: bytearray
    keyboard: int
    """The file descriptor that a person types into."""

    def types(self, text: str) -> None:
        """A person types this."""
        os.write(self.keyboard, text.encode())

    def end(self) -> int:
        """Wait until it has ended and all of its text is here; how it ended."""
        code = self.process.wait(_ENDS_WITHIN)
        self.reading.join()
        return code

    @property
    def raw(self) -> str:
        return self.written.decode(errors="replace")

    @property
    def text(self) -> str:
        """What was written, without colours and movements of the cursor."""
        return without_colours(self.raw)

    @property
    def screen(self) -> str:
        """What a person sees in the end: of what is painted again and again, the last."""
        lines, row, column = [""], 0, 0
        for part in _PARTS.finditer(self.raw):
            number, movement = part.groups()
            if part[0] == "\r":
                column = 0
            elif part[0] == "\n":
                row += 1
                lines += [""] * (row == len(lines))
            elif movement == "A":
                row = max(row - int(number or 1), 0)
            elif movement == "K":
                lines[row] = "" if number == "2" else lines[row][:column]
            elif not part[0].startswith("\x1b"):
                end = column + len(part[0])
                lines[row] = lines[row][:column].ljust(column) + part[0] + lines[row][end:]
                column = end
        return "\n".join(lines)


@contextmanager
def terminal(
    command: Sequence[str | Path], folder: Path, columns: int, environment: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """The program on a terminal with that many columns and 50 rows; its stderr goes there too."""
    with _opened(columns) as (ours, theirs, reading, written):
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=_variables() | (environment or {}),
            start_new_session=True,
        )
        os.close(theirs)
        try:
            yield Terminal(process, reading, written, ours)
        finally:
            process.kill()
            process.wait()


def twgen_on_terminal(arguments: Sequence[str], folder: Path, columns: int) -> tuple[int, str]:
    """How a fork of twgen ends, and all that it writes to such a terminal."""
    with _opened(columns) as (_ours, theirs, _reading, written):
        forked = forker().start("twgen.__main__:main", arguments, folder, _variables(), [theirs] * 3)
        os.close(theirs)
        try:
            code = forked.wait(_ENDS_WITHIN)
        finally:
            forked.stop()
    return code, written.decode()


def without_colours(text: str) -> str:
    """What a person reads of it, movements of the cursor left out too."""
    return _CODES.sub("", text)


@contextmanager
def _opened(columns: int) -> Iterator[tuple[int, int, Thread, bytearray]]:
    """The ends of a person and of a program, and what that has written once nobody has its end open."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    written = bytearray()
    reading = Thread(target=_read, args=(ours, written))
    reading.start()
    try:
        yield ours, theirs, reading, written
    finally:
        reading.join()
        os.close(ours)


def _variables() -> dict[str, str]:
    left_out = {"NO_COLOR", "COLUMNS", "LINES"}
    variables = {name: os.environ[name] for name in os.environ.keys() - left_out}  # noqa: TID251 - a program's own is made here
    return variables | {"TERM": "xterm-256color"}


def _read(terminal: int, written: bytearray) -> None:
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # Linux says so when nobody has the other end open
            return
        if not data:
            return
        written.extend(data)
