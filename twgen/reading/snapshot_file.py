"""Reading a snapshot from a file."""

from dataclasses import replace

from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.world import World
from twgen.reading.documents import Sources
from twgen.records.snapshot_reader import read_snapshot
from twgen.yaml.errors import YamlError
from twgen.yaml.limits import DEFAULT, Budget
from twgen.yaml.reader import read_documents

_LIMITS = replace(DEFAULT, bytes=2**30)
"""A snapshot is the operator's own file, and holds every live Deployment."""


def read_snapshot_file(path: str, sources: Sources) -> World:
    """The world of a snapshot file; raises StateUnavailable when it cannot be read in full."""
    try:
        documents = read_documents(sources.text(path, _LIMITS.bytes), Budget(_LIMITS))
    except YamlError as error:
        raise StateUnavailable(f"{path}: {error}") from error
    except InvalidInput as error:
        raise StateUnavailable(str(error)) from error
    found = [document for document in documents if document is not None]
    if len(found) != 1:
        raise StateUnavailable(f"{path} holds {len(found)} documents: a snapshot is one")
    return read_snapshot(found[0], path)
