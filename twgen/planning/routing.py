"""Planning the traffic of one worker: what the routing table wants, if it may be done."""

from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan
from twgen.model.policy import Driver
from twgen.model.spec import Strategy
from twgen.planning.gates import gates_to_start
from twgen.planning.rollback import is_rollback
from twgen.planning.routing_table import Wanted, wanted_change
from twgen.planning.target import Target


def plan_worker_routing(target: Target, identity: str, blocked: str = "") -> RoutingPlan:
    """The next change of a worker's traffic, as the manager `identity`.

    `blocked` says why the target's Deployment is not created; empty: it is, or exists.
    """
    if blocked:
        return RoutingPlan(RoutingAction.NONE, blocked, Phase.BLOCKED)
    wanted = wanted_change(target)
    if wanted.action is RoutingAction.NONE:
        return RoutingPlan(RoutingAction.NONE, wanted.because, wanted.phase, due_at=wanted.due_at)
    if target.spec.rollout.strategy is Strategy.MANUAL:
        because = f"the strategy is Manual; else it would be {_spelled(wanted)}: {wanted.because}"
        return RoutingPlan(RoutingAction.NONE, because, Phase.WAITING)
    manager = target.temporal.manager_identity
    if manager not in {"", identity, *target.spec.policy.adopt_from}:
        return RoutingPlan(RoutingAction.NONE, _foreign(manager, wanted), Phase.BLOCKED)
    return _change(target, wanted, claim_manager=not manager or manager != identity)


def plan_gates(target: Target) -> tuple[GateStart, ...]:
    """The gate's workflows to start now."""
    moves_itself = target.spec.rollout.strategy is not Strategy.MANUAL and not target.is_aborted
    if not moves_itself or not target.is_registered or target.is_current or is_rollback(target):
        return ()
    return gates_to_start(target)


def _foreign(manager: str, wanted: Wanted) -> str:
    return (
        f"{manager} manages it; else it would be {_spelled(wanted)}. To take over, let it release the Worker"
        " Deployment, or name it in adoptFrom of the RolloutPolicy"
    )


def _change(target: Target, wanted: Wanted, *, claim_manager: bool) -> RoutingPlan:
    by_hand = target.spec.policy.driver is Driver.NONE
    return RoutingPlan(
        action=wanted.action,
        because=f"{wanted.because}; driver None: `twgen rollout` makes the change"
        if by_hand
        else wanted.because,
        phase=Phase.WAITING if by_hand else wanted.phase,
        build_id=wanted.build_id,
        percentage=wanted.percentage,
        claim_manager=claim_manager,
        due_at=wanted.due_at,
    )


def _spelled(wanted: Wanted) -> str:
    share = f" at {wanted.percentage} %" if wanted.action is RoutingAction.SET_RAMP else ""
    return f"{wanted.action}{f' {wanted.build_id}' if wanted.build_id else ''}{share}"
