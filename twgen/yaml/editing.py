"""Edit YAML files that people maintain. Unchanged fields keep their comments, order and layout."""

import io
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError
from twgen.yaml.writer import write_documents

# the text up to and including the first `---`, because comments above it are not part of the document
_HEAD = re.compile(r"(?:[^\S\n]*(?:#.*)?\n)*---[^\S\n]*(?:#.*)?\n")
_FIRST_LIST = re.compile(
    r"^( *)[^\s#-].*:[^\S\n]*(?:#.*)?\n(?:[^\S\n]*(?:#.*)?\n)*( *)(-(?: +(?=\S)|\n))", re.MULTILINE
)
"""Matches the first block list.

The groups are its key's indentation, its dash's indentation, and the dash.
"""


def edited(text: str, document: Mapping[str, Any], write: Callable[[Any], str]) -> str | None:
    """Return a document's text, edited to contain `document`, or None if the layout cannot be kept.

    `write` formats new values as YAML. Raises YamlError if the text cannot be read.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    [before] = read_documents(text)
    if _same(before, document):
        return text
    line_break = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    head = match[0] if (match := _HEAD.match(text)) else ""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize
    yaml.composer.warn_double_anchors = False
    if match := _FIRST_LIST.search(text):
        offset = len(match[2]) - len(match[1])
        yaml.indent(sequence=offset + len(match[3]), offset=offset)
    try:
        node = yaml.load(text[len(head) :])
    except YAMLError:
        return None
    if not isinstance(before, dict) or (match and match[3] == "-\n"):
        return None
    _change(node, before, document, lambda value: yaml.load(write(value)))
    stream = io.StringIO(head)
    stream.seek(len(head))
    yaml.dump(node, stream)
    with suppress(YamlError):
        if _same(read_documents(stream.getvalue()), [document]):
            return stream.getvalue().replace("\n", line_break)
    return None


def commented(document: Mapping[str, Any], comments: Mapping[tuple[str, ...], str]) -> str:
    """Return the document as YAML, with a comment after each field at these paths."""
    from twgen.yaml.events import FieldPath, lines_of  # few runs need libyaml

    text = write_documents([document])
    lines = text.splitlines()
    places: list[FieldPath] = [(0, *path) for path in comments]
    for number, comment in zip(lines_of(text, places), comments.values(), strict=True):
        lines[(number or 1) - 1] += f"  # {comment}"
    return "\n".join(lines[1:]) + "\n"


def _change(node: Any, before: Any, after: Any, new: Callable[[Any], Any]) -> None:
    """Edit the mapping or list `node` from the values `before` to `after`, leaving equal values unchanged."""
    if isinstance(after, Mapping):
        for name in [name for name in before if name not in after]:
            del node[name]
        for name, value in after.items():
            _put(node, name, (before.get(name), value), new)
        return
    del node[len(after) :]
    for index, (old, value) in enumerate(zip(before, after, strict=False)):
        _put(node, index, (old, value), new)
    node.extend(new(value) for value in after[len(before) :])


def _put(node: Any, place: Any, values: tuple[Any, Any], new: Callable[[Any], Any]) -> None:
    before, after = values
    if _same(before, after) and _has(node, place):
        return
    if any(isinstance(before, kind) and isinstance(after, kind) and before for kind in (Mapping, list)):
        _change(node[place], before, after, new)
        return
    comment = _comment_below(node[place]) if _has(node, place) else None
    node[place] = new(after)
    if comment and place not in node.ca.items:
        node.ca.items[place] = [None, None, comment, None]


def _same(before: Any, after: Any) -> bool:
    """Whether the values have the same JSON. Comparing the values is not enough: in Python, 1 equals True."""
    return before == after and json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)


def _has(node: Any, place: Any) -> bool:
    return isinstance(node, Sequence) or place in node


def _comment_below(node: Any) -> Any:
    """The comment below a node, which ruamel.yaml stores with the node's last value."""
    comment = None
    while node and hasattr(node, "ca"):
        last = next(reversed(node)) if hasattr(node, "keys") else len(node) - 1
        comment = next(filter(None, node.ca.items.get(last) or ()), comment)
        node = node[last]
    return comment
