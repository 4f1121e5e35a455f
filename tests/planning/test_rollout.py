"""When a rollout is over, and until when nothing but time has to pass."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import (
    MINUTE,
    NOW,
    RAMPS,
    SECOND,
    live,
    planned,
    routing,
    situation,
    temporal,
    version,
)
from twgen.model.plan import WorkerPlan
from twgen.model.world import UpdateState, VersionStatus
from twgen.planning.plan import worker_world
from twgen.planning.rollout import is_over, only_time_passes_until, until_next_look


def ramping(age: timedelta, percentage: float = 25) -> WorkerPlan:
    traffic = routing("v1", ("v3", percentage), age=age)
    says = temporal(
        version("v1", VersionStatus.CURRENT), version(status=VersionStatus.RAMPING), traffic=traffic
    )
    return planned(situation(says, [live("v1"), live("v3")]), RAMPS)


@pytest.mark.parametrize(
    ("left", "blind", "sleep"),
    [
        (29 * MINUTE, 5 * MINUTE, 30 * SECOND),
        (MINUTE, MINUTE, 30 * SECOND),
        (10 * SECOND, 10 * SECOND, 11 * SECOND),
    ],
)
def test_pause_of_a_step_is_slept_through_until_it_ends(
    left: timedelta, blind: timedelta, sleep: timedelta
) -> None:
    plan = ramping(30 * MINUTE - left)
    assert only_time_passes_until(plan, NOW) == NOW + blind
    assert until_next_look(plan, NOW) == sleep


def test_anything_may_change_a_plan_that_waits_for_more_than_time() -> None:
    assert only_time_passes_until(ramping(31 * MINUTE), NOW) is None
    assert only_time_passes_until(planned(situation(None, []), RAMPS), NOW) is None


def test_settled_rollout_is_over_when_every_task_queue_has_heard_of_it() -> None:
    over = []
    for state in UpdateState:
        traffic = replace(routing("v3"), update_state=state, changed_at=NOW - SECOND)
        world = situation(temporal(version(status=VersionStatus.CURRENT), traffic=traffic), [live("v3")])
        over += [state] if is_over(planned(world), worker_world(RAMPS, world), NOW) else []
    assert over == [UpdateState.COMPLETED]
