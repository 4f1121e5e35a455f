"""The schemas of twgen's own documents, from the classes that declare them."""

import ast
import inspect
import itertools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import Any, NamedTuple, get_args

from tools.published_schemas import SCHEMAS, schema_address
from twgen.model.forms import LABEL, NAME
from twgen.model.operator import Operator
from twgen.model.policy import Policy
from twgen.model.record_shapes import Example, Mark, OneOf, document_names, marks_of
from twgen.model.shapes import Shape
from twgen.model.spec import Connection
from twgen.records.ledger import LEDGER, Ledger
from twgen.records.operator_config import OPERATOR_CONFIG
from twgen.records.snapshot import SNAPSHOT, Snapshot
from twgen.specs import kinds, spec_document
from twgen.specs.attached import ATTACHED, AttachedFields
from twgen.specs.connections import CONNECTION
from twgen.specs.policies import POLICY
from twgen.specs.workers import WORKER, WorkerFields
from twgen.versioning.names import CONTROLLER_API, WHEN


class _Document(NamedTuple):
    """A kind of document: its class, and how values of that are read and written."""

    kind: type[Any]
    shape: Shape


_HEAD = {
    "apiVersion": "The API group and version of this kind.",
    "kind": "The kind of this document.",
}
DOCUMENTS = {
    "ledger": _Document(Ledger, LEDGER),
    "operatorconfig": _Document(Operator, OPERATOR_CONFIG),
    "snapshot": _Document(Snapshot, SNAPSHOT),
}
"""By the names of their schemas."""


class _Spec(NamedTuple):
    """A kind of spec: the class of its `spec`, and how that is read."""

    kind: str
    title: str
    about_kind: str
    fields: type[Any]
    shape: Shape
    about: str
    """Of its `spec`."""
    name: Shape = NAME
    about_name: str = "The name: lower-case letters, digits, - and ., at most 253 characters."
    namespace: str = "The Kubernetes namespace."
    annotations: Mapping[str, Any] = {}
    """Those that say something on the document itself."""


SPECS = {
    "connection": _Spec(
        kinds.CONNECTION,
        "How workers reach Temporal",
        "Connection, or ClusterConnection for workers in every namespace. TemporalConnection is the old name"
        " of Connection.",
        Connection,
        CONNECTION,
        "The address of the server, and the names of the Secrets with its credentials.",
        namespace="The Kubernetes namespace. A ClusterConnection has none.",
    ),
    "rolloutpolicy": _Spec(
        kinds.POLICY,
        "Settings of a worker and its rollout that the controller's kinds do not have",
        _HEAD["kind"],
        Policy,
        POLICY,
        "The settings. Every field is optional.",
    ),
    "workerdeployment": _Spec(
        kinds.WORKER,
        "A Temporal worker",
        "WorkerDeployment. TemporalWorkerDeployment and TemporalWorker are its old names.",
        WorkerFields,
        WORKER,
        "The worker: its pods, its connection to Temporal, and its rollout.",
        LABEL,
        "The worker's name: lower-case letters, digits and -, at most 63 characters. In Temporal, the worker"
        " is named namespace/name, such as shop/payments.",
    ),
    "workerresourcetemplate": _Spec(
        kinds.ATTACHED,
        "An object that every version of a worker gets a copy of",
        "WorkerResourceTemplate. TemporalWorkerOwnedResource is its old name.",
        AttachedFields,
        ATTACHED,
        "The worker, and the object that each of its versions gets.",
        annotations={
            WHEN: {
                "description": "The versions that get a copy: Target, Current, Ramping, Draining or Drained,"
                " separated by commas. If absent, all versions get one.",
                "type": ["string", "null"],
                "examples": ["Target,Current,Ramping"],
            }
        },
    ),
}
"""By the names of their schemas."""
_TEXTS = {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}}


def schema_text(document: str) -> str:
    """The schema of a document as its file has it."""
    if document in SPECS:
        title, record = SPECS[document].title, _spec_schema(SPECS[document])
    else:
        kind, shape = DOCUMENTS[document]
        title, record = _summary(kind), _described(shape.schema, kind)
        for name, description in _HEAD.items():
            record["properties"][name] = {"description": description} | record["properties"][name]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_address(f"{document}.json"),
        "title": title,
        **record,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _spec_schema(spec: _Spec) -> dict[str, Any]:
    names = kinds.names_of_kind(spec.kind)
    also = (kinds.CLUSTER_CONNECTION,) if spec.kind == kinds.CONNECTION else ()
    namespace = {
        **LABEL.schema,
        "type": ["string", "null"],
        "pattern": f"^$(?!\\n)|{LABEL.schema['pattern']}",
    }
    del namespace["minLength"]
    marks = "of this document. The generated objects do not get them."
    metadata = {
        "name": {"description": spec.about_name, **spec.name.schema},
        "namespace": {"description": spec.namespace, **namespace},
        "labels": {"description": f"Labels {marks}", **_TEXTS},
        "annotations": {
            "description": f"Annotations {marks}",
            **({"properties": spec.annotations} if spec.annotations else {}),
            **_TEXTS,
        },
    }
    about = "The name and the namespace. If the namespace is absent, -n or Argo CD supplies it."
    fields = _described(spec.shape.schema, spec.fields)
    del fields["additionalProperties"]
    if kinds.api_of(spec.kind) == CONTROLLER_API:
        fields = _open(fields)
    for old, new in spec_document.OLD_NAMES.get(spec.kind, {}).items():
        fields = _with_old_name(fields, old.split(".")[1:], new.split(".")[1:], "#/properties/spec")
    properties = {
        "apiVersion": {"description": _HEAD["apiVersion"], "const": kinds.api_of(spec.kind)},
        "kind": {"description": spec.about_kind, "enum": [*names, *also]},
        "metadata": {"description": about, "type": "object", "properties": metadata, "required": ["name"]},
        "spec": {"description": spec.about, **fields},
    }
    return {"type": "object", "properties": properties, "required": [*properties]}


def _open(schema: Any) -> Any:
    """The schema, but mappings may have more fields: another release of the controller knows other ones."""
    if isinstance(schema, list):
        return [_open(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    is_closed = schema.get("additionalProperties") is False
    return {
        name: _open(item) for name, item in schema.items() if not is_closed or name != "additionalProperties"
    }


def _with_old_name(
    schema: dict[str, Any], old: Sequence[str], new: Sequence[str], place: str
) -> dict[str, Any]:
    """The schema of the mapping at a place in which a field also has an old name, in the same mapping."""
    first, *rest = old
    properties = dict(schema["properties"])
    if rest:
        below = f"{place}/properties/{first}"
        properties[first] = _with_old_name(properties[first], rest, new[1:], below)
        return schema | {"properties": properties}
    properties[first] = {
        "description": f"Old spelling of {'.'.join(new)}.",
        "deprecated": True,
        "$ref": "".join((place, *(f"/properties/{step}" for step in new))),
    }
    changed = schema | {"properties": properties}
    if new[0] in schema.get("required", ()):
        changed["required"] = [name for name in schema["required"] if name != new[0]]
        either = {"anyOf": [{"required": [name]} for name in (new[0], first)]}
        changed["allOf"] = [*schema.get("allOf", ()), either]
    # a rule for the field as it is called today, or a third name of it
    changed["allOf"] = [
        rule | {"anyOf": [*rule["anyOf"], {"required": [first]}]} if _is_about(rule, new[0], first) else rule
        for rule in changed.get("allOf", ())
    ]
    return {name: rule for name, rule in changed.items() if rule != []}


def _is_about(rule: Mapping[str, Any], name: str, old_name: str) -> bool:
    required = [alternative.get("required") for alternative in rule.get("anyOf", ())]
    return required[:1] == [[name]] and [old_name] not in required


def _described(schema: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The schema of a record or a spec with the docstrings of its attributes as descriptions."""
    names, docstrings = document_names(kind), _docstrings(kind)
    for attribute, declared in kind.__annotations__.items():
        marks = marks_of(declared)
        one_of = next((mark.kinds for mark in marks if isinstance(mark, OneOf)), {})
        for name, inner in one_of.items():
            about = {"description": " ".join(inner.__doc__.split())}
            schema = _changed(
                schema, [name], lambda found, inner=inner, about=about: about | _described(found, inner)
            )
        if Mark.INLINE in marks:
            schema = _described(schema, get_args(declared)[0])
        elif attribute in names and not one_of:
            change = partial(_described_field, declared=declared, description=docstrings.get(attribute, ""))
            schema = _changed(schema, names[attribute].split("."), change)
    return schema


def _described_field(found: dict[str, Any], declared: Any, description: str) -> dict[str, Any]:
    for inner in filter(_is_record, _classes(declared)):
        if "properties" in found:
            found = _described(found, inner)
        elif "properties" in found.get("items", {}):
            item = _described(found["items"], inner)
            found = found | {"items": {"description": f"{_summary(inner)}.", **item}}
    examples = [mark.value for mark in marks_of(declared) if isinstance(mark, Example)]
    return {"description": description, **found, **({"examples": examples} if examples else {})}


def _changed(
    schema: dict[str, Any], path: Sequence[str], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """A copy of the schema with the field at a path changed; as it is if it has none there."""
    first, *rest = path
    if first not in schema.get("properties", {}):
        return schema
    field = schema["properties"][first]
    field = _changed(field, rest, change) if rest else change(field)
    return schema | {"properties": schema["properties"] | {first: field}}


def _classes(declared: Any) -> list[type[Any]]:
    """The classes that a type is made of."""
    inner = [item for part in get_args(declared) for item in _classes(part)]
    return [declared, *inner] if isinstance(declared, type) and declared is not NoneType else inner


def _is_record(kind: type[Any]) -> bool:
    return hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields")


def _summary(kind: type[Any]) -> str:
    return (kind.__doc__ or "").partition("\n")[0].removesuffix(".")


def _docstrings(kind: type[Any]) -> dict[str, str]:
    """The docstring of each attribute of a class, as one line."""
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    [body] = (
        node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    docstrings = {}
    for first, second in itertools.pairwise(body):
        match first, second:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docstrings[name] = " ".join(text.split())
    return docstrings


if __name__ == "__main__":
    for name in (*DOCUMENTS, *SPECS):
        (SCHEMAS / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
