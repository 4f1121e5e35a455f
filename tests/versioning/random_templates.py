"""Random pod templates that use every field of the table."""

import random
from collections.abc import Callable
from typing import Any

from twgen.versioning.stored_form import LIST, MAP, POD_TEMPLATE, StructField, struct_fields

_TEXTS = (
    "",
    "a",
    "worker",
    "0",
    "true",
    "a<b>&c",
    'quo"te\\',
    "\x00\x1f\b\f\n\r\t\x7f",
    "é\u2028\u2029",
    "日本",
    "😀",
    "\ud83d",
)
_SUFFIXES = (
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E-6",
    "e21",
)
_CHANCE_BY_DEPTH = (0.9, 0.5, 0.35, 0.3)
_SHALLOW_CHANCE = 0.25


def random_template(chance: random.Random) -> Any:
    return _random_value(chance, POD_TEMPLATE, depth=0)


def random_quantity(chance: random.Random) -> str:
    whole = str(chance.randrange(10 ** chance.randrange(1, 22))) if chance.random() < 0.9 else ""
    if chance.random() < 0.3:
        whole += "0" * chance.randrange(1, 7)
    fraction = (
        "." + "".join(chance.choices("0123456789", k=chance.randrange(1, 14)))
        if chance.random() < 0.4
        else ""
    )
    zeros = "0" * chance.randrange(3) if chance.random() < 0.1 else ""
    return chance.choice(("", "", "", "+", "-")) + zeros + whole + fraction + chance.choice(_SUFFIXES)


def _random_value(chance: random.Random, type_name: str, depth: int) -> Any:
    if make := _SCALARS.get(type_name):
        return make(chance)
    if type_name.startswith(LIST):
        item = type_name.removeprefix(LIST)
        return [_random_value(chance, item, depth) for _ in range(chance.randrange(3))]
    if type_name.startswith(MAP):
        item = type_name.removeprefix(MAP)
        return {_random_text(chance): _random_value(chance, item, depth) for _ in range(chance.randrange(4))}
    return _random_struct(chance, struct_fields(type_name), depth)


def _random_struct(chance: random.Random, fields: tuple[StructField, ...], depth: int) -> dict[str, Any]:
    likely = _CHANCE_BY_DEPTH[depth] if depth < len(_CHANCE_BY_DEPTH) else _SHALLOW_CHANCE
    chosen = [field for field in fields if field.required or chance.random() < likely]
    chance.shuffle(chosen)
    struct = {field.name: _random_value(chance, field.type, depth + 1) for field in chosen}
    nulls = [field.name for field in fields if field.name not in struct and chance.random() < 0.05]
    return struct | dict.fromkeys(nulls)


def _random_text(chance: random.Random) -> str:
    return "".join(chance.choices(_TEXTS, k=chance.randrange(1, 4)))


def _random_int(bits: int) -> Callable[[random.Random], int | float]:
    limit = 1 << (bits - 1)

    def make(chance: random.Random) -> int | float:
        return chance.choice((0, 1, 420, 3.0, limit - 1, -limit, chance.randrange(-limit, limit)))

    return make


def _random_int_or_string(chance: random.Random) -> int | float | str:
    return chance.choice((_random_text, _random_int(32)))(chance)


def _random_valid_quantity(chance: random.Random) -> str | float:
    text = f"{chance.randrange(10**6)}{chance.choice(('', '.5', '.0', '000'))}{chance.choice(_SUFFIXES)}"
    return chance.choice((text, text, chance.randrange(2**40), chance.random() * 100, 2.0))


_SCALARS: dict[str, Callable[[random.Random], Any]] = {
    "string": _random_text,
    "bool": lambda chance: chance.random() < 0.5,
    "int32": _random_int(32),
    "int64": _random_int(64),
    "quantity": _random_valid_quantity,
    "intOrString": _random_int_or_string,
}
