"""The state of the objects that are attached to the versions of a worker."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from twgen.model.operator import GroupKind
from twgen.model.plan import VersionPlan, WorkerVersions
from twgen.model.status import AttachedState, AttachedView, RolloutStatus
from twgen.planning.cluster_changes import AttachedInCluster

# only known conditions count, and none holds a ramp: the pods may serve anyway
_FAILS = {
    "AbleToScale": "False",  # these two of a HorizontalPodAutoscaler
    "ScalingActive": "False",
    "Ready": "False",  # these two of a ScaledObject
    "Fallback": "True",
    "DisruptionAllowed": "False",  # of a PodDisruptionBudget
    "ConfigUnsupported": "True",  # of a VerticalPodAutoscaler
    "Available": "False",  # by convention, of other kinds
    "Degraded": "True",
    "Failed": "True",
    "Stalled": "True",
}
"""The status by which a condition reports that its object does not work."""
_FINE = {
    ("ScalingActive", "ScalingDisabled"),  # there are no pods
    ("DisruptionAllowed", "InsufficientPods"),  # the budget does its work
}
"""Conditions, with their reasons, that are not a problem."""
_WHY_MISSING = "it was deleted, or the API server rejected it: the last sync shows which"
_MOST_CHARACTERS = 500
"""Of a condition's message."""
_WHY_WAITING = "it waits until Argo CD no longer sets the replicas"
NamedObject = tuple[str, str, str]
"""The namespace, the kind and the name of an object."""


class AttachedRead(NamedTuple):
    """The objects that twgen attached to versions in one namespace, as far as they were read."""

    found: tuple[AttachedInCluster, ...]
    unread: Mapping[str, str] = {}
    """Why the objects of a kind could not be read, by kind."""


def attached_to_read(workers: Iterable[WorkerVersions]) -> dict[str, set[GroupKind]]:
    """The kinds of the objects that are attached to live versions, by Kubernetes namespace."""
    kinds_by_namespace: dict[str, set[GroupKind]] = {}
    for worker in workers:
        kinds = {item.kind for version in worker.versions if version.live for item in version.attached}
        groups = {GroupKind.of(resource.template) for resource in worker.spec.attached}
        if live_groups := {group for group in groups if group.kind in kinds}:
            kinds_by_namespace.setdefault(worker.spec.namespace, set()).update(live_groups)
    return kinds_by_namespace


def attached_views(version: VersionPlan, read: AttachedRead | None) -> tuple[AttachedView, ...]:
    """The state of each object that is or will be attached to a version; None: none of them was read."""
    live_objects = {(item.kind.kind, item.name): item for item in read.found} if read else {}
    rendered = version.live.attached if version.live else ()
    views = []
    for item in version.attached:
        live, message = live_objects.get((item.kind, item.name)), ""
        if not read or item.kind in read.unread:
            state = AttachedState.UNREAD
        elif live:
            message = _problems_of(live)
            state = AttachedState.FAILING if message else AttachedState.READY
        else:
            # an object that was never applied is not missing
            is_applied = str(item) in rendered
            state = AttachedState.MISSING if is_applied else AttachedState.PENDING
            message = _WHY_MISSING if is_applied else ""
        views.append(AttachedView(item.kind, item.name, state, message))
    pending = AttachedState.PENDING
    views += [AttachedView(item.kind, item.name, pending, _WHY_WAITING) for item in version.waiting]
    return tuple(views)


def with_refusals(status: RolloutStatus, refused: Mapping[NamedObject, str]) -> RolloutStatus:
    """The status with the missing objects that a sync could not apply, and why."""
    namespace = status.worker.partition("/")[0]

    def with_refusal(item: AttachedView) -> AttachedView:
        why = refused.get((namespace, item.kind, item.name))
        if why is None or item.state not in {AttachedState.MISSING, AttachedState.PENDING}:
            return item
        return replace(item, state=AttachedState.REFUSED, says=why[:_MOST_CHARACTERS])

    versions = status.details.versions if status.details else ()
    return status.with_details(
        versions=tuple(
            replace(version, attached=tuple(map(with_refusal, version.attached))) for version in versions
        )
    )


def _problems_of(item: AttachedInCluster) -> str:
    """The problems that an object reports about itself; empty: none."""
    if item.is_going:
        return "it is being deleted"
    problems = []
    for kind, status, reason, message in item.conditions:
        if _FAILS.get(kind) == status and (kind, reason) not in _FINE:
            why = ": ".join(filter(None, (reason, message[:_MOST_CHARACTERS])))
            problems.append(f"{kind} is {status}" + (f" ({why})" if why else ""))
    return "; ".join(problems)
