"""The changes that a rollout makes in its cluster, to replicas and to attached objects."""

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
    """A rollout's change to the replicas.

    The rollout becomes a field manager of the replicas, in addition to the client that applied them.
    """

    deployment: str
    replicas: int
    because: str
    resource_version: str
    """The Deployment's resource version. The write fails if an autoscaler has scaled the Deployment in the
    meantime."""


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
    """The path of the object in the Kubernetes API."""
    api_version: str
    """The API version in the path."""
    name: str
    uid: str
    owners: frozenset[str]
    """The UIDs of the object's owners."""
    is_going: bool = False
    """Whether the object is being deleted, but still exists because of a finalizer."""
    conditions: tuple[Condition, ...] = ()


def replica_changes(worker: WorkerVersions) -> Iterator[ReplicasChange]:
    """The replicas to set for autoscaled versions that need pods, or whose autoscaler takes over.

    If the only field manager of `spec.replicas` stops applying the field, Kubernetes resets the field to its
    default of one replica.
    """
    for version in worker.versions:
        live = version.live if version.replicas_are_external else None
        if not live or version.replicas is None or not version.protected:
            continue
        if not live.replicas and version.replicas:
            # KEDA is the only autoscaler that scales up from zero
            needed, because = version.replicas, "it is needed but has no pods"
        elif live.replicas == version.replicas and not live.replicas_are_external:
            needed, because = live.replicas, "its autoscaler changes the replicas from now on"
        else:
            continue
        yield ReplicasChange(version.deployment, needed, because, live.resource_version)


class Owning(NamedTuple):
    """An attached object, and the versioned Deployment that should own it."""

    item: AttachedInCluster
    deployment: str
    uid: str
    """The UID of the Deployment that should own the object."""


class AttachedRecord(NamedTuple):
    """The objects that a rollout records on a Deployment for the next render, each as `Kind/name`."""

    added: frozenset[str] = frozenset()
    """The objects that the rollout attached. The applied manifest might not list these objects yet."""
    gone: frozenset[str] = frozenset()
    """The objects that the rollout deleted. The applied manifest might still list these objects."""

    def adding(self, *names: str) -> "AttachedRecord":
        """The record to write before these objects are attached."""
        return AttachedRecord(self.added.union(names), self.gone.difference(names))

    def deleting(self, *names: str) -> "AttachedRecord":
        """The record to write after these objects have been deleted."""
        return AttachedRecord(self.added.difference(names), self.gone.union(names))


class Swap(NamedTuple):
    """The replacement of a version's attached objects whose template no longer exists."""

    version: VersionPlan
    old: tuple[AttachedInCluster, ...]
    """The objects to delete."""
    following: tuple[AttachedResource, ...]
    """The templates of the objects to create."""
    before: AttachedRecord
    """The record to write before the swap. If the commit is reverted, twgen must know the new objects."""
    after: AttachedRecord


def unowned(
    worker: WorkerVersions, live_objects: Iterable[AttachedInCluster], *, has_hook: bool = False
) -> Iterator[Owning]:
    """The attached objects that have no owner, because their Deployment had no UID when they were rendered.

    Objects with a `when` are skipped if a sync applies them, since only a render is allowed to set their
    owner. Argo CD does not prune an object that has an owner, but a render can remove the owner first.
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
    """A swap for each version whose Deployment lists replaced objects, which no render deletes."""
    for version in worker.versions:
        if version.live and version.replaced:
            names = {(item.kind, item.name) for item in version.replaced}
            old = tuple(item for item in live_objects if (item.kind.kind, item.name) in names)
            present = {(item.kind, item.name) for item in live_objects}
            following = resources_of(worker, version, version.following)
            missing = tuple(resource for named, resource in following if named not in present)
            before = attached_record(version).adding(*map(str, version.following))
            yield Swap(version, old, missing, before, before.deleting(*map(str, version.replaced)))


def attached_record(version: VersionPlan) -> AttachedRecord:
    """The current record on a version's Deployment."""
    live = version.live
    return AttachedRecord(frozenset(live.added), frozenset(live.gone)) if live else AttachedRecord()


def resources_of(
    worker: WorkerVersions, version: VersionPlan, objects: Iterable[AttachedObject]
) -> Iterator[tuple[tuple[GroupKind, str], AttachedResource]]:
    """The kind, name and template of each of the given objects of a version."""
    names = {item.name for item in objects}
    for resource in worker.spec.attached if names else ():
        name = attached_resource_name(worker.spec.name, resource.name, version.build_id)
        if name in names:
            yield (GroupKind.of(resource.template), name), resource


def left_over(
    worker: WorkerVersions, live_objects: Iterable[AttachedInCluster], *, has_hook: bool = False
) -> Iterator[AttachedInCluster]:
    """The attached objects that a version no longer needs in its present status, and that no sync prunes.

    Argo CD does not prune objects that have an owner. With driver Hook, it does not prune objects that the
    hook's Job applies either. Objects without a template are skipped: `swaps` handles the objects that the
    Deployment lists, and other objects might belong to a person.
    """
    unwanted = {}
    for version in worker.versions:
        # the objects of a dropped version are deleted together with their owner
        if not version.live or version.action is VersionAction.DROP:
            continue
        wanted = {item.name for item in (*version.attached, *version.following, *version.waiting)}
        leaving = {item.name for item in version.leaving}
        for resource in worker.spec.attached:
            name = attached_resource_name(worker.spec.name, resource.name, version.build_id)
            is_pruned = name in leaving and not (has_hook and is_applied_by_hook(worker.spec, resource))
            if resource.when and name not in wanted and not is_pruned:
                unwanted[GroupKind.of(resource.template), name] = version.live.uid
    for item in live_objects:
        if unwanted.get((item.kind, item.name)) in item.owners and not item.is_going:
            yield item
