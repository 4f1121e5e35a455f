"""The OperatorConfig with the settings for all applications of an Argo CD, and the caller that runs twgen."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from twgen.model.paths import Path, value_at
from twgen.model.problem import quoted
from twgen.model.record_shapes import Each, Example, FieldRule, Name
from twgen.model.rollout import Driver, Verb
from twgen.model.shapes import Findings, Shape, choice, mapping, text
from twgen.model.values import dataclass

if TYPE_CHECKING:  # not imported at start-up: every command has a caller, but many need no policy
    from twgen.model.policy import Policy


@dataclass(frozen=True, slots=True)
class Application:
    """The Argo CD application that a config-management plugin renders."""

    name: str
    project: str


class ProfileGrant(NamedTuple):
    """A Temporal profile, and the Argo CD projects that may use it."""

    name: Name
    """The name of a profile in Temporal's configuration file."""
    projects: tuple[str, ...] = ()
    """The Argo CD projects that may use the profile, as names or glob patterns."""


class TemporalProfiles(NamedTuple):
    """The credentials for Temporal."""

    config_file: Annotated[
        str, text(r"^(?![^/])", "an absolute path, such as /etc/twgen/temporal/temporal.toml")
    ] = ""
    """The absolute path of Temporal's configuration file. Paths in that file must be absolute too. If absent,
    twgen uses the path in the environment variable TEMPORAL_CONFIG_FILE."""
    profiles: tuple[ProfileGrant, ...] = ()
    """The profiles, and the Argo CD projects that may use each profile. twgen uses a profile only if it is
    listed here, and only for the profile's own address and namespace."""


_KUBECONFIG = text(
    r"^(?![^/])(?![\s\S]*:(?!/))", "an absolute path, such as /etc/twgen/clusters/kubeconfig", least=1
)
"""File paths, separated by `:` as in the KUBECONFIG variable."""


class ClusterOfApplications(NamedTuple):
    """The cluster that contains the live Deployments of some applications."""

    project: Name
    """The name of the Argo CD project, or a glob pattern."""
    application: str = "*"
    """The name of the application, or a glob pattern. If absent, the entry matches every application of the
    project."""
    kubeconfig: Annotated[str, _KUBECONFIG] = ""
    """The absolute path of a kubeconfig. The kubeconfig must contain a token or certificates, because the
    image has no credential plugins. This field conflicts with inCluster."""
    context: Name = ""
    """The kubeconfig context to use. Required if kubeconfig is set."""
    in_cluster: bool = False
    """If true, twgen uses the ServiceAccount of the plugin's own Pod, which needs the manifests in
    deploy/in-cluster. This field conflicts with kubeconfig."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """The fields that contradict each other, each with the reason."""
        if bool(self.kubeconfig) is self.in_cluster:
            yield "", "needs either kubeconfig or `inCluster: true`, not both"
        elif bool(self.context) is not bool(self.kubeconfig):
            yield "context", "must be set if kubeconfig is set, and only then"


NEVER_ATTACHED = frozenset({
    "ClusterRole", "ClusterRoleBinding", "CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet",
    "ReplicationController", "Role", "RoleBinding", "StatefulSet",
})  # fmt: skip
"""Kinds that run pods or grant permissions. An OperatorConfig cannot allow these kinds in any API group."""


_GROUP = text(
    r"^$(?!\n)|^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$(?!\n)",
    "an API group without its version, such as monitoring.coreos.com",
)
_KIND = text(r"^[A-Za-z][-A-Za-z0-9]*$(?!\n)", "a kind, such as ServiceMonitor", least=1)
_KIND_SCHEMA = _KIND.schema | {"not": {"enum": sorted(NEVER_ATTACHED)}}


def _read_kind(value: Any, path: Path, findings: Findings) -> Any:
    if isinstance(value, str) and value in NEVER_ATTACHED:
        findings.problem(path, f"{value} can never be attached to a version: remove it")
    return _KIND.read(value, path, findings)


def api_group(manifest: Any) -> str:
    """The API group of a manifest or a template. Empty means the core group."""
    return str(value_at(manifest, "apiVersion")).rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A Kubernetes kind with its API group."""

    group: Annotated[str, _GROUP, Example("monitoring.coreos.com")] = ""
    """The API group without its version. Empty means the core group."""
    kind: Annotated[
        str, Shape(_read_kind, schema=_KIND_SCHEMA), FieldRule.REQUIRED, Example("PodMonitor")
    ] = ""
    """The kind. Kinds that run pods or grant permissions are rejected in every API group."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """The fields that contradict each other, each with the reason."""
        if self in CLUSTER_SCOPED:
            yield "kind", f"{self} is cluster-scoped, so no version can have its own: remove it"

    @classmethod
    def of(cls, manifest: Any) -> "GroupKind":
        """The kind of a manifest or a template."""
        return cls(api_group(manifest), str(value_at(manifest, "kind")))

    def __str__(self) -> str:
        """The kind as shown in messages, such as `autoscaling/HorizontalPodAutoscaler`."""
        return f"{self.group}/{self.kind}" if self.group else self.kind


CLUSTER_SCOPED = frozenset(
    GroupKind(group, kind)
    for group, kinds in {
        "": ("Namespace", "Node", "PersistentVolume"),
        "admissionregistration.k8s.io": (
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ),
        "apiextensions.k8s.io": ("CustomResourceDefinition",),
        "apiregistration.k8s.io": ("APIService",),
        "certificates.k8s.io": ("CertificateSigningRequest", "ClusterTrustBundle"),
        "flowcontrol.apiserver.k8s.io": ("FlowSchema", "PriorityLevelConfiguration"),
        "keda.sh": ("ClusterTriggerAuthentication",),
        "networking.k8s.io": ("IPAddress", "IngressClass", "ServiceCIDR"),
        "node.k8s.io": ("RuntimeClass",),
        "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding"),
        "resource.k8s.io": ("DeviceClass", "DeviceTaintRule", "ResourceSlice"),
        "scheduling.k8s.io": ("PriorityClass",),
        "storage.k8s.io": (
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ),
        "storagemigration.k8s.io": ("StorageVersionMigration",),
    }.items()
    for kind in kinds
)
"""The cluster-scoped kinds of Kubernetes and KEDA (`kubectl api-resources --namespaced=false`)."""


class CaBundle(NamedTuple):
    """A ConfigMap with CA certificates."""

    config_map: Annotated[
        str,
        text(r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$(?!\n)", "the name of a ConfigMap"),
        Example("temporal-ca"),
    ]
    """The name of the ConfigMap, which must exist in every worker's namespace."""
    key: Annotated[str, text(r"^[-._a-zA-Z0-9]+$(?!\n)", "a key of a ConfigMap")] = "ca.crt"
    """The key in the ConfigMap that contains the PEM certificates. The default is ca.crt."""


_IMAGE = text(r"^[^\s\x00-\x1f]+$(?!\n)", "an image, such as registry.example.com/twgen:1.0", least=1)
_NO_TEXTS: Mapping[str, str] = MappingProxyType({})


_ALWAYS_TAKEN = "; Pause, Resume and Abort are always taken"


class RolloutPod(NamedTuple):
    """The Jobs that carry out rollouts in the cluster."""

    driver: Annotated[Driver, choice(Driver.AUTO, Driver.JOB, Driver.HOOK, Driver.TICK)] = Driver.AUTO
    """The driver for workers whose policy does not choose one. `Tick` requires `tick.rollouts`. `Hook` has no
    effect in an Application with a worker that should not delay a sync, such as a worker with a gate."""
    image: Annotated[str, _IMAGE, Example(f"registry.example.com/twgen@sha256:{'0123456789abcdef' * 4}")] = ""
    """The twgen image for the Jobs, preferably with a digest. The image must have the same twgen release as
    the plugin, because both compute the build ID. Without an image, renders in Argo CD fail unless every
    driver is `Tick` or `None`."""
    labels: Annotated[Mapping[str, str], Example({"team": "platform"})] = _NO_TEXTS
    """Labels for the Pods of rollouts, in addition to twgen's own labels."""
    annotations: Annotated[Mapping[str, str], Example({"sidecar.istio.io/inject": "false"})] = _NO_TEXTS
    """Annotations for the Pods of rollouts, in addition to twgen's own annotations."""
    node_selector: Annotated[Mapping[str, str], Example({"kubernetes.io/os": "linux"})] = _NO_TEXTS
    """The node selector for the Pods of rollouts."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """The tolerations of the Pods of rollouts."""
    image_pull_secrets: tuple[Mapping[str, Any], ...] = ()
    """The Secrets for pulling the image. These Secrets must exist in each worker's namespace."""
    resources: Mapping[str, Any] = MappingProxyType({})
    """The resource requests and limits of a rollout's container, instead of twgen's defaults."""
    ca_bundle: CaBundle | None = None
    """The CA certificates that the Jobs trust for Temporal, if the connection uses TLS and has no
    caCertSecretRef. If absent, the Jobs trust the CA certificates in the image."""
    requests: tuple[Annotated[Verb, choice(Verb.PROMOTE, Verb.RETRY, hint=_ALWAYS_TAKEN)], ...] = ()
    """The requests that people can send to a rollout, in addition to Pause, Resume and Abort, which are
    always allowed. To send requests, a person needs permission to patch the rollout's status ConfigMap, or to
    run the ConfigMap's resource actions in Argo CD."""


_PROMETHEUS = text(
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$(?!\n)", "a name such as shared: lower-case letters, digits and -"
)
# a URL without credentials and without a query: credentials belong in files, and twgen writes the query
_URL = text(
    r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)(:[0-9]{1,5})?"
    r"(/[-A-Za-z0-9._~%!$&'()*+,;=:@/]*)?$(?!\n)",
    "an address such as https://prometheus.example.com/base: without a user, ? or #",
)
_OF_CREDENTIALS = "|".join(
    re.sub("[a-z]", lambda letter: f"[{letter[0].upper()}{letter[0]}]", name)
    for name in ("authorization", "proxy-authorization", "cookie")
)
_HEADERS = mapping(
    text(r"^[!-~]([ -~]*[!-~])?$(?!\n)", "a header value: one line of printable ASCII"),
    names=text(
        rf"^(?!({_OF_CREDENTIALS})$)[-A-Za-z0-9_.]+$(?!\n)",
        "an allowed header: letters, digits and - _ . only, and none that carries credentials",
    ),
)
_FILE = text(r"^(?![^/])", "an absolute path, such as /etc/twgen/prometheus/token", least=1)
_SECRET = text(r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$(?!\n)", "the name of a Secret")


class PrometheusServer(NamedTuple):
    """A Prometheus server, or a server with a compatible API."""

    name: Annotated[str, _PROMETHEUS, Example("shared")]
    """The name of the server. A metric of a RolloutPolicy selects it with `server`."""
    url: Annotated[str, _URL, Example("https://prometheus.example.com")]
    """The server's URL, without /api/v1. A RolloutPolicy refers to the server by name, never by URL."""
    projects: tuple[str, ...] = ()
    """The Argo CD projects that may use the server, as names or glob patterns. A metric without `server` uses
    the only server that the metric's project may use. At a terminal, every server is allowed. `twgen tick`
    asks Argo CD for the project of a worker. Without access to Argo CD, tick uses only servers with the
    project `*`."""
    bearer_token_file: Annotated[str, _FILE] = ""
    """The absolute path of a file with the bearer token. twgen reads the file for every request."""
    username: Annotated[str, text(r"^[ -9;-~]+$(?!\n)", "a user name: printable ASCII without a colon")] = ""
    """The user name for HTTP basic authentication."""
    password_file: Annotated[str, _FILE] = ""
    """The absolute path of a file with the password for `username`."""
    ca_file: Annotated[str, _FILE] = ""
    """The absolute path of a PEM file with the CA certificates to trust. If absent, twgen trusts the system's
    CA certificates."""
    headers: Annotated[Mapping[str, str], _HEADERS, Example({"X-Scope-OrgID": "payments"})] = _NO_TEXTS
    """Additional request headers, such as the tenant header of Mimir or Thanos. Do not put secrets here,
    because the intents of rollouts contain these headers."""
    secret_name: Annotated[str, _SECRET, Example("prometheus")] = ""
    """The name of a Secret with the credentials for the Jobs of rollouts. The Secret must exist in every
    worker's namespace. Its keys are `token`, or `username` and `password`, and `ca.crt` if needed. Without
    this Secret, Jobs send no credentials."""
    secret_folder: Annotated[str, FieldRule.INTERNAL] = ""
    """The folder in which a Pod mounts the Secret. The files in this folder replace the files named above."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """The fields that contradict each other, each with the reason."""
        if self.bearer_token_file and (self.username or self.password_file):
            yield "", "has bearerTokenFile and username: set only one of them"
        elif bool(self.username) is not bool(self.password_file):
            yield "", "needs both username and passwordFile, or neither"


def prometheus_called(
    name: str, usable: Sequence[PrometheusServer], remedy: str
) -> tuple[PrometheusServer | None, str]:
    """The server with this name, or the only server if the name is empty.

    If there is no such server, returns None and the reason. The reason ends with `remedy`, which says how to
    add a server.
    """
    servers = [server for server in usable if name in {"", server.name}]
    if len(servers) == 1:
        return servers[0], ""
    if servers:
        names = ", ".join(server.name for server in servers)
        return None, f"there are several Prometheus servers ({names}): select one with `server`"
    return None, f"{f'no Prometheus {quoted(name)}' if name else 'no Prometheus'} is available here: {remedy}"


class AttachedKinds(NamedTuple):
    """The objects that teams may attach to the versions of their workers."""

    kinds: tuple[GroupKind, ...] = ()
    """Kinds that teams may attach in addition to HorizontalPodAutoscaler, PodDisruptionBudget, ScaledObject
    and VerticalPodAutoscaler. twgen does not check their fields."""


class Links(NamedTuple):
    """The addresses of web pages that Argo CD and the dashboard link to."""

    temporal: Annotated[str, _URL, Example("https://temporal.example.com")] = ""
    """The URL of the Temporal UI. Argo CD shows links from each Deployment and each intent to their
    workflows. The dashboard links each worker to its workflows."""
    argocd: Annotated[str, _URL, Example("https://argocd.example.com")] = ""
    """The URL of the Argo CD UI. The dashboard links each worker to the application that moved its
    traffic."""
    dashboard: Annotated[str, _URL, Example("https://twgen.example.com")] = ""
    """The URL of the dashboard that `twgen tick` serves. Argo CD links each intent to its worker in the
    dashboard."""


class TickSettings(NamedTuple):
    """The permissions of `twgen tick`."""

    drains: bool = False
    """If true, tick carries out the `draining` lists of RolloutPolicies, which can end workflows of draining
    versions."""
    forgets: bool = False
    """If true, tick deletes old versions from Temporal that a RolloutPolicy's `keepRecords` does not keep."""
    rollouts: bool = False
    """If true, tick carries out the rollouts of workers with driver Tick. tick's account then needs the
    permissions in deploy/tick/rollouts, and can move the traffic of all these workers."""


_INSTANCE = text(
    r"^$(?!\n)|^(?!twgen/)[A-Za-z0-9][-A-Za-z0-9_.]*(/[A-Za-z0-9][-A-Za-z0-9_.]*)*$(?!\n)",
    "the name of an Argo CD instance, such as prod-eu: letters, digits and - _ . /, without twgen/ in front",
)


@dataclass(frozen=True, slots=True)
class Operator:
    """The operator's settings for all applications of an Argo CD."""

    instance: Annotated[str, _INSTANCE, Example("prod-eu")] = ""
    """The name of this Argo CD instance. Each Argo CD instance needs a different name. An application's
    manager identity is twgen/INSTANCE/APPLICATION. If absent, each worker needs spec.identity in a
    RolloutPolicy."""
    temporal: TemporalProfiles = TemporalProfiles()
    """The credentials for Temporal, as profiles in Temporal's own configuration file."""
    clusters: tuple[ClusterOfApplications, ...] = ()
    """The clusters with the live Deployments. twgen uses the first matching entry. If no entry matches, twgen
    does not read the cluster, and assumes that every version in Temporal might still have a Deployment."""
    rollout: RolloutPod = RolloutPod()
    """The Jobs that carry out rollouts in the cluster. If you change one of these settings, every worker gets
    a new Job. The new Job of a settled worker ends immediately."""
    attached: AttachedKinds = AttachedKinds()
    """The objects that teams may attach to the versions of their workers."""
    prometheus: Annotated[tuple[PrometheusServer, ...], Each(attrgetter("name"), "Prometheus")] = ()
    """The Prometheus servers that metrics query, or servers with a compatible API (POST /api/v1/query_range).
    twgen does not follow redirects. A response must not exceed one megabyte or take longer than ten
    seconds."""
    links: Links = Links()
    """The addresses of web pages that Argo CD and the dashboard link to."""
    tick: TickSettings = TickSettings()
    """The permissions of `twgen tick`, in addition to refreshing Argo CD's applications."""
    file: Annotated[str, FieldRule.INTERNAL] = ""
    """The file with these settings. Empty if there is no OperatorConfig."""

    def may_use(self, profile: str, application: Application) -> bool:
        """Whether the application's project may use a Temporal profile."""
        return any(
            grant.name == profile and _is_for(grant.projects, application) for grant in self.temporal.profiles
        )

    def prometheus_of(self, application: Application) -> tuple[PrometheusServer, ...]:
        """The Prometheus servers that the application's project may use."""
        return tuple(server for server in self.prometheus if _is_for(server.projects, application))

    def cluster_of(self, application: Application) -> ClusterOfApplications | None:
        """The first cluster entry that matches the application, or None if no entry matches."""
        in_project = (item for item in self.clusters if fnmatchcase(application.project, item.project))
        return next((item for item in in_project if fnmatchcase(application.name, item.application)), None)


def _is_for(projects: tuple[str, ...], application: Application) -> bool:
    """Whether the application is in one of these projects, which are names or glob patterns."""
    return any(fnmatchcase(application.project, name) for name in projects)


def manager_identity(written: str) -> str:
    """Add the prefix `twgen/` to a configured manager identity, unless it already has the prefix."""
    return written if written.startswith("twgen/") else f"twgen/{written}"


@dataclass(frozen=True, slots=True)
class Caller:
    """The identity that runs twgen, and the Argo CD application that it renders."""

    identity: str = ""
    """The manager identity for workers whose policy has none. Empty if unknown."""
    forced: bool = False
    """Whether the identity overrides a policy's identity."""
    is_person: bool = False
    """Whether the identity belongs to a person who only reads. Deployments do not record such an identity."""
    application: str = ""
    """The Argo CD application that is rendered. Empty outside Argo CD."""
    drives: bool = False
    """Whether the caller itself changes traffic, even if a policy has driver None."""

    def of(self, policy: "Policy") -> str:
        """The manager identity for a worker with this policy. Empty if unknown."""
        if policy.identity and not self.forced:
            return manager_identity(policy.identity)
        return self.identity

    def on_deployments_of(self, policy: "Policy") -> str:
        """The manager identity on the Deployments of a worker with this policy. Empty if unknown."""
        return "" if self.is_person and not policy.identity else self.of(policy)
