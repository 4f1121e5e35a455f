"""Whether a wanted change may be made: strategy Manual, another owner, driver None."""

from dataclasses import replace

import pytest

from tests.planning.situations import (
    SPEC,
    live,
    planned,
    routed,
    routing,
    serving,
    situation,
    temporal,
    version,
)
from tests.strategies import NOW, with_policy
from twgen.model.operator import Caller
from twgen.model.plan import Phase, RoutingAction
from twgen.model.rollout import Driver
from twgen.model.spec import Rollout, Strategy, WorkerSpec
from twgen.model.world import World
from twgen.planning.plan import make_plan

NONE, SET_CURRENT = RoutingAction.NONE, RoutingAction.SET_CURRENT
MANUAL = replace(SPEC, rollout=Rollout(Strategy.MANUAL))
BY_HAND = with_policy(SPEC, driver=Driver.NONE)
ADOPTING = with_policy(SPEC, adopt_from=("temporal-worker-controller/prod",))


def world(caller: str, *, current: str = "v1", ramping: tuple[str, float] | None = None) -> World:
    says = temporal(version("v1"), version("v3"), traffic=routing(current, ramping), manager_identity=caller)
    return serving(says)


CONTROLLER = "temporal-worker-controller/prod"


@pytest.mark.parametrize(
    ("found", "spec", "expected"),
    [
        pytest.param(world(""), SPEC, (SET_CURRENT, Phase.MOVING, True), id="unowned"),
        pytest.param(world("me"), SPEC, (SET_CURRENT, Phase.MOVING, False), id="ours"),
        pytest.param(world(CONTROLLER), ADOPTING, (SET_CURRENT, Phase.MOVING, True), id="of a named owner"),
        pytest.param(world("else"), ADOPTING, (NONE, Phase.BLOCKED, False), id="of another than the named"),
        pytest.param(world("else"), MANUAL, (NONE, Phase.BLOCKED, False), id="manual, of somebody else"),
        pytest.param(
            *(world("else", current="v3", ramping=("v1", 5)), SPEC, (NONE, Phase.BLOCKED, False)),
            id="with a ramp of somebody else",
        ),
    ],
)
def test_first_change_claims_a_worker_that_is_nobodys_or_may_be_adopted(
    found: World, spec: WorkerSpec, expected: tuple[RoutingAction, Phase, bool]
) -> None:
    plan = routed(found, spec)
    assert (plan.action, plan.phase, plan.claim_manager) == expected


def test_worker_of_somebody_else_is_blocked_with_how_to_take_over() -> None:
    plan = routed(world(CONTROLLER))
    assert (plan.action, plan.phase, plan.claim_manager) == (NONE, Phase.BLOCKED, False)
    assert plan.because == (
        "its manager is temporal-worker-controller/prod. To take it over, run `twgen ownership claim --from"
        " temporal-worker-controller/prod`, or add this manager to spec.adoptFrom of a RolloutPolicy"
    )


@pytest.mark.parametrize("spec", [SPEC, MANUAL, BY_HAND])
def test_settled_worker_of_somebody_else_is_settled_and_stays_theirs(spec: WorkerSpec) -> None:
    plan = routed(world("somebody else", current="v3"), spec)
    assert (plan.phase, plan.claim_manager) == (Phase.SETTLED, False)


def test_manual_worker_waits_and_says_what_to_run() -> None:
    plan = routed(world("me"), MANUAL)
    assert (plan.action, plan.build_id, plan.phase, plan.claim_manager) == (NONE, None, Phase.WAITING, False)
    assert plan.because == (
        "the strategy is Manual: run `twgen promote` to make v3 current (it is ready, and its strategy has no"
        " steps)"
    )


def test_manual_worker_that_nothing_is_wanted_of_says_why() -> None:
    says = temporal(version("v1"), traffic=routing("v1"))
    plan = routed(serving(says, "v1"), MANUAL)
    assert plan.because == "it has no Deployment yet: apply the output of `twgen render`"


def test_change_that_people_make_themselves_is_planned_and_waits() -> None:
    plan = routed(world(""), BY_HAND)
    found = (plan.action, plan.build_id, plan.phase, plan.claim_manager)
    assert found == (SET_CURRENT, "v3", Phase.WAITING, True)
    assert plan.because.endswith("; the driver is None: run `twgen rollout` to make the change")


def test_change_that_a_caller_makes_itself_does_not_wait_for_a_driver() -> None:
    (worker,) = make_plan([BY_HAND], world(""), NOW, Caller("me", drives=True)).workers
    assert (worker.routing.action, worker.routing.phase) == (SET_CURRENT, Phase.MOVING)


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


@pytest.mark.parametrize(
    ("carried", "identity"),
    [
        (("twgen/prod/payments",) * 2, "twgen/prod/payments"),
        (("twgen/one", "twgen/other"), "twgen/anna@laptop"),
    ],
)
def test_person_takes_the_one_identity_that_all_live_deployments_carry(
    carried: tuple[str, str], identity: str
) -> None:
    deployments = [live("v1"), live("v3")]
    for deployment, name in zip(deployments, carried, strict=True):
        deployment["metadata"]["annotations"]["twgen.io/identity"] = name
    says = temporal(version("v1"), version("v3"), traffic=routing("v1"), manager_identity=carried[0])
    person = Caller("twgen/anna@laptop", is_person=True)
    (worker,) = make_plan([SPEC], situation(says, deployments), NOW, person).workers
    assert (worker.identity, worker.routing.action is SET_CURRENT) == (identity, identity == carried[0])


def test_versions_do_not_depend_on_who_owns_the_traffic() -> None:
    assert planned(world("me")).versions == planned(world("somebody else")).versions
