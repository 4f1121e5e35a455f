"""An OperatorConfig document: what the operator of an Argo CD decides for all of its applications."""

from dataclasses import field
from operator import attrgetter
from typing import Any, NamedTuple

from twgen.model.operator import (
    CLUSTER_SCOPED,
    NEVER_ATTACHED,
    CaBundle,
    ClusterOfApplications,
    GroupKind,
    Operator,
    ProfileGrant,
    PrometheusServer,
    RolloutPod,
)
from twgen.model.paths import Path, written_path
from twgen.model.problem import Finding, quoted
from twgen.model.record_shapes import Field, record
from twgen.model.shapes import (
    FLAG,
    TEXT,
    TEXTS,
    Findings,
    Shape,
    constant,
    listing,
    mapping,
    refuse,
    text,
    unchanged,
)
from twgen.model.values import dataclass
from twgen.records.prometheus import PROMETHEUS, URL
from twgen.versioning.names import TWGEN_API
from twgen.versioning.stored_form import stored_struct

KIND = "OperatorConfig"

_NAME = text(least=1)
_IMAGE = text(r"^[^\s\x00-\x1f]+$(?!\n)", "an image, such as registry.example.com/twgen:1.0", least=1)
_GROUP = text(
    r"^$(?!\n)|^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$(?!\n)",
    "an API group without its version, such as monitoring.coreos.com",
)
_KIND = text(r"^[A-Za-z][-A-Za-z0-9]*$(?!\n)", "a kind, such as ServiceMonitor", least=1)
_INSTANCE = text(
    r"^$(?!\n)|^(?!twgen/)[A-Za-z0-9][-A-Za-z0-9_.]*(/[A-Za-z0-9][-A-Za-z0-9_.]*)*$(?!\n)",
    "the name of an Argo CD instance, such as prod-eu: letters, digits and - _ . /, without twgen/ in front",
)
_POD = RolloutPod()
_CONFIG_MAP = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$(?!\n)"
_KEY = r"^[-._a-zA-Z0-9]+$(?!\n)"
# the plugin runs in the folder of an application: another path would name a file of its repository
_WHOLE_PATH = text(r"^(?![^/])", "an absolute path, such as /etc/twgen/temporal/temporal.toml")
_KUBECONFIG = text(
    r"^(?![^/])(?![\s\S]*:(?!/))", "an absolute path, such as /etc/twgen/clusters/kubeconfig", least=1
)
"""Files joined by `:`, as KUBECONFIG has them."""


@dataclass(frozen=True, slots=True)
class _Temporal:
    config_file: str = ""
    profiles: tuple[ProfileGrant, ...] = ()


@dataclass(frozen=True, slots=True)
class _Attached:
    kinds: tuple[GroupKind, ...] = ()


class _Links(NamedTuple):
    temporal: str = ""


class _Tick(NamedTuple):
    drains: bool = False


class _Rollout(NamedTuple):
    image: str = ""
    labels: Any = _POD.labels
    annotations: Any = _POD.annotations
    node_selector: Any = _POD.node_selector
    tolerations: Any = _POD.tolerations
    image_pull_secrets: Any = _POD.image_pull_secrets
    resources: Any = _POD.resources
    ca_bundle: CaBundle | None = None


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
    prometheus: tuple[PrometheusServer, ...] = ()
    links: _Links = field(default_factory=_Links)
    tick: _Tick = field(default_factory=_Tick)
    api_version: str = TWGEN_API
    kind: str = KIND
    metadata: Any = None


_TEMPORAL = record(
    _Temporal,
    Field("configFile", _WHOLE_PATH),
    Field(
        "profiles",
        listing(record(ProfileGrant, Field("name", _NAME), Field("projects", listing(TEXT)))),
    ),
)
_CLUSTER_FIELDS = record(
    _Cluster,
    Field("project", _NAME),
    Field("application", TEXT),
    Field("kubeconfig", _KUBECONFIG),
    Field("context", _NAME),
    Field("inCluster", FLAG),
)


def _read_cluster(value: Any, path: Path, findings: Findings) -> Any:
    before = len(findings)
    read = _CLUSTER_FIELDS.read(value, path, findings)
    if len(findings) > before:
        return None
    if bool(read.kubeconfig) is bool(read.in_cluster):
        refuse(findings, path, "needs either kubeconfig or `inCluster: true`, not both")
    elif bool(read.context) is not bool(read.kubeconfig):
        refuse(findings, (path, "context"), "must be set if kubeconfig is set, and only then")
    return ClusterOfApplications(read.project, read.application, read.kubeconfig or "", read.context or "")


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
    unchanged,
    _CLUSTER_FIELDS.schema | {"oneOf": [_FROM_FILE, _OWN_ACCOUNT]},
)


def _read_attached_kind(value: Any, path: Path, findings: Findings) -> Any:
    if isinstance(value, str) and value in NEVER_ATTACHED:
        refuse(findings, path, f"{value} can never be attached to a version: remove it")
    return _KIND.read(value, path, findings)


_ATTACHED_KIND = Shape(
    _read_attached_kind, _KIND.write, _KIND.schema | {"not": {"enum": sorted(NEVER_ATTACHED)}}
)
_GROUP_KIND_FIELDS = record(GroupKind, Field("group", _GROUP), Field("kind", _ATTACHED_KIND, required=True))


def _read_group_kind(value: Any, path: Path, findings: Findings) -> Any:
    if isinstance(value, str):
        such_as = "{group: monitoring.coreos.com, kind: ServiceMonitor}"
        refuse(findings, path, f"must be a mapping such as {such_as}, not {quoted(value)}")
        return None
    found = _GROUP_KIND_FIELDS.read(value, path, findings)
    if found in CLUSTER_SCOPED:
        refuse(
            findings, (path, "kind"), f"{found} is cluster-scoped, so no version can have its own: remove it"
        )
    return found


_GROUP_KIND = Shape(_read_group_kind, unchanged, _GROUP_KIND_FIELDS.schema)


def _part_of_a_pod(struct: str) -> Shape:
    """A struct of a pod template, as strictly as there: its stored form."""

    def read(value: Any, path: Path, findings: Findings) -> Any:
        stored = stored_struct(value, struct, written_path(path), "a pod template")
        findings += (*stored.problems, *stored.unknown)
        return stored.template

    return Shape(read, unchanged, {"$ref": f"podtemplate.json#/$defs/{struct}"})


_ROLLOUT = record(
    _Rollout,
    Field("image", _IMAGE, absent=""),
    Field("labels", TEXTS, absent=_POD.labels),
    Field("annotations", TEXTS, absent=_POD.annotations),
    Field("nodeSelector", TEXTS, absent=_POD.node_selector),
    Field("tolerations", listing(_part_of_a_pod("Toleration")), absent=()),
    Field("imagePullSecrets", listing(_part_of_a_pod("LocalObjectReference")), absent=()),
    Field("resources", _part_of_a_pod("ResourceRequirements"), absent=_POD.resources),
    Field(
        "caBundle",
        record(
            CaBundle,
            Field("configMap", text(_CONFIG_MAP, "the name of a ConfigMap"), required=True),
            Field("key", text(_KEY, "a key of a ConfigMap"), absent=CaBundle("").key),
        ),
    ),
)
OPERATOR_CONFIG = record(
    _OperatorConfig,
    Field("apiVersion", constant(TWGEN_API), required=True),
    Field("kind", constant(KIND), required=True),
    Field("metadata", mapping()),
    Field("instance", _INSTANCE, absent=""),
    Field("temporal", _TEMPORAL),
    Field("clusters", listing(_CLUSTER)),
    Field("rollout", _ROLLOUT),
    Field("attached", record(_Attached, Field("kinds", listing(_GROUP_KIND)))),
    Field("prometheus", listing(PROMETHEUS, attrgetter("name"), "Prometheus")),
    Field("links", record(_Links, Field("temporal", URL, absent=""))),
    Field("tick", record(_Tick, Field("drains", FLAG))),
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
        rollout_pod=RolloutPod(*(getattr(read.rollout, name) for name in RolloutPod._fields)),
        attached_kinds=read.attached.kinds,
        prometheus=read.prometheus,
        temporal_ui=read.links.temporal.rstrip("/"),
        tick_drains=read.tick.drains,
    )
    return operator, []
