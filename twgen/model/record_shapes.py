"""How a mapping with named fields stands in a document: a record of ours, or an excerpt of others' fields."""

import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from typing import Any, NamedTuple

from twgen.model.paths import Path
from twgen.model.problem import did_you_mean
from twgen.model.shapes import Findings, Schema, Shape, described, refuse, unchanged

_WORD_STARTS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Field(NamedTuple):
    """A field of a record, by the name that documents have for it; null is the same as absent."""

    name: str
    shape: Shape
    required: bool = False
    attribute: str = ""
    """Of the value; empty: the name in snake case."""
    absent: Any = None
    """The attribute that is not written."""
    null_when: Callable[[Any], bool] | None = None
    """Set: null is not the same as absent; it is read as None, and written when this holds of the value."""


def record(kind: Callable[..., Any], *entries: Field) -> Shape:
    """A mapping of our own that is one value of `kind`: a dataclass, or a function of its attributes.

    A field that no entry describes is a problem, and so is the absence of one that is marked as required or
    has no default in the dataclass.
    """
    undefaulted = {
        item.name
        for item in getattr(kind, "__dataclass_fields__", {}).values()
        if item.default is item.default_factory is MISSING
    }
    required = [entry.name for entry in entries if entry.required or _attribute(entry) in undefaulted]

    def write(value: Any) -> dict[str, Any]:
        written = {}
        for entry in entries:
            item = getattr(value, _attribute(entry))
            if item is not None and item != entry.absent:
                written[entry.name] = entry.shape.write(item)
            elif entry.null_when and entry.null_when(value):
                written[entry.name] = None
        return written

    schema = _object_schema(entries, required) | {"additionalProperties": False}
    return Shape(_record_reader(kind, entries, required), write, schema)


def _record_reader(
    kind: Callable[..., Any], entries: Sequence[Field], required: Sequence[str]
) -> Callable[[Any, Path, Findings], Any]:
    by_name = {
        entry.name: (_attribute(entry), entry.shape.plain, entry.shape.read, entry.null_when)
        for entry in entries
    }

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not dict:
            refuse(findings, path, f"must be a mapping, not {described(value)}")
            return None
        found = {}
        for name, item in value.items():
            entry = by_name.get(name)
            if entry is None:
                refuse(findings, (path, name), f"no such field{did_you_mean(name, by_name)}")
            elif item.__class__ is entry[1]:
                found[entry[0]] = item
            elif item is not None:
                found[entry[0]] = entry[2](item, (path, name), findings)
            elif entry[3]:
                found[entry[0]] = None
        missing = [name for name in required if value.get(name) is None]
        for name in missing:
            refuse(findings, (path, name), "is required")
        return None if missing else kind(**found)

    return read


def excerpt(*entries: Field) -> Shape:
    """A mapping of somebody else's, of which only these fields are checked; it is read and written whole."""
    looked_at = tuple((entry.name, entry.shape.plain, entry.shape.read, entry.required) for entry in entries)
    required = [entry.name for entry in entries if entry.required]

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not dict:
            refuse(findings, path, f"must be a mapping, not {described(value)}")
            return value
        get = value.get
        for name, plain, read_item, is_required in looked_at:
            item = get(name)
            if item is None:
                if is_required:
                    refuse(findings, (path, name), "is required")
            elif item.__class__ is not plain:
                read_item(item, (path, name), findings)
        return value

    return Shape(read, unchanged, _object_schema(entries, required))


def _attribute(entry: Field) -> str:
    return entry.attribute or _WORD_STARTS.sub("_", entry.name).lower()


def _object_schema(entries: Sequence[Field], required: Sequence[str]) -> Schema:
    schemas = {entry.name: entry.shape.schema for entry in entries}
    # null is the same as absent
    for name in schemas.keys() - set(required):
        schema = schemas[name]
        if "type" not in schema and "enum" not in schema:
            schemas[name] = {"anyOf": [schema, {"type": "null"}]}
            continue
        nullable = (
            {"enum": [*schema["enum"], None]} if "enum" in schema else {"type": [schema["type"], "null"]}
        )
        schemas[name] = schema | nullable
    return {"type": "object", "properties": schemas} | ({"required": list(required)} if required else {})
