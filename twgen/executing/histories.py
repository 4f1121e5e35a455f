"""Writing histories into a folder, one file each, as many as fit."""

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from twgen.errors import InvalidInput
from twgen.model.histories import Recorded, Sample
from twgen.planning.histories import chosen

_LONGEST_NAME = 200
"""Of a file name, without the run's ID; file systems take 255 bytes."""


class Folder(NamedTuple):
    """Where histories are written, and who may read them there."""

    path: Path
    mode: int
    """Of each file."""


class Written(NamedTuple):
    """What was written into a folder."""

    histories: tuple[Recorded, ...]
    larger: tuple[Recorded, ...]
    """Left out: each is larger than what was left of the bytes."""
    bytes: int


async def write_histories(
    folder: Folder,
    recorded: Sequence[Recorded],
    sample: Sample,
    history: Callable[[Recorded, int], Awaitable[str | None]],
) -> Written:
    """Write a sample of histories, one file each, into a folder of nothing else.

    Raises InvalidInput if the folder takes none, or holds anything: a replay would replay that too.
    What `history` returns is the text of one: empty where nobody keeps it any more, None where it is larger
    than so many bytes.
    """
    written: list[Recorded] = []
    larger: list[Recorded] = []
    size = 0
    with _told_of(folder.path):
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if next(folder.path.iterdir(), None):
            raise InvalidInput(f"{folder.path} is not empty: use an empty folder")
    for one in chosen(recorded, sample.of_each_type):
        text = await history(one, sample.most_bytes - size)
        if text is None:
            larger.append(one)
        if not text:
            continue
        with _told_of(folder.path):
            size += _write(folder, file_name(one), text)
        written.append(one)
    return Written(tuple(written), tuple(larger), size)


@contextmanager
def _told_of(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"cannot write histories to {folder}: {error.strerror}") from error


def _write(folder: Folder, name: str, text: str) -> int:
    """Write a file, which holds what a workflow was given; its size."""
    opened = os.open(folder.path / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder.mode)
    with os.fdopen(opened, "wb") as file:
        return file.write(text.encode())


def file_name(recorded: Recorded) -> str:
    """The name of its file: the ID of the workflow as a URL has it, shortened, and that of the run."""
    escaped = re.sub("%.?$", "", quote(recorded.workflow_id, safe="")[:_LONGEST_NAME])
    # a character of several bytes may have been cut in two
    whole = quote(unquote(escaped, errors="ignore"), safe="")
    return f"{whole}.{recorded.run_id}.json"
