"""The text of a ledger, a file that people own: comments, order and all other entries stay as they are.

A version is one line of JSON, so that Git merges branches that add versions line by line.
"""

import io
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from twgen.errors import InvalidInput
from twgen.records.ledger import KIND, LedgerEntry, write_entry
from twgen.versioning.names import TWGEN_API
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError
from twgen.yaml.writer import in_one_line

# with `---`, comments above it are none of the document's
_HEAD = re.compile(r"(?:[^\S\n]*(?:#.*)?\n)*---[^\S\n]*(?:#.*)?\n")
_NEW = {"apiVersion": TWGEN_API, "kind": KIND}


def updated_text(text: str, entries: Iterable[LedgerEntry], source: str) -> str:
    """The ledger with these versions: a changed one in its place, a new one at the end; empty: a new ledger.

    Raises InvalidInput when the text is no ledger, or one that cannot be edited.
    """
    new = {entry.key: write_entry(entry) for entry in entries}
    if not new:
        return text
    document = _only_document(text, source) if text else {**_NEW, "versions": []}
    as_written = _as_written(document)
    changed = {
        index: new.pop(key)
        for index, item in enumerate(document["versions"])
        if (key := (item["worker"], item["buildID"])) in new
    }
    versions = [changed.get(index, item) for index, item in enumerate(document["versions"])]
    result = {**document, "versions": [*versions, *new.values()]}
    # where nobody has edited there is nothing to keep, and ruamel.yaml takes twenty times as long
    if text in ("", as_written):
        return _as_written(result)
    written = _edited(text, changed, new.values())
    with suppress(YamlError):
        if read_documents(written) == [result]:
            return written
    raise InvalidInput(
        f"{source} cannot be edited with its layout kept: lay `versions` out as a list of `- {{...}}`,"
        " without anchors and tags"
    )


def _as_written(document: Mapping[str, Any]) -> str:
    fields = "".join(f"{name}: {value}\n" for name, value in _NEW.items())
    return f"{fields}versions:\n" + "".join(f"- {in_one_line(item)}\n" for item in document["versions"])


def _edited(text: str, changed: Mapping[int, dict[str, Any]], new: Iterable[dict[str, Any]]) -> str:
    """The text with some entries changed and new ones below; empty where ruamel.yaml cannot read it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize
    yaml.composer.warn_double_anchors = False
    line_break = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    head = found[0] if (found := _HEAD.match(text)) else ""
    try:
        document, indent, before_dash = load_yaml_guess_indent(text[len(head) :], yaml=yaml)
    except (YAMLError, IndexError):  # the latter for a dash that stands alone
        return ""
    yaml.indent(sequence=indent, offset=before_dash)
    versions = document["versions"]
    for index, entry in changed.items():
        item = versions[index]
        for name, value in entry.items():
            if item.get(name) == value:
                continue
            comment, item[name] = _comment_below(item.get(name)), yaml.load(in_one_line(value))
            if comment and name not in item.ca.items:
                item.ca.items[name] = [None, None, comment, None]
    versions.extend(yaml.load(in_one_line(entry)) for entry in new)
    stream = io.StringIO(head)
    stream.seek(len(head))
    yaml.dump(document, stream)
    return stream.getvalue().replace("\n", line_break)


def _comment_below(node: Any) -> Any:
    """What ruamel.yaml keeps with the last value in a node: the comment on what follows the node."""
    comment = None
    while node and hasattr(node, "ca"):
        last = next(reversed(node)) if hasattr(node, "keys") else len(node) - 1
        comment = next(filter(None, node.ca.items.get(last) or ()), comment)
        node = node[last]
    return comment


def _only_document(text: str, source: str) -> dict[str, Any]:
    try:
        documents = read_documents(text)
    except YamlError as error:
        raise InvalidInput(f"{source}: {error}: take the file back from Git") from error
    if len(documents) != 1 or not isinstance(documents[0], dict) or documents[0].get("kind") != KIND:
        raise InvalidInput(f"{source} is not a ledger: take it back from Git, or move it away")
    found: dict[str, Any] = documents[0]
    return found
