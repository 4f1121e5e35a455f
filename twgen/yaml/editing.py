"""Changing a YAML file that people own: comments, order and layout stay, wherever a field stays."""

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

# with `---`, comments above it are none of the document's
_HEAD = re.compile(r"(?:[^\S\n]*(?:#.*)?\n)*---[^\S\n]*(?:#.*)?\n")
_FIRST_LIST = re.compile(
    r"^( *)[^\s#-].*:[^\S\n]*(?:#.*)?\n(?:[^\S\n]*(?:#.*)?\n)*( *)(-(?: +(?=\S)|\n))", re.MULTILINE
)
"""How far its key, its dash and its first item stand in; a dash may stand alone."""


def edited(text: str, document: Mapping[str, Any], write: Callable[[Any], str]) -> str | None:
    """The text of one document, changed so that it holds this one; None where that keeps no layout.

    What is new in it is laid out as `write` does. Raises YamlError where the text cannot be read.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    [before] = read_documents(text)
    if _same(before, document):
        return text
    line_break = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    head = found[0] if (found := _HEAD.match(text)) else ""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize
    yaml.composer.warn_double_anchors = False
    if found := _FIRST_LIST.search(text):
        offset = len(found[2]) - len(found[1])
        yaml.indent(sequence=offset + len(found[3]), offset=offset)
    try:
        node = yaml.load(text[len(head) :])
    except YAMLError:
        return None
    if not isinstance(before, dict) or (found and found[3] == "-\n"):
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
    """The text of a document, with comments next to the fields at these paths."""
    from twgen.yaml.mistakes import Place, lines_of  # libyaml: few runs need it

    text = write_documents([document])
    lines = text.splitlines()
    places: list[Place] = [(0, *path) for path in comments]
    for number, comment in zip(lines_of(text, places), comments.values(), strict=True):
        lines[(number or 1) - 1] += f"  # {comment}"
    return "\n".join(lines[1:]) + "\n"


def _change(node: Any, before: Any, after: Any, new: Callable[[Any], Any]) -> None:
    """Make `after` of a mapping or a list that is `before` in values, and leave alone what is the same."""
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


def _same(one: Any, other: Any) -> bool:
    """As values of JSON: Python's own 1 is True."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _has(node: Any, place: Any) -> bool:
    return isinstance(node, Sequence) or place in node


def _comment_below(node: Any) -> Any:
    """What ruamel.yaml keeps with the last value in a node: the comment on what follows the node."""
    comment = None
    while node and hasattr(node, "ca"):
        last = next(reversed(node)) if hasattr(node, "keys") else len(node) - 1
        comment = next(filter(None, node.ca.items.get(last) or ()), comment)
        node = node[last]
    return comment
