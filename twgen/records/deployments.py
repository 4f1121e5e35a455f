"""Live and recorded Deployments: what their manifests say of the version that they run."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from twgen.model.paths import value_at
from twgen.model.world import LiveDeployment, RecordedDeployment
from twgen.records.times import parse_time
from twgen.versioning.injection import place_of
from twgen.versioning.names import (
    ATTACHED,
    BUILD_ID_LABEL,
    CONNECTION_HASH,
    IDENTITY,
    SYNC_OPTIONS,
    TEMPLATE_HASH,
)

_TRACKING_ID = "argocd.argoproj.io/tracking-id"
"""`<application>:<group>/<kind>:<namespace>/<name>`."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_DEFAULT_REPLICAS = 1
_APPLIERS = {"argocd-controller", "kubectl", "kubectl-client-side-apply"}
"""Field managers that apply whole manifests: a field they leave out is gone."""


def recorded_deployment(manifest: Mapping[str, Any]) -> RecordedDeployment:
    """A versioned Deployment's manifest, with what its pod template records."""
    template = manifest.get("spec", {}).get("template") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    place = place_of(template.get("spec") or {})
    return RecordedDeployment(
        manifest=manifest,
        template_hash=annotations.get(TEMPLATE_HASH, ""),
        connection_hash=annotations.get(CONNECTION_HASH, ""),
        address=place.address,
        temporal_namespace=place.temporal_namespace,
        worker_deployment=place.worker_deployment,
        replicas=manifest.get("spec", {}).get("replicas"),
    )


def live_deployments(manifests: Iterable[Mapping[str, Any]]) -> Iterator[LiveDeployment]:
    """The versioned Deployments among those that an API server returned."""
    for manifest in manifests:
        if build_id := (manifest.get("metadata", {}).get("labels") or {}).get(BUILD_ID_LABEL):
            yield _live_deployment(manifest, build_id)


def _live_deployment(manifest: Mapping[str, Any], build_id: str) -> LiveDeployment:
    metadata = manifest["metadata"]
    annotations = metadata.get("annotations") or {}
    created = metadata.get("creationTimestamp")
    said = manifest.get("spec", {}).get("replicas")
    replicas = _DEFAULT_REPLICAS if said is None else said
    return LiveDeployment(
        build_id=build_id,
        recorded=recorded_deployment(manifest),
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        replicas=replicas,
        replicas_are_external=_replicas_are_external(metadata, replicas),
        serving=_is_serving(metadata, manifest.get("status") or {}),
        protected="Prune=false" in annotations.get(SYNC_OPTIONS, ""),
        identity=annotations.get(IDENTITY, ""),
        created_at=parse_time(created) if created else None,
        terminating=bool(metadata.get("deletionTimestamp")),
        paused=bool(manifest.get("spec", {}).get("paused")),
        stalled=_stalled(manifest.get("status") or {}),
        attached=tuple(filter(None, annotations.get(ATTACHED, "").split(","))),
        tracked_by=annotations.get(_TRACKING_ID, "").partition(":")[0],
        available_replicas=(manifest.get("status") or {}).get("availableReplicas", 0),
    )


def _replicas_are_external(metadata: Mapping[str, Any], replicas: int) -> bool:
    last_applied = (metadata.get("annotations") or {}).get(_LAST_APPLIED, "")
    # a client-side apply that leaves out what the last one said sets it back to its default
    if _says_replicas(last_applied):
        return False
    entries = metadata.get("managedFields") or ()
    holders = [item for item in entries if "f:replicas" in (value_at(item, "fieldsV1", "f:spec") or {})]
    if any(item.get("subresource") == "scale" or item.get("manager") not in _APPLIERS for item in holders):
        return True
    if not last_applied and not any(map(_is_applied, entries)):
        return False
    # what nobody held is scaled without a trace; a default is held by whoever created the object
    by_default = replicas == _DEFAULT_REPLICAS and not any(map(_is_applied, holders))
    return by_default or not holders


def _says_replicas(last_applied: str) -> bool:
    if '"replicas"' not in last_applied:
        return False
    try:
        return value_at(json.loads(last_applied), "spec", "replicas") is not None
    except ValueError:
        return True


def _is_applied(entry: Mapping[str, Any]) -> bool:
    return entry.get("operation") == "Apply"


def _stalled(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        kind, holds = condition.get("type"), condition.get("status")
        if (kind, holds) in {("Progressing", "False"), ("ReplicaFailure", "True")}:
            said = (condition.get("reason"), condition.get("message"))
            return ": ".join(" ".join(text.split()) for text in said if text)
    return ""


def _is_serving(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    conditions = {item.get("type"): item.get("status") for item in status.get("conditions") or ()}
    is_newest = status.get("observedGeneration", 0) >= metadata.get("generation", 0)
    return is_newest and conditions.get("Available") == "True" and status.get("availableReplicas", 0) > 0
