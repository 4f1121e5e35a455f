"""Read an OperatorConfig: the decisions of the operator of an Argo CD for all its applications."""

from typing import Any

from twgen.model.operator import (
    CLUSTER_SCOPED,
    NEVER_ATTACHED,
    ClusterOfApplications,
    GroupKind,
    Operator,
    PrometheusServer,
    RolloutPod,
)
from twgen.model.paths import Path, written_path
from twgen.model.problem import Finding, quoted
from twgen.model.record_shapes import Field, document_of, record_of
from twgen.model.shapes import MOST_OF_A_RECORD, Findings, Shape, listing, mapping, text, unchanged
from twgen.records.prometheus import PROMETHEUS
from twgen.versioning.names import TWGEN_API
from twgen.versioning.stored_form import stored_struct

KIND = "OperatorConfig"

_FROM_FILE = {
    "required": ["kubeconfig", "context"],
    "properties": {
        "inCluster": {"enum": [False, None]},
        "kubeconfig": {"type": "string"},
        "context": {"type": "string"},
    },
}
_OWN_ACCOUNT = {
    "required": ["inCluster"],
    "properties": {"inCluster": {"const": True}, "kubeconfig": {"type": "null"}, "context": {"type": "null"}},
}
_CLUSTER_FIELDS = record_of(ClusterOfApplications)
_CLUSTER = _CLUSTER_FIELDS._replace(schema=_CLUSTER_FIELDS.schema | {"oneOf": [_FROM_FILE, _OWN_ACCOUNT]})
_KIND = text(r"^[A-Za-z][-A-Za-z0-9]*$(?!\n)", "a kind, such as ServiceMonitor", least=1)
_GROUP = text(
    r"^$(?!\n)|^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$(?!\n)",
    "an API group without its version, such as monitoring.coreos.com",
)


def _read_attached_kind(value: Any, path: Path, findings: Findings) -> Any:
    if isinstance(value, str) and value in NEVER_ATTACHED:
        findings.problem(path, f"{value} can never be attached to a version: remove it")
    return _KIND.read(value, path, findings)


_ATTACHED_KIND = Shape(
    _read_attached_kind, _KIND.write, _KIND.schema | {"not": {"enum": sorted(NEVER_ATTACHED)}}
)
_GROUP_KIND_FIELDS = record_of(GroupKind, fields={"group": _GROUP, "kind": _ATTACHED_KIND})


def _read_group_kind(value: Any, path: Path, findings: Findings) -> Any:
    if isinstance(value, str):
        such_as = "{group: monitoring.coreos.com, kind: ServiceMonitor}"
        findings.problem(path, f"must be a mapping such as {such_as}, not {quoted(value)}")
        return None
    group_kind = _GROUP_KIND_FIELDS.read(value, path, findings)
    if group_kind in CLUSTER_SCOPED:
        findings.problem(
            (path, "kind"), f"{group_kind} is cluster-scoped, so no version can have its own: remove it"
        )
    return group_kind


_GROUP_KIND = _GROUP_KIND_FIELDS._replace(read=_read_group_kind)


def _part_of_a_pod(struct: str) -> Shape:
    """The Shape of a struct in a pod template, checked as strictly as in one; it reads the stored form."""

    def read(value: Any, path: Path, findings: Findings) -> Any:
        stored = stored_struct(value, struct, written_path(path), "a pod template")
        findings.add_problems((*stored.problems, *stored.unknown))
        return stored.template

    return Shape(read, unchanged, {"$ref": f"podtemplate.json#/$defs/{struct}"})


_ROLLOUT = record_of(
    RolloutPod,
    fields={
        "tolerations": listing(_part_of_a_pod("Toleration")),
        "image_pull_secrets": listing(_part_of_a_pod("LocalObjectReference")),
        "resources": _part_of_a_pod("ResourceRequirements"),
    },
)
OPERATOR_CONFIG = document_of(
    TWGEN_API,
    KIND,
    Operator,
    Field("metadata", mapping(), "Has no effect.", attribute=""),
    shapes={
        ClusterOfApplications: _CLUSTER._replace(
            schema=_CLUSTER.schema | {"oneOf": [_FROM_FILE, _OWN_ACCOUNT]}
        ),
        GroupKind: _GROUP_KIND,
        PrometheusServer: PROMETHEUS,
        RolloutPod: _ROLLOUT,
    },
)


def parse_operator(document: Any) -> tuple[Operator | None, list[Finding]]:
    """The operator's configuration, and its problems; None if there are any."""
    findings = Findings(MOST_OF_A_RECORD)
    operator = OPERATOR_CONFIG.read(document, None, findings)
    return (None, findings.shown()) if findings.problems else (operator, [])
