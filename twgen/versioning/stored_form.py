"""The stored form of a pod template and of attached objects: what an API server keeps of them."""

import json
import re
from collections.abc import Callable
from dataclasses import field
from functools import cache
from typing import Any, NamedTuple, TypeGuard

from twgen.model.paths import Path, written_path
from twgen.model.problem import MOST_TOLD, Finding, noun, unknown_field, wrong_type
from twgen.model.values import dataclass
from twgen.versioning.kubernetes_types import LIST, MAP, POD_TEMPLATE, Field, struct_fields
from twgen.versioning.quantities import canonical_quantity, quantity_text

_DIGITS_FIRST = re.compile(r"[+-]?\.?[0-9]")
_A_QUANTITY = "a quantity, such as 500m, 1.5 or 2Gi"
_LARGEST_WHOLE_FLOAT = 2**53 - 1  # an API server takes no larger float for a whole number


class Stored(NamedTuple):
    """What is stored, the wrong types and missing fields in it, and the unknown fields, which are not kept.

    The template is whole only when there are no problems. Of problems, as of unknown fields, at most one more
    than the caller's `most` is listed, which tells that there are more.
    """

    template: dict[str, Any]
    problems: tuple[Finding, ...]
    unknown: tuple[Finding, ...]


def stored_template(template: object, path: str, most: int = MOST_TOLD) -> Stored:
    """Return what an API server stores of the pod template at `path`, and all that is wrong with it.

    The rule is that of structural schemas (k8s.io/apiextensions-apiserver): unknown fields go, a default is
    set where its parent is present, a null goes or becomes the default, and a wrong type or a missing
    required field is refused. Enums and patterns are not checked, but the syntax of quantities is; a quantity
    may be a number. `template` itself is not changed.
    """
    return stored_struct(template, POD_TEMPLATE, path, "a pod template", most)


def stored_struct(value: object, struct: str, path: str, kind: str, most: int = MOST_TOLD) -> Stored:
    """As stored_template, for another struct of the table; `kind` is what people call what it is part of."""
    walk = _Walk(path, kind, most)
    stored = _storer(struct)(value, None, walk)
    return Stored(stored or {}, tuple(walk.problems), tuple(walk.unknown))


@dataclass(frozen=True, slots=True)
class _Walk:
    """What is wrong so far with a value that stands at `start` and is, or is part of, `kind`.

    Of problems and of unknown fields, one more than `most` is kept, which tells that there are more.
    """

    start: str
    kind: str
    most: int
    problems: list[Finding] = field(default_factory=list)
    unknown: list[Finding] = field(default_factory=list)

    def add_problem(self, path: Path, message: str) -> None:
        if len(self.problems) <= self.most:
            self.problems.append(Finding(written_path(path, self.start), message))

    def add_wrong_type(self, path: Path, expected: str, value: object) -> None:
        self.add_problem(path, wrong_type(expected, value))

    def add_unknown(self, path: Path, name: str, fields: dict[str, str]) -> None:
        if len(self.unknown) <= self.most:
            wrong = f"is not a field of {self.kind}"
            self.unknown.append(unknown_field(written_path(path, self.start), name, fields, wrong))


# Returns what is stored of a value: None when it is refused, and the walk says why.
_Store = Callable[[Any, Path, _Walk], Any]


@cache
def _storer(type_name: str) -> _Store:
    if store := _SCALARS.get(type_name):
        return store
    if type_name.startswith(LIST):
        return _list_storer(_storer(type_name.removeprefix(LIST)))
    if type_name.startswith(MAP):
        return _map_storer(_storer(type_name.removeprefix(MAP)))
    return _struct_storer(struct_fields(type_name))


def _struct_storer(fields: tuple[Field, ...]) -> _Store:
    types = {row.name: row.type for row in fields}
    defaults = [(row.name, row.default) for row in fields if row.default is not None]
    required = [row.name for row in fields if row.required]

    def store(value: Any, path: Path, walk: _Walk) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            walk.add_wrong_type(path, noun(dict), value)
            return None
        stored = {}
        for name, item in value.items():
            type_name = types.get(name)
            if type_name is None:
                # `kubectl create --dry-run` writes it so into every template
                if item is not None or name != "creationTimestamp":
                    walk.add_unknown(path, name, types)
            elif item is not None:
                stored[name] = _storer(type_name)(item, (path, name), walk)
        for name, default in defaults:
            stored.setdefault(name, default)
        for name in required:
            if name not in stored:
                walk.add_problem((path, name), "is required")
        return stored

    return store


def _list_storer(store_item: _Store) -> _Store:
    def store(value: Any, path: Path, walk: _Walk) -> list[Any] | None:
        if not isinstance(value, list):
            walk.add_wrong_type(path, noun(list), value)
            return None
        return [store_item(item, (path, index), walk) for index, item in enumerate(value)]

    return store


def _map_storer(store_item: _Store) -> _Store:
    def store(value: Any, path: Path, walk: _Walk) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            walk.add_wrong_type(path, noun(dict), value)
            return None
        return {
            _valid_unicode(key): store_item(item, (path, key), walk)
            for key, item in value.items()
            if item is not None
        }

    return store


def _store_string(value: Any, path: Path, walk: _Walk) -> str | None:
    if isinstance(value, str):
        return _valid_unicode(value)
    walk.add_wrong_type(path, noun(str), value)
    return None


def _valid_unicode(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _store_bool(value: Any, path: Path, walk: _Walk) -> bool | None:
    if isinstance(value, bool):
        return value
    walk.add_wrong_type(path, noun(bool), value)
    return None


def _int_storer(bits: int, expected: str) -> _Store:
    limit = 1 << (bits - 1)

    def store(value: Any, path: Path, walk: _Walk) -> int | None:
        if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_WHOLE_FLOAT:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            walk.add_wrong_type(path, expected, value)
            return None
        if not -limit <= value < limit:
            walk.add_problem(path, f"must be from {-limit} to {limit - 1}")
            return None
        return value

    return store


_store_whole_number_beside_strings = _int_storer(32, "a whole number or a string")


def _store_int_or_string(value: Any, path: Path, walk: _Walk) -> Any:
    store = _store_string if isinstance(value, str) else _store_whole_number_beside_strings
    return store(value, path, walk)


def _store_quantity(value: Any, path: Path, walk: _Walk) -> str | float | None:
    if _is_quantity(value):
        return value
    if isinstance(value, str):
        walk.add_problem(path, f"must be {_A_QUANTITY}, not {json.dumps(value[:40])}")
    else:
        walk.add_wrong_type(path, _A_QUANTITY, value)
    return None


def _store_int_or_quantity(value: Any, path: Path, walk: _Walk) -> str | float | None:
    if isinstance(value, float) and not value.is_integer():
        walk.add_wrong_type(path, "a whole number, or a quantity in quotes", value)
        return None
    return _store_quantity(value, path, walk)


def _is_quantity(value: Any) -> TypeGuard[str | float]:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return False
    try:
        text = quantity_text(value)
        canonical_quantity(text)
    except (ValueError, OverflowError):
        return False
    # Go reads a suffix alone as zero, which the schema of a custom resource refuses.
    return _DIGITS_FIRST.match(text) is not None


_SCALARS: dict[str, _Store] = {
    "string": _store_string,
    "bool": _store_bool,
    "int32": _int_storer(32, noun(int)),
    "int64": _int_storer(64, noun(int)),
    "quantity": _store_quantity,
    "intOrString": _store_int_or_string,
    "intOrQuantity": _store_int_or_quantity,
}
