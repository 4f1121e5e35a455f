"""The schemas of twgen's own documents, from the classes that declare them."""

import ast
import inspect
import itertools
import json
import sys
from types import NoneType
from typing import Any, NamedTuple, get_args

from tools.published_schemas import SCHEMAS, schema_address
from twgen.model.operator import Operator
from twgen.model.record_shapes import Example, document_names
from twgen.model.shapes import Shape
from twgen.records.ledger import LEDGER, Ledger
from twgen.records.operator_config import OPERATOR_CONFIG
from twgen.records.snapshot import SNAPSHOT, Snapshot


class _Document(NamedTuple):
    """A kind of document: its class, and how values of that are read and written."""

    kind: type[Any]
    shape: Shape


DOCUMENTS = {
    "ledger": _Document(Ledger, LEDGER),
    "operatorconfig": _Document(Operator, OPERATOR_CONFIG),
    "snapshot": _Document(Snapshot, SNAPSHOT),
}
"""By the names of their schemas."""

_HEAD = {
    "apiVersion": "The API group and version of this kind.",
    "kind": "The kind of this document.",
}


def schema_text(document: str) -> str:
    """The schema of a document as its file has it."""
    kind, shape = DOCUMENTS[document]
    record = _described(shape.schema, kind)
    for name, description in _HEAD.items():
        record["properties"][name] = {"description": description} | record["properties"][name]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_address(f"{document}.json"),
        "title": _summary(kind),
        **record,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _described(schema: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The schema of a record with the docstrings of its attributes as descriptions."""
    described = dict(schema["properties"])
    names, docstrings = document_names(kind), _docstrings(kind)
    for attribute, declared in kind.__annotations__.items():
        if names.get(attribute) not in described:
            continue
        found = described[names[attribute]]
        for inner in filter(_is_record, _classes(declared)):
            if "properties" in found:
                found = _described(found, inner)
            elif "properties" in found.get("items", {}):
                item = _described(found["items"], inner)
                found = found | {"items": {"description": f"{_summary(inner)}.", **item}}
        examples = [mark.value for mark in get_args(declared)[1:] if isinstance(mark, Example)]
        described[names[attribute]] = {
            "description": docstrings[attribute],
            **found,
            **({"examples": examples} if examples else {}),
        }
    return schema | {"properties": described}


def _classes(declared: Any) -> list[type[Any]]:
    """The classes that a type is made of."""
    inner = [item for part in get_args(declared) for item in _classes(part)]
    return [declared, *inner] if isinstance(declared, type) and declared is not NoneType else inner


def _is_record(kind: type[Any]) -> bool:
    return hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields")


def _summary(kind: type[Any]) -> str:
    return (kind.__doc__ or "").partition("\n")[0].removesuffix(".")


def _docstrings(kind: type[Any]) -> dict[str, str]:
    """The docstring of each attribute of a class, as one line."""
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    [body] = (
        node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    docstrings = {}
    for first, second in itertools.pairwise(body):
        match first, second:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docstrings[name] = " ".join(text.split())
    return docstrings


if __name__ == "__main__":
    for name in DOCUMENTS:
        (SCHEMAS / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
