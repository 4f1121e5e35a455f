"""The change of traffic that time alone will bring."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import MAIN, RAMPS, routed, routing, serving, target_in, temporal, version
from tests.planning.times import MINUTE, ago
from twgen.model.plan import RoutingAction
from twgen.model.temporal import TaskQueue, TaskQueueType
from twgen.model.temporal import VersionStatus as S
from twgen.model.world import World
from twgen.planning.routing.table import change_when_due

CURRENT = version("v2", S.CURRENT)


def later_change(found: World) -> tuple[RoutingAction, float | None] | None:
    change = change_when_due(target_in(found, RAMPS), routed(found, RAMPS))
    return (change.action, change.percentage) if change else None


@pytest.mark.parametrize(
    ("percentage", "age", "expected"),
    [
        pytest.param(5, 4 * MINUTE, (RoutingAction.SET_RAMP, 25), id="the next step"),
        pytest.param(25, 4 * MINUTE, (RoutingAction.SET_CURRENT, None), id="all traffic"),
        pytest.param(5, 11 * MINUTE, None, id="nothing: that is due now"),
    ],
)
def test_pause_ends_in(percentage: float, age: timedelta, expected: object) -> None:
    traffic = routing("v2", ("v3", percentage), age=age)
    assert later_change(serving(temporal(version("v3", S.RAMPING), CURRENT, traffic=traffic))) == expected


def test_waiting_that_ends_in_no_change_brings_none() -> None:
    old = replace(CURRENT, task_queues=(MAIN, TaskQueue("mail", TaskQueueType.ACTIVITY)))
    found = serving(temporal(version("v3", created_at=ago(MINUTE)), old, traffic=routing("v2")), "v3", "v2")
    assert routed(found, RAMPS).due_at == ago(MINUTE) + 5 * MINUTE
    assert later_change(found) is None
