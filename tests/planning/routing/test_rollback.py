"""Going back to a version that was current until lately, at once, and when not to."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import (
    SPEC,
    live,
    planned,
    routed,
    routing,
    serving,
    situation,
    target_in,
    temporal,
    version,
)
from tests.planning.times import DAY, HOUR, MINUTE, SECOND, ago
from tests.strategies import STEPS
from twgen.model.plan import RoutingAction
from twgen.model.spec import Gate, Rollout, Strategy
from twgen.model.temporal import TaskQueue, TaskQueueType, UpdateState, Version, VersionStatus
from twgen.model.world import World
from twgen.planning.interventions import promote

STEPWISE = replace(SPEC, rollout=Rollout(Strategy.PROGRESSIVE, STEPS, Gate("Smoke")))
S = VersionStatus
ONLY_BILLING = TaskQueue("billing", TaskQueueType.WORKFLOW, pollers=True)
NEWER = version("v4", S.CURRENT, created_at=ago(HOUR))
REPLACED = {"created_at": ago(9 * DAY), "first_activated_at": ago(8 * DAY), "last_current_at": ago(8 * DAY)}


def world(
    target: Version,
    *,
    replaced: timedelta,
    server: str = "1.32.0",
    clocks_apart: timedelta = timedelta(),
    **traffic: Any,
) -> World:
    """Another version is current since the time at which the target was replaced."""
    traffic_now = replace(routing("v4", age=replaced), **traffic)
    says = temporal(target, NEWER, traffic=traffic_now, server_version=server)
    return serving(says, "v3", "v4", clocks_apart=clocks_apart)


def is_rollback(found: World) -> bool:
    return routed(found, STEPWISE).action is RoutingAction.SET_CURRENT


def was_current(left: timedelta, **facts: Any) -> Version:
    return version("v3", S.DRAINING, **(REPLACED | {"last_deactivated_at": ago(left)} | facts))


def test_version_of_a_week_replaced_minutes_ago_comes_back_at_once() -> None:
    found = world(was_current(5 * MINUTE), replaced=5 * MINUTE)
    plan = planned(found, STEPWISE)
    assert plan.routing.action is RoutingAction.SET_CURRENT
    assert plan.routing.because == "it was current until recently: a rollback skips gates and steps"
    assert plan.gates == ()


def test_person_who_promotes_a_rollback_is_asked_for_no_gate_either() -> None:
    spec = replace(STEPWISE, rollout=replace(STEPWISE.rollout, strategy=Strategy.MANUAL))
    found = world(was_current(5 * MINUTE), replaced=5 * MINUTE)
    assert "run `twgen promote` to make v3 current" in routed(found, spec).because
    target = target_in(found, spec)
    change = promote(target, full=True, skip_gate=False).change
    assert change
    assert change.action is RoutingAction.SET_CURRENT


@pytest.mark.parametrize(
    ("left", "facts", "replaced", "expected"),
    [
        pytest.param(HOUR, {}, HOUR, True, id="at the end of its window"),
        pytest.param(HOUR + SECOND, {}, HOUR + SECOND, False, id="after its window"),
        pytest.param(HOUR, {"last_current_at": ago(-5 * MINUTE)}, HOUR, True, id="by a clock that is ahead"),
        pytest.param(HOUR, {"last_current_at": ago(-5 * MINUTE - SECOND)}, HOUR, False, id="in the future"),
        pytest.param(9 * MINUTE, {"last_current_at": ago(10 * MINUTE)}, HOUR / 2, True, id="current lately"),
        pytest.param(20 * MINUTE, {}, 20 * MINUTE + 5 * SECOND, True, id="it was replaced as it left"),
        pytest.param(20 * MINUTE, {}, 20 * MINUTE + 6 * SECOND, False, id="only a ramp of it ended"),
        pytest.param(MINUTE, {"last_current_at": None}, MINUTE, False, id="it was never current"),
        pytest.param(MINUTE, {"created_at": ago(MINUTE)}, MINUTE, False, id="newer than the current one"),
        pytest.param(MINUTE, {"created_at": None}, MINUTE, False, id="of unknown age"),
        pytest.param(MINUTE, {"metadata": {"twgen.io/aborted": {"by": "ana"}}}, MINUTE, False, id="aborted"),
        pytest.param(MINUTE, {"task_queues": (ONLY_BILLING,)}, MINUTE, True, id="it lacks a task queue"),
    ],
)
def test_version_that_was_current_comes_back_at_once_or_takes_the_steps(
    left: timedelta, facts: dict[str, Any], replaced: timedelta, *, expected: bool
) -> None:
    assert is_rollback(world(was_current(left, **facts), replaced=replaced)) is expected


def test_rollback_ends_with_its_window_by_the_fastest_clock_that_was_heard() -> None:
    for apart, expected in ((HOUR / 2, True), (HOUR / 2 + SECOND, False)):
        found = world(was_current(HOUR / 2), replaced=HOUR / 2, clocks_apart=apart)
        assert is_rollback(found) is expected


def test_version_replaced_by_one_that_was_replaced_itself_comes_back_at_once() -> None:
    between = version("v2", S.DRAINING, last_current_at=ago(30 * MINUTE))
    says = temporal(was_current(30 * MINUTE), between, NEWER, traffic=routing("v4", age=10 * MINUTE))
    assert is_rollback(serving(says, "v3"))


@pytest.mark.parametrize(
    ("server", "apart", "expected"),
    [
        pytest.param("1.29.1", SECOND, True, id="older server, replaced"),
        pytest.param("1.29.1", MINUTE, False, id="older server, not replaced"),
        pytest.param("1.30.0", SECOND, False, id="newer server would tell"),
        pytest.param("", SECOND, False, id="unknown server"),
        pytest.param("a build", SECOND, False, id="unnumbered server"),
    ],
)
def test_server_that_does_not_tell_when_a_version_was_current(
    server: str, apart: timedelta, *, expected: bool
) -> None:
    target = was_current(5 * MINUTE, last_current_at=None)
    assert is_rollback(world(target, replaced=5 * MINUTE + apart, server=server)) is expected


def test_rollback_does_not_wait_for_a_routing_update() -> None:
    update: dict[str, Any] = {"update_state": UpdateState.IN_PROGRESS, "changed_at": ago(MINUTE)}
    assert is_rollback(world(was_current(MINUTE), replaced=MINUTE, **update))


def test_rollback_waits_until_it_serves() -> None:
    found = world(was_current(MINUTE), replaced=MINUTE)
    at_zero = situation(next(iter(found.workers.values())).temporal, [live("v3", 0), live("v4")])
    assert not is_rollback(at_zero)


@pytest.mark.parametrize(
    "current",
    [
        pytest.param(None, id="no current version, as after a fall-back to unversioned workers"),
        pytest.param("unlisted", id="a current version that Temporal does not list"),
        pytest.param("ageless", id="a current version without an age"),
    ],
)
def test_unknown_current_version_makes_no_rollback(current: str | None) -> None:
    ageless = version("ageless", S.CURRENT, created_at=None)
    says = temporal(was_current(5 * MINUTE), ageless, traffic=routing(current, age=5 * MINUTE))
    assert routed(serving(says, "v3", "ageless"), STEPWISE).reason != "Rollback"


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        pytest.param(1, "1 auto-upgrade workflow from v4", id="one"),
        pytest.param(12, "12 auto-upgrade workflows from v4", id="several"),
        pytest.param(None, "all auto-upgrade workflows from v4", id="not counted"),
        pytest.param(0, "", id="none"),
    ],
)
def test_rollback_warns_of_auto_upgrade_workflows_on_the_newer_version(
    counted: int | None, said: str
) -> None:
    newer = replace(NEWER, auto_upgrade_workflows=counted)
    says = temporal(was_current(5 * MINUTE), newer, traffic=routing("v4", age=5 * MINUTE))
    warnings = planned(serving(says, "v3", "v4"), STEPWISE).versions.warnings
    assert bool(warnings) is bool(said)
    assert all(
        text.startswith(f"the rollback moves {said} back to the older code of v3") for text in warnings
    )
