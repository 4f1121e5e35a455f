"""Planning the traffic of one worker: what the routing table wants, if it may be done."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan
from twgen.model.policy import Driver
from twgen.model.spec import Strategy
from twgen.planning.gates import gates_to_start
from twgen.planning.rollback import is_rollback
from twgen.planning.routing_table import Wanted, wanted_change
from twgen.planning.target import Target


@dataclass(frozen=True, slots=True)
class _Decision:
    target: Target
    identity: str
    blocked: str

    @property
    def manager(self) -> str:
        return self.target.temporal.manager_identity

    @property
    def is_foreign(self) -> bool:
        return self.manager not in {"", self.identity, *self.target.spec.policy.adopt_from}


def plan_worker_routing(target: Target, identity: str, blocked: str = "") -> RoutingPlan:
    """The next change of a worker's traffic, as the manager `identity`.

    `blocked` says why the target's Deployment is not created; empty: it is, or exists.
    """
    decision = _Decision(target, identity, blocked)
    if blocked:
        return _none(blocked, Phase.BLOCKED)
    wanted = wanted_change(target)
    if wanted.action is RoutingAction.NONE:
        return replace(_none(wanted.because, wanted.phase), due_at=wanted.due_at)
    refusal = next((refuse(decision, wanted) for applies, refuse in _REFUSALS if applies(decision)), None)
    return refusal or _change(decision, wanted)


def plan_gates(target: Target) -> tuple[GateStart, ...]:
    """The gate's workflows to start now."""
    moves_itself = target.spec.rollout.strategy is not Strategy.MANUAL and not target.is_aborted
    if not moves_itself or not target.is_registered or target.is_current or is_rollback(target):
        return ()
    return gates_to_start(target)


def _manual(_: _Decision, wanted: Wanted) -> RoutingPlan:
    because = f"the strategy is Manual; else it would be {_spelled(wanted)}, because {wanted.because}"
    return _none(because, Phase.WAITING)


def _foreign(decision: _Decision, wanted: Wanted) -> RoutingPlan:
    because = (
        f"{decision.manager} manages it; else it would be {_spelled(wanted)}. To take over, let it release the"
        " Worker Deployment, or name it in adoptFrom of the RolloutPolicy"
    )
    return _none(because, Phase.BLOCKED)


_REFUSALS: tuple[tuple[Callable[[_Decision], bool], Callable[[_Decision, Wanted], RoutingPlan]], ...] = (
    (lambda decision: decision.target.spec.rollout.strategy is Strategy.MANUAL, _manual),
    (lambda decision: decision.is_foreign, _foreign),
)


def _change(decision: _Decision, wanted: Wanted) -> RoutingPlan:
    by_hand = decision.target.spec.policy.driver is Driver.NONE
    return RoutingPlan(
        action=wanted.action,
        because=f"{wanted.because}; driver None: `twgen rollout` makes the change"
        if by_hand
        else wanted.because,
        phase=Phase.WAITING if by_hand else wanted.phase,
        build_id=wanted.build_id,
        percentage=wanted.percentage,
        claim_manager=decision.manager != decision.identity,
        due_at=wanted.due_at,
    )


def _none(because: str, phase: Phase) -> RoutingPlan:
    return RoutingPlan(RoutingAction.NONE, because, phase)


def _spelled(wanted: Wanted) -> str:
    share = f" at {wanted.percentage} %" if wanted.action is RoutingAction.SET_RAMP else ""
    return f"{wanted.action}{f' {wanted.build_id}' if wanted.build_id else ''}{share}"
