"""Writes ledger files and workflow histories."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from twgen.errors import InvalidInput
from twgen.model.policy import Sample
from twgen.model.world import RecordedRun
from twgen.planning.routing.gates import chosen
from twgen.records.ledger import LedgerEntry, LedgerPlace, updated_text
from twgen.specs.kinds import CHART_FILE, LEDGER_FOLDER, is_file

_ATTRIBUTES = "# each version is one line: a merge keeps the lines of both branches\n*.yaml merge=union\n"

ReadFile = Callable[[str], bytes]
"""Reads a file. Raises InvalidInput."""


def unrecorded(
    entries: Iterable[LedgerEntry],
    recorded: Mapping[tuple[str, str], LedgerPlace],
    files: Mapping[str, Path],
) -> dict[Path, list[LedgerEntry]]:
    """The ledger entries to write to each file: entries that the file lacks or that have changed.

    `files` maps each worker to its ledger file. A changed entry is replaced in every file that contains it,
    because twgen rejects ledgers that contradict each other.
    """
    missing: dict[Path, list[LedgerEntry]] = {}
    for entry in entries:
        place = recorded.get(entry.key)
        has_it = [Path(source) for source in place.sources if is_file(source)] if place else []
        is_same = place is not None and place.entry.deployment == entry.deployment
        if is_same and not has_it:  # the entry was read from stdin
            continue
        for file in dict.fromkeys((*has_it, files[entry.worker])):
            if not (is_same and file in has_it):
                missing.setdefault(file, []).append(entry)
    return missing


@contextmanager
def alone_in(folders: Collection[Path]) -> Iterator[None]:
    """Create and lock these folders. Without the lock, concurrent writers could lose each other's entries."""
    with ExitStack() as stack:
        # sorted, so that concurrent writers lock the folders in the same order, which prevents a deadlock
        for folder in sorted(folders):
            # errors are ignored: some network file systems cannot lock a folder, and if the folder is not
            # writable, a later step reports it
            with suppress(OSError):
                folder.mkdir(exist_ok=True)
                handle = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def changed_files(changes: Mapping[Path, Iterable[LedgerEntry]], read_file: ReadFile) -> dict[Path, str]:
    """The new text of each ledger file."""
    texts = {}
    for file, entries in changes.items():
        try:
            text = read_file(str(file)).decode() if os.path.lexists(file) else ""
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{file}: this is not UTF-8 text: save the file as UTF-8") from error
        texts[file] = updated_text(text, entries, str(file))
    return texts


def with_settings_of_ledgers(files: Mapping[Path, str]) -> dict[Path, str]:
    """Add the settings files that Git and Helm need for new ledgers.

    In a ledger, each version is one line, and `.gitattributes` makes Git keep the lines of both branches.
    Branches that add versions of the same worker therefore merge without a conflict. Without an entry in
    `.helmignore`, Helm would pack the ledger into the chart, and might reject the chart as too large.
    """
    folders = sorted({file.parent for file in files if file.parent.name == LEDGER_FOLDER})
    attributes = (folder / ".gitattributes" for folder in folders)
    found = {**files, **{file: _ATTRIBUTES for file in attributes if not os.path.lexists(file)}}
    for chart in (folder.parent for folder in folders if (folder.parent / CHART_FILE).is_file()):
        file = chart / ".helmignore"
        try:
            text = file.read_text(encoding="utf-8") if file.is_file() else ""
        except UnicodeDecodeError:
            continue
        if LEDGER_FOLDER not in {line.strip().strip("/") for line in text.splitlines()}:
            end = "\n" if text and not text.endswith("\n") else ""
            found[file] = f"{text}{end}{LEDGER_FOLDER}/\n"
    return found


def write_files(files: Mapping[Path, str]) -> None:
    """Replace each file atomically, and keep its mode. Raises InvalidInput if a file cannot be written."""
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
                    mask = os.umask(0o022)  # the umask can only be read by setting it
                    os.umask(mask)
                    Path(temporary).chmod(0o666 & ~mask)
                Path(temporary).replace(target)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise InvalidInput(f"cannot write {file}: {error.strerror}") from error


class Written(NamedTuple):
    """The result of writing histories to a folder."""

    histories: tuple[RecordedRun, ...]
    larger: tuple[RecordedRun, ...]
    """Workflows that were left out because their histories would have exceeded the size limit."""
    bytes: int


async def write_histories(
    folder: Path,
    mode: int,
    recorded: Sequence[RecordedRun],
    sample: Sample,
    history: Callable[[RecordedRun, int], Awaitable[str | None]],
) -> Written:
    """Write a sample of histories to an empty folder, with one file for each history.

    `mode` is the file mode. `history` returns the JSON of one history. It returns an empty string if Temporal
    no longer has the history, and None if the history is larger than the given number of bytes. Raises
    InvalidInput if the folder is not writable or not empty, because a replay would also read its other files.
    """
    files: list[RecordedRun] = []
    larger: list[RecordedRun] = []
    size = 0
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # noqa: ASYNC240 - nothing else runs meanwhile
        if next(folder.iterdir(), None):  # noqa: ASYNC240
            raise InvalidInput(f"{folder} is not empty: use an empty folder")
        for workflow in chosen(recorded, sample.of_each_type):
            text = await history(workflow, sample.most_bytes - size)
            if text is None:
                larger.append(workflow)
            elif text:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                opened = os.open(folder / file_name(workflow), flags, mode)
                with os.fdopen(opened, "wb") as file:
                    size += file.write(text.encode())
                files.append(workflow)
    except OSError as error:
        raise InvalidInput(f"cannot write histories to {folder}: {error.strerror}") from error
    return Written(tuple(files), tuple(larger), size)


def file_name(recorded: RecordedRun) -> str:
    """The file name of a history: the shortened, URL-encoded workflow ID, and the run ID."""
    # with the run ID, the name is shorter than the 255 bytes that file systems allow
    escaped = re.sub("%.?$", "", quote(recorded.workflow_id, safe="")[:200])
    # shortening may have cut a multi-byte character
    whole = quote(unquote(escaped, errors="ignore"), safe="")
    return f"{whole}.{recorded.run_id}.json"
