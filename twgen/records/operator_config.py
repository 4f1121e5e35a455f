"""An OperatorConfig document: what the operator of an Argo CD decides for all of its applications."""

from dataclasses import dataclass, field
from typing import Any

from twgen.model.operator import NEVER_ATTACHED, ClusterOfApplications, GroupKind, Operator, ProfileGrant
from twgen.model.paths import Path
from twgen.model.problem import Finding
from twgen.model.record_shapes import Field, record
from twgen.model.shapes import FLAG, TEXT, Findings, Shape, constant, listing, mapping, refuse, text
from twgen.versioning.names import TWGEN_API

KIND = "OperatorConfig"

_NAME = text(least=1)


@dataclass(frozen=True, slots=True)
class _Temporal:
    config_file: str = ""
    profiles: tuple[ProfileGrant, ...] = ()


@dataclass(frozen=True, slots=True)
class _Attached:
    kinds: tuple[GroupKind, ...] = ()


@dataclass(frozen=True, slots=True)
class _Rollout:
    image: str = ""


@dataclass(frozen=True, slots=True)
class _Cluster:
    project: str
    application: str = "*"
    kubeconfig: str | None = None
    context: str | None = None
    in_cluster: bool | None = None


@dataclass(frozen=True, slots=True)
class _OperatorConfig:
    instance: str = ""
    temporal: _Temporal = field(default_factory=_Temporal)
    clusters: tuple[ClusterOfApplications, ...] = ()
    rollout: _Rollout = field(default_factory=_Rollout)
    attached: _Attached = field(default_factory=_Attached)
    api_version: str = TWGEN_API
    kind: str = KIND
    metadata: Any = None


_TEMPORAL = record(
    _Temporal,
    Field("configFile", TEXT),
    Field(
        "profiles",
        listing(record(ProfileGrant, Field("name", _NAME), Field("projects", listing(TEXT)))),
    ),
)
_CLUSTER_FIELDS = record(
    _Cluster,
    Field("project", _NAME),
    Field("application", TEXT),
    Field("kubeconfig", _NAME),
    Field("context", _NAME),
    Field("inCluster", FLAG),
)


def _read_cluster(value: Any, path: Path, findings: Findings) -> Any:
    before = len(findings)
    read = _CLUSTER_FIELDS.read(value, path, findings)
    if len(findings) > before:
        return None
    if bool(read.kubeconfig) is bool(read.in_cluster):
        refuse(findings, path, "needs kubeconfig or `inCluster: true`, and not both")
    elif bool(read.context) is not bool(read.kubeconfig):
        refuse(findings, (path, "context"), "is required beside kubeconfig, and only there")
    return ClusterOfApplications(read.project, read.application, read.kubeconfig or "", read.context or "")


def _write_cluster(cluster: ClusterOfApplications) -> Any:
    where = {"context": cluster.context, "kubeconfig": cluster.kubeconfig} if cluster.kubeconfig else {}
    told = _Cluster(cluster.project, cluster.application, **where, in_cluster=None if where else True)
    return _CLUSTER_FIELDS.write(told)


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
_CLUSTER = Shape(
    _read_cluster,
    _write_cluster,
    _CLUSTER_FIELDS.schema | {"oneOf": [_FROM_FILE, _OWN_ACCOUNT]},
)


def _read_attached_kind(value: Any, path: Path, findings: Findings) -> Any:
    if isinstance(value, str) and value in NEVER_ATTACHED:
        refuse(findings, path, f"{value} can never be attached to a version: remove it")
    return _NAME.read(value, path, findings)


_ATTACHED_KIND = Shape(
    _read_attached_kind, _NAME.write, _NAME.schema | {"not": {"enum": sorted(NEVER_ATTACHED)}}
)
_GROUP_KIND = record(GroupKind, Field("group", TEXT), Field("kind", _ATTACHED_KIND, required=True))
OPERATOR_CONFIG = record(
    _OperatorConfig,
    Field("apiVersion", constant(TWGEN_API), required=True),
    Field("kind", constant(KIND), required=True),
    Field("metadata", mapping()),
    Field("instance", TEXT),
    Field("temporal", _TEMPORAL),
    Field("clusters", listing(_CLUSTER)),
    Field("rollout", record(_Rollout, Field("image", _NAME, absent=""))),
    Field("attached", record(_Attached, Field("kinds", listing(_GROUP_KIND)))),
)


def parse_operator(document: Any) -> tuple[Operator | None, list[Finding]]:
    """The operator's configuration, and all that is wrong with it; None when anything is."""
    findings: list[Finding] = []
    read = OPERATOR_CONFIG.read(document, None, findings)
    if findings:
        return None, findings
    operator = Operator(
        instance=read.instance,
        temporal_config_file=read.temporal.config_file,
        grants=read.temporal.profiles,
        clusters=read.clusters,
        rollout_image=read.rollout.image,
        attached_kinds=read.attached.kinds,
    )
    return operator, []


def write_operator(operator: Operator) -> dict[str, Any]:
    """The document that `parse_operator` reads as this configuration."""
    temporal = _Temporal(operator.temporal_config_file, operator.grants)
    config = _OperatorConfig(
        operator.instance,
        temporal,
        operator.clusters,
        _Rollout(operator.rollout_image),
        _Attached(operator.attached_kinds),
    )
    document: dict[str, Any] = OPERATOR_CONFIG.write(config)
    return document
