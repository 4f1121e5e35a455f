"""A live Deployment less what the API server and its controllers added to it."""

from collections.abc import Mapping
from typing import Any

from twgen.cluster.field_managers import restart_is_by_hand
from twgen.versioning.build_ids import image_tag
from twgen.versioning.names import LAST_APPLIED, RESTARTED_AT, TRACKING_ID

_SERVER_ANNOTATIONS = {"deployment.kubernetes.io/revision", LAST_APPLIED, TRACKING_ID}

# What apps/v1 and v1 fill in: defaults.go, and the generated one beside it, of k8s.io/kubernetes
# pkg/apis/{apps,core}/v1.
# Leaving a default out and writing it are the same to a server; only the written form is stable for people.
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
"""What a server fills into a pod template; the one item of a list stands for all of its items."""
PACE_DEFAULTS = {
    "minReadySeconds": 0,
    "progressDeadlineSeconds": 600,
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    "revisionHistoryLimit": 10,
}
"""What a server fills into a Deployment of that by which its pods are replaced."""
_DEPLOYMENT_SPEC = {
    "revisionHistoryLimit": PACE_DEFAULTS["revisionHistoryLimit"],
    "strategy": PACE_DEFAULTS["strategy"],
    "template": POD_TEMPLATE_DEFAULTS,
}


def without_server_fields(
    manifest: Mapping[str, Any], written: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The manifest as somebody would have written it.

    `written` is another pod template of whoever wrote it: what a server fills in stays where it is there too.
    """
    annotations = manifest["metadata"].get("annotations") or {}
    kept = {name: value for name, value in annotations.items() if name not in _SERVER_ANNOTATIONS}
    spec = less_defaults(manifest["spec"], _DEPLOYMENT_SPEC, {"template": written or {}})
    # a render of the restart would hold it, and a stale one would undo the next
    if restart_is_by_hand(manifest["metadata"]):
        of_pods = spec["template"]["metadata"]
        marks = {name: text for name, text in of_pods["annotations"].items() if name != RESTARTED_AT}
        spec["template"] = {**spec["template"], "metadata": {**of_pods, "annotations": marks}}
    return {"metadata": {"annotations": kept}, "spec": spec}


def less_defaults(value: Any, defaults: Any, written: Any = None) -> Any:
    """The value without what equals its default, at any depth, but for fields that are `written` too."""
    if isinstance(value, dict) and isinstance(defaults, dict):
        there = written if isinstance(written, Mapping) else {}
        defaults = with_derived(defaults, value)
        return {
            name: less_defaults(item, defaults[name], there.get(name)) if name in defaults else item
            for name, item in value.items()
            if name not in defaults or item != defaults[name] or name in there
        }
    if isinstance(value, list) and isinstance(defaults, list):
        return [
            less_defaults(item, defaults[0], _beside(item, index, written))
            for index, item in enumerate(value)
        ]
    return value


def with_derived(defaults: Mapping[str, Any], live: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults of a live mapping, with those that follow from its other fields."""
    if "imagePullPolicy" in live:
        return {**defaults, "imagePullPolicy": pull_policy(live.get("image") or "")}
    if "serviceAccount" in live:
        return {**defaults, "serviceAccount": live.get("serviceAccountName")}
    return defaults


def _beside(item: Any, index: int, written: Any) -> Any:
    """What stands for an item in another list: of its name, else in its place."""
    others = written if isinstance(written, list) else []
    name = item.get("name") if isinstance(item, dict) else None
    if name is not None:
        return next((one for one in others if isinstance(one, dict) and one.get("name") == name), {})
    return others[index] if index < len(others) else {}


def pull_policy(image: str) -> str:
    """The imagePullPolicy that a server fills in for an image."""
    is_mutable = "@" not in image and image_tag(image) in {"", "latest"}
    return "Always" if is_mutable else "IfNotPresent"
