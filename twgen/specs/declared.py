"""How the mapping of a spec is read into the class that declares its fields.

The class is declared as that of a record is (model.record_shapes). A spec differs from a record: what is
wrong does not end its reading, so that rules between fields can tell what else is wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from enum import StrEnum
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from twgen.model.paths import Path, written_path
from twgen.model.problem import noun, wrong_type
from twgen.model.record_shapes import (
    Hint,
    Mark,
    Named,
    OneOf,
    default_of,
    document_names,
    marks_of,
    or_null,
    shape_of,
)
from twgen.model.shapes import Findings, Schema, Shape
from twgen.specs.fields import Fields

Shapes = Mapping[Any, Shape]
Check = Callable[[Fields, Any], None]
"""Notes what is wrong or doubtful between the fields of a mapping, given the value that was read from it."""


class _Entry(NamedTuple):
    """A field of a class, by the names that lead to it from the mapping."""

    attribute: str
    path: tuple[str, ...]
    shape: Shape
    default: Any
    """What the attribute is if the field is absent, or of no use."""
    required: bool
    hint: str
    of_holder: bool
    """If the mapping that holds it is there, the field must be."""


WRITTEN = {"type": "string", "minLength": 1}
"""The rule of a schema that a text is there and not empty."""


def spec_shape(
    kind: Any,
    check: Check | None = None,
    *,
    rules: Schema = MappingProxyType({}),  # type: ignore[assignment]
    fields: Mapping[str, Shape] = MappingProxyType({}),
    shapes: Shapes = MappingProxyType({}),
) -> Shape:
    """The mapping of a spec that a class declares.

    `check` is called with each value that is read, and `rules` say the same in the schema as far as one can.
    Shapes that a class cannot tell are given by attribute (`fields`), or by class at any depth (`shapes`).
    """
    read_fields, schema = _fields_of(kind, shapes, fields)

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value is None:
            findings.problem(path, wrong_type(noun(dict), value))
        fields = Fields(value, written_path(path), findings)
        declared_value = read_fields(fields)
        if check and declared_value is not None:
            check(fields, declared_value)
        fields.close()
        return declared_value

    return Shape(read, _unwritten, _merged(schema | {"additionalProperties": False}, rules))


def exactly_one(*names: str) -> Schema:
    """The rule of a schema that a mapping has exactly one of these fields."""
    return {"oneOf": [*map(_there, names), {"type": "null"}]}


def not_both(*names: str) -> Schema:
    """The rule of a schema that a mapping has at most one of these fields."""
    return {"not": {"allOf": [*map(_there, names)]}}


def _there(name: str) -> Schema:
    return {"type": "object", "properties": {name: {"not": {"type": "null"}}}, "required": [name]}


def _unwritten(value: Any) -> Any:
    raise NotImplementedError(value)


def _fields_of(
    kind: Any, shapes: Shapes, given: Mapping[str, Shape] = MappingProxyType({})
) -> tuple[Callable[[Fields], Any], Schema]:
    """How the fields of a class are read from a mapping into one, and the schema of the mapping."""
    entries: list[_Entry] = []
    inline: dict[str, Callable[[Fields], Any]] = {}
    schema: Schema = {"type": "object", "properties": {}}
    names = document_names(kind)
    internal: dict[str, Any] = {}
    for attribute, annotation in kind.__annotations__.items():
        default = default_of(kind, attribute)
        if attribute not in names:
            internal |= {attribute: _blank(annotation)} if default is MISSING else {}
            continue
        marks = marks_of(annotation)
        one_of = next((mark.kinds for mark in marks if isinstance(mark, OneOf)), None)
        if one_of:
            inline[attribute], more = _one_of(one_of, shapes)
        elif Mark.INLINE in marks:
            inline[attribute], more = _fields_of(get_args(annotation)[0], shapes)
        else:
            entry = _Entry(
                attribute,
                tuple(names[attribute].split(".")),
                given.get(attribute) or shape_of(annotation, shapes, spec_shape),
                _blank(annotation) if default is MISSING else default,
                required=default is MISSING or Mark.REQUIRED in marks,
                hint=next((f": {mark.text}" for mark in marks if isinstance(mark, Hint)), ""),
                of_holder=Mark.OF_HOLDER in marks,
            )
            entries.append(entry)
            about = next((mark.about for mark in marks if isinstance(mark, Named)), "")
            more = _field_schema(entry, about)
        schema = _merged(schema, more)

    defaults = internal | {entry.attribute: entry.default for entry in entries}
    names_here = frozenset(entry.path[0] for entry in entries)

    def read(fields: Fields) -> Any:
        attributes = dict(defaults)
        for attribute, read_inline in inline.items():
            attributes[attribute] = read_inline(fields)
        fields.expect(names_here)
        holders: dict[tuple[str, ...], Fields] = {}
        for entry in entries:
            if entry.path[0] in fields.value or entry.required:
                attributes[entry.attribute] = _value(entry, fields, holders)
        for holder in holders.values():
            holder.close()
        # without the field that says its class, nothing can be said of a value
        return None if any(attributes[attribute] is None for attribute in inline) else kind(**attributes)

    return read, schema


def _value(entry: _Entry, fields: Fields, holders: dict[tuple[str, ...], Fields]) -> Any:
    """The value of a field; the mappings that lead to it are added to `holders`, by their names."""
    holder, is_held = fields, False
    for depth, name in enumerate(entry.path[:-1], 1):
        is_held = holder.has(name)
        holder = holders.setdefault(entry.path[:depth], holder.mapping(name))
    required = entry.required or (entry.of_holder and is_held)
    return holder.get(entry.path[-1], entry.shape, entry.default, required=required, hint=entry.hint)


def _one_of(kinds: Mapping[str, Any], shapes: Shapes) -> tuple[Callable[[Fields], Any], Schema]:
    """As `_fields_of`, of a value whose class the name of its field says."""
    by_name = {name: shape_of(kind, shapes, spec_shape) for name, kind in kinds.items()}

    def read(fields: Fields) -> Any:
        names = [name for name in by_name if fields.has(name)]
        if len(names) != 1:
            fields.problem("", f"needs exactly one of {', '.join(by_name)}")
        return fields.get(names[0], by_name[names[0]]) if names else None

    schema: Schema = {
        "properties": {name: or_null(shape.schema) for name, shape in by_name.items()},
        **exactly_one(*by_name),
    }
    return read, schema


def _field_schema(entry: _Entry, about: str) -> Schema:
    """The schema of the mapping with this one field."""
    schema = entry.shape.schema
    is_required = entry.required or entry.of_holder
    if entry.shape.may_be_empty and not is_required and "enum" in schema:
        schema = schema | {"enum": [*schema["enum"], ""]}
    elif entry.shape.may_be_empty and not is_required:
        schema = {name: limit for name, limit in schema.items() if name != "minLength"}
        schema |= {"pattern": f"^$(?!\\n)|{schema['pattern']}"} if "pattern" in schema else {}
    is_said = not is_required and entry.shape.write is not _unwritten
    if (
        is_said
        and entry.default is not None
        and entry.default is not False
        and entry.default not in ("", (), {})
    ):
        schema = schema | {"default": entry.shape.write(entry.default)}
    schema = schema if is_required else or_null(schema)
    for depth, name in reversed(list(enumerate(entry.path))):
        if depth < len(entry.path) - 1:
            said = {"description": about} if about and depth == len(entry.path) - 2 else {}
            schema = said | schema | {"additionalProperties": False}
            schema = schema if depth == 0 and entry.required else or_null(schema)
        must_be_there = entry.required if depth == 0 else is_required and depth == len(entry.path) - 1
        schema = {"type": "object", "properties": {name: schema}} | (
            {"required": [name]} if must_be_there else {}
        )
    return schema


def _merged(first: Schema, second: Schema) -> Schema:
    """One schema of a mapping that says what two of them say."""
    merged = first | second
    for name in first.keys() & second.keys():
        if name == "required":
            merged[name] = [*first[name], *second[name]]
        elif name == "properties":
            properties = dict(first[name])
            for key, schema in second[name].items():
                properties[key] = _merged(properties[key], schema) if key in properties else schema
            merged[name] = properties
    return merged


def _blank(annotation: Any) -> Any:
    """What stands for a required value that is absent or wrong, so that other rules can be looked at."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = next(item for item in get_args(annotation) if item is not NoneType)
    base = get_origin(annotation) or annotation
    if issubclass(base, StrEnum):
        return next(iter(base))
    return None if hasattr(base, "__annotations__") and base.__annotations__ else base()
