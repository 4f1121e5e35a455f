"""Makes a version's Deployment and attached objects, and manifests for the ledger."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from twgen.cluster.marks import (
    described_annotations,
    own_annotations,
    own_labels,
    own_pace,
    protection,
    recorded_annotations,
)
from twgen.cluster.patches import patch_text, patched_template
from twgen.cluster.pods import as_written
from twgen.cluster.server_defaults import without_server_fields
from twgen.errors import InvalidInput
from twgen.model.paths import list_at, value_at
from twgen.model.plan import VersionAction, VersionPlan, WorkerVersions
from twgen.model.policy import OwnerReferences
from twgen.model.reasons import VersionReason
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import LiveDeployment, RecordedDeployment
from twgen.planning.drivers import is_applied_by_hook
from twgen.versioning.names import (
    DEPLOYMENT_API,
    DEPLOYMENT_NAME_LABEL,
    HOOK,
    IGNORE_HEALTH,
    MANAGED_BY,
    METRIC_LABELS,
    PATCHED,
    SKIP,
    attached_resource_name,
    filled,
    placeholders,
    selector_labels,
    versioned_deployment_name,
)
from twgen.versioning.pod_templates import described_template, reconnected


def version_deployment(spec: WorkerSpec, version: VersionPlan, identity: str) -> dict[str, Any]:
    """The manifest of a version's Deployment, without an identity annotation if `identity` is empty."""
    annotations, body = _content(spec, version)
    if version.patch:
        patched = patched_template(body["template"], version.patch)
        annotations = annotations | {PATCHED: patch_text(version.patch, patched.replaced)}
        body = {**body, "template": patched.template}
    sized = {} if version.replicas is None else {"replicas": version.replicas}
    return {
        "apiVersion": DEPLOYMENT_API,
        "kind": "Deployment",
        "metadata": {
            "name": version.deployment,
            "namespace": spec.namespace,
            "labels": own_labels(spec, version.build_id),
            "annotations": annotations | own_annotations(spec, version, identity),
        },
        "spec": sized | {name: value for name, value in body.items() if name not in {"paused", "replicas"}},
    }


def _content(spec: WorkerSpec, version: VersionPlan) -> tuple[dict[str, str], Mapping[str, Any]]:
    """The annotations and the `spec` of a version's Deployment, without twgen's own annotations."""
    pace = own_pace(spec, version.live)
    if not version.recorded:
        return described_annotations(spec), {
            **{name: value for name, value in pace.items() if value is not None},
            "selector": {"matchLabels": selector_labels(spec.name, spec.build_id)},
            "template": described_template(spec),
        }
    manifest = version.recorded.manifest
    if version.live and version.recorded is version.live.recorded:
        manifest = without_server_fields(manifest)
    if version.replaced_injection is not None:
        manifest = reconnected(spec, version.build_id, manifest, version.replaced_injection)
    body = manifest["spec"]
    if version.build_id == spec.build_id:  # applying `pace` from the spec does not restart pods
        body = {name: value for name, value in {**body, **pace}.items() if value is not None}
    return recorded_annotations(manifest), body


def target_deployment(spec: WorkerSpec) -> dict[str, Any]:
    """The target's manifest for the ledger, made from the spec."""
    name = versioned_deployment_name(spec.name, spec.build_id)
    return deployment_to_record(spec, _to_record(spec, spec.build_id, name, spec.replicas))


def _to_record(
    spec: WorkerSpec,
    build_id: str,
    deployment: str,
    replicas: int | None,
    recorded: RecordedDeployment | None = None,
) -> VersionPlan:
    return VersionPlan(
        build_id=build_id,
        status=VersionStatus.NOT_REGISTERED,
        deployment=deployment,
        action=VersionAction.KEEP,
        because="it is recorded",
        reason=VersionReason.MAY_BE_NEEDED,
        replicas=None if spec.replicas_are_external else replicas,
        protected=True,
        recorded=recorded,
    )


def deployment_to_record(spec: WorkerSpec, version: VersionPlan) -> dict[str, Any]:
    """A version's manifest for the ledger.

    The policy's labels and annotations for all Deployments are omitted, because the policy may change later.
    """
    policy = replace(spec.policy, deployment_labels={}, deployment_annotations={})
    return version_deployment(replace(spec, policy=policy), version, "")


def is_of_worker(live: LiveDeployment, spec: WorkerSpec) -> bool:
    """Whether a Deployment in the worker's namespace belongs to one of its versions."""
    own_label = selector_labels(spec.name, "")[DEPLOYMENT_NAME_LABEL]
    return bool(value_at(live.recorded.manifest, "metadata", "labels", DEPLOYMENT_NAME_LABEL) == own_label)


def versions_to_record(
    spec: WorkerSpec, live: Iterable[LiveDeployment], recorded: Collection[str]
) -> tuple[list[VersionPlan], list[str]]:
    """A worker's live versions to record in the ledger, and messages about versions that cannot be recorded.

    A version can be recorded if a render from the ledger would not restart its pods. The result omits the
    target, which the spec describes, and the versions in `recorded`.
    """
    versions, skipped = [], []
    for deployment in live:
        if deployment.build_id == spec.build_id or deployment.build_id in recorded:
            continue
        written = as_written(spec, deployment)
        own_name = versioned_deployment_name(spec.name, deployment.build_id)
        if deployment.name != own_name or deployment.other_build_id:
            why = "it does not belong to the version in its labels"
        elif written is None:
            why = "no hash proves that its pod template is unchanged"
        else:
            replicas = max(deployment.replicas, 1)
            versions.append(_to_record(spec, deployment.build_id, deployment.name, replicas, written))
            continue
        subject = f"{spec.worker_deployment}: Deployment {deployment.name}"
        lasting = "if that Deployment is deleted, its pods cannot be restored"
        skipped.append(f"{subject} is not recorded: {why}; {lasting}")
    return versions, skipped


def limit_copies(workers: Iterable[WorkerVersions]) -> None:
    """Raise InvalidInput if the copies of attached templates would need too much memory."""
    room = 48 * 2**20
    for worker in workers:
        spec = worker.spec
        versions = [version for version in worker.versions if version.attached or version.leaving]
        if not versions or not spec.attached:
            continue
        text = json.dumps([resource.template for resource in spec.attached])
        # each item in a list or mapping needs memory, even if its text is short
        room -= len(versions) * (len(text) + 16 * sum(map(text.count, ",[{")))
        room -= text.count("{{") * sum(max(map(len, _names(spec, version).values())) for version in versions)
        if room < 0:
            raise InvalidInput(
                f"{spec.document.source}: the attached templates of {spec.worker_deployment} are too large to"
                f" render: {len(text)} characters, copied for {len(versions)} versions"
            )


def attached_manifests(
    spec: WorkerSpec, version: VersionPlan, *, has_hook: bool = False
) -> Iterator[dict[str, Any]]:
    """The objects that are attached to a version, or are being removed from it.

    With `has_hook`, the hook's Job applies some of these objects instead of Argo CD. They are still rendered,
    because otherwise Argo CD would prune them.
    """
    names = {item.name for item in (*version.attached, *version.leaving)}
    for resource in spec.attached if names else ():
        if attached_resource_name(spec.name, resource.name, version.build_id) in names:
            manifest = attached_manifest(spec, version, resource)
            if has_hook and is_applied_by_hook(spec, resource):
                manifest["metadata"]["annotations"][HOOK] = SKIP
            yield manifest


def attached_manifest(spec: WorkerSpec, version: VersionPlan, resource: AttachedResource) -> dict[str, Any]:
    """Make a version's object from an attached template."""
    names = _names(spec, version)
    target = {"apiVersion": DEPLOYMENT_API, "kind": "Deployment", "name": version.deployment}
    # `target` is filled in only below `spec`, because a label could also have the name `scaleTargetRef`
    template = {
        name: _copied(item, names, target if name == "spec" else {})
        for name, item in resource.template.items()
    }
    manifest = {name: value for name, value in template.items() if name not in {"metadata", "spec"}}
    manifest["metadata"] = _metadata(spec, version, resource, template.get("metadata") or {})
    body = template.get("spec")
    if not isinstance(body, dict):
        return manifest
    selector = body.get("selector")
    if isinstance(selector, dict) and "matchLabels" in selector and not selector["matchLabels"]:
        selector["matchLabels"] = selector_labels(spec.name, version.build_id)
    for metric in list_at(body, "metrics"):
        selector = value_at(metric, "external", "metric", "selector")
        if isinstance(selector, dict) and "matchLabels" in selector:
            metric_labels = {label: names[label] for label in METRIC_LABELS}
            selector["matchLabels"] = {**(selector["matchLabels"] or {}), **metric_labels}
    place = {
        "workerDeploymentName": spec.worker_deployment,
        "workerDeploymentBuildId": version.build_id,
        "namespace": spec.temporal_namespace,
    }
    for trigger in list_at(body, "triggers"):
        metadata = value_at(trigger, "metadata")
        if value_at(trigger, "type") == "temporal" and isinstance(metadata, dict):
            empty = {name: value for name, value in place.items() if metadata.get(name, "-") in {"", None}}
            metadata.update(empty)
    if "targetRef" in body and not body["targetRef"]:
        body["targetRef"] = target
    manifest["spec"] = body
    return manifest


def _names(spec: WorkerSpec, version: VersionPlan) -> dict[str, str]:
    return placeholders(version.deployment, version.build_id, spec.temporal_namespace, spec.worker_deployment)


def _metadata(
    spec: WorkerSpec, version: VersionPlan, resource: AttachedResource, template: Mapping[str, Any]
) -> dict[str, Any]:
    name = attached_resource_name(spec.name, resource.name, version.build_id)
    is_leaving = any(item.name == name for item in version.leaving)
    # autoscalers and PodDisruptionBudgets must exist as long as their pods
    is_protected = (version.protected or version.action is VersionAction.NONE) and not is_leaving
    annotations = protection(spec, is_protected=is_protected)
    if version.action is VersionAction.SCALE_DOWN and resource.scales_from_zero:
        # the object is a KEDA ScaledObject, because no other attachable kind scales from zero
        annotations["autoscaling.keda.sh/paused-replicas"] = "0"
    # an autoscaler that has no metrics yet must not make the Application unhealthy
    usual = {IGNORE_HEALTH: "true"} if resource.autoscales else {}
    metadata = {
        **template,
        "name": name,
        "namespace": spec.namespace,
        "labels": (template.get("labels") or {}) | selector_labels(spec.name, version.build_id) | MANAGED_BY,
        "annotations": usual | (template.get("annotations") or {}) | annotations,
    }
    # an object to be pruned gets no owner, because Argo CD does not prune objects with an owner
    is_owned = spec.policy.owner_references is OwnerReferences.RENDER and not is_leaving
    if version.live and version.live.uid and is_owned:
        owner = {"kind": "Deployment", "name": version.deployment, "uid": version.live.uid}
        metadata["ownerReferences"] = [{"apiVersion": DEPLOYMENT_API, **owner}]
    return metadata


def _copied(value: Any, names: Mapping[str, str], target: Mapping[str, str]) -> Any:
    """A copy with all placeholders filled in. A non-empty `target` replaces each empty `scaleTargetRef`."""
    if isinstance(value, str):
        return filled(value, names)
    if isinstance(value, list):
        return [_copied(item, names, target) for item in value]
    if not isinstance(value, dict):
        return value
    copy = {name: _copied(item, names, target) for name, item in value.items()}
    if target and "scaleTargetRef" in copy:
        copy["scaleTargetRef"] = copy["scaleTargetRef"] or dict(target)
    return copy
