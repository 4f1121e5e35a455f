"""Reading documents from files, folders and stdin."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from twgen.errors import InvalidInput
from twgen.model.paths import parse_path
from twgen.model.problem import Document, Place, Problem
from twgen.records.ledger_text import why_unreadable
from twgen.specs.kinds import without_lists
from twgen.specs.unrendered import template_of_helm
from twgen.yaml.limits import DEFAULT, Budget
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")


class Sources:
    """The bytes that documents came from; what can be read but once, stdin or a pipe, is kept."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def text(self, source: str, most: int = DEFAULT.text_bytes) -> bytes:
        """The bytes of a file or of stdin, cut after one more than `most`; raises InvalidInput."""
        if source in self._kept:
            return self._kept[source]
        is_stdin = source == STDIN
        try:
            with open(0 if is_stdin else source, "rb", closefd=not is_stdin) as file:
                content = file.read(most + 1)
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    self._kept[source] = content
                return content
        except OSError as error:
            reason = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise InvalidInput(f"cannot read {'stdin' if is_stdin else source}: {reason}") from error


class Read(NamedTuple):
    """The documents of all files, and a line for each file or folder that could not be read in full."""

    documents: tuple[Document, ...]
    unreadable: tuple[str, ...]


def read_paths(paths: Iterable[str], sources: Sources) -> Read:
    """Every document under the paths, in order, each file once; raises InvalidInput when there is none.

    A folder is read with all below it, hidden entries left out; `-` is stdin.
    """
    paths = tuple(paths)
    documents: list[Document] = []
    unreadable: list[str] = []
    budget = Budget()
    for file in _files(paths, unreadable):
        text = b""
        try:
            text = sources.text(file)
            values = read_documents(text, budget)
        except YamlError as error:
            unreadable.append(why_unreadable(file, text, error, template_of_helm(file, text)))
            if budget.is_spent:
                break
        except InvalidInput as error:
            unreadable.append(str(error))
        else:
            for at, value in enumerate(values):
                if value is not None:
                    documents.extend(without_lists(Document(file, at, value)))
    if not documents and not unreadable:
        raise InvalidInput(f"no document found in {' '.join(paths)}: name the folder of your specs")
    return Read(tuple(documents), tuple(unreadable))


def _files(paths: Iterable[str], unreadable: list[str]) -> Iterator[str]:
    """Every file once, by the first of its names; what a folder holds and cannot be read gets a line."""
    seen: set[str] = set()
    for path in paths:
        for name, place in _below(path, unreadable) if _is_folder(path) else [(path, _place(path))]:
            if place not in seen:
                seen.add(place)
                yield name


def _is_folder(path: str) -> bool:
    if path == STDIN:
        return False
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidInput(f"{path or repr(path)}: no such file or folder") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error


def _place(path: str) -> str:
    return path if path == STDIN else os.path.realpath(path)


def _below(folder: str, unreadable: list[str]) -> Iterator[tuple[str, str]]:
    """Every document file below a folder: as it is called here, and where it really is."""
    root = os.path.realpath(folder)
    # not by recursion: folders nest deeper than Python calls
    ahead = [(folder, root, True)]
    while ahead:
        name, place, is_folder = ahead.pop()
        if is_folder:
            ahead += reversed(list(_entries(name, place, root, unreadable)))
        else:
            yield name, place


def _entries(folder: str, place: str, root: str, unreadable: list[str]) -> Iterator[tuple[str, str, bool]]:
    """The document files and folders in a folder, by name: as called here, real place, whether a folder."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
    except OSError as error:
        unreadable.append(f"cannot read {folder}: {error.strerror}")
        return
    for entry in found:
        name = entry.name if folder == "." else os.path.join(folder, entry.name)
        is_document = entry.name.endswith(_SUFFIXES)
        if entry.is_symlink():
            try:
                target = os.path.realpath(name)
            except OSError as error:
                unreadable.append(f"{name} is a link that cannot be followed: {error.strerror}")
                continue
            if not os.path.exists(target):
                unreadable.append(f"{name} is a link to nothing: mend or remove it")
            elif os.path.commonpath((root, target)) != root:
                unreadable.append(f"{name} is a link out of the folder: only what is inside is read")
            elif is_document and os.path.isfile(target):  # the files of a folder are read where it is
                yield name, target, False
        elif entry.is_dir() or (is_document and entry.is_file()):
            yield name, os.path.join(place, entry.name), entry.is_dir()
        elif is_document:
            unreadable.append(f"{name} is neither a file nor a folder: remove it, or name it by itself")


_MOST_IN_ONE_FILE = 100
"""Each look reads the file again; who has more problems in one file looks again anyway."""
_MOST_BYTES = 2**27
"""What the looks into one file read in all: some seconds."""


def located(problems: Iterable[Problem], sources: Sources) -> list[tuple[Problem, int | None]]:
    """Each problem with its line (from 1; None: not looked for), file by file in the order of lines.

    The place that a message refers to stands at its end: `the other is at pay.yaml:14`.
    """
    by_source: dict[str, list[Problem]] = {}
    for problem in problems:
        by_source.setdefault(problem.document.source, []).append(problem)
    found: list[tuple[Problem, int | None]] = []
    for source, items in by_source.items():
        text = sources.text(source)
        looks = max(1, min(_MOST_IN_ONE_FILE, _MOST_BYTES // max(1, len(text))))
        placed = [
            (_with_other_place(item, sources), _line(text, Place(item.document, item.path)))
            for item in items[:looks]
        ]
        found += sorted(placed, key=lambda place: place[1] or 0)
        found += [(item, None) for item in items[looks:]]
    return found


def _with_other_place(problem: Problem, sources: Sources) -> Problem:
    if not problem.other:
        return problem
    source = problem.other.document.source
    line = _line(sources.text(source), problem.other)
    place = f"{source}:{line}" if line else source
    return problem._replace(message=f"{problem.message} {place}", other=None)


def _line(text: bytes, place: Place) -> int | None:
    from twgen.yaml.lines import line_of

    return line_of(text, place.document.index, parse_path(place.path))
