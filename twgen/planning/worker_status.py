"""Makes the status of each worker from a plan and its world, and sorts workers by urgency."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import (
    Phase,
    Plan,
    RoutingAction,
    VersionAction,
    VersionPlan,
    WorkerPlan,
    WorkerVersions,
)
from twgen.model.policy import MOST_VERSIONS, PolicyStep
from twgen.model.reasons import RoutingReason
from twgen.model.spec import Strategy
from twgen.model.status import (
    AttachedState,
    AttachedView,
    Move,
    Ownership,
    ReportedChange,
    ReportedGate,
    ReportedOwner,
    ReportedPods,
    ReportedTaskQueue,
    RolloutStatus,
    Status,
    StepPlace,
    StepView,
    Unstarted,
    VersionCount,
    VersionReport,
    WorkerReport,
)
from twgen.model.temporal import Routing, Version, VersionStatus, WorkerDeployment
from twgen.model.times import format_time
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.planning.plan import worker_world
from twgen.planning.routing.gates import asked_gates, on_queues
from twgen.planning.routing.table import change_when_due
from twgen.planning.routing.target import Target
from twgen.planning.sentences import plain_percentage, timed
from twgen.planning.version_status import shares
from twgen.planning.versions.facts import AUTOSCALERS
from twgen.planning.versions.plan import holds_a_place, later_actions
from twgen.versioning.names import MarkKey, read_mark

URGENCY = (Phase.BLOCKED, Phase.WAITING, Phase.MOVING, Phase.SETTLED)
"""The phases, with the most urgent phase first."""

FAILED_TESTS = {RoutingReason.GATE_FAILED, RoutingReason.STEP_GATE_FAILED, RoutingReason.REPLAY_FAILED}
_FAILURES = {RoutingReason.UNSERVED, RoutingReason.ANALYSIS_FAILED} | FAILED_TESTS
# only these conditions are reported, and none of them stops a ramp, because the pods may still serve
_FAILS = {
    "AbleToScale": "False",  # HorizontalPodAutoscaler
    "ScalingActive": "False",  # HorizontalPodAutoscaler
    "Ready": "False",  # ScaledObject
    "Fallback": "True",  # ScaledObject
    "DisruptionAllowed": "False",  # PodDisruptionBudget
    "ConfigUnsupported": "True",  # VerticalPodAutoscaler
    "Available": "False",  # other kinds, by convention
    "Degraded": "True",
    "Failed": "True",
    "Stalled": "True",
}
"""The status of each condition type that indicates a problem with the object."""
_FINE = {
    ("ScalingActive", "ScalingDisabled"),  # the Deployment has zero replicas
    ("DisruptionAllowed", "InsufficientPods"),  # the PodDisruptionBudget works as intended
}
"""The types and reasons of conditions that do not indicate a problem."""
_WHY_MISSING = "it was deleted, or the API server rejected it: see the last sync"
_MOST_CHARACTERS = 500
"""The maximum length of a condition's message in a report."""
_WHY_WAITING = "it waits until Argo CD no longer sets the replicas"
NamedObject = tuple[str, str, str]
"""An object's namespace, kind and name."""


class AttachedRead(NamedTuple):
    """The attached objects that could be read in one namespace."""

    found: tuple[AttachedInCluster, ...]
    unread: Mapping[str, str] = {}
    """The kinds whose objects could not be read, with the reasons."""


def make_status(
    plan: Plan, world: World, caller: Caller, attached: Mapping[str, AttachedRead] | None = None
) -> Status:
    """The status of a plan's workers.

    `attached` contains the attached objects that were read, by Kubernetes namespace.
    """
    read = attached or {}
    workers = tuple(
        _worker(item, world, plan.now, caller, read.get(item.spec.namespace)) for item in plan.workers
    )
    unread = (
        f"the state of {kind} objects in namespace {namespace} is unknown: {why}"
        for namespace, attached_read in sorted(read.items())
        for kind, why in sorted(attached_read.unread.items())
    )
    return Status(plan.now, workers, (*plan.warnings, *unread))


def _worker(
    worker: WorkerPlan, world: World, now: datetime, caller: Caller, attached: AttachedRead | None
) -> WorkerReport:
    spec, routing = worker.spec, worker.routing
    target = Target(spec, worker_world(spec, world), now, worker.identity, worker.versions.not_created)
    other_versions = (version for version in worker.versions.versions if version.build_id != target.build_id)
    to_start = {gate.workflow_id for gate in worker.gates}
    by_build_id = shares(target.world.temporal.routing) if target.world.temporal else {}
    percentages = {build_id: plain_percentage(share) for build_id, share in by_build_id.items()}
    change, at = change_when_due(target, routing), routing.due_at
    if routing.action is not RoutingAction.NONE:
        change, at = routing, None
    return WorkerReport(
        worker=spec.worker_deployment,
        temporal_namespace=spec.temporal_namespace,
        target=spec.build_id,
        phase=routing.phase,
        reason=routing.reason,
        because=routing.because,
        unserved=worker.unserved,
        next=ReportedChange(change.action, change.build_id or "", change.percentage, at) if change else None,
        waits_until=routing.due_at,
        owner=ReportedOwner(worker.manager, _ownership(worker, caller)),
        last_modifier=target.temporal.last_modifier_identity,
        steps=tuple(_steps(target)),
        gates=tuple(
            ReportedGate(
                on_queue.task_queue,
                on_queue.workflow_id,
                on_queue.gate.workflow_type,
                on_queue.run.status if on_queue.run else Unstarted.NOT_STARTED,
                is_due=on_queue.workflow_id in to_start,
            )
            for on_queue in on_queues(target, asked_gates(target))
        ),
        analysis=worker.judgements,
        draining=worker.scheduled_actions,
        unversioned_percentage=percentages.get(""),
        count=VersionCount(
            deployed=sum(holds_a_place(version, version.reason) for version in other_versions),
            most_deployed=spec.policy.max_versions,
            registered=len(target.temporal.versions),
            most_registered=MOST_VERSIONS,
        ),
        versions=tuple(_versions(worker, target, percentages, attached)),
        warnings=worker.versions.warnings,
        differs=worker.differs,
        old_records=worker.old_records,
    )


def rollout_status(status: Status, since: datetime, intent_hash: str) -> RolloutStatus:
    """The status of one worker's rollout, to be stored in its cluster. `since` is when the phase began."""
    [worker] = status.workers
    current = (version.build_id for version in worker.versions if version.status is VersionStatus.CURRENT)
    target = (version.percentage for version in worker.versions if version.is_target)
    because = "; ".join(filter(None, (worker.unserved, worker.because)))
    return RolloutStatus(
        worker=worker.worker,
        phase=worker.phase,
        reason=worker.reason,
        message=timed(because, status.now, worker.waits_until),
        target=worker.target,
        current="".join(current),
        percentage=next(target, None) or 0,
        since=since,
        report=status,
        intent=intent_hash,
    )


def has_failed(phase: Phase, reason: str) -> bool:
    """Whether the target failed a check, or the rollout needs a person."""
    return phase is Phase.BLOCKED or reason in _FAILURES


def urgency(phase: Phase, *, is_alarm: bool) -> tuple[bool, int]:
    """The sort key for workers: alarms (such as a target without pollers) come first, Settled last."""
    return not is_alarm, URGENCY.index(phase)


def is_pending(plan: Plan) -> bool:
    """Whether a change is due to the traffic, or to a Deployment, its replicas or its annotations."""
    moves = any(worker.phase is not Phase.SETTLED for worker in plan.workers)
    return moves or any(_changes(version) for worker in plan.workers for version in worker.each_version)


def _changes(version: VersionPlan) -> bool:
    live = version.live.replicas if version.live else None
    if version.action is VersionAction.KEEP or (version.action is VersionAction.SCALE_DOWN and live == 0):
        return bool(version.changed_marks) or version.replicas not in {None, live}
    return version.action is not VersionAction.NONE


def _ownership(worker: WorkerPlan, caller: Caller) -> Ownership:
    policy, owner = worker.spec.policy, worker.manager
    if not owner:
        return Ownership.NOBODY
    if owner == worker.identity:
        return Ownership.OURS
    if owner in policy.adopt_from:
        return Ownership.ADOPTED
    return Ownership.OTHER if caller.on_deployments_of(policy) else Ownership.UNKNOWN


def _steps(target: Target) -> Iterator[StepView]:
    rollout = target.spec.rollout
    if not target.ramp or rollout.strategy is Strategy.ALL_AT_ONCE:
        return
    for step in rollout.steps:
        if step in target.steps_left:
            place = StepPlace.AHEAD
        else:
            place = StepPlace.PRESENT if step == target.step else StepPlace.DONE
        more = target.spec.policy.step(step.percentage) or PolicyStep(step.percentage)
        share = plain_percentage(step.percentage)
        yield StepView(share, place, more.gate, until_promoted=more.until_promoted)


def _versions(
    worker: WorkerPlan, target: Target, percentages: Mapping[str, float], attached: AttachedRead | None
) -> Iterator[VersionReport]:
    """The versions in the report's order. `percentages` has each version's share of new workflows."""
    later, first = later_actions(target.spec, target.world, target.now), datetime.min.replace(tzinfo=UTC)

    def sort_key(version: VersionPlan) -> tuple[bool, bool, datetime]:
        of_temporal = target.versions.get(version.build_id)
        created = (source.created_at for source in (of_temporal, version.live) if source)
        is_routed = version.build_id in percentages
        return version.build_id == target.build_id, is_routed, next(filter(None, created), first)

    for version in sorted(worker.versions.versions, key=sort_key, reverse=True):
        listed, live = target.versions.get(version.build_id), version.live
        percentage = percentages.get(version.build_id)
        yield VersionReport(
            build_id=version.build_id,
            is_target=version.build_id == target.build_id,
            status=version.status,
            percentage=percentage,
            since=_since(version, listed, target.temporal.routing),
            moved_by=_move(listed, target.temporal) if listed and percentage is not None else None,
            open_workflows=listed.open_workflows if listed else None,
            oldest_open_at=listed.oldest_open_at if listed else None,
            task_queues=None
            if not listed or listed.task_queues is None
            else tuple(
                ReportedTaskQueue(queue.name, queue.type, queue.pollers, queue.unversioned_pollers)
                for queue in listed.task_queues
            ),
            deployment=version.deployment,
            cluster_was_read=target.world.deployments is not None,
            pods=None
            if not live
            else ReportedPods(
                available=live.available_replicas,
                wanted=live.replicas,
                terminating=live.terminating,
                paused=live.paused,
                stalled=live.stalled,
                problem=target.world.pod_problems.get(version.build_id, ""),
            ),
            attached=attached_views(version, attached),
            action=version.action,
            reason=version.reason,
            because=version.because,
            next=later.get(version.build_id),
            replicas=version.replicas,
            is_autoscaled=any(
                item.kind in AUTOSCALERS for item in (*version.attached, *version.following, *version.waiting)
            ),
            is_patched=bool(live and live.patch),
        )


def _move(version: Version, temporal: WorkerDeployment) -> Move | None:
    """The version's last traffic change, from its metadata. None if another client changed it later."""
    mark = read_mark(MarkKey.MOVED_BY, (version.metadata or {}).get(MarkKey.MOVED_BY))
    if not mark:
        return None
    intent, application = (str(mark.details.get(name, "")) for name in ("intent", "application"))
    move = Move(mark.by, intent, application, format_time(mark.at) if mark.at else "")
    return move if move.identity == temporal.last_modifier_identity else None


def _since(version: VersionPlan, of_temporal: Version | None, routing: Routing) -> datetime | None:
    drainage = of_temporal.drainage if of_temporal else None
    match version.status:
        case VersionStatus.CURRENT:
            return routing.current.since if routing.current else None
        case VersionStatus.RAMPING:
            return routing.ramping.percentage_since if routing.ramping else None
        case VersionStatus.DRAINING | VersionStatus.DRAINED:
            drained_at = drainage.changed_at if drainage and drainage.status is version.status else None
            return drained_at or (of_temporal.last_deactivated_at if of_temporal else None)
        case VersionStatus.NOT_REGISTERED:
            return version.live.created_at if version.live else None
    return of_temporal.created_at if of_temporal else None


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
    """The state of each object that is or will be attached to a version, or unread if `read` is None."""
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
            # an object that was never applied is pending, not missing
            is_applied = str(item) in rendered
            state = AttachedState.MISSING if is_applied else AttachedState.PENDING
            message = _WHY_MISSING if is_applied else ""
        views.append(AttachedView(item.kind, item.name, state, message))
    pending = AttachedState.PENDING
    views += [AttachedView(item.kind, item.name, pending, _WHY_WAITING) for item in version.waiting]
    return tuple(views)


def with_refusals(status: RolloutStatus, refused: Mapping[NamedObject, str]) -> RolloutStatus:
    """Add to the status why a sync could not apply the missing objects."""
    namespace = status.worker.partition("/")[0]

    def with_refusal(item: AttachedView) -> AttachedView:
        why = refused.get((namespace, item.kind, item.name))
        if why is None or item.state not in {AttachedState.MISSING, AttachedState.PENDING}:
            return item
        return replace(item, state=AttachedState.REFUSED, says=why[:_MOST_CHARACTERS])

    old = status.details.versions if status.details else ()
    versions = (replace(version, attached=tuple(map(with_refusal, version.attached))) for version in old)
    return status.with_details(versions=tuple(versions))


def _problems_of(item: AttachedInCluster) -> str:
    """The problems that an object's conditions report, or empty if there are none."""
    if item.is_going:
        return "it is being deleted"
    problems = []
    for kind, status, reason, message in item.conditions:
        if _FAILS.get(kind) == status and (kind, reason) not in _FINE:
            why = ": ".join(filter(None, (reason, message[:_MOST_CHARACTERS])))
            problems.append(f"{kind} is {status}" + (f" ({why})" if why else ""))
    return "; ".join(problems)
