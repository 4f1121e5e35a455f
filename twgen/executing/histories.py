"""Writes histories into a folder, one file each, as many as fit."""

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from twgen.errors import InvalidInput
from twgen.model.histories import Recorded, Sample
from twgen.planning.histories import chosen

_LONGEST_NAME = 200
"""Of a file name, without the run's ID; file systems allow 255 bytes."""


class Written(NamedTuple):
    """The histories that were written into a folder."""

    histories: tuple[Recorded, ...]
    larger: tuple[Recorded, ...]
    """Left out: each was larger than the remaining bytes."""
    bytes: int


async def write_histories(
    folder: Path,
    mode: int,
    recorded: Sequence[Recorded],
    sample: Sample,
    history: Callable[[Recorded, int], Awaitable[str | None]],
) -> Written:
    """Write a sample of histories, one file each, into an empty folder.

    `mode` is for each file. `history` returns the text of one: empty if it is no longer kept, None if it has
    more than the given bytes. Raises InvalidInput if the folder cannot be written or is not empty: a replay
    would read all its files.
    """
    files: list[Recorded] = []
    larger: list[Recorded] = []
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


def file_name(recorded: Recorded) -> str:
    """The name of its file: the ID of the workflow as a URL has it, shortened, and the ID of the run."""
    escaped = re.sub("%.?$", "", quote(recorded.workflow_id, safe="")[:_LONGEST_NAME])
    # a character of several bytes may have been cut in two
    whole = quote(unquote(escaped, errors="ignore"), safe="")
    return f"{whole}.{recorded.run_id}.json"
