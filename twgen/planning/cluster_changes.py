"""What a rollout changes in its cluster beside the traffic: replicas that nobody applies, and leftovers."""

from collections.abc import Iterable, Iterator

from twgen.model.operator import GroupKind
from twgen.model.plan import VersionAction, WorkerVersions
from twgen.model.values import dataclass
from twgen.versioning.names import attached_resource_name


@dataclass(frozen=True, slots=True)
class ReplicasChange:
    """The replicas that a rollout sets, and so holds together with whoever applied them."""

    deployment: str
    replicas: int
    because: str
    resource_version: str
    """Of the Deployment as it was read: an autoscaler may have scaled it since."""


@dataclass(frozen=True, slots=True)
class AttachedInCluster:
    """A live object that twgen attached to a version of a worker."""

    kind: GroupKind
    path: str
    """Of the object, in the API."""
    name: str
    uid: str
    owners: frozenset[str]
    """Their UIDs."""


def replica_changes(worker: WorkerVersions) -> Iterator[ReplicasChange]:
    """The replicas of autoscaled versions that a render still has to say, or cannot change soon enough.

    A field that its only holder leaves out of what it applies goes back to its default: one pod of five.
    """
    for version in worker.versions:
        live = version.live if version.replicas_are_external else None
        if not live or version.replicas is None or not version.protected:
            continue
        if not live.replicas and version.replicas:
            # no autoscaler but KEDA ever leaves zero
            needed, because = version.replicas, "it is needed, and has no pods"
        elif live.replicas == version.replicas and not live.replicas_are_external:
            needed, because = live.replicas, "its autoscaler decides from now on"
        else:
            continue
        yield ReplicasChange(version.deployment, needed, because, live.resource_version)


def left_over(worker: WorkerVersions, found: Iterable[AttachedInCluster]) -> Iterator[AttachedInCluster]:
    """The attached objects whose template is gone, or is not for their version, while their owner stays.

    Argo CD prunes no object that has an owner, and one without an owner is Argo CD's.
    """
    spec, versions = worker.spec, worker.versions
    owners = {version.live.uid for version in versions if version.live and version.live.uid}
    by_status = any(resource.when for resource in spec.attached)
    wanted = set()
    for version in versions:
        names = {item.name for item in (*version.attached, *version.leaving)}
        for resource in spec.attached:
            name = attached_resource_name(spec.name, resource.name, version.build_id)
            # those of a version that goes are its owner's
            if name in names or not by_status or version.action is VersionAction.DROP:
                wanted.add((GroupKind.of(resource.template), name))
    return (item for item in found if item.owners & owners and (item.kind, item.name) not in wanted)
