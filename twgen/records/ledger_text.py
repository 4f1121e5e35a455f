"""Edit the text of a ledger. People own the file: comments, order and other entries do not change.

A version is one line of JSON, so that Git merges branches that add versions line by line.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from twgen.errors import InvalidInput
from twgen.records.ledger import KIND, LedgerEntry, write_entry
from twgen.versioning.names import TWGEN_API
from twgen.yaml.editing import edited
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError
from twgen.yaml.writer import in_one_line

_NEW = {"apiVersion": TWGEN_API, "kind": KIND}


def updated_text(text: str, entries: Iterable[LedgerEntry], source: str) -> str:
    """The ledger with these versions: a changed one in its place, a new one at the end; empty: a new ledger.

    Raises InvalidInput if the text is no ledger, or cannot be edited.
    """
    new = {entry.key: write_entry(entry) for entry in entries}
    if not new:
        return text
    document = _only_document(text, source) if text else {**_NEW, "versions": []}
    as_written = _as_written(document)
    # a merge of two branches that recorded the same version leaves it twice
    recorded: Any = document["versions"]
    versions = [new.get((item["worker"], item["buildID"]), item) for item in recorded]
    known = {(item["worker"], item["buildID"]) for item in recorded}
    added = [item for key, item in new.items() if key not in known]
    result = {**document, "versions": [*versions, *added]}
    # without edits by people there is nothing to preserve, and ruamel.yaml takes twenty times as long
    if text in ("", as_written):
        return _as_written(result)
    written = edited(text, result, in_one_line)
    if written is not None:
        return written
    raise InvalidInput(
        f"{source} cannot be edited without losing its layout: write `versions` as a list of `- {{...}}`,"
        " without anchors or tags"
    )


def _as_written(document: Mapping[str, Any]) -> str:
    fields = "".join(f"{name}: {value}\n" for name, value in _NEW.items())
    return f"{fields}versions:\n" + "".join(f"- {in_one_line(item)}\n" for item in document["versions"])


def _only_document(text: str, source: str) -> dict[str, Any]:
    try:
        documents = read_documents(text)
    except YamlError as error:
        raise InvalidInput(f"{source}: {error}: restore the file from Git") from error
    if len(documents) != 1 or not isinstance(documents[0], dict) or documents[0].get("kind") != KIND:
        raise InvalidInput(f"{source} is not a ledger: restore it from Git, or move it elsewhere")
    ledger: dict[str, Any] = documents[0]
    return ledger
