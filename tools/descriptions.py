"""Take the descriptions in the schemas from the docstrings of the classes that declare documents."""

import ast
import inspect
import itertools
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import NoneType
from typing import Any, get_args

from twgen.model.record_shapes import Example, FieldRule, OneOf, annotation_of, document_names, marks_of


def described(schema: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The schema of a record or a spec with the docstrings of its attributes as descriptions."""
    properties = [name for name, item in vars(kind).items() if isinstance(item, property)]
    names, docstrings = document_names(kind) | document_names(kind, properties), _docstrings(kind)
    for attribute in (*properties, *kind.__annotations__):
        declared = annotation_of(kind, attribute)
        marks = marks_of(declared)
        one_of = next((mark.kinds for mark in marks if isinstance(mark, OneOf)), {})
        for name, inner in one_of.items():
            schema = _changed(schema, [name], partial(_described_choice, inner=inner))
        if FieldRule.INLINE in marks:
            schema = described(schema, get_args(declared)[0])
        elif attribute in names and not one_of:
            change = partial(_described_field, declared=declared, description=docstrings.get(attribute, ""))
            schema = _changed(schema, names[attribute].split("."), change)
    return schema


def _described_choice(found: dict[str, Any], inner: type[Any]) -> dict[str, Any]:
    return {"description": " ".join((inner.__doc__ or "").split())} | described(found, inner)


def _described_field(found: dict[str, Any], declared: Any, description: str) -> dict[str, Any]:
    for inner in filter(_is_record, _classes(declared)):
        if "properties" in found:
            found = described(found, inner)
        elif "properties" in found.get("items", {}):
            item = described(found["items"], inner)
            found = found | {"items": {"description": f"{summary(inner)}.", **item}}
    examples = [mark.value for mark in marks_of(declared) if isinstance(mark, Example)]
    return {"description": description, **found, **({"examples": examples} if examples else {})}


def _changed(
    schema: dict[str, Any], path: Sequence[str], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """A copy of the schema in which the field at this path is changed, if there is such a field."""
    first, *rest = path
    if first not in schema.get("properties", {}):
        return schema
    field = schema["properties"][first]
    field = _changed(field, rest, change) if rest else change(field)
    return schema | {"properties": schema["properties"] | {first: field}}


def _classes(declared: Any) -> list[type[Any]]:
    """The classes that a type contains."""
    inner = [item for part in get_args(declared) for item in _classes(part)]
    return [declared, *inner] if isinstance(declared, type) and declared is not NoneType else inner


def _is_record(kind: type[Any]) -> bool:
    return hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields")


def summary(kind: type[Any]) -> str:
    """The first line of the class's docstring."""
    return (kind.__doc__ or "").partition("\n")[0].removesuffix(".")


def _docstrings(kind: type[Any]) -> dict[str, str]:
    """The docstring of each attribute of a class, as one line."""
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    [body] = (
        node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    docstrings = {
        name: " ".join((item.__doc__ or "").split())
        for name, item in vars(kind).items()
        if isinstance(item, property)
    }
    for first, second in itertools.pairwise(body):
        match first, second:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docstrings[name] = " ".join(text.split())
    return docstrings
