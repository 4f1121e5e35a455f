"""Changing a YAML file that people own: comments and order stay, wherever a field stays."""

import io
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from twgen.errors import InvalidInput
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError
from twgen.yaml.writer import write_documents


def edited(
    text: str, document: Mapping[str, Any], comments: Mapping[tuple[str, ...], str], source: str
) -> str:
    """The text of a file that holds this document; of an empty text a new one, with comments beside fields.

    Raises InvalidInput where the file holds something else, or cannot be edited.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize
    wanted = yaml.load(write_documents([document]))
    try:
        node = yaml.load(text) if text else wanted
    except YAMLError:
        node = None
    if not hasattr(node, "ca") or not hasattr(node, "keys"):
        raise InvalidInput(f"{source} is no one document of YAML: move it away")
    if text:
        _merge(node, wanted)
    else:
        for place, comment in comments.items():
            inner = node
            for step in place[:-1]:
                inner = inner[step]
            inner.yaml_add_eol_comment(comment, place[-1])
    stream = io.StringIO()
    yaml.dump(node, stream)
    with suppress(YamlError):
        if read_documents(stream.getvalue()) == [document]:
            return stream.getvalue()
    raise InvalidInput(f"{source} cannot be edited with its layout kept: move it away, and import again")


def _merge(node: Any, wanted: Any) -> None:
    """Give a mapping or a list the content of another one, and leave alone what is the same."""
    for name in [name for name in node if name not in wanted]:
        del node[name]
    for name, value in wanted.items():
        old = node.get(name)
        if hasattr(old, "keys") and hasattr(value, "keys"):
            _merge(old, value)
        elif isinstance(old, list) and isinstance(value, list) and len(old) == len(value):
            for index, item in enumerate(value):
                if hasattr(old[index], "keys") and hasattr(item, "keys"):
                    _merge(old[index], item)
                elif old[index] != item:
                    old[index] = item
        elif old != value or type(old) is not type(value):
            node[name] = value
