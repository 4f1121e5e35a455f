"""A version's copy of an attached resource."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from twgen.cluster.marks import protection
from twgen.errors import InvalidInput
from twgen.model.paths import value_at
from twgen.model.plan import VersionAction, VersionPlan, WorkerVersions
from twgen.model.policy import OwnerReferences
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.planning.drivers import is_applied_by_hook
from twgen.versioning.names import (
    DEPLOYMENT_API,
    HOOK,
    IGNORE_HEALTH,
    MANAGED_BY,
    METRIC_LABELS,
    SKIP,
    attached_resource_name,
    filled,
    placeholders,
    selector_labels,
)

_MOST_COPIED = 48 * 2**20
_PER_VALUE = 16
"""Characters that an item of a list or a mapping counts for, however short: it takes memory of its own."""
# KEDA's: no other of the kinds that may be attached scales from zero
_PAUSED = {"autoscaling.keda.sh/paused-replicas": "0"}


class Copies:
    """The memory that the copies of attached resources may take in one render."""

    def __init__(self) -> None:
        self._left = _MOST_COPIED

    def take(self, worker: WorkerVersions) -> None:
        """Count the copies of a worker before they are made; raises InvalidInput if they are too large."""
        spec = worker.spec
        versions = [version for version in worker.versions if version.attached or version.leaving]
        if not versions or not spec.attached:
            return
        text = json.dumps([resource.template for resource in spec.attached])
        own = len(text) + _PER_VALUE * sum(map(text.count, ",[{"))
        for version in versions:
            longest = max(map(len, _names(spec, version).values()))
            self._left -= own + text.count("{{") * longest
        if self._left < 0:
            raise InvalidInput(
                f"{spec.document.source}: the attached templates of {spec.worker_deployment} are too large to"
                f" render: {len(text)} characters, copied for {len(versions)} versions"
            )


def attached_manifests(
    spec: WorkerSpec, version: VersionPlan, *, has_hook: bool = False
) -> Iterator[dict[str, Any]]:
    """The objects that are attached to a version, with those that leave it.

    What the Job of its hook applies, Argo CD is to keep and to leave alone.
    """
    names = {item.name for item in (*version.attached, *version.leaving)}
    for resource in spec.attached if names else ():
        if attached_resource_name(spec.name, resource.name, version.build_id) in names:
            manifest = attached_manifest(spec, version, resource)
            if has_hook and is_applied_by_hook(spec, resource):
                manifest["metadata"]["annotations"][HOOK] = SKIP
            yield manifest


def attached_manifest(spec: WorkerSpec, version: VersionPlan, resource: AttachedResource) -> dict[str, Any]:
    """The object that a rendered version gets for an attached resource."""
    names = _names(spec, version)
    template = _copied(resource.template, names)
    manifest = {name: value for name, value in template.items() if name not in {"metadata", "spec"}}
    manifest["metadata"] = _metadata(spec, version, resource, template.get("metadata") or {})
    if isinstance(template.get("spec"), dict):
        manifest["spec"] = _injected(spec, version, template["spec"], names)
    return manifest


def _names(spec: WorkerSpec, version: VersionPlan) -> dict[str, str]:
    return placeholders(version.deployment, version.build_id, spec.temporal_namespace, spec.worker_deployment)


def _metadata(
    spec: WorkerSpec, version: VersionPlan, resource: AttachedResource, template: Mapping[str, Any]
) -> dict[str, Any]:
    name = attached_resource_name(spec.name, resource.name, version.build_id)
    is_leaving = any(item.name == name for item in version.leaving)
    metadata = {
        **template,
        "name": name,
        "namespace": spec.namespace,
        "labels": (template.get("labels") or {}) | selector_labels(spec.name, version.build_id) | MANAGED_BY,
    }
    # an autoscaler or a budget must not go before the pods that it is for
    is_protected = (version.protected or version.action is VersionAction.NONE) and not is_leaving
    annotations = protection(spec, is_protected=is_protected)
    if version.action is VersionAction.SCALE_DOWN and resource.scales_from_zero:
        annotations |= _PAUSED
    # without metrics an autoscaler rests, which is no fault of the application
    usual = {IGNORE_HEALTH: "true"} if resource.autoscales else {}
    metadata["annotations"] = usual | (template.get("annotations") or {}) | annotations
    # Argo CD prunes nothing that has an owner
    is_owned = spec.policy.owner_references is OwnerReferences.RENDER and not is_leaving
    if version.live and version.live.uid and is_owned:
        owner = {"kind": "Deployment", "name": version.deployment, "uid": version.live.uid}
        metadata["ownerReferences"] = [{"apiVersion": DEPLOYMENT_API, **owner}]
    return metadata


def _injected(
    spec: WorkerSpec, version: VersionPlan, body: dict[str, Any], names: Mapping[str, str]
) -> dict[str, Any]:
    selector = body.get("selector")
    if isinstance(selector, dict) and "matchLabels" in selector and not selector["matchLabels"]:
        selector["matchLabels"] = selector_labels(spec.name, version.build_id)
    _fill_metrics(body.get("metrics"), {label: names[label] for label in METRIC_LABELS})
    _fill_triggers(body.get("triggers"), spec, version)
    target = {"apiVersion": DEPLOYMENT_API, "kind": "Deployment", "name": version.deployment}
    if "targetRef" in body and not body["targetRef"]:
        body["targetRef"] = target
    _fill_targets(body, target)
    return body


def _fill_targets(value: Any, target: dict[str, str]) -> None:
    if isinstance(value, list):
        for item in value:
            _fill_targets(item, target)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name == "scaleTargetRef":
                value[name] = item or dict(target)
            else:
                _fill_targets(item, target)


def _fill_metrics(metrics: Any, labels: Mapping[str, str]) -> None:
    for metric in metrics if isinstance(metrics, list) else ():
        selector = value_at(metric, "external", "metric", "selector")
        if isinstance(selector, dict) and "matchLabels" in selector:
            selector["matchLabels"] = {**(selector["matchLabels"] or {}), **labels}


def _fill_triggers(triggers: Any, spec: WorkerSpec, version: VersionPlan) -> None:
    values = {
        "workerDeploymentName": spec.worker_deployment,
        "workerDeploymentBuildId": version.build_id,
        "namespace": spec.temporal_namespace,
    }
    for trigger in triggers if isinstance(triggers, list) else ():
        metadata = value_at(trigger, "metadata")
        if value_at(trigger, "type") == "temporal" and isinstance(metadata, dict):
            metadata.update(
                {name: value for name, value in values.items() if metadata.get(name, "-") in {"", None}}
            )


def _copied(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return filled(value, names)
    if isinstance(value, dict):
        return {name: _copied(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [_copied(item, names) for item in value]
    return value
