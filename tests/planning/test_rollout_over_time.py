"""Whole rollouts against a model of Temporal and a clock that the test moves."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planning.model_of_temporal import ModelOfTemporal
from tests.strategies import NOW, STEPS, a_spec
from twgen.model.plan import Phase
from twgen.model.spec import Rollout, Strategy
from twgen.model.world import RampingVersion

MINUTE = timedelta(minutes=1)


def started(held: frozenset[str] = frozenset()) -> ModelOfTemporal:
    """A worker whose first version has been current for a day."""
    spec = replace(a_spec(), build_id="v1", rollout=Rollout(Strategy.PROGRESSIVE, STEPS))
    model = ModelOfTemporal(spec, held, NOW)
    settle(model, MINUTE)
    model.pass_time(timedelta(days=1))
    return model


def settle(model: ModelOfTemporal, interval: timedelta, most: int = 2000) -> list[tuple[timedelta, str]]:
    """Look, act and wait until nothing is left to do; what happened, and when."""
    begin, told = model.now, []
    for _ in range(most):
        plan = model.apply()
        if plan.routing.action.value != "None":
            share = "" if plan.routing.percentage is None else f" {plan.routing.percentage}"
            told.append((model.now - begin, f"{plan.routing.action}{share}"))
        if plan.routing.phase is Phase.SETTLED:
            return told
        model.pass_time(interval)
    raise AssertionError(told)


def test_rollout_takes_every_step_for_its_time() -> None:
    model = started()
    model.deploy("v2")
    happened = settle(model, MINUTE)
    assert [what for _, what in happened] == ["SetRamp 5", "SetRamp 33.3", "SetRamp 75", "SetCurrent"]
    times = [when for when, _ in happened]
    pauses = [after - before for before, after in pairwise(times)]
    # a pause is over after its time, not at it, so the next look sees it
    assert pauses == [timedelta(minutes=11), timedelta(minutes=31), timedelta(minutes=61)]


def test_rollout_that_is_looked_at_rarely_skips_no_step() -> None:
    model = started()
    model.deploy("v2")
    happened = settle(model, timedelta(hours=5))
    assert [what for _, what in happened] == ["SetRamp 5", "SetRamp 33.3", "SetRamp 75", "SetCurrent"]


def test_ramp_set_by_hand_goes_back_to_the_step_below() -> None:
    model = started()
    model.deploy("v2")
    model.apply()
    model.pass_time(MINUTE)
    model.apply()
    model.routing = replace(model.routing, ramping=RampingVersion("v2", 50, model.now, model.now))
    assert settle(model, MINUTE)[0][1] == "SetRamp 33.3"


def test_revert_within_the_window_is_at_once() -> None:
    model = started()
    model.deploy("v2")
    settle(model, MINUTE)
    model.pass_time(timedelta(minutes=20))
    model.deploy("v1")
    assert [what for _, what in settle(model, MINUTE)] == ["SetCurrent"]


def test_revert_after_the_window_takes_the_steps() -> None:
    model = started()
    model.deploy("v2")
    settle(model, MINUTE)
    model.pass_time(timedelta(hours=2))
    model.deploy("v1")
    assert settle(model, MINUTE)[0][1] == "SetRamp 5"


def test_old_version_goes_in_two_steps_after_its_delays() -> None:
    model = started()
    model.deploy("v2")
    settle(model, MINUTE)
    seen = []
    for _ in range(30):
        model.pass_time(timedelta(hours=1))
        model.apply()
        seen.append(model.deployments.get("v1", {}).get("spec", {}).get("replicas"))
    assert seen[0] == 3
    assert sorted({value for value in seen if value is not None}) == [0, 3]
    assert seen[-1] is None
    assert seen.count(0) >= 24


def test_version_that_holds_workflows_never_loses_its_pods() -> None:
    model = started(held=frozenset({"v1"}))
    for build_id in ("v2", "v3"):
        model.deploy(build_id)
        settle(model, MINUTE)
        model.pass_time(timedelta(days=2))
        model.apply()
    assert "v1" in set(model.serving())


@pytest.mark.parametrize("strategy", [Strategy.ALL_AT_ONCE, Strategy.PROGRESSIVE])
@given(
    deploys=st.lists(st.sampled_from(("v1", "v2", "v3", "v4")), min_size=1, max_size=4),
    held=st.frozensets(st.sampled_from(("v1", "v2", "v3"))),
    minutes=st.integers(1, 200),
)
def test_any_sequence_of_deploys_settles_and_strands_nothing(
    strategy: Strategy, deploys: list[str], held: frozenset[str], minutes: int
) -> None:
    model = started(held)
    model.spec = replace(model.spec, rollout=replace(model.spec.rollout, strategy=strategy))
    ever_current: set[str] = {"v1"}
    for build_id in deploys:
        model.deploy(build_id)
        settle(model, timedelta(minutes=minutes))
        ever_current.add(build_id)
        assert (ever_current & held) | {build_id} <= set(model.serving())
    model.pass_time(timedelta(days=3))
    model.apply()
    assert (ever_current & held) | {deploys[-1]} <= set(model.serving())
