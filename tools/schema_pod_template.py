"""Write schemas/podtemplate.json from the table of Kubernetes' types."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "twgen" / "versioning" / "kubernetes_types.json"
SCHEMA = ROOT / "schemas" / "podtemplate.json"
QUANTITY = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "int64": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "quantity": {"type": ["string", "number"], "pattern": QUANTITY},
    "intOrString": {"type": ["string", "integer"], "minimum": -(2**31), "maximum": 2**31 - 1},
}


def schema() -> dict[str, Any]:
    """The schema of a pod template, one definition for each Kubernetes type."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "podtemplate.json",
        "title": "The pods of a worker",
        "$ref": "#/$defs/PodTemplateSpec",
        "$defs": {name: _struct(fields) for name, fields in table.items()},
    }


def _struct(fields: list[dict[str, Any]]) -> dict[str, Any]:
    struct: dict[str, Any] = {"type": "object", "properties": {}}
    for field in fields:
        needed = field.get("required", False) and "default" not in field
        found = _type(field["type"])
        default = {"default": field["default"]} if "default" in field else {}
        struct["properties"][field["name"]] = (found if needed else _or_null(found)) | default
    if required := [item["name"] for item in fields if item.get("required") and "default" not in item]:
        struct["required"] = required
    return struct


def _type(name: str) -> dict[str, Any]:
    if name.startswith("[]"):
        return {"type": "array", "items": _type(name[2:])}
    if name.startswith("{}"):
        # an API server drops the nulls of a map
        return {"type": "object", "additionalProperties": _or_null(_type(name[2:]))}
    return SCALARS.get(name) or {"$ref": f"#/$defs/{name}"}


def _or_null(found: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in found:
        return {"anyOf": [found, {"type": "null"}]}
    types = found["type"] if isinstance(found["type"], list) else [found["type"]]
    return found | {"type": [*types, "null"]}


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
