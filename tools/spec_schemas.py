"""Makes the schema of each kind of spec from the classes that declare its fields, and from some rules."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from tools.descriptions import described
from twgen.model.analysis import PrometheusQuery, WorkflowFailures
from twgen.model.draining import BatchAction, DrainingEntry
from twgen.model.forms import LABEL, NAME, PERCENTAGE, SHARE
from twgen.model.policy import Policy, Sample, VersionPatch
from twgen.model.record_shapes import Field, FieldName, FieldRule, OneOf, fields_of, marks_of, or_null
from twgen.model.shapes import INT32, Schema, Shape
from twgen.model.spec import Connection, Encoding, Gate, GateInput, Rollout, SecretKey, Strategy
from twgen.specs import kinds, spec_document
from twgen.specs.attached import AttachedFields
from twgen.specs.deployments import DeploymentFields, RollingUpdate
from twgen.specs.policies import BYTES
from twgen.specs.workers import WorkerFields, WorkerOptions
from twgen.versioning.names import CONTROLLER_API, WHEN

_NULL = {"type": "null"}
_NOT_NULL = {"not": _NULL}
_WRITTEN = {"type": "string", "minLength": 1}
_OF_ANY_KIND = {"required": ["objectRef"]}
_POD_TEMPLATE = "podtemplate.json"


def _present(name: str) -> Schema:
    return {"type": "object", "properties": {name: _NOT_NULL}, "required": [name]}


def _exactly_one(*names: str) -> Schema:
    return {"oneOf": [*map(_present, names), _NULL]}


def _not_both(*names: str) -> Schema:
    return {"not": {"allOf": [*map(_present, names)]}}


def _with(name: str, schema: Schema) -> Schema:
    """The schema of a mapping whose field of this name fits a schema."""
    return {"required": [name], "properties": {name: schema}}


def _when(name: str, condition: Schema, then: Schema, *, otherwise: Schema | None = None) -> Schema:
    """A rule for a mapping whose field fits a condition. An absent field does not fit."""
    rule = {"if": {"properties": {name: condition}, "required": [name]}, "then": then}
    return rule | ({"else": otherwise} if otherwise else {})


_NO_MESSAGES = [*(encoding for encoding in Encoding if not encoding.is_message), None]
_RULES: dict[Any, Schema] = {
    Connection: _not_both("mutualTLSSecretRef", "apiKeySecretRef"),
    WorkflowFailures: _exactly_one("maxRatio", "notAbove"),
    PrometheusQuery: _with(
        "thresholdRange",
        {"type": "object", "anyOf": [_with(name, {"type": "number"}) for name in ("min", "max")]},
    ),
    DrainingEntry: {
        "allOf": [
            _when(
                "action",
                {"const": BatchAction.SIGNAL},
                _with("signalName", _WRITTEN),
                otherwise={"properties": {"signalName": _NULL, "signalInput": _NULL}},
            ),
            _when(
                "action",
                {"enum": [BatchAction.CANCEL, BatchAction.TERMINATE]},
                _with("allowTermination", {"const": True}),
            ),
        ]
    },
    Rollout: _when(
        "strategy", {"const": Strategy.PROGRESSIVE}, _with("steps", {"type": "array", "minItems": 1})
    ),
    Gate: {
        **_not_both("input", "inputFrom"),
        "allOf": [
            _when(
                "encoding",
                {"enum": [encoding for encoding in Encoding if encoding.is_binary]},
                _with("inputFrom", {"type": "object"}),
            ),
            _when("encoding", {"const": Encoding.BINARY_MESSAGE}, _with("messageType", _WRITTEN)),
            {
                "if": {"properties": {"encoding": {"enum": _NO_MESSAGES}}},
                "then": {"properties": {"messageType": {"enum": ["", None]}}},
            },
        ],
    },
    WorkerOptions: {
        "allOf": [
            {
                "anyOf": [
                    _with("connectionRef", {"anyOf": [_with("name", _WRITTEN), {"required": ["objectRef"]}]})
                ]
            }
        ]
    },
    WorkerFields: {
        "allOf": [
            {"anyOf": [_present("template"), _with("deployment", _present("template"))]},
            {
                "not": {
                    "properties": {"deployment": {"type": "object"}, "template": _NOT_NULL},
                    "required": ["deployment", "template"],
                }
            },
        ]
    },
}
"""The rules between fields that a schema can express, by class."""


def _key_of(noun: str, about: str) -> Schema:
    """The schema of a reference to the key that contains a gate's input."""
    descriptions = {
        "name": f"The name of the {noun}.",
        "key": f"The key of the {noun} that holds the input.",
        "optional": "Has no effect: the key must exist.",
    }
    schema = _mapping(SecretKey)
    fields = schema["properties"]
    properties = {name: {"description": descriptions[name]} | fields[name] for name in fields}
    return or_null({"description": about} | schema | {"properties": properties})


def _pods(pattern: str) -> Schema:
    return {"anyOf": [INT32.schema, {"type": "string", "pattern": pattern}], "default": "25%"}


def _same(name: str) -> Schema:
    return {"$ref": f"#/properties/spec/properties/{name}"}


_MARKS = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}
_GIVEN: dict[Any, dict[str, Schema]] = {}
"""The schemas of fields that do not follow from their types, by class and attribute."""


def _mapping(kind: Any) -> Schema:
    """The schema of the mapping that a class declares, without descriptions."""
    schema: Schema = {"type": "object", "properties": {}}
    given = {name: Shape(_unused, _unused, schema) for name, schema in _GIVEN.get(kind, {}).items()}
    for attribute, annotation in kind.__annotations__.items():
        marks = marks_of(annotation)
        one_of = next((mark.kinds for mark in marks if isinstance(mark, OneOf)), {})
        if one_of:
            properties = {field: or_null(_mapping(item)) for field, item in one_of.items()}
            more = {"properties": properties, **_exactly_one(*one_of)}
        elif FieldRule.INLINE in marks:
            more = _mapping(get_args(annotation)[0])
        elif FieldRule.INTERNAL in marks:
            continue
        else:
            [entry] = fields_of(kind, attribute, given=given, otherwise=_nested)
            more = _field(entry)
        schema = _merged(schema, more)
    return _merged(schema | {"additionalProperties": False}, _RULES.get(kind, {}))


def _field(entry: Field) -> Schema:
    """The schema of the mapping with only this field. It may be inside other mappings."""
    path, shape, default = entry.name.split("."), entry.shape, entry.default
    must_be_there = entry.required or FieldRule.OF_HOLDER in entry.marks
    schema = shape.schema
    if shape.may_be_empty and not must_be_there:
        schema = _or_empty(schema)
    is_usual = default is None or default is False or default in ("", (), {})
    if not must_be_there and shape.write is not _unused and not is_usual:
        schema = schema | {"default": shape.write(default)}
    schema = {"properties": {path[-1]: schema if must_be_there else or_null(schema)}}
    schema |= {"required": [path[-1]]} if must_be_there else {}
    about = next((mark.about for mark in entry.marks if isinstance(mark, FieldName)), "")
    for depth, name in reversed(list(enumerate(path[:-1]))):
        is_innermost = depth == len(path) - 2
        description = {"description": about} if about and is_innermost else {}
        holder = description | {"type": "object"} | schema | {"additionalProperties": False}
        must_hold = entry.required and depth == 0
        schema = {"properties": {name: holder if must_hold else or_null(holder)}}
        schema |= {"required": [name]} if must_hold else {}
    return schema


def _nested(kind: Any, **_: Any) -> Shape:
    """A shape for a class. It has only a schema, and cannot read or write values."""
    return Shape(_unused, _unused, _GIVEN.get(kind, {}).get("") or _mapping(kind))


def _unused(*_: Any) -> Any:
    raise NotImplementedError


def _or_empty(schema: Schema) -> Schema:
    """The schema of a text that may also be empty."""
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], ""]}
    schema = {name: limit for name, limit in schema.items() if name != "minLength"}
    return schema | ({"pattern": f"^$(?!\\n)|{schema['pattern']}"} if "pattern" in schema else {})


def _merged(first: Schema, second: Schema) -> Schema:
    """One schema of a mapping, with the rules of both."""
    merged = first | second
    for name in first.keys() & second.keys():
        if name == "required":
            merged[name] = [*first[name], *second[name]]
        elif name == "properties":
            properties = dict(first[name])
            for key, schema in second[name].items():
                properties[key] = _merged(properties[key], schema) if key in properties else schema
            merged[name] = properties
    return merged


_GIVEN |= {
    Policy: {"deployment_labels": _MARKS, "deployment_annotations": _MARKS},
    VersionPatch: {
        "containers": {
            "type": "array",
            "items": {
                "description": "The changes to one container.",
                "type": "object",
                "properties": {
                    "name": {"description": "The name of the container.", **LABEL.schema},
                    "image": {"description": "Another image with the same code.", "type": ["string", "null"]},
                    "resources": {
                        "description": "The new requests and limits. They replace all old ones.",
                        "anyOf": [{"$ref": f"{_POD_TEMPLATE}#/$defs/ResourceRequirements"}, _NULL],
                    },
                    "env": {
                        "description": "Variables to add, or to replace by name. Injected variables cannot be"
                        " replaced.",
                        "type": ["array", "null"],
                        "items": {"$ref": f"{_POD_TEMPLATE}#/$defs/EnvVar"},
                    },
                },
                "required": ["name"],
            },
        }
    },
    GateInput: {
        "": {
            "type": "object",
            "properties": {
                "configMapKeyRef": _key_of(
                    "ConfigMap",
                    "A key in the data or binaryData of a ConfigMap in the worker's namespace.",
                ),
                "secretKeyRef": _key_of("Secret", "A key of a Secret in the worker's namespace."),
            },
            "additionalProperties": False,
            **_exactly_one("configMapKeyRef", "secretKeyRef"),
        }
    },
    Sample: {"most_bytes": {"type": "string", "pattern": BYTES, "default": "64Mi"}},
    RollingUpdate: {"max_surge": _pods(PERCENTAGE), "max_unavailable": _pods(SHARE)},
    DeploymentFields: {
        "replicas": _same("replicas"),
        "min_ready_seconds": _same("minReadySeconds"),
        "progress_deadline_seconds": _same("progressDeadlineSeconds"),
        "template": _same("template"),
        "paused": {"enum": [False]},
    },
    WorkerFields: {"template": {"$ref": _POD_TEMPLATE}},
    AttachedFields: {
        "template": {
            "type": "object",
            "properties": {
                "apiVersion": {
                    "description": "The API version of the object, such as autoscaling/v2.",
                    **_WRITTEN,
                },
                "kind": {
                    "description": "The kind of the object: HorizontalPodAutoscaler, PodDisruptionBudget,"
                    " ScaledObject, VerticalPodAutoscaler, or one that the operator allows.",
                    **_WRITTEN,
                },
                "metadata": {
                    "description": "Labels and annotations of the object. twgen sets the name, namespace,"
                    " ownerReferences, temporal.io/deployment-name, temporal.io/build-id, twgen.io/ keys, and"
                    " Argo CD's sync-options and compare-options for each version: leave these out.",
                    "type": ["object", "null"],
                },
                "spec": {
                    "description": "The spec of the object. twgen replaces {{ .DeploymentName }},"
                    " {{ .BuildID }} and {{ .TemporalNamespace }}, and the controller's own placeholders,"
                    " such as {{temporal_worker_build_id}}.",
                    "type": ["object", "null"],
                },
            },
            "required": ["apiVersion", "kind"],
            "$ref": "attachedobject.json",
        }
    },
}

HEAD = {
    "apiVersion": "The API group and version of this kind.",
    "kind": "The kind of this document.",
}


class _Spec(NamedTuple):
    """A kind of spec, and the class of its `spec`."""

    kind: str
    title: str
    about_kind: str
    fields: type[Any]
    about: str
    """The description of its `spec`."""
    name: Shape = NAME
    about_name: str = "The name: lower-case letters, digits, - and ., at most 253 characters."
    namespace: str = "The Kubernetes namespace."
    annotations: Mapping[str, Any] = {}
    """The schemas of annotations that have an effect on the document itself."""


SPECS = {
    "connection": _Spec(
        kinds.CONNECTION,
        "How workers reach Temporal",
        "Connection, or ClusterConnection for workers in all namespaces. TemporalConnection is the old name"
        " of Connection.",
        Connection,
        "The address of the server, and the names of the Secrets with its credentials.",
        namespace="The Kubernetes namespace. A ClusterConnection has none.",
    ),
    "rolloutpolicy": _Spec(
        kinds.POLICY,
        "Settings of a worker and its rollout that the controller's kinds do not have",
        HEAD["kind"],
        Policy,
        "The settings. Every field is optional.",
    ),
    "workerdeployment": _Spec(
        kinds.WORKER,
        "A Temporal worker",
        "WorkerDeployment. TemporalWorkerDeployment and TemporalWorker are its old names.",
        WorkerFields,
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
"""The kinds of specs, by the names of their schemas."""
_TEXTS = {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}}


def spec_schema(spec: _Spec) -> dict[str, Any]:
    """The schema of a kind of spec."""
    names = kinds.names_of_kind(spec.kind)
    also = (kinds.CLUSTER_CONNECTION,) if spec.kind == kinds.CONNECTION else ()
    namespace = {
        **LABEL.schema,
        "type": ["string", "null"],
        "pattern": f"^$(?!\\n)|{LABEL.schema['pattern']}",
    }
    del namespace["minLength"]
    marks = "of this document. twgen does not copy them to the objects that it renders."
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
    about = (
        "The name and the namespace. If the namespace is absent, twgen uses the namespace of -n or of the"
        " Argo CD Application."
    )
    fields = described(_mapping(spec.fields), spec.fields)
    del fields["additionalProperties"]
    if kinds.APIS[spec.kind] == CONTROLLER_API:
        fields = _open(fields)
    for old, new in spec_document.OLD_NAMES.get(spec.kind, {}).items():
        fields = _with_old_name(fields, old.split(".")[1:], new.split(".")[1:], "#/properties/spec")
    properties = {
        "apiVersion": {"description": HEAD["apiVersion"], "const": kinds.APIS[spec.kind]},
        "kind": {"description": spec.about_kind, "enum": [*names, *also]},
        "metadata": {"description": about, "type": "object", "properties": metadata, "required": ["name"]},
        "spec": {"description": spec.about, **fields},
    }
    return {"type": "object", "properties": properties, "required": [*properties]}


def _open(schema: Any) -> Any:
    """The schema without limits on fields: another release of the controller may have other fields."""
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
    """The schema of the mapping at `place`, with an old name for one of its fields."""
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
    # a rule that requires the field, under its present name or a third one, also accepts this old name
    changed["allOf"] = [
        rule | {"anyOf": [*rule["anyOf"], {"required": [first]}]} if _is_about(rule, new[0], first) else rule
        for rule in changed.get("allOf", ())
    ]
    return {name: rule for name, rule in changed.items() if rule != []}


def _is_about(rule: Mapping[str, Any], name: str, old_name: str) -> bool:
    required = [alternative.get("required") for alternative in rule.get("anyOf", ())]
    return required[:1] == [[name]] and [old_name] not in required
