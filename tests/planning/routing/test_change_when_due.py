"""The change of traffic that time alone will bring."""

from datetime import timedelta

from tests.planning.situations import (
    RAMPS,
    live,
    routed,
    routing,
    situation,
    target_in,
    temporal,
    version,
)
from tests.planning.times import MINUTE, ago
from twgen.model.plan import RoutingAction
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import TaskQueue, TaskQueueType
from twgen.model.temporal import VersionStatus as S
from twgen.model.world import World
from twgen.planning.routing.table import change_when_due


def ramping(percentage: float, age: timedelta) -> World:
    says = temporal(
        version("v3", S.RAMPING), version("v2", S.CURRENT), traffic=routing("v2", ("v3", percentage), age=age)
    )
    return situation(says, [live("v3"), live("v2")])


def later_change(found: World, spec: WorkerSpec) -> tuple[RoutingAction, float | None] | None:
    target = target_in(found, spec)
    change = change_when_due(target, routed(found, spec))
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
