"""The attached resources that a version gets copies of, and the autoscalers that set its replicas."""

from collections.abc import Iterable
from typing import NamedTuple

from twgen.model.plan import AttachedObject
from twgen.model.spec import AttachedResource, AttachedWhile, WorkerSpec
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


def attached_to(version: VersionFacts) -> AttachedTo:
    """The attached resources of a version, by its status.

    A leaving object is rendered once more, so that it can be pruned. Its replacement waits for that: two
    autoscalers of one Deployment block each other, and a pod with two budgets cannot be evicted. It also
    waits for an object without a template, until that is known to be deleted.
    """
    resources, replaced = version.spec.attached, _replaced(version)
    if not replaced and not any(resource.when for resource in resources):
        return AttachedTo(resources)
    due = [resource for resource in resources if _is_wanted(version, resource)]
    leaving = [item for item in resources if item not in due and _has_copy(version, item)]
    scalers = {*_SCALES_FROM_ZERO, *(resource.kind for resource in resources if resource.autoscales)}

    def role(item: AttachedResource | AttachedObject) -> str:
        return "replicas" if item.kind in scalers else item.kind

    replaced_roles = {*map(role, replaced)}
    blocked_roles = {*map(role, leaving), *replaced_roles}
    kept = tuple(item for item in due if role(item) not in blocked_roles or _has_copy(version, item))
    following = tuple(item for item in due if item not in kept and role(item) in replaced_roles)
    return AttachedTo(kept, tuple(leaving), replaced, following)


def autoscalers_of(version: VersionFacts) -> list[AttachedResource]:
    """The autoscalers of a version; if no cluster was read, all that may still exist."""
    resources = version.spec.attached
    if version.world.deployments is not None and resources:
        attached = attached_to(version)
        resources = (*attached.kept, *attached.leaving)
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


def objects_of(
    spec: WorkerSpec, build_id: str, resources: Iterable[AttachedResource]
) -> tuple[AttachedObject, ...]:
    """The kinds and names of a version's copies."""
    return tuple(
        AttachedObject(resource.kind, attached_resource_name(spec.name, resource.name, build_id))
        for resource in resources
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


def _has_copy(version: VersionFacts, resource: AttachedResource) -> bool:
    [item] = objects_of(version.spec, version.build_id, [resource])
    return version.live is not None and f"{item.kind}/{item.name}" in version.live.attached


def _replaced(version: VersionFacts) -> tuple[AttachedObject, ...]:
    if not version.live or not version.live.attached:
        return ()
    objects = objects_of(version.spec, version.build_id, version.spec.attached)
    templated = {f"{item.kind}/{item.name}" for item in objects}
    untemplated = (item.partition("/") for item in version.live.attached if item not in templated)
    return tuple(AttachedObject(kind, name) for kind, _, name in untemplated if name)
