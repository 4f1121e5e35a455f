"""Finds the field managers of live objects.

https://kubernetes.io/docs/reference/using-api/server-side-apply
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from twgen.model.paths import list_at, value_at
from twgen.model.times import parse_time
from twgen.versioning.names import LAST_APPLIED, RESTARTED_AT

DEFAULT_REPLICAS = 1
ARGO_CD, KUBECTL = "argocd-controller", "kubectl"
"""The field managers that Argo CD and `kubectl apply --server-side` use."""
_APPLIERS = {ARGO_CD, KUBECTL, "kubectl-client-side-apply"}
"""Field managers that apply whole manifests. A field that their next manifest omits is removed."""
ROLLOUT = "twgen"
"""The field manager for a rollout's changes. This manager never omits a field that it has set."""


def replicas_are_external(metadata: Mapping[str, Any], replicas: int) -> bool:
    """Whether no applied manifest sets `spec.replicas`. If so, a manifest can omit the field safely."""
    last_applied = (metadata.get("annotations") or {}).get(LAST_APPLIED, "")
    # if a client-side apply omits a field that the previous apply set, the field is reset to its default
    if _says_replicas(last_applied):
        return False
    holders = _holders(metadata, "f:spec", "f:replicas")
    if any(map(_sets_replicas_alone, holders)):
        return True
    if not last_applied and not any(map(_is_applied, metadata.get("managedFields") or ())):
        return False
    # some clients scale a Deployment without becoming a field manager of its replicas. The manager that
    # created the Deployment may own the default value
    by_default = replicas == DEFAULT_REPLICAS and not any(map(_is_applied, holders))
    return by_default or not holders


def replicas_are_synced(metadata: Mapping[str, Any]) -> bool:
    """Whether Argo CD is the only client whose applied manifests set `spec.replicas`."""
    if _says_replicas((metadata.get("annotations") or {}).get(LAST_APPLIED, "")):
        return False
    holders = [
        (item.get("manager"), item.get("operation")) for item in _holders(metadata, "f:spec", "f:replicas")
    ]
    return [item for item in holders if item[0] in _APPLIERS] == [(ARGO_CD, "Apply")]


def keeps_rolling(manifest: Mapping[str, Any]) -> bool:
    """Whether the live strategy has a `rollingUpdate` that a server-side apply might not remove.

    An apply removes neither a default, which no manager owns, nor a field that a controller or a person also
    owns. The API server rejects a strategy of type Recreate that has a `rollingUpdate`.
    """
    if value_at(manifest, "spec", "strategy", "rollingUpdate") is None:
        return False
    holders = _holders(manifest.get("metadata") or {}, "f:spec", "f:strategy", "f:rollingUpdate")
    return len(holders) != 1 or not _is_applied(holders[0])


def template_is_as_applied(metadata: Mapping[str, Any]) -> bool:
    """Whether only applied manifests have set fields of the pod template. Returns False if unknown."""
    holders = _holders(metadata, "f:spec", "f:template")
    return bool(holders) and all(item.get("manager") in _APPLIERS for item in holders)


def edited_variables(metadata: Mapping[str, Any]) -> frozenset[str]:
    """The environment variables whose values were not set by an applied manifest."""
    by_hand: set[str] = set()
    applied: set[str] = set()
    for entry in metadata.get("managedFields") or ():
        containers = value_at(entry, "fieldsV1", "f:spec", "f:template", "f:spec", "f:containers")
        holding = applied if entry.get("manager") in _APPLIERS else by_hand
        for container in containers.values() if isinstance(containers, dict) else ():
            for key, fields in (value_at(container, "f:env") or {}).items():
                if isinstance(fields, dict) and "f:value" in fields and key.startswith('k:{"name":"'):
                    holding.add(key.removeprefix('k:{"name":"').removesuffix('"}'))
    return frozenset(by_hand - applied)


def restart_is_by_hand(metadata: Mapping[str, Any]) -> bool:
    """Whether the pod template's restart annotation comes from `kubectl rollout restart`, not a manifest."""
    holders = _holders(metadata, "f:spec", "f:template", "f:metadata", "f:annotations", f"f:{RESTARTED_AT}")
    is_applied = RESTARTED_AT in (metadata.get("annotations") or {}).get(LAST_APPLIED, "")
    return bool(holders) and not is_applied and not any(map(_is_applied, holders))


def is_from_manifest(metadata: Mapping[str, Any], annotation: str) -> bool:
    """Whether the value of a ConfigMap's annotation comes from a manifest, not from a person's edit."""
    annotations = metadata.get("annotations") or {}
    if any(_writes_manifests(item, "f:data") for item in _holders_of_annotation(metadata, annotation)):
        return True
    # the API server records a client-side apply as an Update, so a person may have changed the value later
    with suppress(ValueError, RecursionError):
        last_applied = json.loads(annotations.get(LAST_APPLIED, "{}"))
        return bool(value_at(last_applied, "metadata", "annotations", annotation) == annotations[annotation])
    return False


def holders_wrote_at(metadata: Mapping[str, Any], annotation: str) -> list[datetime]:
    """When the field managers that own an annotation last changed the object. Unknown times are omitted."""
    times = []
    for holder in _holders_of_annotation(metadata, annotation):
        with suppress(ValueError):
            times.append(parse_time(str(value_at(holder, "time"))))
    return times


def _holders(metadata: Mapping[str, Any], *path: str) -> list[Mapping[str, Any]]:
    """The `managedFields` entries of the managers that own a field."""
    return [
        item for item in list_at(metadata, "managedFields") if value_at(item, "fieldsV1", *path) is not None
    ]


def _holders_of_annotation(metadata: Mapping[str, Any], annotation: str) -> list[Mapping[str, Any]]:
    return _holders(metadata, "f:metadata", "f:annotations", f"f:{annotation}")


def _sets_replicas_alone(holder: Mapping[str, Any]) -> bool:
    """Whether the manager sets only the replicas: an autoscaler, a person or a rollout.

    A manager that applies whole manifests may omit `spec.replicas` the next time.
    """
    if holder.get("subresource") == "scale" or holder.get("manager") == ROLLOUT:
        return True
    return not _writes_manifests(holder, "f:spec", "f:template")


def _writes_manifests(holder: Mapping[str, Any], *path: str) -> bool:
    """Whether this manager writes whole manifests, judged by its operation, name or fields."""
    writes_all = value_at(holder, "fieldsV1", *path) is not None
    return writes_all or _is_applied(holder) or holder.get("manager") in _APPLIERS


def _says_replicas(last_applied: str) -> bool:
    if '"replicas"' not in last_applied:
        return False
    try:
        return value_at(json.loads(last_applied), "spec", "replicas") is not None
    except (ValueError, RecursionError):
        return True


def _is_applied(entry: Mapping[str, Any]) -> bool:
    return entry.get("operation") == "Apply"
