"""What comes next if nothing changes but the time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from twgen.model.plan import RoutingAction, RoutingPlan, VersionAction, VersionPlan
from twgen.model.spec import WorkerSpec
from twgen.model.world import VersionStatus, World
from twgen.planning.routing import plan_worker_routing
from twgen.planning.target import Target
from twgen.planning.versions import plan_worker_versions, worker_world


@dataclass(frozen=True, slots=True)
class LaterAction:
    """What becomes of a version's Deployment at a later time."""

    action: VersionAction
    at: datetime


def change_when_due(target: Target, identity: str, routing: RoutingPlan) -> RoutingPlan | None:
    """The change of traffic when the waiting of this plan ends; None: time alone brings none."""
    if not routing.due_at:
        return None
    later = plan_worker_routing(replace(target, now=routing.due_at + datetime.resolution), identity)
    return later if later.action is not RoutingAction.NONE else None


def next_action(spec: WorkerSpec, world: World, version: VersionPlan, now: datetime) -> LaterAction | None:
    """What the sunset brings next to a version after what becomes of it now; None: nothing that is known."""
    for at in _sunset_times(spec, world, version):
        if at <= now:
            continue
        later = plan_worker_versions(spec, world, at + datetime.resolution).versions
        planned = next((item for item in later if item.build_id == version.build_id), None)
        if planned and planned.action is not version.action:
            return LaterAction(planned.action, at)
    return None


def _sunset_times(spec: WorkerSpec, world: World, version: VersionPlan) -> Iterator[datetime]:
    target = Target(spec, worker_world(spec, world), world.taken_at)
    known = target.temporal_version(version.build_id)
    if not known or version.build_id == spec.build_id:
        return
    both = spec.sunset.scaledown_delay + spec.sunset.delete_delay
    if version.status is VersionStatus.DRAINED and known.drainage and known.drainage.changed_at:
        yield known.drainage.changed_at + spec.sunset.scaledown_delay
        yield known.drainage.changed_at + both
    elif version.status is VersionStatus.INACTIVE and known.created_at:
        yield known.created_at + both
