"""The only reader: JSON, and YAML in the style of programs, have fast paths; all else needs libyaml."""

import json
import re
from typing import Any, NoReturn

from twgen.yaml.block_text import read_block
from twgen.yaml.limits import Budget
from twgen.yaml.scalars import json_integer, json_number
from twgen.yaml.source import YamlError, decode, replace_surrogates

_DASHES = re.compile(r"-[ \t]+-[ \t]+(?:-[ \t]+){9998}")
_START = re.compile(r"[ \t\r\n]*[\[{]")
_BRACKETS = bytes.maketrans(b"[]{}", b"()()")
_ALL_ELSE = bytes(set(range(256)) - set(b'[]{}",:'))
_QUOTED = re.compile(rb'"[^"]*"')
_NOT_FINITE = re.compile(r"(?<=[\s:,\[])(?:NaN|-?Infinity)(?=[\s,\]}])")


def read_documents(text: bytes | str, budget: Budget | None = None) -> list[Any]:
    """Return the value of each YAML or JSON document (None for an empty one); raises YamlError.

    The rules are those of sigs.k8s.io/yaml with strict keys; keys from `<<` may be overridden below it.
    The values of aliases are shared, not copied. Texts of one run share a budget.
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
    # every reader reads such a line whole, with 50 bytes for each byte, before it reports its levels
    if dashes := _DASHES.search(content):
        line = content.count("\n", 0, dashes.start()) + 1
        raise YamlError(f"nested deeper than {limits.depth} levels", line)
    if (documents := read_block(content, budget)) is not None:
        return documents
    from twgen.yaml.events import read_all

    return read_all(content, budget)


def read_json(text: str, budget: Budget) -> dict[str, Any] | list[Any] | None:
    """Return the object or array that the text is; raises YamlError for NaN and infinities.

    None leaves the text to the YAML reader: it is not JSON or beyond a limit, and its errors have a line.
    """
    if not _START.match(text):
        return None
    has_escapes = "\\" in text
    unescaped = text.replace("\\\\", "").replace('\\"', "") if has_escapes else text
    quotes_and_marks = unescaped.encode().translate(_BRACKETS, _ALL_ELSE).replace(b'""', b"")
    marks = _QUOTED.sub(b"", quotes_and_marks)
    # an upper bound: empty lists and mappings have no items
    nodes = budget.nodes + marks.count(b",") + marks.count(b"(")
    if nodes > budget.limits.nodes or budget.documents == budget.limits.documents:
        return None
    # the number of times that innermost brackets can be removed is the depth of nesting
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
    """Decode a text with this number of keys; raises ValueError if it is not JSON, or has a key twice."""
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
