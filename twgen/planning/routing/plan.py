"""Planning the traffic of one worker: what the routing table wants, if it may be done."""

from dataclasses import replace
from datetime import datetime

from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import Driver, Strategy
from twgen.planning.routing.gates import gates_to_start
from twgen.planning.routing.rollback import is_rollback
from twgen.planning.routing.serving import obstacle
from twgen.planning.routing.table import Wanted, wanted_change
from twgen.planning.routing.target import Target
from twgen.planning.sentences import change_in_words, counted, plain_percentage
from twgen.planning.version_status import routed_build_ids

_NO_PODS = {"ZeroReplicas", "NoDeployment", "Terminating", "AtZero", "Paused", "Stalled"}
"""Obstacles under which a gate would only run into its timeout."""


def plan_worker_routing(
    target: Target, identity: str, blocked: str = "", *, drives: bool = False
) -> RoutingPlan:
    """The next change of a worker's traffic, as the manager `identity`; `drives` as in a Caller.

    `blocked` says why the target's Deployment is not created; empty: it is, or exists.
    """
    reason, wanted = wanted_change(target)
    manager, spec = target.temporal.manager_identity, target.spec
    if is_foreign(target, identity) and not target.has_all_traffic:
        because = (
            f"{manager} manages it. To take over, let it release the Worker Deployment, or name it in"
            " spec.adoptFrom of a RolloutPolicy"
        )
        return RoutingPlan(RoutingAction.NONE, because, Phase.BLOCKED, Reason.FOREIGN_MANAGER)
    if blocked:
        return RoutingPlan(RoutingAction.NONE, blocked, Phase.BLOCKED, Reason.VERSION_CAP_REACHED)
    if wanted.action is RoutingAction.NONE:
        return RoutingPlan(wanted.action, wanted.because, wanted.phase, reason, due_at=wanted.due_at)
    if spec.rollout.strategy is Strategy.MANUAL:
        because = f"the strategy is Manual: {_by_hand(target, wanted)} ({wanted.because})"
        return RoutingPlan(RoutingAction.NONE, because, Phase.WAITING, Reason.MANUAL)
    nobody_drives = spec.policy.driver is Driver.NONE and not drives
    command = f"; driver None: {_by_hand(target, wanted)}" if nobody_drives else ""
    return RoutingPlan(
        action=wanted.action,
        because=wanted.because + command,
        phase=Phase.WAITING if nobody_drives else wanted.phase,
        reason=reason,
        build_id=wanted.build_id,
        percentage=wanted.percentage,
        claim_manager=manager != identity or not manager,
        due_at=wanted.due_at,
    )


def plan_gates(target: Target, identity: str, blocked: str = "") -> tuple[GateStart, ...]:
    """The gate's workflows to start now; for strategy Manual too, so that a person decides on its result."""
    found = obstacle(target)
    nobody_runs_it = found is not None and found.reason in _NO_PODS
    no_gate = (
        blocked
        or nobody_runs_it
        or target.is_aborted
        or target.is_paused
        or target.is_current
        or is_rollback(target)
    )
    if no_gate or not target.is_registered or is_foreign(target, identity):
        return ()
    return gates_to_start(target)


def is_foreign(target: Target, identity: str) -> bool:
    """Somebody else manages the worker, from whom the policy does not take it over."""
    return target.temporal.manager_identity not in {"", identity, *target.spec.policy.adopt_from}


def unserved_traffic(target: Target) -> str:
    """What must be read first: new workflows go to a version that nobody serves; empty: none do."""
    found = obstacle(target)
    if found and found.reason == "ServingUnknown":
        found = None
    if found and target.is_current and target.spec.replicas != 0:
        return f"new workflows go to {target.build_id}, and nobody serves them: {found.because}"
    if found and target.ramp and target.ramp.percentage > 0:
        share = plain_percentage(target.ramp.percentage)
        return f"{share} % of new workflows go to {target.build_id}, and nobody serves them: {found.because}"
    for build_id in sorted(routed_build_ids(target.temporal) - {target.build_id}):
        live = target.deployments.get(build_id)
        if target.world.deployments is not None and (live is None or not live.available_replicas):
            return f"new workflows go to {build_id}, and none of its pods is available"
    return ""


def rollback_warnings(target: Target, identity: str) -> tuple[str, ...]:
    """What a rollback does to auto-upgrade workflows that already run on the newer version."""
    if target.is_current or target.is_aborted or is_foreign(target, identity) or not is_rollback(target):
        return ()
    current = target.versions.get(target.current or "")
    moved = current.auto_upgrade_workflows if current else None
    if moved == 0:
        return ()
    how_many = counted(moved, "auto-upgrade workflow") if moved else "any auto-upgrade workflow (not counted)"
    warning = (
        f"a rollback takes {how_many} on {target.current} back to the older code of {target.build_id}: it"
        " breaks those that it cannot replay"
    )
    return (warning,)


def change_when_due(target: Target, identity: str, routing: RoutingPlan) -> RoutingPlan | None:
    """The change of traffic when the waiting of this plan ends; None: time alone brings none."""
    if not routing.due_at:
        return None
    later = plan_worker_routing(replace(target, now=routing.due_at + datetime.resolution), identity)
    return later if later.action is not RoutingAction.NONE else None


def _by_hand(target: Target, wanted: Wanted) -> str:
    """What a person runs to make the change: https://docs.temporal.io/cli/worker."""
    if wanted.action is RoutingAction.SET_CURRENT:
        command, change = "set-current-version", f"--build-id {wanted.build_id}"
    elif wanted.action is RoutingAction.SET_RAMP:
        command, change = (
            "set-ramping-version",
            f"--build-id {wanted.build_id} --percentage {wanted.percentage}",
        )
    else:
        command, change = "set-ramping-version", "--unversioned --delete"
    manager = target.temporal.manager_identity
    identity = f" --identity {manager}" if manager else ""
    place = f"--namespace {target.spec.temporal_namespace} --deployment-name {target.spec.worker_deployment}"
    purpose = change_in_words(wanted.action, wanted.build_id, wanted.percentage)
    return f"to {purpose}, run `temporal worker deployment {command} {place} {change}{identity}`"
