"""How documents come from the paths of a command: as files, or rendered by kustomize or helm."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from twgen.errors import InvalidInput
from twgen.reading.documents import STDIN, Documents, Sources, ledger_folder, read_paths, with_ledgers

DIRECTORY, KUSTOMIZE, HELM = "Directory", "Kustomize", "Helm"


class NotRendered(InvalidInput):
    """The error of kustomize or helm for an invalid folder, as YamlError is for an invalid file."""


class Input(NamedTuple):
    """How documents come from a folder: as files, or rendered; the other fields are only for Helm."""

    kind: str = DIRECTORY
    release: str = ""
    value_files: tuple[str, ...] = ()
    values: str = ""
    namespace: str = ""
    root: str = ""
    """The checkout whose files may be read; empty: the Git repository, or else the folder."""


def read_input(settings: Input, paths: Sequence[str], sources: Sources, *, ledgers: bool) -> Documents:
    """The documents of the paths, with `ledgers` also of the ledgers next to them; raises InvalidInput."""
    if settings.kind == DIRECTORY:
        return read_paths(with_ledgers(paths) if ledgers else paths, sources)
    [folder] = paths if len(paths) == 1 and paths[0] != STDIN else [""]
    if folder and not os.path.exists(folder):  # noqa: PTH110 - as below
        raise InvalidInput(f"{folder}: no such file or folder")
    from twgen.reading.templated import read_rendered  # most runs read only files

    if not os.path.isdir(folder):  # noqa: PTH112 - Path accepts an empty one
        raise InvalidInput(f"--input {settings.kind} renders one folder: give only that folder")
    rendered = read_rendered(settings, os.path.realpath(folder), sources)
    ledger = ledger_folder(folder)
    if not ledger.is_dir() or not any(ledger.iterdir()):
        return rendered
    recorded = read_paths([str(ledger)], sources)
    return Documents((*rendered.documents, *recorded.documents), (*rendered.unreadable, *recorded.unreadable))
