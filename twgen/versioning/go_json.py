"""A stored pod template as Go's encoding/json writes a PodTemplateSpec: what the hashes are computed on."""

from collections.abc import Callable
from functools import cache
from json.encoder import encode_basestring
from typing import Any

from twgen.versioning.kubernetes_types import LIST, MAP, POD_TEMPLATE, Field, struct_fields
from twgen.versioning.quantities import canonical_quantity, quantity_text

_Encode = Callable[[Any], str]

# Go writes these so that JSON can stand inside HTML and JavaScript. They occur inside strings only.
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
        return _list_encoder(_encoder(type_name.removeprefix(LIST)))
    if type_name.startswith(MAP):
        return _map_encoder(_encoder(type_name.removeprefix(MAP)))
    return _struct_encoder(struct_fields(type_name))


def _list_encoder(encode_item: _Encode) -> _Encode:
    return lambda items: "[" + ",".join([encode_item(item) for item in items]) + "]"


def _map_encoder(encode_item: _Encode) -> _Encode:
    def encode(entries: dict[str, Any]) -> str:
        return (
            "{"
            + ",".join([f"{encode_basestring(key)}:{encode_item(entries[key])}" for key in sorted(entries)])
            + "}"
        )

    return encode


def _struct_encoder(fields: tuple[Field, ...]) -> _Encode:
    rows = [(f.name, f'"{f.name}":', f.type, f.written == "filled", _when_absent(f)) for f in fields]

    def encode(struct: dict[str, Any]) -> str:
        written = []
        for name, prefix, type_name, only_filled, when_absent in rows:
            value = struct.get(name)
            if value is None:
                if when_absent:
                    written.append(prefix + when_absent)
            elif value or not only_filled:
                written.append(prefix + _encoder(type_name)(value))
        return "{" + ",".join(written) + "}"

    return encode


def _when_absent(field: Field) -> str | None:
    if field.written == "orNull":
        return "null"
    if field.written == "always":
        return _ZEROS.get(field.type) or _encoder(field.type)({})
    return None


def _encode_bool(value: bool) -> str:  # noqa: FBT001 - one of the encoders, which all take the value alone
    return "true" if value else "false"


def _encode_quantity(value: str | float) -> str:
    return f'"{canonical_quantity(quantity_text(value))}"'


def _encode_int_or_string(value: int | str) -> str:
    return encode_basestring(value) if isinstance(value, str) else str(value)


_SCALARS: dict[str, _Encode] = {
    "string": encode_basestring,
    "bool": _encode_bool,
    "int32": str,
    "int64": str,
    "quantity": _encode_quantity,
    "intOrString": _encode_int_or_string,
}
_ZEROS = {"string": '""', "bool": "false", "int32": "0", "int64": "0", "quantity": '"0"', "intOrString": "0"}
