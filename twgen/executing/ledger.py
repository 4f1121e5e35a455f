"""Reading, mending and writing the files of a ledger."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from twgen.errors import InvalidInput
from twgen.records.ledger import FOLDER, LedgerEntry, LedgerPlace
from twgen.records.ledger_text import merged_text, sides_of, updated_text

_STDIN = "-"


def ledger_folder(path: str) -> Path:
    """The folder of the ledger of what a path names: in a folder of specs, beside a file."""
    place = Path(path)
    return (place if place.is_dir() else place.parent) / FOLDER


def mended_files(paths: Iterable[str]) -> dict[Path, str]:
    """The text of every ledger file that a merge left in conflict, with what both sides recorded.

    The paths are those of specs. Raises InvalidInput when they recorded one version with two templates.
    """
    folders = set()
    for path in paths:
        folders.add(ledger_folder(path))
        for folder, names, _ in os.walk(path):
            names[:] = [name for name in names if not name.startswith(".")]
            folders |= {Path(folder) / FOLDER} if FOLDER in names else set()
    mended = {}
    for file in sorted(file for folder in folders for file in folder.glob("*.yaml")):
        if sides := sides_of(_text(file)):
            mended[file] = merged_text(sides, str(file))
    return mended


def changed_files(
    folder: Path, entries: Iterable[LedgerEntry], recorded: Mapping[tuple[str, str], LedgerPlace]
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
        file: updated_text(_text(file) if file.exists() else "", found, str(file))
        for file, found in by_file.items()
    }


def write_files(files: Mapping[Path, str]) -> None:
    """Replace each file at once, its mode kept: a reader sees the old one or the new one.

    Raises InvalidInput when one cannot be written.
    """
    for file, text in files.items():
        with _refusing(file, "write"):
            file.parent.mkdir(exist_ok=True)
            target = file.resolve()
            handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            try:
                with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                    stream.write(text)
                if target.exists():
                    shutil.copymode(target, temporary)
                else:
                    Path(temporary).chmod(0o666 & ~_umask())
                Path(temporary).replace(target)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise


def _text(file: Path) -> str:
    with _refusing(file, "read"):
        try:
            return file.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{file}: this is not UTF-8 text: save the file as UTF-8") from error


@contextmanager
def _refusing(file: Path, deed: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"cannot {deed} {file}: {error.strerror}") from error


def _umask() -> int:
    # there is no other way to ask for it
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
