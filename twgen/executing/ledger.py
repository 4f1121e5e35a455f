"""Reading and writing the files of a ledger."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from twgen.errors import InvalidInput
from twgen.records.ledger import LedgerEntry, LedgerPlace
from twgen.records.ledger_text import updated_text

_STDIN = "-"
_ATTRIBUTES = "# a version is a line: a merge keeps those of both sides\n*.yaml merge=union\n"

ReadFile = Callable[[str], bytes]
"""What a file holds; raises InvalidInput."""


def changed_files(
    folder: Path,
    entries: Iterable[LedgerEntry],
    recorded: Mapping[tuple[str, str], LedgerPlace],
    read: ReadFile,
) -> dict[Path, str]:
    """The text of every ledger file that must change for these versions to be recorded.

    One that is recorded otherwise changes where it stands, a new one comes to the file of its worker.
    """
    by_file: dict[Path, list[LedgerEntry]] = {}
    for entry in entries:
        place = recorded.get(entry.key)
        if place and place.entry.deployment == entry.deployment:
            continue
        file = folder / f"{entry.worker.replace('/', '.')}.yaml"
        if place and place.document.source != _STDIN:
            file = Path(place.document.source)
        by_file.setdefault(file, []).append(entry)
    return {
        file: updated_text(_text(str(file), read) if os.path.lexists(file) else "", found, str(file))
        for file, found in by_file.items()
    }


def with_attributes(files: Mapping[Path, str], folder: Path) -> dict[Path, str]:
    """The files, and with the first one of a folder what lets Git merge them line by line.

    Each version is one line: branches that add versions of one worker merge as those of different workers.
    """
    attributes = folder / ".gitattributes"
    if os.path.lexists(attributes) or all(file.parent != folder for file in files):
        return dict(files)
    return {**files, attributes: _ATTRIBUTES}


def write_files(files: Mapping[Path, str]) -> None:
    """Replace each file at once, its mode kept: a reader sees the old one or the new one.

    Raises InvalidInput when one cannot be written.
    """
    for file, text in files.items():
        try:
            file.parent.mkdir(exist_ok=True)
            target = file.resolve()
            handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            try:
                with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                    stream.write(text)
                if target.exists():
                    shutil.copymode(target, temporary)
                else:
                    mask = os.umask(0o022)  # there is no other way to ask for it
                    os.umask(mask)
                    Path(temporary).chmod(0o666 & ~mask)
                Path(temporary).replace(target)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise InvalidInput(f"cannot write {file}: {error.strerror}") from error


def _text(file: str, read: ReadFile) -> str:
    try:
        return read(file).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: this is not UTF-8 text: save the file as UTF-8") from error
