"""The plan for the traffic of one worker: the change that the routing table wants, and who makes it."""

from dataclasses import replace
from datetime import datetime

from twgen.model.plan import Phase, RoutingAction, RoutingPlan
from twgen.model.problem import counted
from twgen.model.reasons.routing import RoutingReason as Reason
from twgen.model.rollout import Driver
from twgen.model.spec import Strategy
from twgen.planning.routing.table import wanted_change
from twgen.planning.routing.target import Target
from twgen.planning.sentences import described_change, plain_percentage
from twgen.planning.version_status import routed_build_ids
from twgen.versioning.build_ids import may_be_ours


def plan_worker_routing(target: Target, *, drives: bool = False) -> RoutingPlan:
    """The next change of a worker's traffic; `drives` as in a Caller."""
    routing, spec, manager = wanted_change(target), target.spec, target.temporal.manager_identity
    if routing.action is RoutingAction.NONE and not routing.marks:
        return routing
    # an abort by a person does not wait for a promotion
    if spec.rollout.strategy is Strategy.MANUAL and routing.reason is not Reason.ABORTED:
        in_words = described_change(routing.action, routing.build_id, routing.percentage)
        because = f"the strategy is Manual: run `twgen promote` to {in_words} ({routing.because})"
        return RoutingPlan(RoutingAction.NONE, because, Phase.WAITING, Reason.MANUAL)
    claims = manager != target.identity or not manager
    change = replace(routing, claim_manager=claims) if claims else routing
    if spec.policy.driver is not Driver.NONE or drives:
        return change
    by_hand = f"{routing.because}; the driver is None: run `twgen rollout` to make the change"
    return replace(change, phase=Phase.WAITING, because=by_hand)


def unserved_traffic(target: Target) -> str:
    """The alarm that new workflows go to a version without workers; empty: all versions have some."""
    obstacle = target.obstacle
    if obstacle and obstacle.is_known and not obstacle.older_pods_serve:
        alarm = f"new workflows go to {target.build_id}, but no worker serves them: {obstacle.because}"
        if target.is_current and target.spec.replicas != 0:
            return alarm
        if target.ramp and target.ramp.percentage > 0:
            return f"{plain_percentage(target.ramp.percentage)}% of {alarm}"
    # for a version that twgen did not create, the place of its workers is unknown
    for build_id in sorted(filter(may_be_ours, routed_build_ids(target.temporal) - {target.build_id})):
        live, version = target.deployments.get(build_id), target.versions.get(build_id)
        if live is None and version and version.serverless:
            continue
        if target.world.deployments is not None and (live is None or not live.available_replicas):
            lacks = "none of its pods is available" if live else "it has no Deployment"
            return f"new workflows go to {build_id}, but {lacks}"
    return ""


def rollback_warnings(target: Target) -> tuple[str, ...]:
    """The warning about auto-upgrade workflows that already run on the newer version."""
    if target.is_foreign or not target.goes_back:
        return ()
    current = target.versions.get(target.current or "")
    moved = current.auto_upgrade_workflows if current else None
    if moved == 0:
        return ()
    how_many = counted(moved, "auto-upgrade workflow") if moved else "all auto-upgrade workflows"
    warning = (
        f"the rollback moves {how_many} from {target.current} back to the older code of {target.build_id}:"
        " those that cannot be replayed there break"
    )
    return (warning,)


def change_when_due(target: Target, routing: RoutingPlan) -> RoutingPlan | None:
    """The change of traffic at the end of this plan's wait; None: passing time brings no change."""
    if not routing.due_at:
        return None
    later = plan_worker_routing(replace(target, now=routing.due_at + datetime.resolution))
    return later if later.action is not RoutingAction.NONE else None
