"""What is known of an installation, and what of it would bite."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from twgen.model.operator import GroupKind, Operator, TickSettings
from twgen.model.values import dataclass


class Severity(StrEnum):
    """How bad a finding is."""

    PROBLEM = "Problem"
    """Something does not work, or will not."""
    ADVICE = "Advice"
    """It works, with less than it could have."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, why it bites, and what mends it."""

    about: str
    severity: Severity
    says: str
    because: str
    remedy: str


class Right(NamedTuple):
    """Something that an account may do in Kubernetes."""

    verb: str
    group: str
    """Empty: the core."""
    resource: str
    name: str = ""
    """Of the one object that it is for; empty: of any."""


class Account(NamedTuple):
    """Who asks Kubernetes, and for whom."""

    user: str
    """As Kubernetes calls it: `system:serviceaccount:shop:payments-rollout`; empty: not known."""
    of: str = ""
    """What has it: `the Jobs of shop/payments`; empty: whoever runs the doctor."""
    remedy: str = ""
    """What gives it all of its rights; empty: each has to be given."""


class Need(NamedTuple):
    """A right that an account needs in a namespace."""

    account: Account
    namespace: str
    """Empty: in all."""
    right: Right
    without_it: str
    """What does not work."""
    severity: Severity


class Seen(NamedTuple):
    """Something that Kubernetes makes or runs, and what keeps it from being well, in Kubernetes' words."""

    name: str
    """`Pod shop/payments-rollout-x`."""
    problem: str
    since: datetime
    """Since when there is such a thing."""


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
    """What Argo CD itself says against it."""
    asked_since: datetime | None = None
    """Since when Argo CD has been asked to look at it again, and has not; None: it has, or nobody tells."""

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.name.partition("/")[0]


class Plugin(NamedTuple):
    """The container of the repo-server that runs twgen."""

    image: str
    account: str
    """Its ServiceAccount, as Kubernetes calls it."""
    has_token: bool
    """It may have the token of that account, as far as the Deployment tells."""
    mounts_token: bool = False
    """It mounts that token itself, as deploy/in-cluster has it."""
    timeout: str = ""
    """What TWGEN_TIMEOUT says; empty: nothing."""
    missing: tuple[str, ...] = ()
    """The ConfigMaps that it mounts and that are not there."""


@dataclass(frozen=True, slots=True)
class ArgoInstallation:
    """An Argo CD."""

    version: str
    """Empty: not known."""
    plugin: Plugin | None
    """None: its repo-server has no such container."""
    settings: Mapping[str, str] | None = None
    """Of `argocd-cm` and `argocd-cmd-params-cm`; None: they were not read."""
    applications: tuple[ArgoApplication, ...] = ()
    namespace: str = "argocd"
    pods: tuple[Seen, ...] = ()
    """Those of its repo-server that do not run."""
    operator: Operator | None = None
    """What its plugin is configured with; None: it was not read, or there is none."""


class TickInstallation(NamedTuple):
    """The tick of a cluster."""

    name: str
    """`Deployment twgen/twgen-tick`."""
    image: str
    account: str
    """Its ServiceAccount, as Kubernetes calls it."""
    namespace: str | None = None
    """Of the workers that it looks at; empty: all, None: not known."""
    every: timedelta | None = None
    """How often it looks; None: not known."""
    may: TickSettings | None = None
    """What its operator lets it do; None: not known."""
    pods: tuple[Seen, ...] = ()
    """Those of it that do not run."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What was read of an installation."""

    refusals: tuple[Need, ...] = ()
    """What accounts need and may not."""
    absent_accounts: tuple[Account, ...] = ()
    """ServiceAccounts that are not there."""
    argocd: ArgoInstallation | None = None
    tick: TickInstallation | None = None
    clock_ahead: timedelta | None = None
    """By so much the API server's clock is ahead of this one; None: it was not heard."""
    intents: frozenset[str] | None = None
    """The workers that have an intent; None: the cluster was not read."""
    failures: tuple[str, ...] = ()
    """What could not be read of workers, intents and statuses, in whole sentences."""
    left_alone: Mapping[str, str] = field(default_factory=dict)
    """The workers whose traffic nobody moves though it has somewhere to go, and why."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """Why the rollouts of workers fail at their looks or changes; empty: they do not."""
    stuck: Mapping[str, Seen] = field(default_factory=dict)
    """The workers whose Job has no Pod that runs, and what keeps it."""
    outdated_jobs: Mapping[str, str] = field(default_factory=dict)
    """The Jobs that ran for an intent which was deleted and made again since, by worker."""
    jobless: Mapping[str, datetime] = field(default_factory=dict)
    """The workers whose intent no Job has ever worked on, and since when it is as it is."""
    applications: Mapping[str, str] = field(default_factory=dict)
    """The Argo CD application that tracks a worker's intent, by worker."""
    strays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The Deployments that an Argo CD application tracks and whose worker has no intent, by worker."""
    worker_deployments: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many there are, by address and Temporal namespace."""
    cluster_scoped: frozenset[GroupKind] = frozenset()
    """The kinds that the operator lets people attach and that are in no namespace."""
    remembers: bool = True
    """The ledger and the history of Git were read with the specs."""
    not_checked: Mapping[str, str] = field(default_factory=dict)
    """What could not be looked at, and why."""
