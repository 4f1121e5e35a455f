"""Check manifests against the schemas of their kinds, like an API server that rejects unknown fields.

Only `validate` imports this module, because jsonschema would slow down the start of other commands.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators
from referencing import Registry

from twgen.model.operator import api_group
from twgen.model.paths import join_path
from twgen.model.problem import (
    REQUIRED,
    Document,
    Finding,
    Problem,
    did_you_mean,
    most_reported,
    noun,
    quoted,
    unknown_field,
    wrong_type,
)
from twgen.specs.validation.checks import Range, one_of
from twgen.versioning.stored_form import A_QUANTITY

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
_LARGEST = {2**31 - 1, 2**63 - 1}
"""The upper limits of the integer types. Messages about numbers that are too small do not mention them."""
_ALONE: Mapping[str, tuple[str, ...]] = {
    "apps": ("ControllerRevision", "DaemonSet", "ReplicaSet", "StatefulSet"),
    "autoscaling": ("Scale",),
    "batch": ("CronJob",),
    "policy": ("Eviction", "PodSecurityPolicy"),
    "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding"),
}
"""Kinds without a schema, in API groups that only Kubernetes itself uses."""
_ALIKE = {
    # a kubeconfig has this kind
    "": ("Config",),
    "autoscaling.k8s.io": ("VerticalPodAutoscalerCheckpoint",),
}
"""Kinds without a schema that could be mistaken for a misspelled kind with a schema."""
_NEAR, _LONGEST_COMPARED = 0.8, 200
_VERSION = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_OLD_GROUP = "extensions"
"""The group of Deployments and Jobs in very old clusters."""


def schema_problems(documents: Sequence[Document]) -> Iterator[Problem]:
    """Problems with wrong types, missing fields and unknown fields, in manifests whose kind has a schema.

    A misspelled kind or apiVersion is also a problem.
    """
    most = most_reported(len(documents))
    for document in documents:
        for wrong in _findings(document.value, most):
            yield Problem.at(document, wrong.path, wrong.message, instead_of=wrong.instead_of)


def has_schema(manifest: Mapping[str, Any]) -> bool:
    """Whether there is a schema for the manifest's kind and apiVersion."""
    return _version(manifest) in _groups().get(api_group(manifest), {}).get(manifest["kind"], ())


@cache
def _groups() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The API versions of each kind that has a schema, by API group.

    Schemas have names such as `Job.v1.batch`.
    """
    groups: dict[str, dict[str, list[str]]] = {}
    for name in _definitions():
        kind, version, group = (*name.split(".", 2), "", "")[:3]
        if _VERSION.fullmatch(version):
            groups.setdefault(group, {}).setdefault(kind, []).append(version)
    return groups


def _version(manifest: Mapping[str, Any]) -> str:
    return str(manifest["apiVersion"]).rpartition("/")[2]


def _findings(manifest: Mapping[str, Any], most: int) -> Iterable[Finding]:
    if not has_schema(manifest):
        return _misspelling(manifest)
    kind = manifest["kind"]
    name = f"{kind}.{_version(manifest)}.{api_group(manifest)}".rstrip(".")
    found: dict[tuple[str | int, ...], Finding] = {}
    for error in _validator(name).iter_errors(manifest):
        path = tuple(error.path)
        # if a value has the wrong type, that is its first error, and its other errors are only consequences
        if path not in found:
            found[path] = _finding(error, path, kind)
            if len(found) > most:
                break
    return found.values()


def _misspelling(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """The problem with a misspelled kind or apiVersion, if there is a schema for the correct one."""
    api_version, kind, group = manifest["apiVersion"], manifest["kind"], api_group(manifest)
    if len(group + kind) > _LONGEST_COMPARED:
        return
    of_kind = {right: kinds[kind] for right, kinds in _groups().items() if kind in kinds}
    if not of_kind and (meant := _near_kind(group, kind)):
        yield Finding("kind", f"{quoted(api_version)} has no kind {quoted(kind)}{meant}")
    for right, versions in of_kind.items():
        is_near = group != right and SequenceMatcher(None, group, right).ratio() > _NEAR
        # API groups without a dot belong to Kubernetes itself
        is_wrong = group != right and "." not in group and group != _OLD_GROUP
        if is_near or is_wrong or (group == right and not _VERSION.fullmatch(_version(manifest))):
            written = f"{right}/{versions[0]}".removeprefix("/")
            yield Finding("apiVersion", f"{quoted(api_version)} has no {kind}: write {written}")


def _near_kind(group: str, kind: str) -> str:
    """A hint such as `; did you mean Deployment?` if the API group has no such kind; otherwise empty."""
    ours = _groups().get(group, {})
    others = _ALONE.get(group, ()) + _ALIKE.get(group, ())
    if kind in (*ours, *others) or kind.removesuffix("List") in (*ours, *others):
        return ""
    if group in _ALONE:
        return did_you_mean(kind, (*ours, *others))
    near = [name for name in ours if SequenceMatcher(None, kind.lower(), name.lower()).ratio() >= _NEAR]
    return did_you_mean(kind, near)


def _finding(error: ValidationError, path: tuple[str | int, ...], kind: str) -> Finding:
    """The finding for a jsonschema error.

    The error's own message is unusable, as it quotes values, which may be secret.
    """
    schema: Any = error.schema
    value: Any = error.instance
    if error.validator == "additionalProperties":
        fields = schema["properties"]
        return unknown_field(join_path("", *path[:-1]), str(path[-1]), fields, f"is not a field of a {kind}")
    message: str
    match error.validator:
        case "required":
            message = REQUIRED
        case "type":
            types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            nouns = [noun(_TYPES[name]) for name in reversed(types) if name in _TYPES]
            wanted = A_QUANTITY if "pattern" in schema else " or ".join(nouns)
            message = wrong_type(wanted, value)
        case "pattern":
            message = f"must be {A_QUANTITY}"
        case "enum":
            message = one_of(tuple(filter(None, schema["enum"])))(value)
        case "minimum" | "maximum":
            message = _out_of_range(value, schema["minimum"], schema.get("maximum"))
        case _:
            message = "must not be empty"
    return Finding(join_path("", *path), message)


def _out_of_range(value: int, least: int, most: int | None) -> str:
    if value < least and most in _LARGEST and least >= 0:
        most = None
    return Range(least, most)(value)


@cache
def _validator(name: str) -> Any:
    return _of_definition(_definitions()[name])


@cache
def _definitions() -> dict[str, Any]:
    definitions: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_bytes())["$defs"]
    return definitions


def _of_definition(schema: Any) -> Any:
    # the empty registry prevents downloads, and `_below` resolves references within the file
    return _Validator(schema, registry=Registry())


# These four functions treat null as absent, as an API server does. They also reuse the validator of each part
# of the schema, whereas jsonschema would create a new validator for every value.


def _properties(_: Any, properties: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    for name, item in instance.items() if isinstance(instance, dict) else ():
        if item is not None and name in properties:
            yield from _below(properties[name], item, name)


def _additional(_: Any, additional: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    known = schema.get("properties", ())
    for name, item in instance.items() if isinstance(instance, dict) else ():
        if name not in known and additional is False:
            yield ValidationError("", path=(name,))
        elif name not in known and item is not None:
            yield from _below(additional, item, name)


def _required(_: Any, names: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    for name in names if isinstance(instance, dict) else ():
        if instance.get(name) is None:
            yield ValidationError("", path=(name,))


def _items(_: Any, schema: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    for index, item in enumerate(instance if isinstance(instance, list) else ()):
        yield from _below(schema, item, index)


_made: dict[int, Any] = {}
"""The validator of each part of the schema, by `id()`, which is unique because the parts stay in memory."""


def _below(schema: Any, item: Any, step: str | int) -> Iterator[ValidationError]:
    validator = _made.get(id(schema))
    if validator is None:
        name = schema.get("$ref", "").removeprefix("#/$defs/")
        validator = _made[id(schema)] = _validator(name) if name else _of_definition(schema)
    for error in validator.iter_errors(item):
        error.path.appendleft(step)
        yield error


_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "properties": _properties,
        "additionalProperties": _additional,
        "required": _required,
        "items": _items,
    },
)
