"""What comes next if nothing changes but the time."""

from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    RAMPS,
    SPEC,
    ago,
    decided,
    drained,
    live,
    routed,
    routing,
    situation,
    temporal,
    version,
)
from twgen.model.plan import RoutingAction, VersionAction
from twgen.model.spec import WorkerSpec
from twgen.model.world import TaskQueue, TaskQueueType, Version, World
from twgen.model.world import VersionStatus as S
from twgen.planning.outlook import LaterAction, change_when_due, next_action
from twgen.planning.target import Target
from twgen.planning.versions import worker_world


def ramping(percentage: float, age: timedelta) -> World:
    says = temporal(
        version("v3", S.RAMPING), version("v2", S.CURRENT), traffic=routing("v2", ("v3", percentage), age=age)
    )
    return situation(says, [live("v3"), live("v2")])


def later_change(found: World, spec: WorkerSpec) -> tuple[RoutingAction, float | None] | None:
    target = Target(spec, worker_world(spec, found), NOW)
    change = change_when_due(target, "me", routed(found, spec))
    return (change.action, change.percentage) if change else None


def test_pause_ends_in_the_next_step() -> None:
    assert later_change(ramping(5, 4 * MINUTE), RAMPS) == (RoutingAction.SET_RAMP, 25)


def test_pause_of_the_last_step_ends_in_all_traffic() -> None:
    assert later_change(ramping(25, 4 * MINUTE), RAMPS) == (RoutingAction.SET_CURRENT, None)


def test_what_is_due_now_is_not_told_as_later() -> None:
    assert later_change(ramping(5, 11 * MINUTE), RAMPS) is None


def test_waiting_that_ends_in_no_change_brings_none() -> None:
    both = (
        TaskQueue("main", TaskQueueType.WORKFLOW, pollers=True),
        TaskQueue("mail", TaskQueueType.ACTIVITY),
    )
    says = temporal(
        version("v3", created_at=ago(MINUTE)),
        version("v2", S.CURRENT, task_queues=both),
        traffic=routing("v2"),
    )
    found = situation(says, [live("v3"), live("v2")])
    assert routed(found, RAMPS).due_at == ago(MINUTE) + 5 * MINUTE
    assert later_change(found, RAMPS) is None


def later_action(known: Version, deployments: list[dict[str, Any]] | None) -> LaterAction | None:
    found = situation(temporal(version("v3", S.CURRENT), known, traffic=routing("v3")), deployments)
    planned = decided(found, "v1")
    assert planned
    return next_action(SPEC, found, planned, NOW)


def test_drained_version_will_be_scaled_down_after_its_delay() -> None:
    expected = LaterAction(VersionAction.SCALE_DOWN, ago(-40 * MINUTE))
    assert later_action(drained(20 * MINUTE), [live("v1"), live("v3")]) == expected


def test_deployment_at_zero_will_go_after_both_delays() -> None:
    expected = LaterAction(VersionAction.DROP, ago(-22 * HOUR))
    assert later_action(drained(3 * HOUR), [live("v1", 0, protected=False), live("v3")]) == expected


def test_deployment_of_a_version_that_was_never_active_will_go_after_both_delays() -> None:
    expected = LaterAction(VersionAction.DROP, ago(-24 * HOUR))
    assert later_action(version("v1"), [live("v1", 0, protected=False), live("v3")]) == expected


@pytest.mark.parametrize(
    ("known", "deployments"),
    [
        pytest.param(drained(20 * MINUTE, open_workflows=2), [live("v1")], id="open workflows hold it"),
        pytest.param(drained(3 * HOUR), [live("v1")], id="its pods have not gone yet"),
        pytest.param(drained(3 * HOUR), [live("v1", 0)], id="its protection has not gone yet"),
        pytest.param(version("v1", S.DRAINING, first_activated_at=ago(DAY)), [live("v1")], id="draining"),
    ],
)
def test_nothing_is_foretold_that_time_alone_does_not_bring(
    known: Version, deployments: list[dict[str, Any]]
) -> None:
    assert later_action(known, [*deployments, live("v3")]) is None


def test_target_is_never_foretold_to_go() -> None:
    traffic = routing("v2")
    old = drained(MINUTE, "v3")
    found = situation(temporal(old, version("v2", S.CURRENT), traffic=traffic), [live("v3"), live("v2")])
    planned = decided(found, "v3")
    assert planned
    assert next_action(SPEC, found, planned, NOW) is None
