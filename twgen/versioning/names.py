"""Names, labels and annotations of a version's objects, exactly as in the Temporal Worker Controller.

This module also has marks: entries in a version's Temporal metadata that record decisions about the version
by people and rollouts.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import Enum, StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any, Self

from twgen.model.times import format_time, parse_time
from twgen.model.values import dataclass


class Lifetime(Enum):
    """The event that makes a mark expire. A command can withdraw the mark earlier.

    A new period (`stay`) of a version begins when the version is created, gets a share of the traffic,
    becomes current, or loses its share. The value completes the sentence "a version's mark counts until ...".
    """

    STAY = "it gets or loses its share, or becomes current"
    RETURN = "it becomes current, or gets traffic again after losing it"
    RETIREMENT = "any version gets traffic again"
    DRAINAGE = "it gets traffic again"


class MarkKey(StrEnum):
    """The key of a mark in a version's metadata. Each docstring says who writes the mark, and its effect."""

    lifetime: Lifetime

    def __new__(cls, key: str, lifetime: Lifetime) -> Self:
        """Create the key. Every key must have a lifetime."""
        made = str.__new__(cls, key)
        made._value_, made.lifetime = key, lifetime
        return made

    # A mark that stops a rollout must outlive the ramp. For example, if a person pauses a version and then
    # removes its share manually, the rollout must not restore the share.
    PAUSED = "twgen.io/paused", Lifetime.RETURN
    """Written by `twgen pause`, or by a rollout whose policy pauses it: the version's share does not grow."""
    ABORTED = "twgen.io/aborted", Lifetime.RETURN
    """Written by `twgen abort`, or by a failed rollout: the version loses its share and gets no new share."""
    RETIRED = "twgen.io/retired", Lifetime.RETIREMENT
    """Written by `twgen retire`: unversioned workers keep the traffic."""
    GATE_ATTEMPT = "twgen.io/gate-attempt", Lifetime.STAY
    """Written by `twgen retry`, or by a step whose gate failed: only gate runs of this `attempt` count."""
    MOVED_BY = "twgen.io/moved-by", Lifetime.STAY
    """Written by every traffic change: its author, the new share (`percentage`), and the passed `gates`."""
    MEASURED_SINCE = "twgen.io/measured-since", Lifetime.STAY
    """Written by `twgen retry`, `resume` or `promote` after a failed analysis: measurements start again."""
    DRAINED_BY = "twgen.io/drained-by", Lifetime.DRAINAGE
    """Written by `twgen tick` or `twgen end`: the policy's `draining` entries that have begun."""


DEPLOYMENT_NAME_LABEL = "temporal.io/deployment-name"
BUILD_ID_LABEL = "temporal.io/build-id"
TEMPLATE_HASH = "temporal.io/pod-template-spec-hash"
CONNECTION_HASH = "temporal.io/connection-spec-hash"
CREDENTIAL_CONTAINERS = "twgen.io/credential-containers"
"""On a pod template: the only containers that get credentials, joined by commas.

If it is absent, all containers do.
"""
IDENTITY = "twgen.io/identity"
INJECTED = "twgen.io/injected"
"""On a Deployment: the variables and volumes that were injected into its pods, by name, joined by commas."""
ATTACHED = "twgen.io/attached"
"""On a Deployment: its version's attached objects, as `Kind/name`, joined by commas."""
ADDED = "twgen.io/added"
"""On a Deployment: objects that its rollout attached and that a render might not list yet, as `Kind/name`."""
GONE = "twgen.io/gone"
"""On a Deployment: attached objects that have been deleted since the last render, as `Kind/name`."""
PATCHED = "twgen.io/patched"
"""On a Deployment: the patch that was applied to its pods, and the replaced values, as JSON."""
WHEN = "twgen.io/when"
"""On an attached template: the versions that get a copy, as words of AttachedWhile joined by commas."""
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
"""The annotation that `kubectl rollout restart` sets in a pod template."""
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
HOOK = "argocd.argoproj.io/hook"
HELM_HOOK = "helm.sh/hook"  # Argo CD treats this annotation like its own hook annotation
HOOK_DELETE_POLICY = "argocd.argoproj.io/hook-delete-policy"
SYNC_WAVE = "argocd.argoproj.io/sync-wave"
IGNORE_HEALTH = "argocd.argoproj.io/ignore-healthcheck"
"""Excludes an object from its application's health. A sync with hooks still waits for the object."""
SKIP = "Skip"
"""With this hook, Argo CD neither applies nor deletes the object."""
COMPARE_OPTIONS = "argocd.argoproj.io/compare-options"
LINK = "link.argocd.argoproj.io/temporal"
"""A link next to an object in Argo CD, as `title|URL` (see "External URL Links" in its user guide)."""
DASHBOARD_LINK = "link.argocd.argoproj.io/dashboard"
"""Another link next to an object in Argo CD, to the worker's row on the page of `twgen tick`."""
REFRESH = "argocd.argoproj.io/refresh"
"""On an Application: makes Argo CD refresh the Application."""
TRACKING_ID = "argocd.argoproj.io/tracking-id"
"""`<application>:<group>/<kind>:<namespace>/<name>`."""
INSTANCE = "app.kubernetes.io/instance"
"""The label with the name of an object's Application, unless Argo CD tracks objects by annotation."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MANAGED_BY = {"app.kubernetes.io/managed-by": "twgen"}
"""The label on all objects that twgen makes."""
ROLLOUT = "twgen.io/rollout"
"""The label with the worker's name on a rollout's objects, including its status."""
INTENT_HASH = "twgen.io/intent-hash"
DRIVER = "twgen.io/driver"
"""On an intent: `Tick` if `twgen tick` runs the rollout instead of a Job."""
TAKEN_OVER = "twgen.io/taken-over"
"""On an intent whose hook Argo CD has skipped: the intent's hash. `twgen tick` then runs the rollout."""
REPLAY = "twgen.io/replay"
"""The label with the worker's name on Jobs that replay histories."""
REPLAY_OF = "twgen.io/replay-of"
"""On a replay Job: a hash of the version and of the replay's settings."""
PLAN_HASH = "twgen.io/plan-hash"
"""On an intent: the hash of the part of the render that depends on the state of the servers."""
API_KEY_FILE = "TWGEN_TEMPORAL_API_KEY_FILE"
"""In a rollout's Pod: the variable with the path of the file that contains the API key."""
PROMETHEUS_SECRETS = "/etc/twgen/rollout/prometheus"
"""In a rollout's Pod: the folder that has a subfolder for each Prometheus server's Secret."""
PROMETHEUS_TOKEN, PROMETHEUS_USER, PROMETHEUS_PASSWORD, PROMETHEUS_CA = (
    "token",
    "username",
    "password",
    "ca.crt",
)
PROMETHEUS_KEYS = (PROMETHEUS_TOKEN, PROMETHEUS_USER, PROMETHEUS_PASSWORD, PROMETHEUS_CA)
"""The keys of a Prometheus server's Secret. Each key is optional."""

PAUSED = MarkKey.PAUSED.value
"""On an intent: freezes the whole rollout, even changes that reduce a share."""
REQUEST = "twgen.io/request"
"""On a rollout's status: a person's request, as JSON. The program that handles the request removes it."""
ABORT_REQUEST = "twgen.io/abort-request"
"""On a rollout's status: a request to abort, which other requests must not replace."""
REQUEST_ANNOTATIONS = (ABORT_REQUEST, REQUEST)
"""The annotations for requests, in the order in which requests are handled."""

CONTROLLER_API = "temporal.io/v1alpha1"
TWGEN_API = "twgen.io/v1alpha1"
OWN_PREFIX = TWGEN_API.partition("/")[0] + "/"
"""The prefix of twgen's own labels and annotations."""
DEPLOYMENT_API = "apps/v1"

NOT_PRUNED = "Prune=false"
APPLIED_BY_SERVER = "ServerSideApply=true"
"""A sync option of Argo CD."""

_LONGEST_LABEL = 63
_LONGEST_NAME = 47
_PART, _HASH, _HASH_OF_ATTACHED = 10, 10, 8
"""The lengths of each part of a shortened name, of its hash, and of the hash of an attached object."""
_NOT_DNS = re.compile(r"[^a-zA-Z0-9-]+")
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def is_dns_name(text: object) -> bool:
    """Whether the text is a valid Kubernetes name. Such a name is safe in a command or a path."""
    return isinstance(text, str) and _DNS_NAME.fullmatch(text) is not None


def versioned_deployment_name(worker: str, build_id: str) -> str:
    """Return the name of a version's Deployment, at most 47 characters."""
    return generated_name(worker, build_id)


def generated_name(*parts: str) -> str:
    """Return a DNS name of two or three parts joined by `-`, at most 47 characters.

    A longer name is shortened to the first 10 bytes of each part, and 10 hex digits of the name's SHA-256
    hash.
    """
    name = "-".join(parts)
    if len(name.encode()) > _LONGEST_NAME:
        beginnings = [truncated(part, _PART) for part in parts]
        name = "-".join([*beginnings, sha256(name.encode()).hexdigest()[:_HASH]])
    return _dns_cleaned(name)


@lru_cache(10_000)
def attached_resource_name(worker: str, resource: str, build_id: str) -> str:
    """Return the name of a version's copy of an attached resource: at most 38 characters, then a hash."""
    digest = sha256(f"{worker}{resource}{build_id}".encode()).hexdigest()[:_HASH_OF_ATTACHED]
    readable = _dns_cleaned(f"{worker}-{resource}-{build_id}")[: _LONGEST_NAME - 1 - _HASH_OF_ATTACHED]
    return f"{readable.rstrip('-')}-{digest}"


def rollout_name(worker: str) -> str:
    """Return the name of a worker's intent, which is also the name of its rollouts' ServiceAccount."""
    return generated_name(worker, "rollout")


def rollout_status_name(worker: str) -> str:
    """Return the name of the ConfigMap with the status of a worker's rollout."""
    return generated_name(worker, "rollout-status")


def rollout_labels(worker: str) -> dict[str, str]:
    """Return the labels of a worker's rollout objects."""
    return {ROLLOUT: _dns_cleaned(worker)[:_LONGEST_LABEL]} | MANAGED_BY


def rollout_selector(worker: str) -> str:
    """Return the label selector of a worker's rollout objects."""
    return f"{ROLLOUT}={rollout_labels(worker)[ROLLOUT]}"


def replay_labels(worker: str) -> dict[str, str]:
    """Return the labels of a worker's replay Jobs."""
    return {REPLAY: _dns_cleaned(worker)[:_LONGEST_LABEL]} | MANAGED_BY


def replay_selector(worker: str) -> str:
    """Return the label selector of a worker's replay Jobs."""
    return f"{REPLAY}={replay_labels(worker)[REPLAY]}"


def resource_of_kind(kind: str) -> str:
    """Return the name of a kind's API resource, which is usually the English plural."""
    name = kind.lower()
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es"
    return re.sub("(?<=[^aeiou])y$", "ie", name) + "s"


def selector_labels(worker: str, build_id: str) -> dict[str, str]:
    """Return the labels that select a version's pods."""
    return {
        DEPLOYMENT_NAME_LABEL: _dns_cleaned(worker)[:_LONGEST_LABEL],
        BUILD_ID_LABEL: truncated(build_id, _LONGEST_LABEL),
    }


def truncated(text: str, size: int) -> str:
    """Return the first `size` bytes of a text, as in Go. A character that is cut in two becomes U+FFFD."""
    return text[:size] if text.isascii() else text.encode()[:size].decode(errors="replace")


def _dns_cleaned(text: str) -> str:
    return _NOT_DNS.sub("-", text).lower()


METRIC_LABELS = ("temporal_worker_deployment_name", "temporal_worker_build_id", "temporal_namespace")
"""The metric labels that identify a version.

The controller also accepts each label as a placeholder: `{{label}}`.
"""
FIELD_PLACEHOLDERS = ("DeploymentName", "BuildID", "TemporalNamespace")
"""The placeholders that are written as fields: `{{ .BuildID }}`."""
_PLACEHOLDER = re.compile(
    rf"\{{\{{\s*\.({'|'.join(FIELD_PLACEHOLDERS)})\s*\}}\}}"
    rf"|\{{\{{({'|'.join(METRIC_LABELS)})\}}\}}"
)


def unknown_placeholder(text: str) -> bool:
    """Whether the text contains a `{{` that does not start a known placeholder."""
    return may_have_placeholders(text) and may_have_placeholders(_PLACEHOLDER.sub("", text))


def may_have_placeholders(text: str) -> bool:
    """Whether the text may have placeholders. A text without placeholders is the same for every version."""
    return "{{" in text


def tells_versions_apart(text: str) -> bool:
    """Whether a placeholder makes the text different for each version."""
    first, second = (filled(text, placeholders(name, name, "", "")) for name in "ab")
    return first != second


def placeholders(
    deployment: str, build_id: str, temporal_namespace: str, worker_deployment: str
) -> dict[str, str]:
    """The value of each placeholder in a version's objects. The controller defines METRIC_LABELS.

    https://github.com/temporalio/temporal-worker-controller/blob/main/docs/worker-resource-templates.md
    """
    # in metric labels, the controller replaces the / of `namespace/name`
    in_metrics = (worker_deployment.replace("/", "_"), build_id, temporal_namespace)
    return {
        "DeploymentName": deployment,
        "BuildID": build_id,
        "TemporalNamespace": temporal_namespace,
        **dict(zip(METRIC_LABELS, in_metrics, strict=True)),
    }


def filled(text: str, names: Mapping[str, str]) -> str:
    """The text with each placeholder replaced by its value in `names`."""
    if not may_have_placeholders(text):
        return text
    return _PLACEHOLDER.sub(lambda match: names[match[1] or match[2]], text)


@dataclass(frozen=True, slots=True)
class Mark:
    """One decision about a version."""

    key: MarkKey
    by: str = ""
    """The author's identity; empty if unknown."""
    at: datetime | None = None
    """The time of the decision by the author's clock, or None if unknown."""
    because: str = ""
    """The reason, if a rollout decided; empty if a person did."""
    stay: datetime | None = None
    """The start of the mark's period (see Lifetime) by Temporal's clock, or None if unknown."""
    was_ramping: bool = False
    """Whether the version was ramping in this period. True only if `stay` is set."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The mark's other entries."""

    @property
    def made_in(self) -> datetime | None:
        """A time within the mark's period, or None if unknown."""
        # prefer `stay`, which avoids comparing two clocks, but a manually written mark has only `at`
        return self.stay or self.at


_OWN_FIELDS = {"by", "at", "because", "stay", "ramping"}


def read_mark(key: MarkKey, value: Any) -> Mark | None:
    """Read a mark from metadata.

    Returns None if there is no mark, or if a command has withdrawn it (`false`).
    """
    if value is None or value is False:
        return None
    if not isinstance(value, Mapping):
        return Mark(key)
    by, because = (text if isinstance(text := value.get(name), str) else "" for name in ("by", "because"))
    details = {name: detail for name, detail in value.items() if name not in _OWN_FIELDS}
    at, stay = (_moment(value.get(name)) for name in ("at", "stay"))
    return Mark(key, by, at, because, stay, value.get("ramping") is True, details)


def write_mark(mark: Mark) -> dict[str, Any]:
    """Return the metadata value from which `read_mark` reads the mark."""
    entries = {
        "by": mark.by,
        "at": format_time(mark.at) if mark.at else "",
        "because": mark.because,
        "stay": format_time(mark.stay) if mark.stay else "",
    }
    ramping = {"ramping": True} if mark.was_ramping else {}
    return {name: text for name, text in entries.items() if text} | ramping | dict(mark.details)


def _moment(text: Any) -> datetime | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None
