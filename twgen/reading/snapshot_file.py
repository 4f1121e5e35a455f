"""Reading a snapshot from a file."""

from dataclasses import replace

from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.world import World
from twgen.reading.documents import Sources
from twgen.records.snapshot_reader import read_snapshot
from twgen.yaml.errors import YamlError
from twgen.yaml.limits import DEFAULT, Budget
from twgen.yaml.reader import read_documents

_LIMITS = replace(
    DEFAULT, text_bytes=52 * 2**20, bytes=52 * 2**20, nodes=2_600_000, remedy="record fewer workers in it"
)
"""A snapshot is the operator's own file, and holds every live Deployment: 20,000 versions need 491 MiB."""


def read_snapshot_file(path: str, sources: Sources) -> World:
    """The world of a snapshot file; raises StateUnavailable when it cannot be read in full."""
    try:
        documents = read_documents(sources.text(path, _LIMITS.text_bytes), Budget(_LIMITS))
    except YamlError as error:
        raise StateUnavailable(f"{path}: {error}") from error
    except InvalidInput as error:
        raise StateUnavailable(str(error)) from error
    found = [document for document in documents if document is not None]
    if len(found) != 1:
        raise StateUnavailable(f"{path} holds {len(found)} documents: a snapshot is one")
    return read_snapshot(found[0], path)
