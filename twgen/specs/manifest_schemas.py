"""Check the fields of manifests as an API server does that rejects unknown fields."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any, NamedTuple

from twgen.model.operator import GroupKind, api_group
from twgen.model.paths import Path, written_path
from twgen.model.problem import (
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
from twgen.specs.attached import KINDS
from twgen.specs.validation.checks import Check, Range, not_empty
from twgen.specs.validation.rules import FIELDS
from twgen.specs.validation.walk import MAY_BE_EMPTY, declared_checks
from twgen.versioning.stored_form import LIST, MAP, POD_TEMPLATE, SCALARS, Field, struct_fields

_RBAC = "rbac.authorization.k8s.io"
_SPECS = {
    (GroupKind("apps", "Deployment"), "v1"): "DeploymentSpec",
    (GroupKind("batch", "Job"), "v1"): "JobSpec",
    **{(kind, version): struct for kind, known in KINDS.items() for version, struct in known.structs.items()},
}
"""The struct of the `spec` of each kind, by the version of its group."""
_WHOLE = [
    *((GroupKind("", kind), "v1") for kind in ("ConfigMap", "ServiceAccount")),
    *((GroupKind(_RBAC, kind), "v1") for kind in ("Role", "RoleBinding")),
]
"""Kinds with other fields than a `spec`: each is a struct itself."""
_WITH_MORE = ("ObjectMeta", "PodSpec")
"""Structs of which manifests may have more fields than specs."""
_ALONE: Mapping[str, tuple[str, ...]] = {
    "apps": ("ControllerRevision", "DaemonSet", "ReplicaSet", "StatefulSet"),
    "autoscaling": ("Scale",),
    "batch": ("CronJob",),
    "policy": ("Eviction", "PodSecurityPolicy"),
    "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding"),
}
"""The other kinds of the groups that belong to Kubernetes alone: no other program has kinds there."""
_ALIKE = {
    # the kind of a kubeconfig
    "": ("Config",),
    "autoscaling.k8s.io": ("VerticalPodAutoscalerCheckpoint",),
}
"""Kinds of the other groups that are like one of ours."""
_NEAR, _LONGEST_COMPARED = 0.8, 200
_VERSION = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_OLD_GROUP = "extensions"
"""The group of Deployments and Jobs in very old clusters."""


def schema_problems(documents: Sequence[Document]) -> Iterator[Problem]:
    """The wrong types, missing fields and unknown fields of the manifests whose kind has a schema.

    A manifest whose kind or apiVersion is a misspelling of one of those has a problem too.
    """
    most = most_reported(len(documents))
    for document in documents:
        for wrong in _findings(document.value, most):
            yield Problem.at(document, wrong.path, wrong.message, instead_of=wrong.instead_of)


def has_schema(manifest: Mapping[str, Any]) -> bool:
    """The manifest is of a kind, and of a version of it, whose fields `schema_problems` knows."""
    return (GroupKind.of(manifest), _version(manifest)) in (*_WHOLE, *_SPECS)


@cache
def _groups() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The kinds with a schema by API group, with their versions."""
    groups: dict[str, dict[str, list[str]]] = {}
    for group_kind, version in (*_WHOLE, *_SPECS):
        groups.setdefault(group_kind.group, {}).setdefault(group_kind.kind, []).append(version)
    return groups


def _version(manifest: Mapping[str, Any]) -> str:
    return str(manifest["apiVersion"]).rpartition("/")[2]


def _findings(manifest: Mapping[str, Any], most: int) -> Iterable[Finding]:
    if not has_schema(manifest):
        return _misspelling(manifest)
    kind = manifest["kind"]
    spec = _SPECS.get((GroupKind.of(manifest), _version(manifest)))
    found: dict[str, Finding] = {}
    for finding in _wrong_fields(_fields_with(spec) if spec else _fields(kind), manifest, None, kind):
        found.setdefault(finding.path, finding)
        if len(found) > most:
            break
    return found.values()


def _misspelling(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """The problem with the kind or apiVersion, if it is a misspelling of one that has a schema."""
    api_version, kind, group = manifest["apiVersion"], manifest["kind"], api_group(manifest)
    if len(group + kind) > _LONGEST_COMPARED:
        return
    of_kind = {right: kinds[kind] for right, kinds in _groups().items() if kind in kinds}
    if not of_kind and (meant := _near_kind(group, kind)):
        yield Finding("kind", f"{quoted(api_version)} has no kind {quoted(kind)}{meant}")
    for right, versions in of_kind.items():
        is_near = group != right and SequenceMatcher(None, group, right).ratio() > _NEAR
        # a group without a dot belongs to Kubernetes
        is_wrong = group != right and "." not in group and group != _OLD_GROUP
        if is_near or is_wrong or (group == right and not _VERSION.fullmatch(_version(manifest))):
            written = f"{right}/{versions[0]}".removeprefix("/")
            yield Finding("apiVersion", f"{quoted(api_version)} has no {kind}: write {written}")


def _near_kind(group: str, kind: str) -> str:
    """`; did you mean Deployment?` for a kind that its group cannot have."""
    ours = _groups().get(group, {})
    others = _ALONE.get(group, ()) + _ALIKE.get(group, ())
    if kind in (*ours, *others) or kind.removesuffix("List") in (*ours, *others):
        return ""
    if group in _ALONE:
        return did_you_mean(kind, (*ours, *others))
    near = [name for name in ours if SequenceMatcher(None, kind.lower(), name.lower()).ratio() >= _NEAR]
    return did_you_mean(kind, near)


class _Rules(NamedTuple):
    """The rules of an API server for one field. `checks` are for its value, or for each item of a list."""

    type: str
    is_required: bool = False
    may_be_empty: bool = True
    checks: Sequence[Check] = ()


def _fields_with(spec: str) -> dict[str, _Rules]:
    """The fields of a manifest with a `spec` of this struct."""
    fields = {name: _Rules("string") for name in ("apiVersion", "kind")}
    is_needed = any(rules.is_required for rules in _fields(spec).values())
    return fields | {
        "metadata": _Rules("ObjectMeta"),
        "spec": _Rules(spec, is_needed),
        "status": _Rules("object"),
    }


@cache
def _fields(struct: str) -> dict[str, _Rules]:
    """The fields that manifests may have in a struct."""
    more = struct_fields(f"{struct}.more") if struct in _WITH_MORE else ()
    return {field.name: _rules(struct, field) for field in (*struct_fields(struct), *more)}


def _rules(struct: str, field: Field) -> _Rules:
    place = f"{struct}.{field.name}"
    is_required = field.required and field.default is None and place not in MAY_BE_EMPTY
    checks, limits = declared_checks(field), FIELDS.get(place)
    if isinstance(limits, Range):
        checks = [limits]
    if place.endswith("HorizontalPodAutoscalerSpec.minReplicas"):
        checks = [Range(0)]  # by a feature gate of the cluster
    # optional only where a template may be empty
    return _Rules(field.type, is_required or place == f"{POD_TEMPLATE}.spec", not field.nonempty, checks)


def _wrong_fields(fields: dict[str, _Rules], value: Any, path: Path, kind: str) -> Iterator[Finding]:
    """The wrong types, missing fields and unknown fields of a mapping. A null counts as an absent field."""
    for name, item in value.items():
        if name not in fields:
            yield unknown_field(written_path(path), name, fields, f"is not a field of a {kind}")
        elif item is not None:
            rules, at = fields[name], (path, name)
            yield from _wrong(rules.type, item, at, kind, rules.checks)
            if not rules.may_be_empty and not_empty(item):
                yield Finding(written_path(at), not_empty(item))
    for name, rules in fields.items():
        if rules.is_required and value.get(name) is None:
            yield Finding(written_path((path, name)), "is required")


def _wrong(
    type_name: str, value: Any, path: Path, kind: str, checks: Sequence[Check] = ()
) -> Iterator[Finding]:
    """The problems of a value of a type of kubernetes_types; that of the value itself comes first."""
    if type_name in SCALARS:
        wrong = _wrong_scalar(type_name, value) or next(filter(None, (check(value) for check in checks)), "")
        if wrong:
            yield Finding(written_path(path), wrong)
        return
    items_type = type_name.removeprefix(LIST).removeprefix(MAP)
    wanted = list if type_name.startswith(LIST) else dict
    if not isinstance(value, wanted):
        yield Finding(written_path(path), wrong_type(noun(wanted), value))
    elif items_type != type_name:
        items: Iterable[tuple[Any, Any]] = enumerate(value) if isinstance(value, list) else value.items()
        for key, item in items:
            if item is not None or wanted is list:
                yield from _wrong(items_type, item, (path, key), kind, checks)
    elif type_name != "object":
        yield from _wrong_fields(_fields(type_name), value, path, kind)


def _wrong_scalar(type_name: str, value: Any) -> str:
    fit, wanted = SCALARS[type_name]
    try:
        return "" if fit(value) is not None else wrong_type(wanted, value)
    except ValueError as error:
        if isinstance(value, int):
            return f"{error}, not {value}"
        # that message would quote a text, which may be a secret
        return f"must be {wanted}" if isinstance(value, str) else wrong_type(wanted, value)
