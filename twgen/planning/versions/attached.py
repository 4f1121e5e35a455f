"""The attached resources that a version gets copies of, and the autoscalers that set its replicas."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from twgen.model.plan import AttachedObject, WorkerVersions
from twgen.model.spec import AttachedResource, AttachedWhile
from twgen.model.world import Autoscaler
from twgen.planning.sentences import listed
from twgen.planning.version_status import IN_ROUTING
from twgen.planning.versions.facts import VersionFacts
from twgen.versioning.names import attached_resource_name

_STATUSES = {word.value: word for word in AttachedWhile}
_SCALES_FROM_ZERO = {"HorizontalPodAutoscaler": False, "ScaledObject": True}
"""The kinds that set replicas, and whether they scale up from zero."""


class AttachedTo(NamedTuple):
    """The attached resources of one version."""

    kept: tuple[AttachedResource, ...]
    leaving: tuple[AttachedResource, ...] = ()
    """The resources whose copies it has, and should no longer have."""
    replaced: tuple[AttachedObject, ...] = ()
    """Its objects that no template makes any more."""
    following: tuple[AttachedResource, ...] = ()
    """The resources that replace these objects."""
    waiting: tuple[AttachedResource, ...] = ()
    """The autoscalers whose decisions Argo CD would undo now."""


def attached_to(version: VersionFacts) -> AttachedTo:
    """The attached resources of a version, by its status.

    A leaving object is rendered once more, so that it can be pruned. Its replacement waits for that: two
    autoscalers of one Deployment block each other, and a pod with two budgets cannot be evicted. It also
    waits for an object without a template, until that is known to be deleted.
    """
    resources, replaced, live = version.spec.attached, _replaced(version), version.live
    has_to_wait = live is not None and live.falls_to_one and live.replicas > 1
    if not live or not (replaced or has_to_wait or any(resource.when for resource in resources)):
        return AttachedTo(tuple(item for item in resources if _is_wanted(version, item)))
    due = [resource for resource in resources if _is_wanted(version, resource)]
    leaving = [item for item in resources if item not in due and _has_copy(version, item)]
    scalers = {*_SCALES_FROM_ZERO, *(resource.kind for resource in resources if resource.autoscales)}

    def role(item: AttachedResource | AttachedObject) -> str:
        return "replicas" if item.kind in scalers else item.kind

    replaced_roles = {*map(role, replaced)}
    # the rollout may have deleted some objects of these roles already
    unclear_roles = {role(item) for item in replaced if str(item) in live.added}
    rendered, by_rollout, waiting = [], [], []
    for item in due:
        copy = _copy_of(version, item)
        is_there = copy in live.attached and copy not in live.added and role(item) not in unclear_roles
        # an object that counts as gone would be hidden until the rollout has updated its record
        follows = role(item) in replaced_roles or (bool(replaced) and copy in live.gone)
        is_new_scaler = item.autoscales and copy not in {*live.attached, *live.added}
        if is_new_scaler and (has_to_wait or (follows and live.replicas_are_synced)):
            waiting.append(item)
        elif is_there or not (follows or role(item) in map(role, leaving)):
            rendered.append(item)
        elif follows:
            by_rollout.append(item)
    return AttachedTo(tuple(rendered), tuple(leaving), replaced, tuple(by_rollout), tuple(waiting))


def autoscalers_of(version: VersionFacts) -> list[AttachedResource]:
    """The autoscalers of a version; if no cluster was read, all that may still exist."""
    resources = version.spec.attached
    if version.world.deployments is not None and resources:
        attached = attached_to(version)
        resources = (*attached.kept, *attached.leaving, *attached.waiting)
    return [
        *(resource for resource in resources if resource.autoscales),
        *(
            AttachedResource(item.name, {"kind": item.kind}, True, _SCALES_FROM_ZERO[item.kind])  # noqa: FBT003 - as it is
            for item in _replaced(version)
            if item.kind in _SCALES_FROM_ZERO
        ),
    ]


def replicas_are_external(version: VersionFacts) -> bool:
    """Only an autoscaler or a person sets the replicas of a version."""
    replicas = version.spec.replicas if not version.patch else version.patch.replicas or version.spec.replicas
    return replicas is None or bool(autoscalers_of(version))


def rival_autoscalers(worker: WorkerVersions, autoscalers: Sequence[Autoscaler]) -> Iterator[str]:
    """A warning about each Deployment with more than one of these autoscalers, whoever made them."""
    for version in worker.versions if len(autoscalers) > 1 else ():
        rivals = [item for item in autoscalers if version.live and item.deployment == version.live.name]
        if len(rivals) > 1:
            names = {str(item): f"{item.kind} {item.name}" for item in rivals}
            templated = {*map(str, (*version.attached, *version.following))}
            own = [name for item, name in names.items() if item in templated]
            going = [name for item, name in names.items() if item in map(str, version.replaced)]
            yield (
                f"{version.build_id}: {listed([*names.values()])} scale the same Deployment, and each undoes"
                f" the decisions of the others: keep only {own[0] if len(own) == 1 else 'one of them'}"
                + (f"; its rollout deletes {listed(going)}" if going else "")
            )


def objects_of(version: VersionFacts, resources: Iterable[AttachedResource]) -> tuple[AttachedObject, ...]:
    """The kinds and names of a version's copies."""
    return tuple(
        AttachedObject(item.kind, attached_resource_name(version.spec.name, item.name, version.build_id))
        for item in resources
    )


def _is_wanted(version: VersionFacts, resource: AttachedResource) -> bool:
    if not resource.when:
        return True
    word = _STATUSES.get(version.status)
    if version.is_target:
        # a draining target gets traffic again: objects for draining versions would only come and go
        moved = {word} if word and version.status in IN_ROUTING else set()
        return not resource.when.isdisjoint({AttachedWhile.TARGET, *moved})
    if word:
        return word in resource.when
    # its status is unknown, so its copies stay; without any copy, it may have work
    if any(item.when and _has_copy(version, item) for item in version.spec.attached):
        return _has_copy(version, resource)
    return AttachedWhile.DRAINING in resource.when


def _copy_of(version: VersionFacts, resource: AttachedResource) -> str:
    [item] = objects_of(version, [resource])
    return str(item)


def _has_copy(version: VersionFacts, resource: AttachedResource) -> bool:
    return version.live is not None and _copy_of(version, resource) in version.live.attached


def _replaced(version: VersionFacts) -> tuple[AttachedObject, ...]:
    if not version.live or not (named := dict.fromkeys((*version.live.attached, *version.live.added))):
        return ()
    templated = {*map(str, objects_of(version, version.spec.attached))}
    untemplated = (item.partition("/") for item in named if item not in templated)
    return tuple(AttachedObject(kind, name) for kind, _, name in untemplated if name)
