"""Which older versions are recorded in the ledger as their Deployments run."""

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
    wanted = selector_labels(spec.name, "")[DEPLOYMENT_NAME_LABEL]
    return bool(value_at(live.recorded.manifest, "metadata", "labels", DEPLOYMENT_NAME_LABEL) == wanted)


def versions_to_record(
    spec: WorkerSpec, live: Iterable[LiveDeployment], recorded: Collection[str]
) -> Recordable:
    """The live Deployments of a worker whose pods the ledger can render again without a restart.

    The target is left to the spec, and versions that are already recorded to the ledger.
    """
    found, told = [], []
    for one in live:
        if one.build_id == spec.build_id or one.build_id in recorded:
            continue
        known = as_written(spec, one)
        if one.name != versioned_deployment_name(spec.name, one.build_id) or one.other_build_id:
            why = "it does not belong to the version in its labels"
        elif known is None:
            why = "no hash proves that its pod template is unchanged"
        else:
            found.append(
                VersionPlan(
                    build_id=one.build_id,
                    status=VersionStatus.NOT_REGISTERED,
                    deployment=one.name,
                    action=VersionAction.KEEP,
                    because="it is recorded",
                    reason=VersionReason.MAY_BE_NEEDED,
                    replicas=None if spec.replicas_are_external else max(one.replicas, 1),
                    protected=True,
                    recorded=known,
                )
            )
            continue
        told.append(f"{spec.worker_deployment}: Deployment {one.name} is not recorded: {why}; {_LASTS}")
    return Recordable(tuple(found), tuple(told))
