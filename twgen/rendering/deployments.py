"""The Deployment of one version: from the spec, or from what was recorded of it."""

from collections.abc import Mapping
from typing import Any

from twgen.model.plan import VersionAction, VersionPlan
from twgen.model.policy import OnDelete
from twgen.model.spec import WorkerSpec
from twgen.model.world import VersionStatus
from twgen.records.deployments import CONNECTION_HASH, IDENTITY, SYNC_OPTIONS, TEMPLATE_HASH
from twgen.rendering.injection import inject, replace_injection
from twgen.rendering.server_defaults import without_server_fields
from twgen.versioning.environment import Identity
from twgen.versioning.hashes import connection_hash
from twgen.versioning.names import selector_labels, versioned_deployment_name

_Content = tuple[dict[str, str], dict[str, Any]]
"""Annotations, and what a Deployment's `spec` is."""

MANAGED_BY = {"app.kubernetes.io/managed-by": "twgen"}
_COMPARE_OPTIONS = "argocd.argoproj.io/compare-options"
_ON_DELETE = {OnDelete.CONFIRM: ",Delete=confirm", OnDelete.ORPHAN: ",Delete=false", OnDelete.DELETE: ""}


def version_deployment(spec: WorkerSpec, version: VersionPlan, identity: str) -> dict[str, Any]:
    """The manifest of a rendered version's Deployment; an empty identity is left out."""
    annotations, body = _content(spec, version)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": version.deployment,
            "namespace": spec.namespace,
            "labels": selector_labels(spec.name, version.build_id) | MANAGED_BY,
            "annotations": annotations | _own_annotations(spec, version, identity),
        },
        "spec": _sized(body, version.replicas),
    }


def _content(spec: WorkerSpec, version: VersionPlan) -> _Content:
    recorded = version.recorded
    if not recorded:
        return _from_spec(spec, version)
    if version.live is None or recorded is not version.live.recorded:
        return _from_manifest(spec, version, recorded.manifest)
    live = _from_manifest(spec, version, without_server_fields(recorded.manifest))
    if version.build_id != spec.build_id:
        return live
    # where both mean the same, the spec's words are those that were applied: again they change nothing
    written = _from_spec(spec, version)
    return written if _is_same(written, live) else live


def _is_same(written: _Content, live: _Content) -> bool:
    annotations, body = written
    meant = without_server_fields({"metadata": {"annotations": annotations}, "spec": body})
    return (meant["metadata"]["annotations"], meant["spec"]) == (live[0], _sized(live[1], None))


def target_deployment(spec: WorkerSpec) -> dict[str, Any]:
    """The manifest of the target as the spec describes it, for the ledger."""
    name = versioned_deployment_name(spec.name, spec.build_id)
    new = VersionPlan(
        build_id=spec.build_id,
        status=VersionStatus.NOT_REGISTERED,
        deployment=name,
        action=VersionAction.CREATE,
        because="it is recorded",
        replicas=None if spec.replicas_are_external else spec.replicas,
        protected=True,
    )
    return version_deployment(spec, new, "")


def _from_spec(spec: WorkerSpec, version: VersionPlan) -> _Content:
    labels = selector_labels(spec.name, version.build_id)
    metadata = spec.template.content.get("metadata") or {}
    annotations: dict[str, str] = metadata.get("annotations") or {}
    pod = inject(spec.template.content["spec"], spec, _identity(spec, version))
    body: dict[str, Any] = {
        "minReadySeconds": spec.min_ready_seconds,
        "progressDeadlineSeconds": spec.progress_deadline_seconds,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {
                "labels": (metadata.get("labels") or {}) | labels,
                "annotations": annotations
                | {CONNECTION_HASH: connection_hash(spec.connection), TEMPLATE_HASH: spec.template.hash},
            },
            "spec": pod,
        },
    }
    if not spec.min_ready_seconds:
        del body["minReadySeconds"]
    return annotations, body


def _from_manifest(spec: WorkerSpec, version: VersionPlan, manifest: Mapping[str, Any]) -> _Content:
    annotations = manifest["metadata"].get("annotations") or {}
    ours = {IDENTITY, SYNC_OPTIONS, _COMPARE_OPTIONS}
    kept = {name: value for name, value in annotations.items() if name not in ours}
    body = manifest["spec"]
    if version.new_connection:
        body = {**body, "template": _reconnected(spec, version, body["template"])}
    return kept, body


def _reconnected(spec: WorkerSpec, version: VersionPlan, template: Mapping[str, Any]) -> dict[str, Any]:
    metadata = template["metadata"]
    annotations = metadata["annotations"] | {CONNECTION_HASH: connection_hash(spec.connection)}
    return {
        **template,
        "metadata": {**metadata, "annotations": annotations},
        "spec": replace_injection(template["spec"], spec, _identity(spec, version)),
    }


def _identity(spec: WorkerSpec, version: VersionPlan) -> Identity:
    return Identity(spec.temporal_namespace, spec.worker_deployment, version.build_id)


def _own_annotations(spec: WorkerSpec, version: VersionPlan, identity: str) -> dict[str, str]:
    options = "ServerSideApply=true"
    annotations = {IDENTITY: identity} if identity else {}
    if version.protected:
        options += f",Prune=false{_ON_DELETE[spec.policy.on_delete]}"
        annotations[_COMPARE_OPTIONS] = "IgnoreExtraneous"
    return annotations | {SYNC_OPTIONS: options}


def _sized(body: Mapping[str, Any], replicas: int | None) -> dict[str, Any]:
    sized = {} if replicas is None else {"replicas": replicas}
    return sized | {name: value for name, value in body.items() if name != "replicas"}
