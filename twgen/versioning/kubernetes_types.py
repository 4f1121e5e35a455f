"""The fields of a pod template and of objects that may be attached to a version.

The table is written by tools/kubernetes_types from Kubernetes' own Go types, and from the custom resource
definitions of KEDA and of the vertical pod autoscaler.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

POD_TEMPLATE = "PodTemplateSpec"
LIST = "[]"
MAP = "{}"


class Field(NamedTuple):
    """One field of a struct; `written` says when Go's encoder writes it.

    `type` is string, bool, int32, int64, quantity, intOrString, intOrQuantity or the name of a struct, with
    `[]` (a list of) or `{}` (a map of) before it. `written` is `set` (when present), `filled` (when not the
    zero value), `always` (the zero value when absent) or `orNull` (null when absent).
    """

    name: str
    type: str
    written: Literal["set", "filled", "always", "orNull"]
    required: bool = False
    default: Any = None
    enum: Sequence[str] = ()
    """Every value that an API server accepts; for a list, of its items."""
    keys: Sequence[str] = ()
    """The fields that identify the items of a list: server-side apply rejects two items with the same."""
    minimum: int | None = None
    nonempty: bool = False


@cache
def struct_fields(struct: str) -> tuple[Field, ...]:
    """Return the fields of a struct in the order that Go writes them."""
    return tuple(Field(**row) for row in _table()[struct])


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    with open(__file__.removesuffix(".py") + ".json", encoding="utf-8") as file:
        table: dict[str, list[dict[str, Any]]] = json.load(file)
    return table
