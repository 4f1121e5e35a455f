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
    """Why the finding matters."""
    remedy: Name
    """How to fix the problem."""
    severity: Severity = Severity.PROBLEM
    """`Problem` means that something does not work or will fail. `Advice` means that everything works, but
    could be better."""


class NotChecked(NamedTuple):
    """A check that could not run."""

    what: Name
    """The name of the check."""
    because: Name
    """Why the check could not run."""


class Diagnosis(NamedTuple):
    """The result of `twgen doctor`."""

    now: datetime
    """The time of the checks."""
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
    """The name of the object, if the permission is limited to one object. Empty means all objects."""


class Account(NamedTuple):
    """A Kubernetes account and its user."""

    user: str
    """The account's name, such as `system:serviceaccount:shop:payments-rollout`. Empty if unknown."""
    of: str = ""
    """The user, such as `the Jobs of shop/payments`. Empty means the person who runs `twgen doctor`."""
    remedy: str = ""
    """The command that grants the account all its permissions. Empty if each needs its own command."""


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
    """A Kubernetes object with a problem that Kubernetes reports."""

    name: str
    """The kind and name, such as `Pod shop/payments-rollout-x`."""
    problem: str
    since: datetime
    """When the object was created."""


@dataclass(frozen=True, slots=True)
class ArgoApplication:
    """An Argo CD Application that twgen renders."""

    name: str
    """The name, as `<namespace>/<name>`."""
    plugin: str
    is_automated: bool
    prunes: bool
    heals: bool
    renders_by_path: bool
    """Whether an annotation makes Argo CD render the Application only for commits that change certain
    paths."""
    sync_options: frozenset[str] = frozenset()
    errors: tuple[str, ...] = ()
    """The errors that Argo CD reports for the Application."""
    asked_since: datetime | None = None
    """When a pending refresh was requested. None if no refresh is pending, or if the time is unknown."""

    @property
    def namespace(self) -> str:
        """The namespace of the Application."""
        return self.name.partition("/")[0]


class Plugin(NamedTuple):
    """The repo-server container that runs twgen."""

    image: str
    account: str
    """The name of the repo-server's ServiceAccount."""
    has_token: bool
    """Whether the Deployment gives the Pod the ServiceAccount's token."""
    mounts_token: bool = False
    """Whether the container mounts the token with a volume of its own, as in deploy/in-cluster."""
    timeout: str = ""
    """The value of TWGEN_TIMEOUT. Empty if the variable is not set."""
    missing: tuple[str, ...] = ()
    """The ConfigMaps that the container mounts, but that do not exist."""


@dataclass(frozen=True, slots=True)
class ArgoInstallation:
    """An Argo CD installation."""

    version: str
    """The version. Empty if unknown."""
    plugin: Plugin | None
    """The plugin. None if the repo-server has no plugin container."""
    settings: Mapping[str, str] | None = None
    """The settings in `argocd-cm` and `argocd-cmd-params-cm`. None if these ConfigMaps were not read."""
    applications: tuple[ArgoApplication, ...] = ()
    namespace: str = "argocd"
    pods: tuple[Seen, ...] = ()
    """The repo-server Pods that are not running."""
    operator: Operator | None = None
    """The plugin's OperatorConfig. None if the OperatorConfig was not read or does not exist."""


class TickInstallation(NamedTuple):
    """The `twgen tick` installation in a cluster."""

    name: str
    """The kind and name, such as `Deployment twgen/twgen-tick`."""
    image: str
    account: str
    """The name of tick's ServiceAccount."""
    namespace: str | None = None
    """The namespace that tick watches. Empty if tick watches all namespaces. None if unknown."""
    every: timedelta | None = None
    """The time between two checks. None if unknown."""
    may: TickSettings | None = None
    """The permissions that the operator gives tick. None if unknown."""
    pods: tuple[Seen, ...] = ()
    """The tick Pods that are not running."""
    asks_argocd: bool = True
    """Whether tick has the address of an Argo CD server."""

    @property
    def takes_over(self) -> bool:
        """Whether tick takes over a rollout whose hook Argo CD skipped."""
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
    """For each worker with an abandoned, unsettled rollout, the reason why nothing carries out the
    rollout."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """For each worker whose rollout cannot read or change the state, the errors."""
    stuck: Mapping[str, Seen] = field(default_factory=dict)
    """For each worker whose Job has no running Pod, the problem."""
    outdated_jobs: Mapping[str, str] = field(default_factory=dict)
    """For each worker whose intent was deleted and recreated, the Job of the deleted intent."""
    jobless: Mapping[str, datetime] = field(default_factory=dict)
    """For each worker whose intent no Job has carried out, the time when the intent last changed."""
    skipped: Mapping[str, bool] = field(default_factory=dict)
    """For each worker whose hook Argo CD skipped, whether tick takes over the rollout."""
    applications: Mapping[str, str] = field(default_factory=dict)
    """For each worker, the Argo CD application that tracks the worker's intent."""
    orphans: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each worker without an intent, the Deployments that an Argo CD application tracks."""
    worker_deployments: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The number of Worker Deployments, by server address and Temporal namespace."""
    cluster_scoped: frozenset[GroupKind] = frozenset()
    """The attached kinds that the operator allows although they are cluster-scoped."""
    remembers: bool = True
    """Whether the ledger and the Git history were read together with the specs."""
    not_checked: Mapping[str, str] = field(default_factory=dict)
    """The checks that could not run, each with the reason."""
