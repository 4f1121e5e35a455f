"""The state of an installation, and the findings about it."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from twgen.model.operator import GroupKind, Operator, TickSettings
from twgen.model.record_shapes import Name
from twgen.model.values import dataclass


class Severity(StrEnum):
    """The severity of a finding."""

    PROBLEM = "Problem"
    """Something does not work, or will fail."""
    ADVICE = "Advice"
    """Everything works, but could be better."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One finding."""

    about: Name
    """The worker, application, server or setting that the finding is about."""
    says: Name
    """The finding as a sentence."""
    because: Name
    """Why it matters."""
    remedy: Name
    """How to fix it."""
    severity: Severity = Severity.PROBLEM
    """Problem: something does not work, or will fail. Advice: it works, but could be better."""


class NotChecked(NamedTuple):
    """A check that could not run."""

    what: Name
    """The name of the check."""
    because: Name
    """Why the check could not run."""


class Diagnosis(NamedTuple):
    """The result of `twgen doctor`."""

    now: datetime
    """When the checks ran."""
    findings: tuple[DoctorFinding, ...]
    """The findings, problems first."""
    not_checked: tuple[NotChecked, ...]
    """The checks that could not run."""


class Right(NamedTuple):
    """An RBAC permission in Kubernetes."""

    verb: str
    group: str
    """The API group. Empty means the core group."""
    resource: str
    name: str = ""
    """The name of the only object. Empty means all objects."""


class Account(NamedTuple):
    """An account in Kubernetes, and who uses it."""

    user: str
    """Its name in Kubernetes, such as `system:serviceaccount:shop:payments-rollout`. Empty if unknown."""
    of: str = ""
    """Its users, such as `the Jobs of shop/payments`. Empty means the person who runs `twgen doctor`."""
    remedy: str = ""
    """The command that grants all its permissions. Empty if each permission needs its own command."""


class Need(NamedTuple):
    """A permission that an account needs in a namespace."""

    account: Account
    namespace: str
    """The namespace. Empty means all namespaces."""
    right: Right
    without_it: str
    """The consequence of the missing permission."""
    severity: Severity


class Seen(NamedTuple):
    """A Kubernetes object with a problem, as Kubernetes reports it."""

    name: str
    """The kind and name, such as `Pod shop/payments-rollout-x`."""
    problem: str
    since: datetime
    """When the object was created."""


@dataclass(frozen=True, slots=True)
class ArgoApplication:
    """An Application of Argo CD that twgen renders."""

    name: str
    """The name, as `<namespace>/<name>`."""
    plugin: str
    is_automated: bool
    prunes: bool
    heals: bool
    renders_by_path: bool
    """Whether it has the annotation that makes Argo CD render it only for commits to certain paths."""
    sync_options: frozenset[str] = frozenset()
    errors: tuple[str, ...] = ()
    """The errors that Argo CD reports for it."""
    asked_since: datetime | None = None
    """When a pending refresh was requested. None if no refresh is pending, or if this is unknown."""

    @property
    def namespace(self) -> str:
        """The namespace of the Application."""
        return self.name.partition("/")[0]


class Plugin(NamedTuple):
    """The container of the repo-server that runs twgen."""

    image: str
    account: str
    """The name of its ServiceAccount in Kubernetes."""
    has_token: bool
    """Whether the Pod has that account's token, according to the Deployment."""
    mounts_token: bool = False
    """Whether the container mounts that token with a volume of its own, as in deploy/in-cluster."""
    timeout: str = ""
    """The value of TWGEN_TIMEOUT. Empty if it is not set."""
    missing: tuple[str, ...] = ()
    """The ConfigMaps that it mounts although they do not exist."""


@dataclass(frozen=True, slots=True)
class ArgoInstallation:
    """An installation of Argo CD."""

    version: str
    """The version. Empty if unknown."""
    plugin: Plugin | None
    """The plugin. None if the repo-server has no such container."""
    settings: Mapping[str, str] | None = None
    """The settings in `argocd-cm` and `argocd-cmd-params-cm`. None if not read."""
    applications: tuple[ArgoApplication, ...] = ()
    namespace: str = "argocd"
    pods: tuple[Seen, ...] = ()
    """The Pods of its repo-server that are not running."""
    operator: Operator | None = None
    """The plugin's OperatorConfig. None if it was not read or does not exist."""


class TickInstallation(NamedTuple):
    """The `twgen tick` of a cluster."""

    name: str
    """The kind and name, such as `Deployment twgen/twgen-tick`."""
    image: str
    account: str
    """The name of its ServiceAccount in Kubernetes."""
    namespace: str | None = None
    """The only namespace that it watches. Empty if it watches all namespaces. None if unknown."""
    every: timedelta | None = None
    """The time between two runs. None if unknown."""
    may: TickSettings | None = None
    """The permissions that the operator gives it. None if unknown."""
    pods: tuple[Seen, ...] = ()
    """Its Pods that are not running."""
    asks_argocd: bool = True
    """Whether it has the address of an Argo CD."""

    @property
    def takes_over(self) -> bool:
        """Whether it takes over a rollout whose hook Argo CD skips."""
        return bool(self.may and self.may.rollouts and self.asks_argocd)


@dataclass(frozen=True, slots=True)
class Installation:
    """The state of an installation, as far as it was read."""

    refusals: tuple[Need, ...] = ()
    """The permissions that accounts need but do not have."""
    absent_accounts: tuple[Account, ...] = ()
    """ServiceAccounts that do not exist."""
    argocd: ArgoInstallation | None = None
    tick: TickInstallation | None = None
    clock_ahead: timedelta | None = None
    """How far the API server's clock is ahead of this machine's clock. None if unknown."""
    intents: frozenset[str] | None = None
    """The workers that have an intent. None if the cluster was not read."""
    failures: tuple[str, ...] = ()
    """Why workers, intents and statuses could not be read, as sentences."""
    left_alone: Mapping[str, str] = field(default_factory=dict)
    """The reason why no program carries out an unsettled rollout, by worker."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """The errors when a rollout reads or changes the state, by worker. Empty if there are none."""
    stuck: Mapping[str, Seen] = field(default_factory=dict)
    """The problem of a Job that has no running Pod, by worker."""
    outdated_jobs: Mapping[str, str] = field(default_factory=dict)
    """The Job that ran for a deleted intent, although the intent has been recreated, by worker."""
    jobless: Mapping[str, datetime] = field(default_factory=dict)
    """When an intent last changed that no Job has carried out, by worker."""
    skipped: Mapping[str, bool] = field(default_factory=dict)
    """Whether tick takes over the rollout, by worker whose hook Argo CD skipped."""
    applications: Mapping[str, str] = field(default_factory=dict)
    """The Argo CD application that tracks the intent, by worker."""
    orphans: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The Deployments that an Argo CD application tracks, by worker without an intent."""
    worker_deployments: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The number of Worker Deployments, by address and Temporal namespace."""
    cluster_scoped: frozenset[GroupKind] = frozenset()
    """The cluster-scoped kinds that the operator allows as attached kinds."""
    remembers: bool = True
    """Whether the ledger and the Git history were read together with the specs."""
    not_checked: Mapping[str, str] = field(default_factory=dict)
    """The checks that could not run, each with the reason."""
