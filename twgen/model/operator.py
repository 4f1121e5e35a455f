"""What the operator of an Argo CD decides for all of its applications."""

from dataclasses import dataclass
from fnmatch import fnmatchcase


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


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A kind of object in its API group; the core group is empty."""

    group: str = ""
    kind: str = ""

    def __str__(self) -> str:
        """As people write it: `autoscaling/HorizontalPodAutoscaler`."""
        return f"{self.group}/{self.kind}" if self.group else self.kind


@dataclass(frozen=True, slots=True)
class Operator:
    """The operator's configuration; the default is that of somebody who configured nothing."""

    instance: str = ""
    temporal_config_file: str = ""
    grants: tuple[ProfileGrant, ...] = ()
    clusters: tuple[ClusterOfApplications, ...] = ()
    attached_kinds: tuple[GroupKind, ...] = ()
    """What may be attached to a version beside the kinds that twgen knows."""

    def may_use(self, profile: str, application: Application) -> bool:
        """The application's project may use a Temporal profile."""
        return any(
            grant.name == profile and any(fnmatchcase(application.project, name) for name in grant.projects)
            for grant in self.grants
        )

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
