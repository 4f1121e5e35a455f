"""Where every worker stands, as a value: what the reports of `twgen status` are made of."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from twgen.model.caller import Caller
from twgen.model.plan import Plan, RoutingPlan, VersionPlan, WorkerPlan
from twgen.model.world import GateStatus, VersionStatus, WorkerDeployment, World
from twgen.planning.plan import worker_world
from twgen.planning.routing.gates import gate_attempt, gate_runs, gate_workflow_id
from twgen.planning.routing.plan import change_when_due
from twgen.planning.routing.rollback import is_rollback
from twgen.planning.routing.target import Target
from twgen.planning.sentences import plain_percentage
from twgen.planning.versions.plan import LaterAction, later_actions


class Ownership(StrEnum):
    """Who the manager that Temporal has of a worker is to whoever looks."""

    NOBODY = "Nobody"
    OURS = "Ours"
    ADOPTED = "Adopted"
    """Its adoptFrom names them: the next change takes over."""
    OTHER = "Other"
    UNKNOWN = "Unknown"
    """Nobody said who we are."""


@dataclass(frozen=True, slots=True)
class GateProgress:
    """How far the gate is on one task queue."""

    task_queue: str
    workflow_id: str
    status: GateStatus | None
    """None: it has not started."""


@dataclass(frozen=True, slots=True)
class VersionView:
    """Where one version stands."""

    plan: VersionPlan
    is_target: bool
    percentage: float | None
    """Its share of new workflows; None: it is not in routing."""
    since: datetime | None
    """Since when it is as it is: at this percentage, draining, drained; for others, known."""
    open_workflows: int | None
    """Running and paused ones pinned to it; None: not counted."""
    cluster_was_read: bool
    later: LaterAction | None
    """What its sunset brings next."""


@dataclass(frozen=True, slots=True)
class WorkerView:
    """Where one worker stands."""

    plan: WorkerPlan
    ownership: Ownership
    last_modifier: str
    """Who changed routing last in Temporal; empty: nobody said."""
    later: RoutingPlan | None
    """The change when the waiting ends."""
    gates: tuple[GateProgress, ...]
    """Empty: no gate, or none is needed."""
    unversioned_percentage: float | None
    """The share of new workflows that workers without a version get; None: they are not in routing."""
    versions: tuple[VersionView, ...]
    """The target, then those in routing, then the others; the newest first."""


@dataclass(frozen=True, slots=True)
class Status:
    """Where every worker stands, at one moment."""

    now: datetime
    workers: tuple[WorkerView, ...]
    warnings: tuple[str, ...]


def make_status(plan: Plan, world: World, caller: Caller) -> Status:
    """Where the workers of a plan stand in the world that it was made for, as that manager sees it."""
    workers = tuple(_worker(worker, world, plan.now, caller) for worker in plan.workers)
    return Status(plan.now, workers, plan.warnings)


def _worker(worker: WorkerPlan, world: World, now: datetime, caller: Caller) -> WorkerView:
    spec = worker.versions.spec
    target = Target(spec, worker_world(spec, world), now)
    return WorkerView(
        plan=worker,
        ownership=_ownership(worker, caller),
        last_modifier=target.temporal.last_modifier_identity,
        later=change_when_due(target, worker.identity, worker.routing),
        gates=tuple(_gates(target)),
        unversioned_percentage=_percentage("", target.world.temporal),
        versions=tuple(_versions(worker, target)),
    )


def _ownership(worker: WorkerPlan, caller: Caller) -> Ownership:
    policy, owner = worker.versions.spec.policy, worker.manager
    if not owner:
        return Ownership.NOBODY
    if owner == worker.identity:
        return Ownership.OURS
    if owner in policy.adopt_from:
        return Ownership.ADOPTED
    return Ownership.OTHER if caller.on_deployments_of(policy) else Ownership.UNKNOWN


def _gates(target: Target) -> Iterator[GateProgress]:
    if not target.spec.rollout.gate or target.is_current or is_rollback(target):
        return
    for queue, run in gate_runs(target).items():
        name = gate_workflow_id(target.spec.worker_deployment, target.build_id, queue, gate_attempt(target))
        yield GateProgress(queue, name, run.status if run else None)


def _versions(worker: WorkerPlan, target: Target) -> list[VersionView]:
    later = later_actions(target.spec, target.world, target.now)
    views = [_version(version, target, later) for version in worker.versions.versions]
    first = datetime.min.replace(tzinfo=target.now.tzinfo)

    def place(view: VersionView) -> tuple[bool, bool, datetime]:
        known = target.versions.get(view.plan.build_id)
        created = (known.created_at if known else None) or (
            view.plan.live.created_at if view.plan.live else None
        )
        return view.is_target, view.percentage is not None, created or first

    return sorted(views, key=place, reverse=True)


def _version(version: VersionPlan, target: Target, later: dict[str, LaterAction]) -> VersionView:
    known = target.versions.get(version.build_id)
    return VersionView(
        plan=version,
        is_target=version.build_id == target.build_id,
        percentage=_percentage(version.build_id, target.world.temporal),
        since=_since(version, target),
        open_workflows=known.open_workflows if known else None,
        cluster_was_read=target.world.deployments is not None,
        later=later.get(version.build_id),
    )


def _percentage(build_id: str, temporal: WorkerDeployment | None) -> float | None:
    """The share of new workflows; an empty build ID: that of unversioned workers."""
    if not temporal:
        return None
    current, ramping = temporal.routing.current, temporal.routing.ramping
    if ramping and ramping.build_id == build_id:
        return plain_percentage(ramping.percentage)
    if build_id == (current.build_id if current else ""):
        return plain_percentage(100 - (ramping.percentage if ramping else 0))
    return None


def _since(version: VersionPlan, target: Target) -> datetime | None:
    known, routing = target.versions.get(version.build_id), target.temporal.routing
    drainage = known.drainage if known else None
    match version.status:
        case VersionStatus.CURRENT:
            return routing.current.since if routing.current else None
        case VersionStatus.RAMPING:
            ramping = routing.ramping
            return (ramping.percentage_changed_at or ramping.since) if ramping else None
        case VersionStatus.DRAINING | VersionStatus.DRAINED:
            said = drainage.changed_at if drainage and drainage.status is version.status else None
            return said or (known.last_deactivated_at if known else None)
        case VersionStatus.NOT_REGISTERED:
            return version.live.created_at if version.live else None
    return known.created_at if known else None
