"""Which attached resources a version gets a copy of, and what sets its replicas."""

from collections.abc import Iterable
from typing import NamedTuple

from twgen.model.plan import AttachedObject
from twgen.model.spec import AttachedResource, AttachedWhile, WorkerSpec
from twgen.planning.version_status import IN_ROUTING
from twgen.planning.versions.facts import VersionFacts
from twgen.versioning.names import attached_resource_name

_STATUSES = {word.value: word for word in AttachedWhile}
_SCALES_FROM_ZERO = {"HorizontalPodAutoscaler": False, "ScaledObject": True}
"""Of each kind that sets replicas."""


class AttachedTo(NamedTuple):
    """The attached resources of one version."""

    kept: tuple[AttachedResource, ...]
    leaving: tuple[AttachedResource, ...] = ()
    """What it has a copy of, and should not any more."""
    replaced: tuple[AttachedObject, ...] = ()
    """Objects that it has, and that no template makes any more."""
    following: tuple[AttachedResource, ...] = ()
    """What takes their place."""


def attached_to(version: VersionFacts) -> AttachedTo:
    """The attached resources of a version, by its status.

    What goes is rendered once more, so that it can be pruned. What takes its place waits for that: two
    autoscalers of one Deployment stop each other, and no pod that has two budgets can be evicted. It waits
    for what has no template any more too, until that is known to be gone.
    """
    resources, replaced = version.spec.attached, _replaced(version)
    if not replaced and not any(resource.when for resource in resources):
        return AttachedTo(resources)
    wanted = [resource for resource in resources if _is_wanted(version, resource)]
    leaving = [item for item in resources if item not in wanted and _is_there(version, item)]
    scalers = {*_SCALES_FROM_ZERO, *(resource.kind for resource in resources if resource.autoscales)}

    def deed(item: AttachedResource | AttachedObject) -> str:
        return "replicas" if item.kind in scalers else item.kind

    went = {*map(deed, replaced)}
    deeds = {*map(deed, leaving), *went}
    kept = tuple(item for item in wanted if deed(item) not in deeds or _is_there(version, item))
    following = tuple(item for item in wanted if item not in kept and deed(item) in went)
    return AttachedTo(kept, tuple(leaving), replaced, following)


def autoscalers_of(version: VersionFacts) -> list[AttachedResource]:
    """What sets the replicas of a version; where no cluster was read, all that may still be there."""
    resources = version.spec.attached
    if version.world.deployments is not None and resources:
        found = attached_to(version)
        resources = (*found.kept, *found.leaving)
    return [
        *(resource for resource in resources if resource.autoscales),
        *(
            AttachedResource(item.name, {"kind": item.kind}, True, _SCALES_FROM_ZERO[item.kind])  # noqa: FBT003 - as it is
            for item in _replaced(version)
            if item.kind in _SCALES_FROM_ZERO
        ),
    ]


def replicas_are_external(version: VersionFacts) -> bool:
    """Only an autoscaler or a person decides the replicas of a version."""
    said = version.spec.replicas if not version.patch else version.patch.replicas or version.spec.replicas
    return said is None or bool(autoscalers_of(version))


def objects_of(
    spec: WorkerSpec, build_id: str, resources: Iterable[AttachedResource]
) -> tuple[AttachedObject, ...]:
    """What a version's copies are called."""
    return tuple(
        AttachedObject(resource.kind, attached_resource_name(spec.name, resource.name, build_id))
        for resource in resources
    )


def _is_wanted(version: VersionFacts, resource: AttachedResource) -> bool:
    if not resource.when:
        return True
    word = _STATUSES.get(version.status)
    if version.is_target:
        # one that drains comes back: what is for draining versions would only come and go
        moved = {word} if word and version.status in IN_ROUTING else set()
        return not resource.when.isdisjoint({AttachedWhile.TARGET, *moved})
    if word:
        return word in resource.when
    # its status is unknown, so what it has stays; without any of ours it may have work
    if any(item.when and _is_there(version, item) for item in version.spec.attached):
        return _is_there(version, resource)
    return AttachedWhile.DRAINING in resource.when


def _is_there(version: VersionFacts, resource: AttachedResource) -> bool:
    [item] = objects_of(version.spec, version.build_id, [resource])
    return version.live is not None and f"{item.kind}/{item.name}" in version.live.attached


def _replaced(version: VersionFacts) -> tuple[AttachedObject, ...]:
    if not version.live or not version.live.attached:
        return ()
    objects = objects_of(version.spec, version.build_id, version.spec.attached)
    made = {f"{item.kind}/{item.name}" for item in objects}
    there = (item.partition("/") for item in version.live.attached if item not in made)
    return tuple(AttachedObject(kind, name) for kind, _, name in there if name)
