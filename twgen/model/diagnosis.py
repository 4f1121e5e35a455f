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
    """Something does not work, or will not."""
    ADVICE = "Advice"
    """It works, but could be better."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One finding."""

    about: Name
    """The worker, application, server or setting that it concerns."""
    says: Name
    """The finding as a sentence."""
    because: Name
    """Why it matters."""
    remedy: Name
    """How to fix it."""
    severity: Severity = Severity.PROBLEM
    """Problem: something does not work, or will fail. Advice: it works, but could be better."""


class NotChecked(NamedTuple):
    """One check."""

    what: Name
    """The name."""
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
    """A right of an account in Kubernetes."""

    verb: str
    group: str
    """Empty: the core API group."""
    resource: str
    name: str = ""
    """The name of the only object; empty: all objects."""


class Account(NamedTuple):
    """An account of Kubernetes, and its user."""

    user: str
    """Its name in Kubernetes: `system:serviceaccount:shop:payments-rollout`. Empty: unknown."""
    of: str = ""
    """Its user: `the Jobs of shop/payments`. Empty: the person who runs `twgen doctor`."""
    remedy: str = ""
    """The command that grants all its rights. Empty: each right needs its own command."""


class Need(NamedTuple):
    """A right that an account needs in a namespace."""

    account: Account
    namespace: str
    """Empty: all namespaces."""
    right: Right
    without_it: str
    """The consequence of a missing right."""
    severity: Severity


class Seen(NamedTuple):
    """An object of Kubernetes with a problem, in the words of Kubernetes."""

    name: str
    """`Pod shop/payments-rollout-x`."""
    problem: str
    since: datetime
    """When the object was created."""


@dataclass(frozen=True, slots=True)
class ArgoApplication:
    """An Application of Argo CD that twgen renders."""

    name: str
    """`<namespace>/<name>`."""
    plugin: str
    is_automated: bool
    prunes: bool
    heals: bool
    renders_by_path: bool
    """It has the annotation that renders it only for commits to some paths."""
    sync_options: frozenset[str] = frozenset()
    errors: tuple[str, ...] = ()
    """The errors that Argo CD reports about it."""
    asked_since: datetime | None = None
    """The time of a pending request to refresh it. None: none is pending, or this is unknown."""

    @property
    def namespace(self) -> str:
        """The namespace of the Application."""
        return self.name.partition("/")[0]


class Plugin(NamedTuple):
    """The container of the repo-server that runs twgen."""

    image: str
    account: str
    """The name in Kubernetes of its ServiceAccount."""
    has_token: bool
    """By its Deployment, the Pod has the token of that account."""
    mounts_token: bool = False
    """It mounts that token with its own volume, as in deploy/in-cluster."""
    timeout: str = ""
    """The value of TWGEN_TIMEOUT; empty if it is not set."""
    missing: tuple[str, ...] = ()
    """The ConfigMaps that it mounts but that do not exist."""


@dataclass(frozen=True, slots=True)
class ArgoInstallation:
    """An Argo CD."""

    version: str
    """Empty: unknown."""
    plugin: Plugin | None
    """The plugin. None: the repo-server has no such container."""
    settings: Mapping[str, str] | None = None
    """The settings in `argocd-cm` and `argocd-cmd-params-cm`. None: they were not read."""
    applications: tuple[ArgoApplication, ...] = ()
    namespace: str = "argocd"
    pods: tuple[Seen, ...] = ()
    """The Pods of its repo-server that do not run."""
    operator: Operator | None = None
    """The OperatorConfig of its plugin. None: it was not read, or does not exist."""


class TickInstallation(NamedTuple):
    """The tick of a cluster."""

    name: str
    """`Deployment twgen/twgen-tick`."""
    image: str
    account: str
    """The name in Kubernetes of its ServiceAccount."""
    namespace: str | None = None
    """The only namespace that it watches. Empty: it watches all. None: unknown."""
    every: timedelta | None = None
    """The time between two runs. None: unknown."""
    may: TickSettings | None = None
    """The permissions that its operator gives it. None: unknown."""
    pods: tuple[Seen, ...] = ()
    """Its Pods that do not run."""
    asks_argocd: bool = True
    """It has the address of an Argo CD."""

    @property
    def takes_over(self) -> bool:
        """It takes over rollouts whose hook Argo CD skips."""
        return bool(self.may and self.may.rollouts and self.asks_argocd)


@dataclass(frozen=True, slots=True)
class Installation:
    """The state of an installation, as far as it was read."""

    refusals: tuple[Need, ...] = ()
    """Rights that accounts need but do not have."""
    absent_accounts: tuple[Account, ...] = ()
    """ServiceAccounts that do not exist."""
    argocd: ArgoInstallation | None = None
    tick: TickInstallation | None = None
    clock_ahead: timedelta | None = None
    """How far the API server's clock is ahead of this machine's clock. None: unknown."""
    intents: frozenset[str] | None = None
    """The workers that have an intent. None: the cluster was not read."""
    failures: tuple[str, ...] = ()
    """Why workers, intents and statuses could not be read, in whole sentences."""
    left_alone: Mapping[str, str] = field(default_factory=dict)
    """The workers with an unsettled rollout that no program runs, and the reason."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """The errors of a rollout when it reads or changes the state, by worker. Empty: there are none."""
    stuck: Mapping[str, Seen] = field(default_factory=dict)
    """The workers whose Job has no running Pod, and the problem."""
    outdated_jobs: Mapping[str, str] = field(default_factory=dict)
    """The Jobs that ran for an intent which has since been deleted and created again, by worker."""
    jobless: Mapping[str, datetime] = field(default_factory=dict)
    """The workers whose intent no Job has worked on, and when the intent last changed."""
    skipped: Mapping[str, bool] = field(default_factory=dict)
    """The workers whose hook Argo CD skipped, and whether tick takes over their rollout."""
    applications: Mapping[str, str] = field(default_factory=dict)
    """The Argo CD application that tracks a worker's intent, by worker."""
    orphans: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The Deployments that an Argo CD application tracks and whose worker has no intent, by worker."""
    worker_deployments: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The number of Worker Deployments, by address and Temporal namespace."""
    cluster_scoped: frozenset[GroupKind] = frozenset()
    """The cluster-scoped kinds that the operator allows to attach."""
    remembers: bool = True
    """The ledger and the Git history were read with the specs."""
    not_checked: Mapping[str, str] = field(default_factory=dict)
    """The checks that were not possible, and why."""
