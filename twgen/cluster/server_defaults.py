"""Removes the fields that the API server and its controllers have added to a live Deployment."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.cluster.field_managers import restart_is_by_hand
from twgen.model.paths import join_path
from twgen.versioning.build_ids import image_tag
from twgen.versioning.names import LAST_APPLIED, RESTARTED_AT, TRACKING_ID

_SERVER_ANNOTATIONS = {"deployment.kubernetes.io/revision", LAST_APPLIED, TRACKING_ID}

# The defaults of apps/v1 and v1: defaults.go, and the generated file next to it, in k8s.io/kubernetes
# pkg/apis/{apps,core}/v1.
# An API server treats an omitted field like a field that is set to its default.
_HTTP = {"path": "/", "scheme": "HTTP"}
_PROBE = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
    "httpGet": _HTTP,
    "grpc": {"service": ""},
}
_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "lifecycle": {"postStart": {"httpGet": _HTTP}, "preStop": {"httpGet": _HTTP}},
    "ports": [{"protocol": "TCP"}],
    "env": [{"valueFrom": {"fieldRef": {"apiVersion": "v1"}}}],
}
_FILES = {"defaultMode": 420}
_DOWNWARD = {"items": [{"fieldRef": {"apiVersion": "v1"}}]}
_VOLUME = {
    "configMap": _FILES,
    "secret": _FILES,
    "downwardAPI": _FILES | _DOWNWARD,
    "projected": _FILES
    | {"sources": [{"serviceAccountToken": {"expirationSeconds": 3600}, "downwardAPI": _DOWNWARD}]},
    "hostPath": {"type": ""},
    "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
POD_TEMPLATE_DEFAULTS = {
    "metadata": {"creationTimestamp": None},
    "spec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "containers": [_CONTAINER],
        "initContainers": [_CONTAINER],
        "volumes": [_VOLUME],
    },
}
"""An API server's defaults in a pod template. Each list has one item with the defaults of all its items."""
PACE_DEFAULTS = {
    "minReadySeconds": 0,
    "progressDeadlineSeconds": 600,
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    "revisionHistoryLimit": 10,
}
"""An API server's defaults for the fields that control how a Deployment's pods are replaced."""
_DEPLOYMENT_SPEC = {
    "revisionHistoryLimit": PACE_DEFAULTS["revisionHistoryLimit"],
    "strategy": PACE_DEFAULTS["strategy"],
    "template": POD_TEMPLATE_DEFAULTS,
}


def without_server_fields(
    manifest: Mapping[str, Any], written: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The manifest as a person would have written it, without defaults.

    `written` is another pod template by the same authors. Defaults that `written` sets explicitly are kept.
    """
    annotations = manifest["metadata"].get("annotations") or {}
    own_annotations = {name: value for name, value in annotations.items() if name not in _SERVER_ANNOTATIONS}
    spec = less_defaults(manifest["spec"], _DEPLOYMENT_SPEC, {"template": written or {}})
    # if renders contained the restart time, an outdated render would undo the next restart
    if restart_is_by_hand(manifest["metadata"]):
        pod_metadata = spec["template"]["metadata"]
        marks = {name: text for name, text in pod_metadata["annotations"].items() if name != RESTARTED_AT}
        spec["template"] = {**spec["template"], "metadata": {**pod_metadata, "annotations": marks}}
    return {"metadata": {"annotations": own_annotations}, "spec": spec}


def less_defaults(value: Any, defaults: Any, written: Any = None) -> Any:
    """Remove fields that equal their defaults, at any depth. Fields that `written` contains are kept."""
    if isinstance(value, dict) and isinstance(defaults, dict):
        written_fields = written if isinstance(written, Mapping) else {}
        defaults = with_derived(defaults, value)
        return {
            name: less_defaults(item, defaults[name], written_fields.get(name)) if name in defaults else item
            for name, item in value.items()
            if name not in defaults or item != defaults[name] or name in written_fields
        }
    if isinstance(value, list) and isinstance(defaults, list):
        return [
            less_defaults(item, defaults[0], _counterpart(item, index, written))
            for index, item in enumerate(value)
        ]
    return value


def with_derived(defaults: Mapping[str, Any], live: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults for a live mapping, including defaults that depend on other fields of the mapping."""
    if "imagePullPolicy" in live:
        return {**defaults, "imagePullPolicy": pull_policy(live.get("image") or "")}
    if "serviceAccount" in live:
        return {**defaults, "serviceAccount": live.get("serviceAccountName")}
    return defaults


def _counterpart(item: Any, index: int, written: Any) -> Any:
    """The item of the list `written` with the same name. If `item` has no name, the index is used instead."""
    items = written if isinstance(written, list) else []
    name = item.get("name") if isinstance(item, dict) else None
    if name is not None:
        return next((other for other in items if isinstance(other, dict) and other.get("name") == name), {})
    return items[index] if index < len(items) else {}


def pull_policy(image: str) -> str:
    """The default imagePullPolicy for an image."""
    is_mutable = "@" not in image and image_tag(image) in {"", "latest"}
    return "Always" if is_mutable else "IfNotPresent"


# the API server identifies list items by these fields: patchMergeKey in k8s.io/api/core/v1/types.go
_KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "protocol"),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
}
_KEY_DEFAULTS = {"protocol": "TCP"}


class Comparison(NamedTuple):
    """The differences between the applied and the live pod template, as field paths."""

    changed: tuple[str, ...] = ()
    """Applied fields that were changed or removed later. Applying the template again restores them."""
    added: tuple[str, ...] = ()
    """Live fields that are neither in the applied template nor server defaults. Applying the template again
    keeps these fields."""


def compare(applied: Mapping[str, Any], live: Mapping[str, Any]) -> Comparison:
    """Compare an applied and a live pod template, ignoring the defaults of API servers."""
    changed: list[str] = []
    added: list[str] = []
    for path, is_addition in _differences(applied, live, POD_TEMPLATE_DEFAULTS, ""):
        (added if is_addition else changed).append(path)
    return Comparison(tuple(changed), tuple(added))


def _differences(applied: Any, live: Any, defaults: Any, path: str) -> Iterator[tuple[str, bool]]:
    if isinstance(applied, dict) and isinstance(live, dict):
        defaults = defaults if isinstance(defaults, dict) else {}
        for name, value in applied.items():
            if name in live:
                if value != live[name]:
                    yield from _differences(value, live[name], defaults.get(name), join_path(path, name))
            # the API server is written in Go, and omits empty values
            elif value not in ({}, [], None, "") and value != defaults.get(name):
                yield join_path(path, name), False
        filled_in = with_derived(defaults, live)
        for name, value in live.items():
            default = filled_in.get(name)
            if name not in applied and less_defaults(value, default) not in (default, {}, [], None):
                yield join_path(path, name), True
    elif isinstance(applied, list) and isinstance(live, list):
        yield from _list_differences(applied, live, defaults[0] if isinstance(defaults, list) else {}, path)
    elif applied != live:
        yield path, False


def _list_differences(
    applied: Sequence[Any], live: Sequence[Any], defaults: Any, path: str
) -> Iterator[tuple[str, bool]]:
    keys = _KEYS.get(path.rpartition(".")[2])
    if not keys:
        if len(applied) != len(live):
            yield path, False
            return
        for index, (applied_item, live_item) in enumerate(zip(applied, live, strict=True)):
            yield from _differences(applied_item, live_item, defaults, join_path(path, index))
        return
    places = {_key(item, keys): item for item in live}
    for item in applied:
        live_item, place = places.pop(_key(item, keys), None), f"{path}[{item.get(keys[0])}]"
        if live_item is None:
            yield place, False
        elif item != live_item:
            yield from _differences(item, live_item, defaults, place)
    for item in places.values():
        yield f"{path}[{item.get(keys[0])}]", True


def _key(item: Any, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(item.get(key, _KEY_DEFAULTS.get(key)) for key in keys)
