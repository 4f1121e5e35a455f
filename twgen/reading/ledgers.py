"""Which file the versions of a worker are recorded in."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import NamedTuple

from twgen.model.spec import WorkerSpec
from twgen.planning.sentences import listed
from twgen.reading.documents import ledger_folder
from twgen.records.ledger import LedgerPlace
from twgen.specs.kinds import LEDGER_FOLDER, is_file


class LedgerFiles(NamedTuple):
    """The file of each worker, and a line for each worker that is recorded in another ledger too."""

    of_worker: Mapping[str, Path]
    told: tuple[str, ...]


def ledger_files(specs: Iterable[WorkerSpec], recorded: Iterable[LedgerPlace], folder: Path) -> LedgerFiles:
    """Where the versions of each worker are recorded; `folder` is the ledger of what comes from no file.

    A worker stays in the file that has it. A new one gets a file in the ledger beside its spec, which whoever
    reads the spec reads too: of a path, all that is below it, or of a file what is beside it.
    """
    having: dict[str, dict[str, None]] = {}
    for place in recorded:
        found = filter(_is_kept, place.sources)
        having.setdefault(place.entry.worker, {}).update(dict.fromkeys(found))
    of_worker, told = dict[str, Path](), list[str]()
    for spec in specs:
        worker, source = spec.worker_deployment, spec.document.source
        beside = ledger_folder(source) if _is_kept(source) else folder
        name = f"{worker.replace('/', '.')}.yaml"
        near = {file: _nearness(file, beside) for file in having.get(worker, ())}
        file = max(near, key=lambda file: (near[file], PurePath(file).name == name), default="")
        of_worker[worker] = Path(file) if file else beside / name
        if others := [other for other in near if near[other] < near[file]]:
            told.append(
                f"{worker} is recorded in {listed(others)} too: new versions go to {file}, which is"
                " nearer to its spec; move all lines there, and remove"
                f" {'it' if len(others) == 1 else 'them'}"
            )
    return LedgerFiles(of_worker, tuple(told))


def _is_kept(source: str) -> bool:
    """Something can be written there or beside it: it is no pipe of a shell either, as of `<(...)`."""
    return is_file(source) and Path(source).is_file()


def _nearness(file: str, ledger: Path) -> int:
    """How many folders of its spec, from the root, a ledger file is in: all, where none is nearer."""
    folder = PurePath(file).parent
    home = folder.parent if folder.name == LEDGER_FOLDER else folder
    shared = os.path.commonpath((os.path.abspath(home), os.path.abspath(ledger.parent)))  # noqa: PTH100 - links stay
    return len(PurePath(shared).parts)
