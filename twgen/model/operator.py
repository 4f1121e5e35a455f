"""Who runs twgen, and what the operator of an Argo CD decides for all of its applications."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from twgen.model.paths import value_at
from twgen.model.problem import quoted
from twgen.model.values import dataclass

if TYPE_CHECKING:  # every command asks who runs it, most before any spec is read
    from twgen.model.policy import Policy


@dataclass(frozen=True, slots=True)
class Application:
    """The Argo CD application that a config-management plugin renders."""

    name: str
    project: str


@dataclass(frozen=True, slots=True)
class ProfileGrant:
    """Which Argo CD projects may use a Temporal profile; names and glob patterns."""

    name: str
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterOfApplications:
    """Where the live Deployments of some applications are; project and application are glob patterns."""

    project: str
    application: str = "*"
    kubeconfig: str = ""
    """Empty: the account of the Pod that twgen runs in."""
    context: str = ""


NEVER_ATTACHED = frozenset({
    "ClusterRole", "ClusterRoleBinding", "CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet",
    "ReplicationController", "Role", "RoleBinding", "StatefulSet",
})  # fmt: skip
"""Kinds that run pods or grant rights, in any API group: no operator can allow them."""


def api_group(manifest: Any) -> str:
    """The API group of a manifest, or of a template of one; the core group is empty."""
    return str(value_at(manifest, "apiVersion")).rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A kind of object in its API group; the core group is empty."""

    group: str = ""
    kind: str = ""

    @classmethod
    def of(cls, manifest: Any) -> "GroupKind":
        """That of a manifest, or of a template of one."""
        return cls(api_group(manifest), str(value_at(manifest, "kind")))

    def __str__(self) -> str:
        """As people write it: `autoscaling/HorizontalPodAutoscaler`."""
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
"""Kinds that have no namespace (`kubectl api-resources --namespaced=false`): Kubernetes' own, and KEDA's."""


class CaBundle(NamedTuple):
    """A ConfigMap of every worker's namespace that says whom to trust as Temporal, as PEM."""

    config_map: str
    key: str = "ca.crt"


class RolloutPod(NamedTuple):
    """What the Pods of rollouts have beside what twgen gives them, as Kubernetes has it."""

    labels: Mapping[str, str] = MappingProxyType({})
    annotations: Mapping[str, str] = MappingProxyType({})
    node_selector: Mapping[str, str] = MappingProxyType({})
    tolerations: tuple[Mapping[str, Any], ...] = ()
    image_pull_secrets: tuple[Mapping[str, Any], ...] = ()
    resources: Mapping[str, Any] = MappingProxyType({})
    """Empty: twgen's own."""
    ca_bundle: CaBundle | None = None
    """None: whom the image trusts."""


class PrometheusServer(NamedTuple):
    """A Prometheus, or what speaks as one: where it is, who may ask it, and as whom it is asked."""

    name: str
    """By which metrics choose it."""
    url: str
    projects: tuple[str, ...] = ()
    """The Argo CD projects that may use it; names and glob patterns."""
    bearer_token_file: str = ""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    """Empty: whom the system trusts."""
    headers: Mapping[str, str] = MappingProxyType({})
    """What is sent beside: no secrets, since intents have them too."""
    secret_name: str = ""
    """A Secret of every worker's namespace with what the Pods of rollouts need of it; empty: nothing."""
    secret_folder: str = ""
    """Where a Pod has that Secret: its keys stand in place of the files."""


def prometheus_called(
    name: str, usable: Sequence[PrometheusServer], remedy: str
) -> tuple[PrometheusServer | None, str]:
    """The one of that name, or without a name the only one; None, and why: there is none, or several.

    `remedy` is what to do where there is none: the end of a sentence.
    """
    found = [server for server in usable if name in {"", server.name}]
    if len(found) == 1:
        return found[0], ""
    if found:
        names = ", ".join(server.name for server in found)
        return None, f"there are several Prometheus servers ({names}): select one with `server`"
    return None, f"{f'no Prometheus {quoted(name)}' if name else 'no Prometheus'} is available here: {remedy}"


@dataclass(frozen=True, slots=True)
class Operator:
    """The operator's configuration; the default is that of somebody who configured nothing."""

    instance: str = ""
    temporal_config_file: str = ""
    grants: tuple[ProfileGrant, ...] = ()
    clusters: tuple[ClusterOfApplications, ...] = ()
    rollout_image: str = ""
    """The image of the Jobs that carry rollouts out; empty: no such Job is rendered."""
    rollout_pod: RolloutPod = field(default_factory=RolloutPod)
    attached_kinds: tuple[GroupKind, ...] = ()
    """What may be attached to a version beside the kinds that twgen knows."""
    prometheus: tuple[PrometheusServer, ...] = ()
    temporal_ui: str = ""
    """Where people look at Temporal, without a slash at the end; empty: nobody said."""
    tick_drains: bool = False
    """`twgen tick` does to the workflows of versions that drain what their policies say."""
    file: str = ""
    """Where all of this stands; empty: nowhere."""

    def may_use(self, profile: str, application: Application) -> bool:
        """The application's project may use a Temporal profile."""
        return any(grant.name == profile and _is_for(grant.projects, application) for grant in self.grants)

    def prometheus_of(self, application: Application) -> tuple[PrometheusServer, ...]:
        """Those that the application's project may use."""
        return tuple(server for server in self.prometheus if _is_for(server.projects, application))

    def cluster_of(self, application: Application) -> ClusterOfApplications | None:
        """The first entry that is for the application; None: its cluster is not read."""
        return next(
            (
                cluster
                for cluster in self.clusters
                if fnmatchcase(application.project, cluster.project)
                and fnmatchcase(application.name, cluster.application)
            ),
            None,
        )


def _is_for(projects: tuple[str, ...], application: Application) -> bool:
    """The application is of one of the projects; names and glob patterns."""
    return any(fnmatchcase(application.project, name) for name in projects)


def manager_identity(written: str) -> str:
    """Who manages a worker in Temporal, as a person wrote it: with `twgen/` before it, or without."""
    return written if written.startswith("twgen/") else f"twgen/{written}"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who runs twgen, and for which Argo CD application."""

    identity: str = ""
    """The manager identity of workers whose policy names none; empty: nobody said."""
    forced: bool = False
    """The identity goes before that of a policy."""
    is_person: bool = False
    """The identity is that of whoever looks, and no Deployment carries it."""
    application: str = ""
    """The Argo CD application that is rendered; empty: none."""
    drives: bool = False
    """It makes the changes of traffic itself, also where a policy says that nobody does."""

    def of(self, policy: "Policy") -> str:
        """The manager identity under a policy; empty: nobody said."""
        if policy.identity and not self.forced:
            return manager_identity(policy.identity)
        return self.identity

    def on_deployments_of(self, policy: "Policy") -> str:
        """The manager identity that Deployments carry under a policy; empty: nobody said."""
        return "" if self.is_person and not policy.identity else self.of(policy)
