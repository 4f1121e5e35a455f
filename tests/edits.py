"""What people do to a Deployment by hand."""

from typing import Any


def _as_applied(_: dict[str, Any]) -> None:
    """Nobody changed it."""


def _with_image(manifest: dict[str, Any]) -> None:
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "payments:by-hand"


def _without_variables(manifest: dict[str, Any]) -> None:
    del manifest["spec"]["template"]["spec"]["containers"][0]["env"]


def _with_variable(manifest: dict[str, Any]) -> None:
    variables = manifest["spec"]["template"]["spec"]["containers"][0]["env"]
    variables.insert(0, {"name": "TEMPORAL_API_KEY", "value": "of the team"})


def _restarted(manifest: dict[str, Any]) -> None:
    annotations = manifest["spec"]["template"]["metadata"]["annotations"]
    annotations["kubectl.kubernetes.io/restartedAt"] = "2026-11-20T09:00:00Z"


def _paused(manifest: dict[str, Any]) -> None:
    manifest["spec"]["paused"] = True


def _deleted(manifest: dict[str, Any]) -> None:
    manifest["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00+00:00"


def _moved(manifest: dict[str, Any]) -> None:
    variables = manifest["spec"]["template"]["spec"]["containers"][0]["env"]
    next(item for item in variables if item["name"] == "TEMPORAL_NAMESPACE")["value"] = "by-hand"


def _seen_to_be_moved(manifest: dict[str, Any]) -> None:
    _moved(manifest)
    held = {'k:{"name":"worker"}': {"f:env": {'k:{"name":"TEMPORAL_NAMESPACE"}': {"f:value": {}}}}}
    fields = {"f:spec": {"f:template": {"f:spec": {"f:containers": held}}}}
    manifest["metadata"]["managedFields"] = [
        {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields}
    ]


def _without_hashes(manifest: dict[str, Any]) -> None:
    manifest["spec"]["template"]["metadata"]["annotations"] = {}


def _without_labels(manifest: dict[str, Any]) -> None:
    manifest["metadata"]["labels"] = {}


def _without_marks(manifest: dict[str, Any]) -> None:
    manifest["metadata"]["annotations"] = {}


def _with_another_patch_told(manifest: dict[str, Any]) -> None:
    manifest["metadata"]["annotations"]["twgen.io/patched"] = '{"containers": [{}], "replaced": null}'


EDITS = (
    _as_applied,
    _as_applied,
    _with_image,
    _without_variables,
    _with_variable,
    _restarted,
    _paused,
    _deleted,
    _moved,
    _seen_to_be_moved,
    _without_hashes,
    _without_labels,
    _without_marks,
    _with_another_patch_told,
)
