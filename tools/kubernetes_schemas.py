"""Write the schemas of pod templates, attached objects and manifests from the table of Kubernetes' types."""

import json
from collections.abc import Sequence
from typing import Any

from tools.home import ROOT, SCHEMAS, home, identified
from twgen.specs.attached import KINDS, TARGET_FIELDS
from twgen.specs.validation.checks import Range
from twgen.specs.validation.rules import FIELDS
from twgen.specs.validation.walk import MAY_BE_EMPTY
from twgen.versioning.stored_form import LIST, MAP, POD_TEMPLATE, StructField, struct_fields

QUANTITY = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "int64": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "quantity": {"type": ["string", "number"], "pattern": QUANTITY},
    "intOrString": {"type": ["string", "integer"], "minimum": -(2**31), "maximum": 2**31 - 1},
    "intOrQuantity": {"type": ["string", "integer"], "pattern": QUANTITY},
    "object": {"type": "object"},
}
ATTACHED = {
    (f"{group_kind.group}/{version}", group_kind.kind): struct
    for group_kind, kind in KINDS.items()
    for version, struct in kind.structs.items()
}
_OF_SPECS = {("apps/v1", "Deployment"): "DeploymentSpec", ("batch/v1", "Job"): "JobSpec", **ATTACHED}
"""The kinds whose `spec` is checked by `validate`, with the spec's struct. Kinds below have other fields."""
_WITH_MORE = ("ObjectMeta", "PodSpec")
"""Structs that have more fields in manifests than in specs."""
_RBAC = "rbac.authorization.k8s.io/v1"
_WHOLE = [("v1", "ConfigMap"), ("v1", "ServiceAccount"), (_RBAC, "Role"), (_RBAC, "RoleBinding")]


def pod_template() -> dict[str, Any]:
    """The schema of a pod template, with one definition for each Kubernetes type."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The pod template of a worker",
        "$ref": f"#/$defs/{POD_TEMPLATE}",
        "$defs": definitions(POD_TEMPLATE),
    }


def attached_objects() -> dict[str, Any]:
    """The schema of the objects that may always be attached, by API version and kind."""
    found = definitions("ObjectMeta", *ATTACHED.values())
    branches = []
    for (version, kind), struct in ATTACHED.items():
        this = {"properties": {"apiVersion": {"const": version}, "kind": {"const": kind}}}
        spec: dict[str, Any] = {"$ref": f"#/$defs/{struct}"}
        needed = {"required": ["spec"]} if "required" in found[struct] else {}
        metadata = _or_null({"$ref": "#/$defs/ObjectMeta"})
        then = {"properties": {"metadata": metadata, "spec": spec if needed else _or_null(spec)}, **needed}
        branches.append({"if": this | {"required": ["apiVersion", "kind"]}, "then": then})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An object that every version of a worker gets a copy of",
        "type": "object",
        "allOf": branches,
        "$defs": found,
    }


def manifests() -> dict[str, Any]:
    """The schemas of manifests by kind, version and group: `Deployment.v1.apps`.

    They describe the fields that an API server keeps. Null means absent.
    """
    found = definitions("ObjectMeta", *_OF_SPECS.values(), *(kind for _, kind in _WHOLE), of_manifests=True)
    kinds = {_name(api_version, kind): found.pop(kind) for api_version, kind in _WHOLE}
    for (api_version, kind), struct in _OF_SPECS.items():
        text, metadata = SCALARS["string"], {"$ref": "#/$defs/ObjectMeta"}
        fields = {"apiVersion": text, "kind": text, "metadata": metadata}
        fields |= {"spec": {"$ref": f"#/$defs/{struct}"}, "status": SCALARS["object"]}
        needed = {"required": ["spec"]} if "required" in found[struct] else {}
        kinds[_name(api_version, kind)] = _closed(fields) | needed
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The manifests that `twgen validate` checks, by kind, version and group",
        "$defs": kinds | found,
    }


def _name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{kind}.{version}.{group}" if group else f"{kind}.{version}"


def definitions(*roots: str, of_manifests: bool = False) -> dict[str, Any]:
    """A definition for each struct that these structs contain, either for specs or for manifests."""
    found: dict[str, Any] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            fields = struct_fields(name)
            if of_manifests:
                fields += struct_fields(f"{name}.more") if name in _WITH_MORE else ()
            found[name] = _manifest_struct(name, fields) if of_manifests else _struct(name, fields)
            types = (field.type.removeprefix(LIST).removeprefix(MAP) for field in fields)
            waiting += [name for name in types if name not in SCALARS]
    return dict(sorted(found.items()))


def _struct(name: str, fields: Sequence[StructField]) -> dict[str, Any]:
    struct: dict[str, Any] = {"type": "object", "properties": {}}
    for field in fields:
        is_needed = field.required and field.default is None
        # twgen fills in the target for each version
        found = {"type": "object"} if field.name in TARGET_FIELDS else _field(name, field)
        is_needed &= field.name not in TARGET_FIELDS
        default = {"default": field.default} if field.default is not None else {}
        struct["properties"][field.name] = (found if is_needed else _or_null(found)) | default
    needed = (field for field in fields if field.required and field.default is None)
    if required := [field.name for field in needed if field.name not in TARGET_FIELDS]:
        struct["required"] = required
    return struct


def _manifest_struct(name: str, fields: Sequence[StructField]) -> dict[str, Any]:
    struct = _closed({field.name: _field(name, field) for field in fields})
    if name.endswith("HorizontalPodAutoscalerSpec"):
        # a feature gate of the cluster allows zero
        struct["properties"]["minReplicas"]["minimum"] = 0
    needed = [field.name for field in fields if field.required and field.default is None]
    needed += ["spec"] if name == POD_TEMPLATE else []  # required unless the template itself may be empty
    if required := [field for field in needed if f"{name}.{field}" not in MAY_BE_EMPTY]:
        struct["required"] = required
    return struct


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _field(struct: str, field: StructField) -> dict[str, Any]:
    found = dict(_type(field.type))
    if field.enum:
        absent = [""] if field.written == "filled" and not field.required else []
        values = {"enum": [*field.enum, *absent]}
        found = found | ({"items": found["items"] | values} if field.type.startswith(LIST) else values)
    if field.nonempty:
        found["minItems" if field.type.startswith(LIST) else "minLength"] = 1
    if field.minimum is not None:
        found["minimum"] = field.minimum
    check = FIELDS.get(f"{struct}.{field.name}")
    if isinstance(check, Range):
        most = {} if check.most is None else {"maximum": check.most}
        found |= {"minimum": check.least} | most
    return found


def _type(name: str) -> dict[str, Any]:
    if name.startswith(LIST):
        return {"type": "array", "items": _type(name.removeprefix(LIST))}
    if name.startswith(MAP):
        # an API server drops the nulls of a map
        return {"type": "object", "additionalProperties": _or_null(_type(name.removeprefix(MAP)))}
    return SCALARS.get(name) or {"$ref": f"#/$defs/{name}"}


def _or_null(found: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in found:
        return {"anyOf": [found, {"type": "null"}]}
    types = found["type"] if isinstance(found["type"], list) else [found["type"]]
    enum = {"enum": [*found["enum"], None]} if "enum" in found else {}
    return found | {"type": [*dict.fromkeys((*types, "null"))]} | enum


GENERATED = {
    SCHEMAS / "podtemplate.json": pod_template,
    SCHEMAS / "attachedobject.json": attached_objects,
    ROOT / "twgen" / "specs" / "manifest_schemas.json": manifests,
}


if __name__ == "__main__":
    for path, schema in GENERATED.items():
        text = json.dumps(schema(), indent=1) + "\n"
        path.write_text(
            text if path.parent != SCHEMAS else identified(text, path.name, home()), encoding="utf-8"
        )
