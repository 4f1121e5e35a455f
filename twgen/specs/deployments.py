"""The spec fields that configure the versions' Deployments, except pods and replicas."""

import re
from enum import StrEnum
from typing import Annotated, Any

from twgen.cluster.server_defaults import PACE_DEFAULTS
from twgen.model.forms import PERCENTAGE, SHARE
from twgen.model.paths import Path, written_path
from twgen.model.problem import NO_EFFECT, SET_BY_TWGEN, Message, Rule, noun, quoted, wrong_type
from twgen.model.shapes import INT32, Findings, Shape
from twgen.model.values import dataclass
from twgen.specs.fields import Fields, spec_shape
from twgen.specs.validation.walk import refusals
from twgen.versioning.names import (
    CONTROLLER_API,
    HELM_HOOK,
    HOOK,
    INSTANCE,
    LAST_APPLIED,
    MANAGED_BY,
    TWGEN_API,
)

_LARGEST = 2**31 - 1
_USUAL: Any = PACE_DEFAULTS["strategy"]
_OURS = {
    "labels": {INSTANCE, *MANAGED_BY},
    "annotations": {HELM_HOOK, LAST_APPLIED},
}
_RESERVED = {api.partition("/")[0] for api in (CONTROLLER_API, TWGEN_API, HOOK)} | {
    "deployment.kubernetes.io"
}
"""Prefixes of labels and annotations that control versions, or that Kubernetes itself sets."""
_OTHER_PROGRAM = Rule(
    "other-program",
    "A label or annotation would make another program keep or change versions' objects.",
)

RESOURCE_POLICY = "helm.sh/resource-policy"
_ACTED_ON = {
    RESOURCE_POLICY: "Argo CD never prunes an object with this annotation, so old versions would stay",
    "deployment.kubernetes.io/revision": "Kubernetes itself sets this annotation on each Deployment",
    "keel.sh": "Keel would change the images of all versions, even of those with open workflows",
}
"""Why a Deployment should not have a label or annotation, by the key or its prefix."""


class Replacing(StrEnum):
    """The types of a Deployment's strategy."""

    ROLLING_UPDATE = "RollingUpdate"
    RECREATE = "Recreate"


def _pods(pattern: str) -> Shape:
    """The Shape of a number of pods, or of a percentage that matches the pattern."""

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if isinstance(value, str):
            if not re.search(PERCENTAGE, value):
                findings.problem(path, f"{quoted(value)} is not a percentage, such as 25%")
            elif not re.search(pattern, value):
                findings.problem(path, f"{value} is more than 100%")
        elif isinstance(value, bool) or not isinstance(value, int):
            findings.problem(path, wrong_type(f"{noun(int)} or a percentage", value))
        elif not 0 <= value <= _LARGEST:
            findings.problem(path, f"must be from 0 to {_LARGEST}")
        return value

    return Shape(read)


@dataclass(frozen=True, slots=True)
class RollingUpdate:
    """How many pods Kubernetes replaces at a time."""

    max_surge: Annotated[Any, _pods(PERCENTAGE)] = None
    """How many pods can exist in addition to the desired replicas: a number or a percentage."""
    max_unavailable: Annotated[Any, _pods(SHARE)] = None
    """How many of the desired replicas can be unavailable: a number or a percentage."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """How Kubernetes replaces the pods of a version."""

    type: Replacing | None = None
    """RollingUpdate (the default) replaces a few pods at a time. Recreate replaces all pods at once."""
    rolling_update: RollingUpdate | None = None
    """How many pods Kubernetes replaces at a time."""


@dataclass(frozen=True, slots=True)
class DeploymentFields:
    """The fields of a Deployment's spec.

    Most of them are aliases of fields that a SpecDocument has elsewhere.
    """

    replicas: Any = None
    """The same as spec.replicas."""
    min_ready_seconds: Any = None
    """The same as spec.minReadySeconds."""
    progress_deadline_seconds: Any = None
    """The same as spec.progressDeadlineSeconds."""
    template: Any = None
    """The same as spec.template."""
    strategy: Replacement | None = None
    """How Kubernetes replaces the target's pods in place. Changing this field does not restart pods."""
    revision_history_limit: Annotated[int | None, INT32] = None
    """How many old ReplicaSets of each version Kubernetes keeps. The default is 10."""
    selector: Any = None
    """Has no effect: each version selects its own pods."""
    paused: bool = False
    """Must not be true: if its Deployment is paused, a new version never gets pods."""


def pace(ready: int, deadline: int, deployment: DeploymentFields | None) -> dict[str, Any]:
    """The fields of a Deployment that control how its pods are replaced.

    The rules for the fields that exist only in `deployment` are from ValidateDeploymentSpec in
    k8s.io/kubernetes pkg/apis/apps/validation.
    """
    fields = {
        "minReadySeconds": ready or None,
        "progressDeadlineSeconds": deadline,
        # the controller writes the default too; without it, a removed strategy would stay in the cluster
        "strategy": (_strategy(deployment.strategy) or _USUAL) if deployment else None,
        "revisionHistoryLimit": deployment.revision_history_limit if deployment else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _strategy(replacement: Replacement | None) -> dict[str, Any]:
    """The `strategy` of a Deployment; empty if the spec has none."""
    if not replacement or (
        replacement.type is None and replacement.rolling_update in (None, RollingUpdate())
    ):
        return {}
    if replacement.type is Replacing.RECREATE:
        return {"type": str(Replacing.RECREATE)}
    rolling = replacement.rolling_update or RollingUpdate()
    counts = {"maxSurge": rolling.max_surge, "maxUnavailable": rolling.max_unavailable}
    # with server-side apply, an omitted field would keep the value that another field manager has set
    usual = _USUAL["rollingUpdate"] | {name: count for name, count in counts.items() if count is not None}
    return {"type": str(Replacing.ROLLING_UPDATE), "rollingUpdate": usual}


def _check_replacement(fields: Fields, replacement: Replacement) -> None:
    if fields.has("rollingUpdate") and replacement.type is Replacing.RECREATE:
        fields.problem(
            "rollingUpdate", f"belongs to type {Replacing.ROLLING_UPDATE}: remove it, or change the type"
        )
    elif fields.has("rollingUpdate") and not fields.has("type"):
        why = "the controller ignores a strategy without a type"
        fields.warning("", NO_EFFECT(f"{why}: write type: {Replacing.ROLLING_UPDATE}"))
    rolling = replacement.rolling_update
    counts = (rolling.max_surge, rolling.max_unavailable) if rolling else (None,)
    if None not in counts and not any(str(count).strip("0%") for count in counts):
        wrong = "must not be 0 if maxSurge is 0: no pod could ever be replaced"
        fields.problem("rollingUpdate.maxUnavailable", wrong)


def _check_deployment(fields: Fields, deployment: DeploymentFields) -> None:
    if deployment.selector is not None:
        fields.warning("selector", NO_EFFECT("has no effect: each version selects its own pods"))
    if deployment.paused:
        how = "remove it, and run `twgen pause` to hold the traffic"
        fields.problem("paused", f"if its Deployment is paused, a new version never gets pods: {how}")


DEPLOYMENT_FIELDS = spec_shape(
    DeploymentFields,
    {DeploymentFields: _check_deployment, Replacement: _check_replacement},
)


def marks_of_versions(kind: str) -> Shape:
    """The Shape of the labels or annotations (`kind`) that a policy sets on its workers' Deployments."""

    def read(value: Any, path: Path, findings: Findings) -> dict[str, str] | None:
        if not isinstance(value, dict):
            findings.problem(path, wrong_type(noun(dict), value))
            return None
        marks = {key: item for key, item in value.items() if item is not None}
        for key, item in marks.items():
            if not isinstance(item, str):
                findings.problem((path, key), wrong_type(noun(str), item))
            elif key in _OURS[kind] or key.partition("/")[0] in _RESERVED:
                findings.problem((path, key), SET_BY_TWGEN("is set by twgen or Argo CD: remove it"))
            elif why := why_not_of_versions(key):
                findings.warning((path, key), why)
        texts = {key: item for key, item in marks.items() if isinstance(item, str)}
        wrong = refusals({kind: texts}, "ObjectMeta", "") if texts else ()
        fields = Fields(value, written_path(path), findings)
        fields.refused(item._replace(path=item.path.replace(kind, fields.path, 1)) for item in wrong)
        return texts

    return Shape(read)


def why_not_of_versions(mark: str) -> Message | None:
    """Why a version's Deployment should not have this label or annotation; None if it can have it."""
    why = _ACTED_ON.get(mark) or _ACTED_ON.get(mark.partition("/")[0])
    return _OTHER_PROGRAM(f"{why}: remove it") if why else None
