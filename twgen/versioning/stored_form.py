"""The stored form of a pod template and of attached objects: the part that an API server keeps.

A version's hashes are computed from Go's JSON of the stored form. A table of fields defines both the stored
form and its JSON. tools/kubernetes_types generates the table from Kubernetes' own Go types, and from the
CustomResourceDefinitions of KEDA and the Vertical Pod Autoscaler. `ObjectMeta.more` and `PodSpec.more` list
fields that only manifests can have, because the schema of a custom resource drops them.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from json.encoder import encode_basestring
from typing import Any, Literal, NamedTuple

from twgen.model.paths import Path, written_path
from twgen.model.problem import MOST_REPORTED, REQUIRED, Finding, noun, unknown_field, wrong_type
from twgen.versioning.quantities import canonical_quantity, quantity_text

_TABLE = f"{__file__.removesuffix('stored_form.py')}kubernetes_types.json"
POD_TEMPLATE = "PodTemplateSpec"
LIST = "[]"
MAP = "{}"


class StructField(NamedTuple):
    """One field of a struct.

    `type` is string, bool, int32, int64, quantity, intOrString, intOrQuantity, object (with any fields) or
    the name of a struct. The prefix `[]` means a list, and `{}` a map. Only tools support object. `written`
    says when Go's encoder writes the field: `set` (if it is present), `filled` (unless it is the zero value),
    `always` (as the zero value if it is absent) or `orNull` (as null if it is absent).
    """

    name: str
    type: str
    written: Literal["set", "filled", "always", "orNull"]
    required: bool = False
    default: Any = None
    enum: Sequence[str] = ()
    """The values that an API server accepts for the field, or for its items if it is a list."""
    keys: Sequence[str] = ()
    """The fields that identify a list's items.

    Server-side apply rejects items that share all these values.
    """
    minimum: int | None = None
    nonempty: bool = False


@cache
def struct_fields(struct: str) -> tuple[StructField, ...]:
    """Return the fields of a struct in Go's order."""
    return tuple(StructField(**row) for row in _table()[struct])


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    with open(_TABLE, encoding="utf-8") as file:
        table: dict[str, list[dict[str, Any]]] = json.load(file)
    return table


_DIGITS_FIRST = re.compile(r"[+-]?\.?[0-9]")
A_QUANTITY = "a quantity, such as 500m, 1.5 or 2Gi"
_LARGEST_WHOLE_FLOAT = 2**53 - 1  # an API server rejects larger floats as whole numbers


class Stored(NamedTuple):
    """The stored value, the problems (wrong types and missing fields), and the dropped unknown fields.

    The value is complete only if there are no problems. `problems` and `unknown` each have at most `most` + 1
    findings, so that the caller can see that there are more.
    """

    value: dict[str, Any]
    problems: tuple[Finding, ...]
    unknown: tuple[Finding, ...]


def stored_template(template: object, path: str, most: int = MOST_REPORTED) -> Stored:
    """Return the stored form of the pod template at `path`, and all its problems.

    The rules are those of structural schemas (k8s.io/apiextensions-apiserver): unknown fields are dropped, a
    default is set if its parent is present, a null is dropped or becomes the default, and a wrong type or a
    missing required field is an error. Enums and patterns are not checked, but the syntax of quantities is. A
    quantity can be a number. `template` itself is not changed.
    """
    return stored_struct(template, POD_TEMPLATE, path, "a pod template", most)


def stored_struct(value: object, struct: str, path: str, kind: str, most: int = MOST_REPORTED) -> Stored:
    """Like stored_template, for another struct of the table.

    In messages, `kind` names the value, or the object that contains it.
    """
    walk = _Walk(path, kind, most, [], [])
    stored = _storer(struct)(value, None, walk)
    return Stored(stored or {}, tuple(walk.problems), tuple(walk.unknown))


class _Walk(NamedTuple):
    """The problems found so far in the value at `start`. `kind` is as in `stored_struct`."""

    start: str
    kind: str
    most: int
    problems: list[Finding]
    unknown: list[Finding]

    def add_problem(self, path: Path, message: str) -> None:
        if len(self.problems) <= self.most:
            self.problems.append(Finding(written_path(path, self.start), message))

    def add_unknown(self, path: Path, name: str, fields: dict[str, str]) -> None:
        if len(self.unknown) <= self.most:
            wrong = f"is not a field of {self.kind}"
            self.unknown.append(unknown_field(written_path(path, self.start), name, fields, wrong))


_Store = Callable[[Any, Path, _Walk], Any]
"""Returns the stored form of a value, or None if the value is invalid and the walk has noted a problem."""


@cache
def _storer(type_name: str) -> _Store:
    if type_name in _STORED_SCALARS:
        return _scalar_storer(*_STORED_SCALARS[type_name])
    if type_name.startswith(LIST):
        return _list_storer(_storer(type_name.removeprefix(LIST)))
    if type_name.startswith(MAP):
        return _map_storer(_storer(type_name.removeprefix(MAP)))
    return _struct_storer(struct_fields(type_name))


def _struct_storer(fields: tuple[StructField, ...]) -> _Store:
    types = {row.name: row.type for row in fields}
    defaults = [(row.name, row.default) for row in fields if row.default is not None]
    required = [row.name for row in fields if row.required]

    def store(value: Any, path: Path, walk: _Walk) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            return walk.add_problem(path, wrong_type(noun(dict), value))
        stored = {}
        for name, item in value.items():
            type_name = types.get(name)
            if type_name is None:
                # `kubectl create --dry-run` writes this null into every template
                if item is not None or name != "creationTimestamp":
                    walk.add_unknown(path, name, types)
            elif item is not None:
                stored[name] = _storer(type_name)(item, (path, name), walk)
        for name, default in defaults:
            stored.setdefault(name, default)
        for name in required:
            if name not in stored:
                walk.add_problem((path, name), REQUIRED)
        return stored

    return store


def _list_storer(store_item: _Store) -> _Store:
    def store(value: Any, path: Path, walk: _Walk) -> list[Any] | None:
        if not isinstance(value, list):
            return walk.add_problem(path, wrong_type(noun(list), value))
        return [store_item(item, (path, index), walk) for index, item in enumerate(value)]

    return store


def _map_storer(store_item: _Store) -> _Store:
    def store(value: Any, path: Path, walk: _Walk) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            return walk.add_problem(path, wrong_type(noun(dict), value))
        present = ((key, item) for key, item in value.items() if item is not None)
        return {_valid_unicode(key): store_item(item, (path, key), walk) for key, item in present}

    return store


def _scalar_storer(fit: Callable[[Any], Any], expected: str) -> _Store:
    def store(value: Any, path: Path, walk: _Walk) -> Any:
        try:
            if (stored := fit(value)) is not None:
                return stored
            wrong: str = wrong_type(expected, value)
        except ValueError as error:
            wrong = str(error)
        return walk.add_problem(path, wrong)

    return store


# Each of these functions returns the stored form of a value. It returns None for a wrong type, and raises
# ValueError for an invalid value of the right type.


def _string(value: Any) -> str | None:
    return _valid_unicode(value) if isinstance(value, str) else None


def _valid_unicode(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _whole_number(value: Any, bits: int = 32) -> int | None:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_WHOLE_FLOAT:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    limit = 1 << (bits - 1)
    if not -limit <= value < limit:
        raise ValueError(f"must be from {-limit} to {limit - 1}")
    return value


def _quantity(value: Any) -> str | float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        text = quantity_text(value)
        canonical_quantity(text)
    except (ValueError, OverflowError):
        text = ""
    # Go reads a suffix without digits as zero, but the schema of a custom resource rejects it
    if _DIGITS_FIRST.match(text):
        return value
    if not isinstance(value, str):
        return None
    raise ValueError(f"must be {A_QUANTITY}, not {json.dumps(value[:40])}")


def _int_or_quantity(value: Any) -> str | float | None:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(wrong_type("a whole number, or a quantity in quotes", value))
    return _quantity(value)


_STORED_SCALARS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "string": (_string, noun(str)),
    "bool": (lambda value: value if isinstance(value, bool) else None, noun(bool)),
    "int32": (_whole_number, noun(int)),
    "int64": (partial(_whole_number, bits=64), noun(int)),
    "quantity": (_quantity, A_QUANTITY),
    "intOrString": (
        lambda value: _string(value) if isinstance(value, str) else _whole_number(value),
        "a whole number or a string",
    ),
    "intOrQuantity": (_int_or_quantity, A_QUANTITY),
}


_Encode = Callable[[Any], str]

# Go escapes these characters so that its JSON is safe in HTML and JavaScript. In JSON, they occur only in
# strings.
_HTML_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def template_json(stored_template: dict[str, Any]) -> str:
    """Return Go's JSON of a pod template: fields in Go's order, canonical quantities, map keys sorted.

    `stored_template` is `Stored.value` of a template without problems. The template is not checked again.
    """
    text = _encoder(POD_TEMPLATE)(stored_template)
    for character, escape in _HTML_ESCAPES.items():
        text = text.replace(character, escape)
    return text


@cache
def _encoder(type_name: str) -> _Encode:
    if encode := _JSON_SCALARS.get(type_name):
        return encode
    if type_name.startswith(LIST):
        item = _encoder(type_name.removeprefix(LIST))
        return lambda items: f"[{','.join([item(value) for value in items])}]"
    if type_name.startswith(MAP):
        entry = _encoder(type_name.removeprefix(MAP))
        return lambda entries: (
            f"{{{','.join([f'{encode_basestring(key)}:{entry(entries[key])}' for key in sorted(entries)])}}}"
        )
    return _struct_encoder(struct_fields(type_name))


def _struct_encoder(fields: tuple[StructField, ...]) -> _Encode:
    rows = {
        field.name: (place, f'"{field.name}":', field.type, field.written == "filled")
        for place, field in enumerate(fields)
    }
    when_absent = {field.name: "null" for field in fields if field.written == "orNull"}
    for field in fields:
        if field.written == "always":
            when_absent[field.name] = _ZEROS.get(field.type) or _encoder(field.type)({})

    def encode(struct: dict[str, Any]) -> str:
        rows_with_text = []
        for name, value in struct.items():
            place, prefix, type_name, only_filled = rows[name]
            if value or not (only_filled or value is None):
                rows_with_text.append((place, prefix + _encoder(type_name)(value)))
        for name, zero in when_absent.items():
            if struct.get(name) is None:
                rows_with_text.append((rows[name][0], rows[name][1] + zero))
        return f"{{{','.join([text for _, text in sorted(rows_with_text)])}}}"

    return encode


_JSON_SCALARS: dict[str, _Encode] = {
    "string": encode_basestring,
    "bool": lambda value: "true" if value else "false",
    "int32": str,
    "int64": str,
    "quantity": lambda value: f'"{canonical_quantity(quantity_text(value))}"',
    "intOrString": lambda value: encode_basestring(value) if isinstance(value, str) else str(value),
}
_ZEROS = {"string": '""', "bool": "false", "int32": "0", "int64": "0", "quantity": '"0"', "intOrString": "0"}
