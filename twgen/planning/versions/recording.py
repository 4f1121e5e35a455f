"""The older versions that the ledger can record from their live Deployments."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from twgen.cluster.pods import as_written
from twgen.model.paths import value_at
from twgen.model.plan import VersionAction, VersionPlan
from twgen.model.reasons.versions import VersionReason
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import LiveDeployment
from twgen.versioning.names import DEPLOYMENT_NAME_LABEL, selector_labels, versioned_deployment_name

_LASTS = "if that Deployment is deleted, its pods cannot be restored"


class Recordable(NamedTuple):
    """The versions that can be recorded, and why others cannot be."""

    versions: tuple[VersionPlan, ...]
    told: tuple[str, ...]


def is_of_worker(live: LiveDeployment, spec: WorkerSpec) -> bool:
    """The Deployment of a worker's namespace is one of its versions."""
    own_label = selector_labels(spec.name, "")[DEPLOYMENT_NAME_LABEL]
    return bool(value_at(live.recorded.manifest, "metadata", "labels", DEPLOYMENT_NAME_LABEL) == own_label)


def versions_to_record(
    spec: WorkerSpec, live: Iterable[LiveDeployment], recorded: Collection[str]
) -> Recordable:
    """The live Deployments of a worker whose pods the ledger can render again without a restart.

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
            versions.append(
                VersionPlan(
                    build_id=deployment.build_id,
                    status=VersionStatus.NOT_REGISTERED,
                    deployment=deployment.name,
                    action=VersionAction.KEEP,
                    because="it is recorded",
                    reason=VersionReason.MAY_BE_NEEDED,
                    replicas=None if spec.replicas_are_external else max(deployment.replicas, 1),
                    protected=True,
                    recorded=written,
                )
            )
            continue
        skipped.append(
            f"{spec.worker_deployment}: Deployment {deployment.name} is not recorded: {why}; {_LASTS}"
        )
    return Recordable(tuple(versions), tuple(skipped))
