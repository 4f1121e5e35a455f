"""The only reader of YAML and JSON. It has fast paths for JSON and for the YAML that programs usually write.

The fast path for YAML reads ASCII text in block style, with one key or list item on each line. libyaml's
events read all other text, and report its errors.
"""

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple, NoReturn

from twgen.yaml.scalars import (
    NotAScalar,
    json_integer,
    json_number,
    remembered,
    resolve_key,
    resolve_plain,
)
from twgen.yaml.source import Budget, YamlError, decode, replace_surrogates

_DASHES = re.compile(r"-[ \t]+-[ \t]+(?:-[ \t]+){9998}")
_BEGINS_JSON = re.compile(r"[ \t\r\n]*[\[{]")
_BRACKETS = bytes.maketrans(b"[]{}", b"()()")
_ALL_ELSE = bytes(set(range(256)) - set(b'[]{}",:'))
_QUOTED = re.compile(rb'"[^"]*"')
_NOT_FINITE = re.compile(r"(?<=[\s:,\[])(?:NaN|-?Infinity)(?=[\s,\]}])")
_KEY = r"[A-Za-z_](?:[A-Za-z0-9_./-]|:(?=\S)){0,99}"
# Text that starts with no indicator, and in which no blank follows a colon, and no blank, # or colon follows
# a space. The outer group is not possessive, because in Python 3.11.2 it would then keep a trailing space or
# colon.
_PLAIN = (
    r"(?:[A-Za-z0-9_/.]|-(?=[A-Za-z0-9-]))(?:[A-Za-z0-9_/.\-+@=~%$*!?;()<>,'\"]++|:(?=[^\s])|\ (?=[^\s#:]))*"
)
_VALUE = rf"""{_PLAIN}|"[ -!#-\[\]-~]*"|'[ -&(-~]*'|\{{\}}|\[\]"""
_LINE = re.compile(rf"( *+)((?:-\ )*)(?:({_KEY}):(?:\ ({_VALUE}))?|({_VALUE})|\#[ -~]*+)?")
_WINDOW = 2**16
_LONGEST_LINE = 10_000
"""The limit in characters. On longer lines, matching would need a hundred times the memory of the line."""
_START, _BELOW = object(), object()


def read_documents(text: bytes | str, budget: Budget | None = None) -> list[Any]:
    """Return the value of each YAML or JSON document (None for an empty one); raises YamlError.

    Documents are read by the rules of sigs.k8s.io/yaml, but duplicate keys are rejected. Keys after a `<<`
    can override the keys that it adds. The values of aliases are shared, not copied. All texts of a run share
    a budget.
    """
    budget = budget or Budget()
    limits = budget.limits
    budget.bytes += len(text)
    if budget.bytes > limits.bytes:
        raise YamlError(budget.spent(f"{limits.bytes} bytes"))
    if len(text) > limits.text_bytes:
        raise YamlError(f"more than {limits.text_bytes} bytes: split the file")
    content = decode(text)
    if (value := read_json(content, budget)) is not None:
        return [value]
    # reject such a line here: to find its nesting, a reader would need 50 bytes of memory for each byte
    if dashes := _DASHES.search(content):
        line = content.count("\n", 0, dashes.start()) + 1
        raise YamlError(f"nested deeper than {limits.depth} levels", line)
    if (documents := read_block(content, budget)) is not None:
        return documents
    from twgen.yaml.events import read_all

    return read_all(content, budget)


def read_json(text: str, budget: Budget) -> dict[str, Any] | list[Any] | None:
    """Return the object or array in the text, or None if the text is not JSON or exceeds a limit.

    For text that is not JSON, the YAML reader reports errors with their lines. Raises YamlError for NaN and
    infinities.
    """
    if not _BEGINS_JSON.match(text):
        return None
    has_escapes = "\\" in text
    unescaped = text.replace("\\\\", "").replace('\\"', "") if has_escapes else text
    quotes_and_marks = unescaped.encode().translate(_BRACKETS, _ALL_ELSE).replace(b'""', b"")
    marks = _QUOTED.sub(b"", quotes_and_marks)
    # this is an upper bound, because it counts an item for each empty list or mapping
    nodes = budget.nodes + marks.count(b",") + marks.count(b"(")
    if nodes > budget.limits.nodes or budget.documents == budget.limits.documents:
        return None
    # the nesting depth is how often the innermost brackets can be removed
    brackets, levels = marks.translate(None, b",:"), 0
    while brackets and levels < budget.limits.depth:
        brackets, levels = brackets.replace(b"()", b""), levels + 1
    if brackets:
        return None
    keys = marks.count(b":")
    try:
        value: dict[str, Any] | list[Any] = _decoded(text, keys)
        if has_escapes and ("\\ud" in text or "\\uD" in text):
            value = _decoded(replace_surrogates(json.dumps(value, ensure_ascii=False)), keys)
    except ValueError:
        return None
    budget.nodes = nodes
    budget.documents += 1
    return value


def _decoded(text: str, keys: int) -> Any:
    """Decode a text with this number of keys. Raises ValueError if it is not JSON or has a duplicate key."""
    missing = keys

    def count(mapping: dict[str, Any]) -> dict[str, Any]:
        nonlocal missing
        missing -= len(mapping)
        return mapping

    def refuse(name: str) -> NoReturn:
        at = _NOT_FINITE.search(text)
        line = text.count("\n", 0, at.start()) + 1 if at else None
        raise YamlError(f"{name} is not a JSON number: quote it", line)

    value = json.loads(
        text,
        object_hook=count,
        parse_int=json_integer,
        parse_float=lambda digits: json_number(float(digits)),
        parse_constant=refuse,
    )
    if missing:
        raise ValueError("a key appears twice")
    return value


class _NotBlock(Exception):
    """The text is not in the subset that read_block supports, exceeds a limit, or is not YAML."""


class _Line(NamedTuple):
    """A line's value and its position."""

    column: int
    kinds: tuple[type, ...]
    """The collections in the line, outermost first: a list for each dash, and a mapping for a key."""
    key: str
    value: Any
    """`dict` or `list` for an empty value, _BELOW if the next lines may have the value, _START for `---`."""


def read_block(text: str, budget: Budget) -> list[Any] | None:
    """Return the value of each document, or None if the text is not in the subset or exceeds a limit."""
    if not text.isascii():
        return None
    limits = budget.limits
    most_nodes = limits.nodes - budget.nodes
    try:
        documents, nodes = _read(chain.from_iterable(_windows(text)), limits.depth, most_nodes)
    except (_NotBlock, NotAScalar):
        return None
    if budget.documents + len(documents) > limits.documents:
        return None
    budget.nodes += nodes
    budget.documents += len(documents)
    return documents


def _windows(text: str) -> Iterator[list[_Line]]:
    position = 0
    while position < len(text):
        # parse only some lines at a time, because parsed lines need many times the memory of their text
        end = text.find("\n", position + _WINDOW) + 1 or len(text)
        yield [_line(line) for line in text[position:end].split("\n")]
        position = end


@remembered
def _line(text: str) -> _Line:
    """Parse one line; raises _NotBlock and NotAScalar."""
    if text == "---":
        return _Line(0, (), "", _START)
    if len(text) > _LONGEST_LINE or not (match := _LINE.fullmatch(text)):
        raise _NotBlock
    indent, dashes, key, key_value, item = match.groups()
    value_text = key_value or item
    # reject dashes without an item, and a text with neither dashes nor a key
    if not key and bool(dashes) != bool(item):
        raise _NotBlock
    if not value_text:
        value: Any = _BELOW if key else None
    elif value_text[0] in "\"'":
        value = value_text[1:-1]
    elif value_text[0] in "{[":
        value = dict if value_text == "{}" else list
    else:
        value = resolve_plain(value_text)
    kinds = (list,) * (len(dashes) // 2) + ((dict,) if key else ())
    return _Line(len(indent), kinds, resolve_key(key) if key else "", value)


def _read(lines: Iterator[_Line], depth: int, most_nodes: int) -> tuple[list[Any], int]:
    """Return the value of each document (None if empty), and the number of keys and list items."""
    documents: list[Any] = []
    nodes = 0
    # the mappings and lists that the next line can continue, and the column of each one's keys or dashes
    open_: list[tuple[int, Any]] = []
    # the mapping, key and column of the previous line, if it ended with a key whose value may follow
    awaited: tuple[dict[str, Any], str, int] | None = None
    for column, kinds, key, value in lines:
        if not kinds:
            if value is _START:
                documents.append(None)
                open_.clear()
                awaited = None
            continue
        kind = kinds[0]
        # a list can start at the column of its key
        if awaited and column + (kind is list) > awaited[2]:
            node = awaited[0][awaited[1]] = kind()
            open_.append((column, node))
        else:
            node = _continued(column, kind, open_, documents)
        for nested in kinds[1:]:
            node.append(nested())
            node = node[-1]
            open_.append((open_[-1][0] + 2, node))
        nodes += len(kinds)
        # near the depth limit, libyaml must decide, because an empty mapping or list also counts as a level
        if len(open_) >= depth or nodes > most_nodes:
            raise _NotBlock
        awaited = None
        new = value() if value.__class__ is type else value
        if not key:
            node.append(new)
        elif key in node:
            raise _NotBlock
        elif value is _BELOW:
            node[key] = None
            awaited = (node, key, open_[-1][0])
        else:
            node[key] = new
    return documents, nodes


def _continued(column: int, kind: type, open_: list[tuple[int, Any]], documents: list[Any]) -> Any:
    """Return the mapping or list that continues at this column, or start a document's value."""
    while open_ and (
        open_[-1][0] > column or (open_[-1][0] == column and open_[-1][1].__class__ is not kind)
    ):
        open_.pop()
    if open_ and open_[-1][0] == column:
        return open_[-1][1]
    if column or (documents and documents[-1] is not None):
        raise _NotBlock
    documents[-1:] = [kind()]
    open_.append((0, documents[-1]))
    return documents[-1]
