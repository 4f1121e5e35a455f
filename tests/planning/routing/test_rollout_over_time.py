"""Whole rollouts against a model of Temporal and a clock that the test moves."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulating.workers import DAY, MINUTE, a_worker, act, deploy, wait
from tests.strategies import STEPS, a_spec
from twgen.model.plan import Phase
from twgen.model.spec import Rollout, Strategy
from twgen.model.temporal import RampingVersion
from twgen.simulating.worker import SimulatedWorker


def started(*deploys: str, held: frozenset[str] = frozenset()) -> SimulatedWorker:
    """A worker whose first version has been current for a day, with these deployed since."""
    spec = replace(a_spec(), build_id="v1", rollout=Rollout(Strategy.PROGRESSIVE, STEPS))
    worker = a_worker(spec, held=held)
    settle(worker, MINUTE)
    wait(worker, DAY)
    for build_id in deploys:
        deploy(worker, build_id)
    return worker


def settle(worker: SimulatedWorker, interval: timedelta, most: int = 2000) -> list[tuple[timedelta, str]]:
    """Look, act and wait until nothing is left to do; what happened, and when."""
    begin, told = worker.now, []
    for _ in range(most):
        plan = act(worker)
        if plan.routing.action.value != "None":
            share = "" if plan.routing.percentage is None else f" {plan.routing.percentage}"
            told.append((worker.now - begin, f"{plan.routing.action}{share}"))
        if plan.routing.phase is Phase.SETTLED:
            return told
        wait(worker, interval)
    raise AssertionError(told)


def test_rollout_takes_every_step_for_its_time() -> None:
    worker = started("v2")
    happened = settle(worker, MINUTE)
    assert [what for _, what in happened] == ["SetRamp 5", "SetRamp 33.3", "SetRamp 75", "SetCurrent"]
    times = [when for when, _ in happened]
    pauses = [after - before for before, after in pairwise(times)]
    # a pause is over after its time, not at it, so the next look sees it
    assert pauses == [timedelta(minutes=11), timedelta(minutes=31), timedelta(minutes=61)]


def test_rollout_that_is_looked_at_rarely_skips_no_step() -> None:
    worker = started("v2")
    happened = settle(worker, timedelta(hours=5))
    assert [what for _, what in happened] == ["SetRamp 5", "SetRamp 33.3", "SetRamp 75", "SetCurrent"]


def test_ramp_set_by_hand_goes_back_to_the_step_below() -> None:
    worker = started("v2")
    act(worker)
    wait(worker, MINUTE)
    act(worker)
    ramp = RampingVersion("v2", 50, worker.now, worker.now)
    worker.temporal.routing = replace(worker.temporal.routing, ramping=ramp)
    assert settle(worker, MINUTE)[0][1] == "SetRamp 33.3"


@pytest.mark.parametrize(("minutes", "first"), [(20, "SetCurrent"), (120, "SetRamp 5")])
def test_revert_within_the_window_is_at_once_and_after_it_takes_the_steps(minutes: int, first: str) -> None:
    worker = started("v2")
    settle(worker, MINUTE)
    wait(worker, minutes * MINUTE)
    deploy(worker, "v1")
    assert settle(worker, MINUTE)[0][1] == first


def test_old_version_goes_in_two_steps_after_its_delays() -> None:
    worker = started("v2")
    settle(worker, MINUTE)
    seen = []
    for _ in range(30):
        wait(worker, timedelta(hours=1))
        act(worker)
        live = worker.cluster.deployments.get("v1")
        seen.append(live.replicas if live else None)
    assert seen[0] == 3
    assert sorted({value for value in seen if value is not None}) == [0, 3]
    assert seen[-1] is None
    assert seen.count(0) >= 24


def test_version_that_holds_workflows_never_loses_its_pods() -> None:
    worker = started(held=frozenset({"v1"}))
    for build_id in ("v2", "v3"):
        deploy(worker, build_id)
        settle(worker, MINUTE)
        wait(worker, timedelta(days=2))
        act(worker)
    assert "v1" in set(worker.cluster.serving())


@pytest.mark.parametrize("strategy", [Strategy.ALL_AT_ONCE, Strategy.PROGRESSIVE])
@given(
    deploys=st.lists(st.sampled_from(("v1", "v2", "v3", "v4")), min_size=1, max_size=4),
    held=st.frozensets(st.sampled_from(("v1", "v2", "v3"))),
    minutes=st.integers(1, 200),
)
def test_any_sequence_of_deploys_settles_and_strands_nothing(
    strategy: Strategy, deploys: list[str], held: frozenset[str], minutes: int
) -> None:
    worker = started(held=held)
    worker.spec = replace(worker.spec, rollout=Rollout(strategy, STEPS))
    ever_current: set[str] = {"v1"}
    for build_id in deploys:
        deploy(worker, build_id)
        settle(worker, timedelta(minutes=minutes))
        ever_current.add(build_id)
        assert (ever_current & held) | {build_id} <= set(worker.cluster.serving())
    wait(worker, timedelta(days=3))
    act(worker)
    assert (ever_current & held) | {deploys[-1]} <= set(worker.cluster.serving())
