"""A stored pod template as Go's encoding/json writes a PodTemplateSpec: the input of the hashes."""

from collections.abc import Callable
from functools import cache
from json.encoder import encode_basestring
from typing import Any

from twgen.versioning.kubernetes_types import LIST, MAP, POD_TEMPLATE, Field, struct_fields
from twgen.versioning.quantities import canonical_quantity, quantity_text

_Encode = Callable[[Any], str]

# Go writes these so that JSON can be inside HTML and JavaScript. They occur inside strings only.
_HTML_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def template_json(stored_template: dict[str, Any]) -> str:
    """Return Go's JSON of a pod template: fields in Go's order, canonical quantities, map keys sorted.

    `stored_template` is `Stored.template` of a template without problems; nothing is checked here.
    """
    text = _encoder(POD_TEMPLATE)(stored_template)
    for character, escape in _HTML_ESCAPES.items():
        text = text.replace(character, escape)
    return text


@cache
def _encoder(type_name: str) -> _Encode:
    if encode := _SCALARS.get(type_name):
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


def _struct_encoder(fields: tuple[Field, ...]) -> _Encode:
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


_SCALARS: dict[str, _Encode] = {
    "string": encode_basestring,
    "bool": lambda value: "true" if value else "false",
    "int32": str,
    "int64": str,
    "quantity": lambda value: f'"{canonical_quantity(quantity_text(value))}"',
    "intOrString": lambda value: encode_basestring(value) if isinstance(value, str) else str(value),
}
_ZEROS = {"string": '""', "bool": "false", "int32": "0", "int64": "0", "quantity": '"0"', "intOrString": "0"}
