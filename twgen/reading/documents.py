"""Reading documents from files, folders and stdin."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from twgen.errors import InvalidInput
from twgen.model.document import Document
from twgen.specs.kinds import without_lists
from twgen.specs.unrendered import template_of_helm
from twgen.yaml.errors import YamlError
from twgen.yaml.limits import DEFAULT
from twgen.yaml.reader import read_documents

STDIN = "-"
_SUFFIXES = {".yaml", ".yml", ".json"}


class Sources:
    """The texts that documents came from; a file is read again when it is asked for, stdin is kept."""

    def __init__(self) -> None:
        self._stdin: bytes | None = None

    def text(self, source: str) -> bytes:
        """The bytes of a file, or of stdin; raises InvalidInput when it cannot be read."""
        if source == STDIN:
            if self._stdin is None:
                self._stdin = sys.stdin.buffer.read(DEFAULT.bytes + 1)
            return self._stdin
        try:
            with Path(source).open("rb") as file:
                return file.read(DEFAULT.bytes + 1)
        except OSError as error:
            raise InvalidInput(f"cannot read {source}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Read:
    """The documents of all files, and a line for each file that is not YAML."""

    documents: tuple[Document, ...]
    unreadable: tuple[str, ...]


def read_paths(paths: Iterable[str], sources: Sources) -> Read:
    """Every document under the paths, in order; raises InvalidInput when there is none.

    A folder is read with all below it, hidden entries left out; `-` is stdin.
    """
    documents: list[Document] = []
    unreadable: list[str] = []
    for file in dict.fromkeys(file for path in paths for file in _files(path)):
        try:
            values = read_documents(sources.text(file))
        except YamlError as error:
            place = f"{file}:{error.line}" if error.line else file
            unreadable.append(f"{place}: {template_of_helm(file, sources.text(file)) or error.message}")
            continue
        for index, value in enumerate(values):
            if value is not None:
                documents.extend(without_lists(Document(file, index, value)))
    if not documents and not unreadable:
        raise InvalidInput(f"no document found in {' '.join(paths)}: name the folder of your specs")
    return Read(tuple(documents), tuple(unreadable))


def _files(path: str) -> Iterator[str]:
    place = Path(path)
    if path == STDIN or place.is_file():
        yield path
    elif place.is_dir():
        yield from (str(file) for file in _below(place, place.resolve()))
    else:
        raise InvalidInput(f"{path}: no such file or folder")


def _below(folder: Path, root: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            _refuse_escape(entry, root)
        if entry.is_dir() and not entry.is_symlink():
            yield from _below(entry, root)
        elif entry.suffix in _SUFFIXES and entry.is_file():
            yield entry


def _refuse_escape(link: Path, root: Path) -> None:
    if not link.resolve().is_relative_to(root):
        raise InvalidInput(f"{link} is a link out of the folder: only what is inside is read")
