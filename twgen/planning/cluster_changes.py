"""The changes of a rollout in its cluster: replicas that no render applies, owners, swaps and leftovers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from twgen.model.operator import GroupKind
from twgen.model.plan import AttachedObject, VersionAction, VersionPlan, WorkerVersions
from twgen.model.spec import AttachedResource
from twgen.model.values import dataclass
from twgen.planning.drivers import is_applied_by_hook
from twgen.versioning.names import attached_resource_name


@dataclass(frozen=True, slots=True)
class ReplicasChange:
    """The replicas that a rollout sets; it then owns the field together with the client that applied it."""

    deployment: str
    replicas: int
    because: str
    resource_version: str
    """Of the Deployment when it was read: an autoscaler may have scaled it after that."""


class Condition(NamedTuple):
    """A condition in the status of an object."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class AttachedInCluster:
    """A live object that twgen attached to a version of a worker."""

    kind: GroupKind
    path: str
    """The path of the object in the API."""
    api_version: str
    """The version of the API in that path."""
    name: str
    uid: str
    owners: frozenset[str]
    """The UIDs of its owners."""
    is_going: bool = False
    """It was deleted, but still has a finalizer."""
    conditions: tuple[Condition, ...] = ()


def replica_changes(worker: WorkerVersions) -> Iterator[ReplicasChange]:
    """The replicas of autoscaled versions that a render still has to apply, or cannot change soon enough.

    If the only owner of a field no longer applies it, the field goes back to its default: one pod of five.
    """
    for version in worker.versions:
        live = version.live if version.replicas_are_external else None
        if not live or version.replicas is None or not version.protected:
            continue
        if not live.replicas and version.replicas:
            # only KEDA scales up from zero
            needed, because = version.replicas, "it is needed but has no pods"
        elif live.replicas == version.replicas and not live.replicas_are_external:
            needed, because = live.replicas, "its autoscaler changes them from now on"
        else:
            continue
        yield ReplicasChange(version.deployment, needed, because, live.resource_version)


class Owning(NamedTuple):
    """An attached object, and the versioned Deployment that is to own it."""

    item: AttachedInCluster
    deployment: str
    uid: str
    """The UID of that Deployment."""


class Swap(NamedTuple):
    """Objects that the templates of a version no longer make, and those that replace them at once."""

    version: VersionPlan
    old: tuple[AttachedInCluster, ...]
    """The replaced objects that still exist."""
    following: tuple[AttachedResource, ...]
    gone: tuple[str, ...]
    """All replaced objects, as `Kind/name`, which the Deployment is to list after the swap."""


def unowned(
    worker: WorkerVersions, live_objects: Iterable[AttachedInCluster], *, has_hook: bool = False
) -> Iterator[Owning]:
    """The attached objects without an owner: their Deployment had no UID when they were rendered.

    If an object may leave its version, and syncs apply it, only the render sets its owner, since the render
    can remove it again: Argo CD does not prune an object that has an owner.
    """
    owners = {
        named: version.live
        for version in worker.versions
        if version.live and version.live.uid
        for named, resource in resources_of(worker, version, (*version.attached, *version.following))
        if not resource.when or (has_hook and is_applied_by_hook(worker.spec, resource))
    }
    for item in live_objects:
        live = owners.get((item.kind, item.name))
        if live and live.uid not in item.owners and not item.is_going:
            yield Owning(item, live.name, live.uid)


def swaps(worker: WorkerVersions, live_objects: Sequence[AttachedInCluster]) -> Iterator[Swap]:
    """The swap of each version whose Deployment lists replaced objects: no render deletes these."""
    for version in worker.versions:
        if version.live and version.replaced:
            names = {(item.kind, item.name) for item in version.replaced}
            old = tuple(item for item in live_objects if (item.kind.kind, item.name) in names)
            present = {(item.kind, item.name) for item in live_objects}
            following = resources_of(worker, version, version.following)
            replaced_names = sorted({*version.live.gone, *(f"{kind}/{name}" for kind, name in names)})
            missing = tuple(resource for named, resource in following if named not in present)
            yield Swap(version, old, missing, tuple(replaced_names))


def resources_of(
    worker: WorkerVersions, version: VersionPlan, objects: Iterable[AttachedObject]
) -> Iterator[tuple[tuple[GroupKind, str], AttachedResource]]:
    """The kinds and names of these objects of a version, each with the resource that it is a copy of."""
    names = {item.name for item in objects}
    for resource in worker.spec.attached if names else ():
        name = attached_resource_name(worker.spec.name, resource.name, version.build_id)
        if name in names:
            yield (GroupKind.of(resource.template), name), resource


def left_over(
    worker: WorkerVersions, live_objects: Iterable[AttachedInCluster], *, has_hook: bool = False
) -> Iterator[AttachedInCluster]:
    """The attached objects whose template is gone, or is not for their version, while their owner stays.

    Argo CD does not prune an object with an owner, and it prunes those without one. The objects of a swap are
    not among them. With a hook, no sync prunes the objects that its Job applies.
    """
    spec, versions = worker.spec, worker.versions
    owners = {version.live.uid for version in versions if version.live and version.live.uid}
    by_status = any(resource.when for resource in spec.attached)
    kept_objects = set()
    for version in versions:
        names = {item.name for item in (*version.attached, *version.following)}
        leaving = {item.name for item in version.leaving}
        for resource in spec.attached:
            name = attached_resource_name(spec.name, resource.name, version.build_id)
            is_pruned = name in leaving and not (has_hook and is_applied_by_hook(spec, resource))
            # the objects of a version that goes are deleted with their owner
            if name in names or is_pruned or not by_status or version.action is VersionAction.DROP:
                kept_objects.add((GroupKind.of(resource.template), name))
    swapped = {(item.kind, item.name) for version in versions for item in version.replaced}
    for item in live_objects:
        is_kept = (item.kind, item.name) in kept_objects or (item.kind.kind, item.name) in swapped
        if item.owners & owners and not is_kept and not item.is_going:
            yield item
