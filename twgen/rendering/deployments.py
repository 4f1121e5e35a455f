"""The Deployment of one version: from the spec, or from what was recorded of it."""

from collections.abc import Mapping
from typing import Any

from twgen.cluster.server_defaults import without_server_fields
from twgen.model.plan import VersionAction, VersionPlan
from twgen.model.reasons import VersionReason
from twgen.model.spec import OnDelete, WorkerSpec
from twgen.model.world import VersionStatus
from twgen.versioning.injection import Identity, injection
from twgen.versioning.names import (
    APPLIED_BY_SERVER,
    ATTACHED,
    COMPARE_OPTIONS,
    IDENTITY,
    INJECTED,
    NOT_PRUNED,
    SYNC_OPTIONS,
    selector_labels,
    versioned_deployment_name,
)
from twgen.versioning.pod_templates import described_template, reconnected_template

MANAGED_BY = {"app.kubernetes.io/managed-by": "twgen"}
_OURS = {IDENTITY, SYNC_OPTIONS, ATTACHED, INJECTED, COMPARE_OPTIONS}
_PACE = {"minReadySeconds", "progressDeadlineSeconds"}
_ON_DELETE = {OnDelete.CONFIRM: ",Delete=confirm", OnDelete.ORPHAN: ",Delete=false", OnDelete.DELETE: ""}


def version_deployment(spec: WorkerSpec, version: VersionPlan, identity: str) -> dict[str, Any]:
    """The manifest of a rendered version's Deployment; an empty identity is left out."""
    kept, injected, body = _content(spec, version)
    own = {INJECTED: ",".join(sorted(injected))} if injected is not None else {}
    if version.attached:
        own[ATTACHED] = ",".join(f"{item.kind}/{item.name}" for item in version.attached)
    if identity:
        own[IDENTITY] = identity
    options = APPLIED_BY_SERVER
    if version.protected:
        options += f",{NOT_PRUNED}{_ON_DELETE[spec.policy.on_delete]}"
        own[COMPARE_OPTIONS] = "IgnoreExtraneous"
    sized = {} if version.replicas is None else {"replicas": version.replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": version.deployment,
            "namespace": spec.namespace,
            "labels": selector_labels(spec.name, version.build_id) | MANAGED_BY,
            "annotations": kept | own | {SYNC_OPTIONS: options},
        },
        "spec": sized | {name: value for name, value in body.items() if name not in {"paused", "replicas"}},
    }


def _content(
    spec: WorkerSpec, version: VersionPlan
) -> tuple[dict[str, str], frozenset[str] | None, Mapping[str, Any]]:
    """The annotations, the injected names (None: nobody knows) and the `spec` of a version's Deployment."""
    if not version.recorded:
        return _described(spec)
    manifest = version.recorded.manifest
    if version.live and version.recorded is version.live.recorded:
        manifest = without_server_fields(manifest)
    annotations = manifest["metadata"].get("annotations") or {}
    kept = {name: value for name, value in annotations.items() if name not in _OURS}
    said, body = annotations.get(INJECTED), manifest["spec"]
    injected = None if said is None else frozenset(said.split(","))
    if version.replaced_injection is not None:
        replaced = version.replaced_injection
        template, injected = reconnected_template(spec, version.build_id, body["template"], replaced)
        body = {**body, "template": template}
    if version.build_id == spec.build_id:  # what restarts nothing follows the spec at once
        body = {name: value for name, value in body.items() if name not in _PACE} | _pace(spec)
    return kept, injected, body


def _described(spec: WorkerSpec) -> tuple[dict[str, str], frozenset[str], dict[str, Any]]:
    """The target's Deployment as the spec describes it."""
    metadata = spec.template.content.get("metadata") or {}
    who = Identity(spec.temporal_namespace, spec.worker_deployment, spec.build_id)
    body = _pace(spec) | {
        "selector": {"matchLabels": selector_labels(spec.name, spec.build_id)},
        "template": described_template(spec),
    }
    injected = injection(spec.connection, who, spec.policy.environment).names
    return dict(metadata.get("annotations") or {}), injected, body


def _pace(spec: WorkerSpec) -> dict[str, int]:
    seconds = {"minReadySeconds": spec.min_ready_seconds} if spec.min_ready_seconds else {}
    return seconds | {"progressDeadlineSeconds": spec.progress_deadline_seconds}


def target_deployment(spec: WorkerSpec) -> dict[str, Any]:
    """The manifest of the target as the spec describes it, for the ledger."""
    name = versioned_deployment_name(spec.name, spec.build_id)
    new = VersionPlan(
        build_id=spec.build_id,
        status=VersionStatus.NOT_REGISTERED,
        deployment=name,
        action=VersionAction.CREATE,
        because="it is recorded",
        reason=VersionReason.TARGET,
        replicas=None if spec.replicas_are_external else spec.replicas,
        protected=True,
    )
    return version_deployment(spec, new, "")
