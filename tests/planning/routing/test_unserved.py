"""A ramp that nobody polls for is taken back, after a while and not before."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import (
    MAIN,
    RAMPS,
    live,
    planned,
    routed,
    routing,
    serving,
    situation,
    temporal,
    version,
)
from tests.planning.times import DAY, HOUR, MINUTE, SECOND
from tests.strategies import NOW, with_policy
from twgen.model.plan import Phase, RoutingAction
from twgen.model.policy import NoPollers, WhenNoPollers
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import AttachedResource, Strategy, WorkerSpec
from twgen.model.temporal import TaskQueue, TaskQueueType, VersionStatus, WorkerDeployment
from twgen.model.world import World
from twgen.planning.rollout import Claim, WriteMarks, next_write
from twgen.versioning.names import MarkKey

NOBODY = replace(MAIN, pollers=False)
OLD = version("v1", VersionStatus.CURRENT, created_at=NOW - 9 * DAY)


def seen(length: timedelta) -> TaskQueue:
    return replace(MAIN, silent_seconds=int(length.total_seconds()))


def ramps(
    *queues: TaskQueue, percentage: float = 25, age: timedelta = HOUR, marks: Any = None, **facts: Any
) -> WorkerDeployment:
    target = version(status=VersionStatus.RAMPING, task_queues=queues, metadata=marks or {})
    return temporal(OLD, target, traffic=routing("v1", ("v3", percentage), age=age), **facts)


def ramping(*queues: TaskQueue, **facts: Any) -> World:
    return serving(ramps(*queues, **facts))


def by(action: WhenNoPollers = WhenNoPollers.ABORT, after: timedelta = 5 * MINUTE) -> WorkerSpec:
    return with_policy(RAMPS, unserved=NoPollers(after, action))


def test_ramp_is_marked_aborted_with_the_reason_and_ended_by_the_next_look() -> None:
    plan = planned(ramping(NOBODY), by())
    assert (plan.routing.reason, plan.routing.action) == (Reason.UNSERVED, RoutingAction.CLEAR_RAMP)
    because = "none of its workers has polled task queue main for 5m or longer"
    assert plan.routing.because == because
    of = {"stay": "2026-11-21T11:00:00Z", "ramping": True}
    said = {"by": "me", "at": "2026-11-21T12:00:00Z", "because": because, **of}
    mark = {MarkKey.ABORTED: said}
    assert next_write(plan) == WriteMarks("v3", mark, because)

    plan = planned(ramping(NOBODY, marks=mark), by())
    assert plan.routing.reason is Reason.ABORTED
    assert plan.routing.because == f"it is marked aborted ({because})"
    assert next_write(plan) == plan.routing


def test_ramp_is_paused_where_the_policy_says_so() -> None:
    plan = planned(ramping(NOBODY), by(WhenNoPollers.PAUSE))
    assert (plan.routing.reason, plan.routing.action) == (Reason.UNSERVED, RoutingAction.NONE)
    assert plan.routing.phase is Phase.WAITING
    write = next_write(plan)
    assert isinstance(write, WriteMarks)
    assert list(write.marks) == [MarkKey.PAUSED]


def test_whoever_does_not_manage_the_worker_claims_it_before_the_mark() -> None:
    free = ramping(NOBODY, manager_identity="")
    for action in (WhenNoPollers.ABORT, WhenNoPollers.PAUSE):
        assert isinstance(next_write(planned(free, by(action))), Claim)


@pytest.mark.parametrize(
    ("world", "spec"),
    [
        pytest.param(ramping(NOBODY), by(WhenNoPollers.WAIT), id="the policy waits"),
        pytest.param(
            ramping(NOBODY),
            replace(by(), rollout=replace(RAMPS.rollout, strategy=Strategy.MANUAL)),
            id="a person moves its traffic",
        ),
        pytest.param(ramping(NOBODY, age=5 * MINUTE - SECOND), by(), id="the ramp is young"),
        pytest.param(ramping(NOBODY, percentage=0), by(), id="no share of the traffic"),
        pytest.param(ramping(seen(5 * MINUTE - SECOND)), by(), id="polled not long ago"),
        pytest.param(ramping(replace(MAIN, pollers=None)), by(), id="pollers were not read"),
        pytest.param(ramping(), by(), id="no task queue is known"),
        pytest.param(
            ramping(MAIN, replace(NOBODY, type=TaskQueueType.ACTIVITY)), by(), id="only activities wait"
        ),
    ],
)
def test_ramp_stays(world: World, spec: WorkerSpec) -> None:
    plan = routed(world, spec)
    assert plan.reason is not Reason.UNSERVED
    assert not plan.marks
    assert plan.action is not RoutingAction.CLEAR_RAMP


@pytest.mark.parametrize("queues", [(seen(2 * MINUTE),), (MAIN, replace(seen(2 * MINUTE), name="aux"))])
def test_shorter_silence_counts_where_the_policy_says_so(queues: tuple[TaskQueue, ...]) -> None:
    assert routed(ramping(*queues), by(after=2 * MINUTE)).reason is Reason.UNSERVED


@pytest.mark.parametrize(
    ("deployments", "reason"),
    [
        ([live("v3", 0), live("v1")], Reason.NOT_SERVING),
        (None, Reason.NOT_SERVING),
        ([live("v3"), live("v1")], Reason.UNSERVED),
    ],
)
def test_version_that_its_autoscaler_may_take_to_zero_is_left_alone_there(
    deployments: list[dict[str, Any]] | None, reason: Reason
) -> None:
    scaler = AttachedResource("scaler", {"kind": "ScaledObject"}, autoscales=True, scales_from_zero=True)
    spec = replace(by(), attached=(scaler,), replicas=None)
    assert routed(situation(ramps(NOBODY), deployments), spec).reason is reason


def test_clocks_that_are_apart_make_a_silence_no_longer() -> None:
    for apart, is_unserved in ((timedelta(), True), (2 * MINUTE, False)):
        found = serving(ramps(seen(3 * MINUTE)), clocks_apart=apart)
        assert (routed(found, by(after=2 * MINUTE)).reason is Reason.UNSERVED) is is_unserved


def test_mark_of_a_person_gives_no_reason() -> None:
    marks = {MarkKey.ABORTED: {"by": "somebody", "at": "then"}}
    assert routed(ramping(MAIN, marks=marks), by()).because == "it is marked aborted"
