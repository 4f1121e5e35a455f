"""The fields of a pod template: a table that tools/kubernetes_types writes from Kubernetes' own Go types."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

POD_TEMPLATE = "PodTemplateSpec"
LIST = "[]"
MAP = "{}"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct; `written` says when Go's encoder writes it.

    `type` is string, bool, int32, int64, quantity, intOrString or the name of a struct, with `[]` (a list of)
    or `{}` (a map of) before it. `written` is `set` (when present), `filled` (when not the zero value),
    `always` (the zero value when absent) or `orNull` (null when absent).
    """

    name: str
    type: str
    written: Literal["set", "filled", "always", "orNull"]
    required: bool = False
    default: Any = None


@cache
def struct_fields(struct: str) -> tuple[Field, ...]:
    """Return the fields of a struct in the order that Go writes them."""
    return tuple(Field(**row) for row in _table()[struct])


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    table: dict[str, list[dict[str, Any]]] = json.loads(text)
    return table
