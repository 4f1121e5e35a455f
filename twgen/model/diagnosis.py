"""What is known of an installation, and what of it would bite."""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

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
    """Something that an account needs in Kubernetes."""

    verb: str
    group: str
    """Empty: the core."""
    resource: str
    without_it: str
    """What does not work."""
    severity: Severity


class Refusal(NamedTuple):
    """A right that the account does not have in a namespace."""

    namespace: str
    """Empty: in all."""
    right: Right


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


@dataclass(frozen=True, slots=True)
class ArgoInstallation:
    """An Argo CD."""

    version: str
    """Empty: not known."""
    sidecar_image: str
    """Of the plugin; empty: its repo-server has none."""
    settings: Mapping[str, str]
    """Of `argocd-cm` and `argocd-cmd-params-cm`."""
    applications: tuple[ArgoApplication, ...]


@dataclass(frozen=True, slots=True)
class Installation:
    """What was read of an installation."""

    refusals: tuple[Refusal, ...] = ()
    argocd: ArgoInstallation | None = None
    clock_ahead: timedelta | None = None
    """By so much the API server's clock is ahead of this one; None: it was not heard."""
    failures: tuple[str, ...] = ()
    """What could not be read of workers, intents and statuses, in whole sentences."""
    left_alone: Mapping[str, str] = field(default_factory=dict)
    """The workers whose traffic nobody moves though it has somewhere to go, and why."""
    worker_deployments: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many there are, by address and Temporal namespace."""
    not_checked: Mapping[str, str] = field(default_factory=dict)
    """What could not be looked at, and why."""
