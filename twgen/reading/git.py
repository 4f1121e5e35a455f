"""A Git repository, read by the git program: it runs, fetches and writes nothing."""

import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self, cast

from twgen.clients.programs import program_on_path

_PIECE = 64 * 2**10
_MOST_MEMORY = 192 * 2**20
"""Bytes that one git may take: a commit can hold files that are far smaller packed."""
_NOT_ALL = "git cannot read the whole history: the clone may be incomplete, or contain a huge file"
_HEADER = re.compile(rb"[0-9a-f]+ (\w+) (\d+)\n")
"""The first line of git's answer about an object; for a missing one git repeats the request."""
_SAFE = (
    # the repository's own settings can name programs to run, and servers to fetch from
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"),
    *("-c", "protocol.allow=never", "--no-pager", "--literal-pathspecs"),
    # larger files are streamed in pieces, and not compared
    *("-c", "core.bigFileThreshold=16m"),
)
_ENVIRONMENT: Mapping[str, str] = {
    # its settings may allow one protocol despite protocol.allow, and an older git fetches missing objects
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class HistoryEnds(Exception):
    """The Git history cannot be read any further; the message is why, as the rest of a sentence."""


class Commit(NamedTuple):
    """A commit that changed a file."""

    id: str
    parent: str
    """Its first parent; empty: it has none."""
    path: str
    """The file's path in this commit, from the root of the repository."""


class Repository:
    """A Git repository, to be read until `ends` of time.monotonic; later reads raise HistoryEnds."""

    def __init__(self, root: Path, ends: float) -> None:
        program = program_on_path("git")
        if not program:
            raise HistoryEnds("git is not installed")
        self.root = root
        self._ends = ends
        self._command = (program, f"--git-dir={root / '.git'}", *_SAFE)
        self._running: list[subprocess.Popen[bytes]] = []
        self._limit = threading.Timer(max(0, ends - time.monotonic()), self._kill)
        self._limit.daemon = True

    def __enter__(self) -> Self:
        self._limit.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limit.cancel()
        self._kill()
        for process in self._running:
            process.communicate()

    @property
    def is_shallow(self) -> bool:
        """Its older commits were not cloned."""
        with self._asking("rev-parse", "--is-shallow-repository") as output:
            return output.read().strip() == b"true"

    def commits_of(self, path: str, *, first_parents: bool) -> Iterator[Commit]:
        """The commits that changed a file, newest first, including those under its earlier names.

        With `first_parents`, only commits of the branch itself; a merge then counts as one change.
        """
        form = "--format=%x01%H %P"
        branch = ("--first-parent", "-m") if first_parents else ()
        safe = (*branch, "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-color")
        with self._asking("log", "--follow", "--name-only", "-z", form, *safe, "--", path) as output:
            commit, parent = "", ""
            for piece in _split(output):
                if piece.startswith(b"\x01"):
                    if commit:  # a merge, for which git lists no file
                        yield Commit(commit, parent, path)
                    commit, _, parents = piece[1:].decode().partition(" ")
                    parent = parents.partition(" ")[0]
                elif name := piece.removeprefix(b"\n"):
                    path = os.fsdecode(name)
                    yield Commit(commit, parent, path)
                    commit = ""
            if commit:
                yield Commit(commit, parent, path)

    def files_at(self, commit: str, paths: Sequence[str]) -> Iterator[str]:
        """The regular files of a commit at or below these paths; `.` is the whole commit."""
        below = () if "." in paths else paths
        with self._asking("ls-tree", "-r", "-z", commit, "--", *below) as output:
            for entry in _split(output):
                head, _, name = entry.partition(b"\t")
                if head.startswith(b"100"):
                    yield os.fsdecode(name)

    def content(self, commit: str, path: str, most: int) -> bytes | None:
        """The content of a file in a commit; None: it does not exist, or is larger than `most` bytes."""
        requests, answers = self._contents
        if "\n" in path:
            return None
        text, line = None, b""
        with suppress(BrokenPipeError):
            requests.write(os.fsencode(f"{commit}:{path}\n"))
            requests.flush()
            line = answers.readline()
            if header := _HEADER.fullmatch(line):
                size = int(header[2])
                is_wanted = header[1] == b"blob" and size <= most
                text = answers.read(size) if is_wanted else None
                for start in range(size if is_wanted else 0, size, _PIECE):
                    answers.read(min(_PIECE, size - start))
                line = answers.read(1) and line  # the end of the text
        self._in_time()
        if not line:
            raise HistoryEnds(_NOT_ALL)
        # a file that the commit names but git lacks may hold a worker's policy, or the wanted version
        if line.endswith(b" missing\n") and any(self.files_at(commit, [path])):
            raise HistoryEnds("the clone is partial: it does not contain the content of every commit")
        return text

    @cached_property
    def _contents(self) -> tuple[IO[bytes], IO[bytes]]:
        """The streams of one git: requests for the content of files, and its answers."""
        process = self._start("cat-file", "--batch")
        return cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)

    @contextmanager
    def _asking(self, *arguments: str) -> Iterator[IO[bytes]]:
        process = self._start(*arguments)
        try:
            yield cast("IO[bytes]", process.stdout)
            self._in_time()
            # its output may then be incomplete, such as a worker without its policy
            if process.wait():
                raise HistoryEnds(_NOT_ALL)
        finally:
            process.kill()
            process.communicate()  # or each commit that is read would keep two files open

    def _start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        self._in_time()
        process = subprocess.Popen(  # noqa: S603 - git itself, and no argument can be taken for an option
            [*self._command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.root,
            env=_ENVIRONMENT,
        )
        self._running.append(process)
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if sys.platform == "linux" and (hard == resource.RLIM_INFINITY or hard > _MOST_MEMORY):
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
        return process

    def _kill(self) -> None:
        for process in self._running:
            process.kill()

    def _in_time(self) -> None:
        if time.monotonic() >= self._ends:
            raise HistoryEnds("reading the Git history takes too long: run `twgen lock` to record versions")


def repository_root(file: str) -> Path | None:
    """The folder of the Git repository that a file is in.

    Git itself also accepts a folder that only looks like a repository, and a commit can add such a folder.
    """
    folder = Path(os.path.realpath(file)).parent
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def _split(output: IO[bytes]) -> Iterator[bytes]:
    """The parts between zero bytes, as they arrive."""
    remainder = b""
    while piece := output.read1(_PIECE):  # type: ignore[attr-defined]
        *whole, remainder = (remainder + piece).split(b"\0")
        yield from whole
    if remainder:
        yield remainder
