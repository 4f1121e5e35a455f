"""What a rollout changes in its cluster besides traffic: replicas that no render applies, and leftovers."""

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
    """The replicas that a rollout sets, and so owns together with the client that applied them."""

    deployment: str
    replicas: int
    because: str
    resource_version: str
    """Of the Deployment as it was read: an autoscaler may have scaled it since."""


class Condition(NamedTuple):
    """What an object says of itself."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class AttachedInCluster:
    """A live object that twgen attached to a version of a worker."""

    kind: GroupKind
    path: str
    """Of the object, in the API."""
    api_version: str
    """By which that path reads it."""
    name: str
    uid: str
    owners: frozenset[str]
    """Their UIDs."""
    is_going: bool = False
    """It has been deleted, and still has a finalizer."""
    conditions: tuple[Condition, ...] = ()


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
            needed, because = version.replicas, "it is needed but has no pods"
        elif live.replicas == version.replicas and not live.replicas_are_external:
            needed, because = live.replicas, "its autoscaler changes them from now on"
        else:
            continue
        yield ReplicasChange(version.deployment, needed, because, live.resource_version)


class Owning(NamedTuple):
    """An attached object that its versioned Deployment is to own."""

    item: AttachedInCluster
    deployment: str
    uid: str
    """Of that Deployment."""


class Swap(NamedTuple):
    """What a version's templates make no more, and what takes its place at once."""

    version: VersionPlan
    old: tuple[AttachedInCluster, ...]
    """What is still there."""
    following: tuple[AttachedResource, ...]
    gone: tuple[str, ...]
    """What the Deployment is to say of it then, as `Kind/name`."""


def unowned(
    worker: WorkerVersions, found: Iterable[AttachedInCluster], *, has_hook: bool = False
) -> Iterator[Owning]:
    """The attached objects that go with no Deployment yet: none had a UID when they were rendered.

    One that may leave its version, and that syncs apply, gets its owner by the render alone, which can take
    it away again: Argo CD prunes nothing that has one.
    """
    owners = {
        named: version.live
        for version in worker.versions
        if version.live and version.live.uid
        for named, resource in resources_of(worker, version, (*version.attached, *version.following))
        if not resource.when or (has_hook and is_applied_by_hook(worker.spec, resource))
    }
    for item in found:
        live = owners.get((item.kind, item.name))
        if live and live.uid not in item.owners and not item.is_going:
            yield Owning(item, live.name, live.uid)


def swaps(worker: WorkerVersions, found: Sequence[AttachedInCluster]) -> Iterator[Swap]:
    """What goes of each version, by the word of its Deployment: no render takes it away."""
    for version in worker.versions:
        if version.live and version.replaced:
            names = {(item.kind, item.name) for item in version.replaced}
            old = tuple(item for item in found if (item.kind.kind, item.name) in names)
            there = {(item.kind, item.name) for item in found}
            following = resources_of(worker, version, version.following)
            gone = sorted({*version.live.gone, *(f"{kind}/{name}" for kind, name in names)})
            missing = tuple(resource for named, resource in following if named not in there)
            yield Swap(version, old, missing, tuple(gone))


def resources_of(
    worker: WorkerVersions, version: VersionPlan, objects: Iterable[AttachedObject]
) -> Iterator[tuple[tuple[GroupKind, str], AttachedResource]]:
    """The kinds and names of these objects of a version, each with what it is a copy of."""
    names = {item.name for item in objects}
    for resource in worker.spec.attached if names else ():
        name = attached_resource_name(worker.spec.name, resource.name, version.build_id)
        if name in names:
            yield (GroupKind.of(resource.template), name), resource


def left_over(
    worker: WorkerVersions, found: Iterable[AttachedInCluster], *, has_hook: bool = False
) -> Iterator[AttachedInCluster]:
    """The attached objects whose template is gone, or is not for their version, while their owner stays.

    Argo CD prunes no object that has an owner, and one without an owner is Argo CD's. What a swap takes is
    not among them, and where there is a hook, no sync prunes what its Job applies.
    """
    spec, versions = worker.spec, worker.versions
    owners = {version.live.uid for version in versions if version.live and version.live.uid}
    by_status = any(resource.when for resource in spec.attached)
    wanted = set()
    for version in versions:
        names = {item.name for item in (*version.attached, *version.following)}
        leaving = {item.name for item in version.leaving}
        for resource in spec.attached:
            name = attached_resource_name(spec.name, resource.name, version.build_id)
            is_pruned = name in leaving and not (has_hook and is_applied_by_hook(spec, resource))
            # those of a version that goes are its owner's
            if name in names or is_pruned or not by_status or version.action is VersionAction.DROP:
                wanted.add((GroupKind.of(resource.template), name))
    swapped = {(item.kind, item.name) for version in versions for item in version.replaced}
    for item in found:
        is_wanted = (item.kind, item.name) in wanted or (item.kind.kind, item.name) in swapped
        if item.owners & owners and not is_wanted and not item.is_going:
            yield item
