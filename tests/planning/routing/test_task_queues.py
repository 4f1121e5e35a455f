"""Task queues that the current version polls and the target does not: which hold it up, and which do not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import (
    MAIN,
    SPEC,
    live,
    planned,
    routed,
    routing,
    situation,
    target_in,
    temporal,
    version,
)
from tests.planning.times import DAY, MINUTE, SECOND, ago
from tests.strategies import NOW, with_policy
from twgen.model.plan import RoutingAction
from twgen.model.reasons.routing import RoutingReason
from twgen.model.temporal import TaskQueue, TaskQueueType, VersionStatus
from twgen.model.world import World
from twgen.planning.interventions import promote
from twgen.planning.plan import worker_world
from twgen.planning.reads import further_reads

REPORTS = TaskQueue("reports-eu", TaskQueueType.ACTIVITY, pollers=True)
COMMANDS = TaskQueue("temporal-sys/worker-commands/shop/pod-1", TaskQueueType.NEXUS, pollers=False)
IGNORING = with_policy(SPEC, ignore_missing_task_queues=("mail", "reports-*"))
MOVES = RoutingAction.SET_CURRENT


def lacking(*queues: TaskQueue, age: timedelta = DAY) -> World:
    """The target polls MAIN, and the current version these queues too."""
    current = version("v1", VersionStatus.CURRENT, created_at=ago(9 * DAY), task_queues=(MAIN, *queues))
    says = temporal(current, version(created_at=ago(age)), traffic=routing("v1"))
    return situation(says, [live("v3"), live("v1")])


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("age", [SECOND, DAY])
@pytest.mark.parametrize("kind", TaskQueueType)
def test_queue_of_temporal_itself_holds_nothing_up(slash: str, age: timedelta, kind: TaskQueueType) -> None:
    queue = replace(COMMANDS, name=slash + COMMANDS.name, type=kind, has_tasks=True)
    plan = planned(lacking(queue, age=age))
    assert (plan.routing.action, plan.versions.warnings) == (MOVES, ())


@pytest.mark.parametrize("name", ["temporal-system", "payments/temporal-sys/x", "payments"])
def test_queue_that_only_looks_like_one_of_temporal_holds_the_target_up(name: str) -> None:
    queue = TaskQueue(name, TaskQueueType.NEXUS)
    assert routed(lacking(queue)).reason is RoutingReason.MISSING_TASK_QUEUE


def test_silent_queue_of_a_process_that_is_gone_keeps_no_target_from_its_traffic() -> None:
    activities = replace(MAIN, type=TaskQueueType.ACTIVITY)
    current = version("v1", VersionStatus.CURRENT, task_queues=(activities,))
    says = temporal(current, version(task_queues=(activities, COMMANDS)), traffic=routing("v1"))
    assert routed(situation(says, None)).action is MOVES


@pytest.mark.parametrize(
    ("has_tasks", "age", "moves"),
    [
        (False, DAY, True),
        (False, 5 * MINUTE, True),
        (False, 5 * MINUTE - SECOND, False),
        (True, DAY, False),
        (None, DAY, False),
    ],
)
def test_queue_without_tasks_holds_the_target_up_for_its_first_minutes_alone(
    age: timedelta,
    *,
    has_tasks: bool | None,
    moves: bool,
) -> None:
    plan = planned(lacking(replace(REPORTS, has_tasks=has_tasks), age=age))
    assert (plan.routing.action is MOVES) == moves
    assert [warning.partition(":")[0] for warning in plan.versions.warnings] == [
        "v3 does not poll activity task queue reports-eu, but v1 does"
    ] * moves
    assert not plan.routing.ignores_missing_queues, "Temporal looks for itself"


@pytest.mark.parametrize("has_tasks", [None, True, False])
def test_queue_that_the_policy_names_holds_nothing_up_and_temporal_is_told_so(
    *, has_tasks: bool | None
) -> None:
    world = lacking(replace(REPORTS, has_tasks=has_tasks), age=SECOND)
    plan = planned(world, IGNORING)
    assert (plan.routing.action, plan.versions.warnings) == (MOVES, ())
    assert plan.routing.ignores_missing_queues == (has_tasks is not False)
    change = promote(target_in(world, IGNORING), full=True, skip_gate=False).change
    assert change
    assert change.ignores_missing_queues == (has_tasks is not False)


def test_queue_whose_name_is_a_pattern_of_something_else_is_named_as_it_is() -> None:
    queue = replace(REPORTS, name="reports[1]")
    spec = with_policy(SPEC, ignore_missing_task_queues=("reports[1]",))
    assert routed(lacking(queue), spec).action is MOVES


def test_queue_beside_those_that_the_policy_names_holds_the_target_up_as_ever() -> None:
    plan = routed(lacking(REPORTS, replace(REPORTS, name="billing")), IGNORING)
    assert (plan.action, plan.reason) == (RoutingAction.NONE, RoutingReason.MISSING_TASK_QUEUE)
    assert "task queue billing, but v1 does" in plan.because
    assert not planned(lacking(), IGNORING).routing.ignores_missing_queues


def test_queues_are_asked_for_tasks_where_the_target_lacks_them_and_for_pollers_where_anybody_may_poll() -> (
    None
):
    world = worker_world(SPEC, lacking(REPORTS, COMMANDS))
    reads = further_reads(SPEC, world, NOW, for_routing=True)
    assert reads.tasks_of == (("v1", REPORTS),)
    assert reads.task_queues == {MAIN, REPORTS}
    settled = replace(SPEC, build_id="v1")
    assert not further_reads(settled, world, NOW, for_routing=True).tasks_of
