"""Deleting the records of versions that are over."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from twgen.errors import TwgenError
from twgen.planning.pruning import OldRecord

_MOST_REFUSALS = 3
"""The server refuses the next one too, most likely."""


class Pruned(NamedTuple):
    """What became of old records."""

    deleted: Sequence[str]
    """The build IDs."""
    refused: Sequence[str]
    """Why others were not deleted, each with its build ID."""


class DeletesVersions(Protocol):
    """Deletes versions of one worker in Temporal."""

    async def delete_version(self, build_id: str) -> None:
        """Delete a version, or raise TwgenError: the server refuses one that drains, or that is polled."""


async def delete_records(writer: DeletesVersions, records: Sequence[OldRecord]) -> Pruned:
    """Delete the records one after another; after three refusals it tries no more."""
    deleted: list[str] = []
    refused: list[str] = []
    for record in records:
        if len(refused) == _MOST_REFUSALS:
            break
        try:
            await writer.delete_version(record.build_id)
        except TwgenError as error:
            refused.append(f"{record.build_id}: {error}")
        else:
            deleted.append(record.build_id)
    return Pruned(deleted, refused)
