"""Shapes of mappings with named fields: twgen's own records, and excerpts of other programs' documents.

A record is declared only once, as a dataclass or a NamedTuple. Each attribute is a field of the document. The
field's name is the attribute's name in camel case, and its shape follows from the attribute's type. The
docstring below the attribute is the field's description. `Annotated` adds details that a type cannot express:
a Shape with limits, FieldName, Each, Example, NullWhen or a FieldRule.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from functools import partial
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from twgen.model.paths import Path
from twgen.model.problem import REQUIRED, UNKNOWN_FIELD, did_you_mean, noun, wrong_type
from twgen.model.shapes import (
    AS_WRITTEN,
    COUNT,
    DURATION,
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    Findings,
    Schema,
    Shape,
    choice,
    constant,
    listing,
    mapping,
    text,
)

_SCALARS: dict[Any, Shape] = {
    bool: FLAG,
    str: TEXT,
    int: COUNT,
    float: NUMBER,
    datetime: TIME,
    timedelta: DURATION,
    Any: AS_WRITTEN,
}

Name = Annotated[str, text(least=1)]
"""A string that is not empty."""


class FieldName(NamedTuple):
    """An attribute's field name in documents, if it is not the attribute's name in camel case.

    In a spec, a dotted name such as `workerRef.name` means a field of a nested mapping.
    """

    name: str
    about: str = ""
    """The schema description of the nested mapping."""


class Each(NamedTuple):
    """The constraints on a list: its length, and a key that must be unique.

    If `most` is 0, the length is unlimited. An item whose key is None is never a duplicate. With `is_set`,
    identical items are rejected.
    """

    key: Callable[[Any], Any] | None = None
    noun: str = "item"
    least: int = 0
    most: int = 0
    is_set: bool = False


class OneOf(NamedTuple):
    """The mapping must have exactly one of these fields. The field's name selects the value's class."""

    kinds: Mapping[str, Any]


class Example(NamedTuple):
    """An example of the value, for the schema and the pages."""

    value: Any


class Hint(NamedTuple):
    """The end of the error message for a missing field: the value to set, or the reason for the field."""

    text: str


class NullWhen(NamedTuple):
    """Null and absent have different meanings in this field.

    None is written as null if `holds` is true for the record.
    """

    holds: Callable[[Any], bool]


class FieldRule(Enum):
    """A rule for one field that its type cannot express."""

    INTERNAL = "It is not in documents."
    INLINE = "The fields of its class are in the mapping itself."
    OF_HOLDER = "Required if the mapping that contains it is present."
    REQUIRED = "Documents must have it, although the attribute has a default."
    WRITTEN = "It is written even if it has its default."
    LEFT_OUT = "A printed record leaves it out if it has its default."


class Field(NamedTuple):
    """A field of a mapping, with its name in documents. A null value counts as an absent field."""

    name: str
    shape: Shape
    about: str = ""
    """The schema description of a field whose attribute has no docstring."""
    required: bool = False
    attribute: str = ""
    """The attribute that receives the value. Empty if the value is only checked."""
    default: Any = None
    """The attribute's default, or MISSING if it has no default."""
    marks: tuple[Any, ...] = ()
    """The metadata that `Annotated` adds to the attribute's type."""
    may_be_none: bool = False


def fields_of(
    declared: Any,
    *attributes: str,
    given: Mapping[str, Shape] = MappingProxyType({}),
    shapes: Mapping[Any, Shape] = MappingProxyType({}),
    otherwise: Callable[..., Shape],
) -> Iterator[Field]:
    """The fields of all attributes of a class, or only of the given attributes and properties.

    `given` (by attribute) and `shapes` (by class, at any depth) supply shapes that cannot be derived from the
    types. `otherwise` creates the shapes of all other classes. Attributes that become several fields (INLINE,
    OneOf) are not allowed.
    """
    for attribute, name in document_names(declared, attributes).items():
        annotation = annotation_of(declared, attribute)
        marks, default = marks_of(annotation), default_of(declared, attribute)
        if FieldRule.INLINE in marks or any(isinstance(mark, OneOf) for mark in marks):
            raise AssertionError(f"{declared.__name__}.{attribute} has several fields")
        yield Field(
            name,
            given.get(attribute) or shape_of(annotation, shapes, otherwise),
            required=default is MISSING or FieldRule.REQUIRED in marks,
            attribute=attribute,
            default=default,
            marks=marks,
            may_be_none=NoneType in get_args(get_args(annotation)[0] if marks else annotation),
        )


def document_of(  # noqa: PLR0913 - as `record_of`
    api_version: str,
    name: str,
    declared: Any,
    *more: Field,
    attributes: Sequence[str] = (),
    shapes: Mapping[Any, Shape] = MappingProxyType({}),
    is_printed: bool = False,
) -> Shape:
    """The record of a whole document: apiVersion, kind, the fields in `more`, and the class's fields."""
    api = Field("apiVersion", constant(api_version), required=True)
    kind = Field("kind", constant(name), required=True)
    return record_of(declared, *attributes, first=(api, kind, *more), shapes=shapes, is_printed=is_printed)


def record_of(  # noqa: PLR0913 - the differences between a document and its class
    declared: Any,
    *attributes: str,
    first: Sequence[Field] = (),
    make: Callable[..., Any] | None = None,
    fields: Mapping[str, Shape] = MappingProxyType({}),
    shapes: Mapping[Any, Shape] = MappingProxyType({}),
    is_printed: bool = False,
) -> Shape:
    """The shape of a record that a dataclass or a NamedTuple declares.

    By default, the record contains all attributes of the class. `make` creates the value from the fields; by
    default, the class does. `fields` (by attribute) and `shapes` (by class, at any depth) supply shapes from
    other packages. If the class has a `contradictions` method, the method yields the fields that contradict
    each other. A printed record contains every field, with null for None. A record that twgen reads can omit
    fields with defaults, because another release might have written it.
    """
    nested = partial(record_of, is_printed=True) if is_printed else record_of
    own = fields_of(declared, *attributes, given=fields, shapes=shapes, otherwise=nested)
    entries = (*first, *own)
    required = [entry.name for entry in entries if entry.required]
    absent: dict[str, Any] = {}
    """For each field, the value that is omitted from documents."""
    null_when: dict[str, Callable[[Any], bool]] = {}
    """For each field that can be null, whether None is written as null for a given record."""
    for entry in entries:
        is_left_out = (
            FieldRule.LEFT_OUT in entry.marks if is_printed else FieldRule.WRITTEN not in entry.marks
        )
        absent[entry.name] = None if entry.default is MISSING or not is_left_out else entry.default
        if is_printed and entry.may_be_none:
            null_when[entry.name] = lambda _: True
        for mark in entry.marks:
            if isinstance(mark, NullWhen):
                null_when[entry.name] = mark.holds
    always = [name for name, value in absent.items() if name in required or (is_printed and value is None)]
    never_null = (absent.keys() if is_printed else set(required)) - null_when.keys()

    def write(value: Any) -> dict[str, Any]:
        written = {}
        for entry in entries:
            item = getattr(value, entry.attribute) if entry.attribute else entry.shape.fixed or None
            if item is not None and item != absent[entry.name]:
                written[entry.name] = entry.shape.write(item)
            elif entry.name in null_when and null_when[entry.name](value):
                written[entry.name] = None
        return written

    schema = _object_schema(entries, always, never_null) | {"additionalProperties": False}
    rules = getattr(declared, "contradictions", None)
    return Shape(_mapping_reader(entries, make or declared, null_when.keys(), rules), write, schema)


def excerpt(*fields: Field | str) -> Shape:
    """A mapping defined by another program. Only the listed fields are checked, but all fields are kept.

    A string in place of a field declares an optional string field with that name.
    """
    entries = [Field(field, TEXT) if isinstance(field, str) else field for field in fields]
    required = [entry.name for entry in entries if entry.required]
    return Shape(_mapping_reader(entries), schema=_object_schema(entries, required, required))


def _mapping_reader(
    entries: Sequence[Field],
    make: Callable[..., Any] | None = None,
    nullable: Collection[str] = (),
    contradictions: Callable[[Any], Iterator[tuple[Any, str]]] | None = None,
) -> Callable[[Any, Path, Findings], Any]:
    """A function that reads a mapping with these fields.

    If `make` is None, unknown fields are allowed, and all fields are kept.
    """
    by_name = {
        entry.name: (entry.attribute, entry.shape.plain, entry.shape.read, entry.name in nullable)
        for entry in entries
    }
    required = [entry.name for entry in entries if entry.required]

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not dict:
            findings.problem(path, wrong_type(noun(dict), value))
            return None
        before = findings.count
        attributes: dict[str, Any] = {}
        for name, item in value.items():
            if name not in by_name:
                if make:
                    wrong = UNKNOWN_FIELD(f"no such field{did_you_mean(name, by_name)}")
                    findings.problem((path, name), wrong)
                continue
            attribute, plain, read_item, is_nullable = by_name[name]
            if item is None and not is_nullable:
                continue
            is_plain = item is None or item.__class__ is plain
            result = item if is_plain else read_item(item, (path, name), findings)
            if attribute:
                attributes[attribute] = result
        is_whole = True
        for name in required:
            if value.get(name) is None and not (name in nullable and name in value):
                findings.problem((path, name), REQUIRED)
                is_whole = False
        if not make:
            return value
        made = make(**attributes) if is_whole else None
        # rules that span several fields are checked only if every field is valid
        for place, message in contradictions(made) if contradictions and findings.count == before else ():
            findings.problem((path, place) if place else path, message)
        return made

    return read


def shape_of(declared: Any, shapes: Mapping[Any, Shape], otherwise: Callable[..., Shape]) -> Shape:
    """The shape of the values of a type. `otherwise` creates the shape of a class that is not in `shapes`."""
    marks = marks_of(declared)
    if marks:
        declared = get_args(declared)[0]
    for mark in marks:
        if isinstance(mark, Shape):
            return mark
    origin, inner = get_origin(declared), get_args(declared)
    if origin in {Union, UnionType}:
        [single] = (item for item in inner if item is not NoneType)
        return shape_of(Annotated[(single, *marks)] if marks else single, shapes, otherwise)
    if origin is tuple:
        each = next((mark for mark in marks if isinstance(mark, Each)), Each())
        return listing(shape_of(inner[0], shapes, otherwise), **each._asdict())
    if origin is Mapping:
        return mapping(None if inner[1] is Any else shape_of(inner[1], shapes, otherwise))
    if isinstance(declared, type) and issubclass(declared, StrEnum):
        return choice(*declared)
    return _SCALARS.get(declared) or shapes.get(declared) or otherwise(declared, shapes=shapes)


def marks_of(declared: Any) -> tuple[Any, ...]:
    """The metadata that `Annotated` adds to a type."""
    return get_args(declared)[1:] if get_origin(declared) is Annotated else ()


def annotation_of(kind: Any, attribute: str) -> Any:
    """The type of an attribute or a property of a class."""
    if attribute in kind.__annotations__:
        return kind.__annotations__[attribute]
    return getattr(kind, attribute).fget.__annotations__["return"]


def document_names(kind: Any, attributes: Sequence[str] = ()) -> dict[str, str]:
    """The field name in documents of each given attribute. By default, of all attributes of the class."""
    names = {}
    for attribute in attributes or kind.__annotations__:
        marks = marks_of(annotation_of(kind, attribute))
        first, *rest = attribute.split("_")
        own = first + "".join("ID" if word == "id" else word.capitalize() for word in rest)
        if FieldRule.INTERNAL not in marks:
            names[attribute] = next((mark.name for mark in marks if isinstance(mark, FieldName)), own)
    return names


def default_of(kind: Any, attribute: str) -> Any:
    """The default of a dataclass or NamedTuple attribute, or MISSING if it has no default."""
    if issubclass(kind, tuple):
        return kind._field_defaults.get(attribute, MISSING)
    entry = kind.__dataclass_fields__.get(attribute)
    if not entry:  # a property
        return MISSING
    return entry.default if entry.default_factory is MISSING else entry.default_factory()


def _object_schema(entries: Sequence[Field], required: Sequence[str], never_null: Collection[str]) -> Schema:
    properties: dict[str, Schema] = {}
    for entry in entries:
        schema = entry.shape.schema if entry.name in never_null else or_null(entry.shape.schema)
        properties[entry.name] = ({"description": entry.about} if entry.about else {}) | schema
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def or_null(schema: Schema) -> Schema:
    """The schema, extended so that it also allows null."""
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    if "type" in schema:
        return schema | {"type": [schema["type"], "null"]}
    if "anyOf" in schema:
        return schema | {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    # an empty schema already allows null, and a referenced schema has its own rule about null
    is_any = not schema or str(schema.get("$ref")).startswith("#")
    return schema if is_any else {"anyOf": [schema, {"type": "null"}]}
