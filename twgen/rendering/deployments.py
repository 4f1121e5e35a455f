"""The Deployment of one version, from the spec or from its record, and the versions for the ledger."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from twgen.cluster.marks import (
    described_annotations,
    own_annotations,
    own_labels,
    own_pace,
    recorded_annotations,
)
from twgen.cluster.patches import patch_text, patched_template
from twgen.cluster.pods import as_written
from twgen.cluster.server_defaults import without_server_fields
from twgen.model.paths import value_at
from twgen.model.plan import VersionAction, VersionPlan
from twgen.model.reasons.versions import VersionReason
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import LiveDeployment, RecordedDeployment
from twgen.versioning.names import (
    DEPLOYMENT_API,
    DEPLOYMENT_NAME_LABEL,
    PATCHED,
    selector_labels,
    versioned_deployment_name,
)
from twgen.versioning.pod_templates import described_template, reconnected

_REPLACED = {"paused", "replicas"}
_LASTS = "if that Deployment is deleted, its pods cannot be restored"


def version_deployment(spec: WorkerSpec, version: VersionPlan, identity: str) -> dict[str, Any]:
    """The manifest of a rendered version's Deployment; an empty identity is left out."""
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
        "spec": sized | {name: value for name, value in body.items() if name not in _REPLACED},
    }


def _content(spec: WorkerSpec, version: VersionPlan) -> tuple[dict[str, str], Mapping[str, Any]]:
    """The annotations that are kept, and the `spec`, of a version's Deployment."""
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
    if version.build_id == spec.build_id:  # fields that restart nothing follow the spec at once
        body = {name: value for name, value in {**body, **pace}.items() if value is not None}
    return recorded_annotations(manifest), body


def target_deployment(spec: WorkerSpec) -> dict[str, Any]:
    """The manifest of the target as the spec describes it, for the ledger."""
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
    """The manifest of a version for the ledger.

    Without the labels and annotations that the policy gives all Deployments: they can change later.
    """
    policy = replace(spec.policy, deployment_labels={}, deployment_annotations={})
    return version_deployment(replace(spec, policy=policy), version, "")


def is_of_worker(live: LiveDeployment, spec: WorkerSpec) -> bool:
    """The Deployment of a worker's namespace is one of its versions."""
    own_label = selector_labels(spec.name, "")[DEPLOYMENT_NAME_LABEL]
    return bool(value_at(live.recorded.manifest, "metadata", "labels", DEPLOYMENT_NAME_LABEL) == own_label)


def versions_to_record(
    spec: WorkerSpec, live: Iterable[LiveDeployment], recorded: Collection[str]
) -> tuple[list[VersionPlan], list[str]]:
    """The live Deployments of a worker whose pods the ledger can render again without a restart; and why not.

    Without the target, which the spec describes, and without the versions that the ledger already has.
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
        skipped.append(
            f"{spec.worker_deployment}: Deployment {deployment.name} is not recorded: {why}; {_LASTS}"
        )
    return versions, skipped
