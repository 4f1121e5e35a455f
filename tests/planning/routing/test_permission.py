"""Whether a wanted change may be made: strategy Manual, another owner, driver None."""

from dataclasses import replace

import pytest

from tests.planning.situations import SPEC, live, planned, routed, routing, situation, temporal, version
from tests.strategies import NOW, with_policy
from twgen.model.operator import Caller
from twgen.model.plan import Phase, RoutingAction
from twgen.model.rollout import Driver
from twgen.model.spec import Rollout, Strategy
from twgen.model.world import World
from twgen.planning.plan import make_plan

NONE, SET_CURRENT = RoutingAction.NONE, RoutingAction.SET_CURRENT
MANUAL = replace(SPEC, rollout=Rollout(Strategy.MANUAL))
BY_HAND = with_policy(SPEC, driver=Driver.NONE)
ADOPTING = with_policy(SPEC, adopt_from=("temporal-worker-controller/prod",))


def world(caller: str, *, current: str = "v1", ramping: tuple[str, float] | None = None) -> World:
    says = temporal(version("v1"), version("v3"), traffic=routing(current, ramping), manager_identity=caller)
    return situation(says, [live("v1"), live("v3")])


@pytest.mark.parametrize(("caller", "claims"), [("", True), ("me", False)])
def test_unowned_worker_is_claimed_with_the_first_change(caller: str, *, claims: bool) -> None:
    plan = routed(world(caller))
    assert (plan.action, plan.claim_manager) == (SET_CURRENT, claims)


def test_worker_of_somebody_else_is_blocked_with_how_to_take_over() -> None:
    plan = routed(world("temporal-worker-controller/prod"))
    assert (plan.action, plan.phase, plan.claim_manager) == (NONE, Phase.BLOCKED, False)
    assert plan.because == (
        "its manager is temporal-worker-controller/prod. To take it over, run `twgen ownership claim --from"
        " temporal-worker-controller/prod`, or add this manager to spec.adoptFrom of a RolloutPolicy"
    )


def test_worker_is_taken_over_from_an_owner_that_the_policy_names() -> None:
    plan = routed(world("temporal-worker-controller/prod"), ADOPTING)
    assert (plan.action, plan.claim_manager) == (SET_CURRENT, True)


def test_worker_is_not_taken_over_from_another_than_the_policy_names() -> None:
    assert routed(world("temporal-worker-controller/staging"), ADOPTING).phase is Phase.BLOCKED


@pytest.mark.parametrize("spec", [SPEC, MANUAL, BY_HAND])
def test_settled_worker_of_somebody_else_is_settled_and_stays_theirs(spec: object) -> None:
    assert isinstance(spec, type(SPEC))
    plan = routed(world("somebody else", current="v3"), spec)
    assert (plan.phase, plan.claim_manager) == (Phase.SETTLED, False)


def test_ramp_of_somebody_else_is_not_ended() -> None:
    plan = routed(world("somebody else", current="v3", ramping=("v1", 5)))
    assert (plan.action, plan.phase) == (NONE, Phase.BLOCKED)


def test_manual_worker_waits_and_says_what_to_run() -> None:
    plan = routed(world("me"), MANUAL)
    assert (plan.action, plan.build_id, plan.phase, plan.claim_manager) == (NONE, None, Phase.WAITING, False)
    assert plan.because == (
        "the strategy is Manual: run `twgen promote` to make v3 current (it is ready, and its strategy has no"
        " steps)"
    )


def test_manual_worker_of_somebody_else_is_blocked_like_any_other() -> None:
    assert routed(world("somebody else"), MANUAL).phase is Phase.BLOCKED


def test_manual_worker_that_nothing_is_wanted_of_says_why() -> None:
    says = temporal(version("v1"), traffic=routing("v1"))
    plan = routed(situation(says, [live("v1")]), MANUAL)
    assert plan.because == "it has no Deployment yet: apply the output of `twgen render`"


def test_change_that_people_make_themselves_is_planned_and_waits() -> None:
    plan = routed(world(""), BY_HAND)
    assert (plan.action, plan.build_id, plan.phase, plan.claim_manager) == (
        SET_CURRENT,
        "v3",
        Phase.WAITING,
        True,
    )
    assert plan.because.endswith("; the driver is None: run `twgen rollout` to make the change")


def test_change_that_a_caller_makes_itself_does_not_wait_for_a_driver() -> None:
    (worker,) = make_plan([BY_HAND], world(""), NOW, Caller("me", drives=True)).workers
    plan = worker.routing
    assert (plan.action, plan.phase) == (SET_CURRENT, Phase.MOVING)


@pytest.mark.parametrize(
    ("policy_says", "caller", "owner"),
    [
        pytest.param("payments/prod", Caller("somebody"), "twgen/payments/prod", id="the policy's"),
        pytest.param("", Caller("somebody"), "somebody", id="the caller's without one"),
        pytest.param("payments/prod", Caller("somebody", forced=True), "somebody", id="the forced one's"),
    ],
)
def test_identity_that_may_change_traffic_is(policy_says: str, caller: Caller, owner: str) -> None:
    spec = with_policy(SPEC, identity=policy_says)
    (mine,) = make_plan([spec], world(owner), NOW, caller).workers
    (theirs,) = make_plan([spec], world(f"{owner}-else"), NOW, caller).workers
    assert mine.routing.action is SET_CURRENT
    assert not mine.routing.claim_manager
    assert theirs.routing.phase is Phase.BLOCKED
    assert theirs.manager == f"{owner}-else"


def test_person_takes_the_identity_that_the_live_deployments_carry() -> None:
    person = Caller("twgen/anna@laptop", is_person=True)
    says = temporal(
        version("v1"), version("v3"), traffic=routing("v1"), manager_identity="twgen/prod/payments"
    )
    ours = [live("v1"), live("v3")]
    for deployment in ours:
        deployment["metadata"]["annotations"]["twgen.io/identity"] = "twgen/prod/payments"
    (worker,) = make_plan([SPEC], situation(says, ours), NOW, person).workers
    assert (worker.identity, worker.routing.action) == ("twgen/prod/payments", SET_CURRENT)


def test_person_who_finds_two_identities_is_nobody_but_themselves() -> None:
    person = Caller("twgen/anna@laptop", is_person=True)
    mixed = [live("v1"), live("v3")]
    for deployment, identity in zip(mixed, ("twgen/one", "twgen/other"), strict=True):
        deployment["metadata"]["annotations"]["twgen.io/identity"] = identity
    (worker,) = make_plan([SPEC], situation(temporal(), mixed), NOW, person).workers
    assert worker.identity == "twgen/anna@laptop"


def test_versions_do_not_depend_on_who_owns_the_traffic() -> None:
    assert planned(world("me")).versions == planned(world("somebody else")).versions
