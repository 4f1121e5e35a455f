"""Reading what a spec says of its versions' Deployments beside their pods and their number."""

import re
from enum import StrEnum
from typing import Any

from twgen.cluster.server_defaults import PACE_DEFAULTS
from twgen.model.paths import join_path
from twgen.model.problem import Finding, noun, quoted, wrong_type
from twgen.specs.fields import Fields
from twgen.specs.limits import PERCENTAGE, SHARE
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
_DAY = 86_400
_USUAL: Any = PACE_DEFAULTS["strategy"]
_COUNTS = {"maxSurge": PERCENTAGE, "maxUnavailable": SHARE}
_OURS = {
    "labels": {INSTANCE, *MANAGED_BY},
    "annotations": {HELM_HOOK, LAST_APPLIED},
}
_RESERVED = {api.partition("/")[0] for api in (CONTROLLER_API, TWGEN_API, HOOK)} | {
    "deployment.kubernetes.io"
}
"""What stands before the slash of marks that say what becomes of a version, or that Kubernetes sets."""

RESOURCE_POLICY = "helm.sh/resource-policy"
_ACTED_ON = {
    RESOURCE_POLICY: "Argo CD never prunes an object that has it, so old versions would stay",
    "deployment.kubernetes.io/revision": "Kubernetes sets it on each Deployment itself",
    "keel.sh": "Keel would change the images of all versions, even of those with open workflows",
}
"""What others make of a mark of a Deployment, by the mark or what stands before its slash."""


class _Replacing(StrEnum):
    """The types of a Deployment's strategy."""

    ROLLING_UPDATE = "RollingUpdate"
    RECREATE = "Recreate"


def parse_pace(spec: Fields) -> dict[str, Any]:
    """The fields of a Deployment that say how its pods are replaced.

    Those that a spec has in `deployment` alone follow the rules of ValidateDeploymentSpec, in
    k8s.io/kubernetes pkg/apis/apps/validation.
    """
    ready = spec.integer("minReadySeconds", 0, least=0) or 0
    deadline = spec.integer("progressDeadlineSeconds", 600, least=1) or 600
    if deadline <= ready:
        if spec.has("progressDeadlineSeconds"):
            spec.problem("progressDeadlineSeconds", f"{deadline} is not above minReadySeconds ({ready})")
        else:
            spec.problem("minReadySeconds", f"{ready} is not below progressDeadlineSeconds ({deadline})")
    elif ready >= _DAY:
        why = f"{ready} keeps a rollout waiting for a day or more"
        spec.warning("minReadySeconds", f"{why}: check the number of seconds")
    deployment = spec.mapping("deployment")
    # the controller writes the default too; and what was applied can be taken away again
    usual = _USUAL if spec.has("deployment") else None
    strategy = _strategy(deployment.mapping("strategy")) or usual
    kept = deployment.integer("revisionHistoryLimit", least=0)
    if deployment.has("selector"):
        deployment.warning("selector", "has no effect: each version selects its own pods")
    if deployment.boolean("paused"):
        how = "remove it, and run `twgen pause` to hold the traffic"
        deployment.problem("paused", f"a paused Deployment of a new version never gets pods: {how}")
    deployment.close("replicas", "template", "minReadySeconds", "progressDeadlineSeconds")
    said = {
        "minReadySeconds": ready or None,
        "progressDeadlineSeconds": deadline,
        "strategy": strategy,
        "revisionHistoryLimit": kept,
    }
    return {name: value for name, value in said.items() if value is not None}


def _strategy(fields: Fields) -> dict[str, Any]:
    kind = fields.choice("type", _Replacing, _Replacing.ROLLING_UPDATE)
    rolling = fields.mapping("rollingUpdate")
    counts = {name: _count(rolling, name) for name in _COUNTS if rolling.has(name)}
    rolling.close()
    fields.close()
    if fields.has("rollingUpdate") and kind is _Replacing.RECREATE:
        fields.problem(
            "rollingUpdate", f"belongs to type {_Replacing.ROLLING_UPDATE}: remove it, or change the type"
        )
    elif fields.has("rollingUpdate") and not fields.has("type"):
        why = "the controller ignores a strategy without a type"
        fields.warning("", f"{why}: write type: {_Replacing.ROLLING_UPDATE}")
    if len(counts) == len(_COUNTS) and not any(str(count).strip("0%") for count in counts.values()):
        rolling.problem("maxUnavailable", "must not be 0 if maxSurge is 0: no pod could ever be replaced")
    if not fields.has("type") and not counts:
        return {}
    # what is left out here would be whatever another manager sets
    usual = {} if kind is _Replacing.RECREATE else {"rollingUpdate": _USUAL["rollingUpdate"] | counts}
    return {"type": str(kind), **usual}


def _count(fields: Fields, name: str) -> Any:
    """A number of pods, or a percentage of them."""
    value = fields.raw(name)
    if isinstance(value, str):
        if not re.search(PERCENTAGE, value):
            fields.problem(name, f"{quoted(value)} is not a percentage, such as 25%")
        elif not re.search(_COUNTS[name], value):
            fields.problem(name, f"{value} is more than 100%")
    elif isinstance(value, bool) or not isinstance(value, int):
        fields.problem(name, wrong_type(f"{noun(int)} or a percentage", value))
    elif not 0 <= value <= _LARGEST:
        fields.problem(name, f"must be from 0 to {_LARGEST}")
    return value


def parse_marks(spec: Fields, name: str, kind: str) -> dict[str, str]:
    """The `kind` (labels or annotations) in a field of a policy that all Deployments of its workers get."""
    fields = spec.mapping(name)
    marks = {key: fields.raw(key) for key in fields.value if fields.has(key)}
    fields.close()
    for key, text in marks.items():
        place = join_path(fields.path, key)
        if not isinstance(text, str):
            fields.diagnostics.add_problems([Finding(place, wrong_type(noun(str), text))])
        elif key in _OURS[kind] or key.partition("/")[0] in _RESERVED:
            fields.diagnostics.add_problems([Finding(place, "is set by twgen or Argo CD: remove it")])
        elif why := why_not_of_versions(key):
            spec.warning(join_path(name, key), why)
    texts = {key: text for key, text in marks.items() if isinstance(text, str)}
    wrong = refusals({kind: texts}, "ObjectMeta", "") if texts else ()
    fields.refused(item._replace(path=item.path.replace(kind, fields.path, 1)) for item in wrong)
    return texts


def why_not_of_versions(mark: str) -> str:
    """Why no Deployment of a version should have a label or an annotation; empty: it may."""
    why = _ACTED_ON.get(mark) or _ACTED_ON.get(mark.partition("/")[0])
    return f"{why}: remove it" if why else ""
