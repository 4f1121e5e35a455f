"""What a rollout writes next, when it is over, and until when nothing but time has to pass."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given

from tests.planning.situations import MAIN, NOW, RAMPS, planned, routing, serving, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, SECOND, ago
from tests.schemas.printed import reported
from tests.strategies import specs, worlds
from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.reasons import Until
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import Gate, WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.temporal import (
    CurrentVersion,
    GateRun,
    GateStatus,
    RampingVersion,
    Routing,
    TaskQueue,
    TaskQueueType,
    UpdateState,
)
from twgen.model.temporal import VersionStatus as S
from twgen.model.world import World
from twgen.planning.plan import worker_world
from twgen.planning.rollout import (
    Claim,
    as_expected,
    brought_up_to_date,
    is_news,
    is_over,
    left_alone,
    needs_a_rollout,
    next_write,
    not_begun,
    only_time_passes_until,
    overdue,
    since_when,
    until_next_look,
)
from twgen.planning.routing.table import TABLE
from twgen.planning.sentences import timed, untimed
from twgen.versioning.names import MarkKey

OLD = version("v1", S.CURRENT)
RAMPING = version(status=S.RAMPING)
GATED = replace(RAMPS, rollout=replace(RAMPS.rollout, gate=Gate("Check")))
PASSED = GateRun("main", "test-shop/payments:v3-main", GateStatus.COMPLETED)


def ramping(age: timedelta) -> WorkerPlan:
    return planned(serving(temporal(OLD, RAMPING, traffic=routing("v1", ("v3", 25), age=age))), RAMPS)


def test_gates_start_before_a_claim_and_a_claim_is_made_before_traffic_moves() -> None:
    found = []
    for runs, manager in (((), ""), ((PASSED,), ""), ((PASSED,), "me"), ((PASSED,), "somebody else")):
        says = temporal(OLD, version(gate_runs=runs), traffic=routing("v1"), manager_identity=manager)
        found.append(next_write(planned(serving(says), GATED)))
    gate, claim, change, nothing = found
    assert isinstance(gate, GateStart)
    assert claim == Claim("me")
    assert isinstance(change, RoutingPlan)
    assert (change.action, change.build_id) == (RoutingAction.SET_RAMP, "v3")
    assert nothing is None


def test_share_is_taken_back_before_a_gate_starts() -> None:
    """The gate of the fix may be one that cannot start: its input is missing."""
    bad = version("v2", S.RAMPING, created_at=ago(2 * HOUR))
    says = temporal(OLD, bad, version("v3"), traffic=routing("v1", ("v2", 25)))
    plan = planned(serving(says, "v1", "v2", "v3"), GATED)
    assert plan.gates
    write = next_write(plan)
    assert isinstance(write, RoutingPlan)
    assert write.action is RoutingAction.CLEAR_RAMP


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


def test_pause_that_nobody_knows_the_end_of_is_not_slept_through() -> None:
    unknown = Routing(current=CurrentVersion("v1", ago(DAY)), ramping=RampingVersion("v3", 25))
    plan = planned(serving(temporal(OLD, RAMPING, traffic=unknown)), RAMPS)
    assert (plan.routing.reason, plan.routing.due_at) == (Reason.RAMP_PAUSED, None)
    assert only_time_passes_until(plan, NOW) is None


def test_anything_may_change_a_plan_that_waits_for_more_than_time() -> None:
    assert only_time_passes_until(ramping(31 * MINUTE), NOW) is None
    assert only_time_passes_until(planned(serving(None), RAMPS), NOW) is None


def test_wait_for_a_task_queue_that_has_a_limit_is_looked_at_before_it_is_over() -> None:
    """A poll does not move the conflict token."""
    busy = TaskQueue("bulk", TaskQueueType.ACTIVITY, pollers=True, has_tasks=True)
    old = replace(OLD, task_queues=(MAIN, busy))
    says = temporal(old, version("v3", created_at=ago(MINUTE)), traffic=routing("v1"))
    plan = planned(serving(says), RAMPS)
    assert (plan.routing.reason, plan.routing.due_at) == (Reason.MISSING_TASK_QUEUE, NOW + 4 * MINUTE)
    assert only_time_passes_until(plan, NOW) is None


def test_pause_that_ends_this_very_second_is_not_looked_at_without_a_rest() -> None:
    plan = ramping(30 * MINUTE)
    assert (plan.routing.reason, plan.routing.due_at) == (Reason.RAMP_PAUSED, NOW)
    assert only_time_passes_until(plan, NOW) is None
    assert until_next_look(plan, NOW) == SECOND


@pytest.mark.parametrize(
    ("found", "reason", "watched", "unattended"),
    [
        ({}, Reason.FIRST_STEP, False, False),
        ({"manager": "somebody else"}, Reason.FOREIGN_MANAGER, True, False),
        ({"gate": GateStatus.FAILED}, Reason.GATE_FAILED, True, True),
        ({"marks": {MarkKey.ABORTED: True}}, Reason.ABORTED, True, True),
        ({"marks": {MarkKey.PAUSED: True}}, Reason.PAUSED, False, False),
        ({"marks": {MarkKey.PAUSED: True, MarkKey.ABORTED: True}}, Reason.ABORTED, True, True),
        ({"is_paused": True, "marks": {MarkKey.ABORTED: True}}, Reason.FROZEN, False, False),
        ({"is_superseded": True, "manager": "somebody else"}, Reason.SUPERSEDED, True, True),
        ({"older_pods": ("another",), "manager": "somebody else"}, Reason.OLDER_ROLLOUT, False, False),
        ({"is_paused": True, "manager": "somebody else"}, Reason.FOREIGN_MANAGER, True, False),
        ({"is_paused": True}, Reason.FROZEN, False, False),
    ],
)
def test_rollout_that_nobody_watches_outlasts_what_somebody_else_can_mend(
    found: dict[str, Any], reason: Reason, *, watched: bool, unattended: bool
) -> None:
    told = dict(found)
    spec = GATED if "gate" in told else RAMPS
    run = replace(PASSED, status=told.pop("gate", GateStatus.COMPLETED))
    target = version(metadata=told.pop("marks", {}), gate_runs=(run,))
    manager = told.pop("manager", "me")
    says = temporal(OLD, target, traffic=routing("v1"), manager_identity=manager)
    world = serving(says, rollout=RolloutInCluster(**told))
    plan = planned(world, spec)
    assert plan.routing.reason is reason
    if reason is not Reason.FIRST_STEP:
        assert plan.routing.action is RoutingAction.NONE
        assert not plan.gates
    over = [is_over(plan, worker_world(spec, world), NOW, is_unattended=alone) for alone in (False, True)]
    assert over == [watched, unattended]


@given(specs, worlds())
def test_plan_that_makes_no_change_and_is_not_settled_says_what_ends_its_wait(
    spec: WorkerSpec, found: World
) -> None:
    plan = planned(found, spec).routing
    if plan.action is RoutingAction.NONE and plan.phase is not Phase.SETTLED:
        assert plan.reason.until is not Until.NOTHING, plan


def test_every_wait_of_the_table_has_an_end_of_its_kind() -> None:
    ends = {row.reason: row.reason.until for row in TABLE}
    assert {reason for reason, until in ends.items() if until is Until.TIME} == {Reason.RAMP_PAUSED}
    again = {reason for reason, until in ends.items() if until is Until.ANOTHER_INTENT}
    assert again == {Reason.ABORTED, Reason.GATE_FAILED, Reason.REPLAY_FAILED}
    assert {*Reason} - {*ends} == {
        Reason.MANUAL,
        Reason.LOOK_FAILED,
        Reason.ROLLOUT_NOT_BEGUN,
        Reason.HOOK_SKIPPED,
        Reason.CLAIM_FAILED,
        Reason.INVALID_INTENT,
        Reason.ROLLOUT_ENDED,
    }


def test_status_with_a_word_of_another_release_still_needs_a_rollout() -> None:
    assert needs_a_rollout(Phase.WAITING, "SomethingNew")
    assert not needs_a_rollout(Phase.BLOCKED, "RolloutEnded")
    assert not needs_a_rollout(Phase.SETTLED, "SomethingNew")


def test_settled_rollout_is_over_when_every_task_queue_has_heard_of_it() -> None:
    over = []
    for state in UpdateState:
        traffic = replace(routing("v3"), update_state=state, changed_at=NOW - SECOND)
        world = serving(temporal(version(status=S.CURRENT), traffic=traffic), "v3")
        over += [state] if is_over(planned(world), worker_world(RAMPS, world), NOW) else []
    assert over == [UpdateState.COMPLETED]


def test_status_of_a_rollout_that_ended_says_why_once_and_that_nothing_comes_next() -> None:
    report = reported(worker="shop/payments", waitsUntil="2026-11-21T12:00:30Z")
    paused = timed("it stays at 25% for 30s more", NOW, NOW + 30 * SECOND)
    assert paused == "it stays at 25% for 30s more (at 12:00:00 UTC; until 12:00:30 UTC)"
    told = RolloutStatus(
        *("shop/payments", Phase.WAITING, "RampPaused", f"{paused}; it fails", "v3", "v1", 25, NOW),
        report=report,
    )
    killed = left_alone(told, "its Job was killed", NOW)
    was = "before, it was Waiting: it stays at 25% for 30s more (at 12:00:00 UTC); it fails"
    assert killed.message == f"its traffic is not moving: its Job was killed; {was}"
    late = left_alone(replace(told, message=paused), f"it is late: Waiting: {untimed(paused)}", NOW)
    assert late.message.count("it stays at 25%") == 1
    looked = replace(told.with_details(phase=Phase.WAITING), percentage=50)
    for status in (killed, late, brought_up_to_date(killed, looked), not_begun(told, "", "v4", "", NOW)):
        shown = status.details
        assert shown
        assert (shown.next, shown.waits_until, shown.reason) == (None, None, status.reason)
    going = brought_up_to_date(told, looked)
    assert (going.percentage, going.report) == (50, looked.report)


def test_rollout_of_another_target_than_its_spec_has_not_begun() -> None:
    told = RolloutStatus("shop/payments", Phase.SETTLED, "Settled", "", "v3", "v3", 100, NOW - HOUR, None)
    assert as_expected([told], [RAMPS], NOW) == [told]
    for before in ([], [replace(told, target="v2")]):
        [status] = as_expected(before, [RAMPS], NOW)
        assert (status.phase, status.reason) == (Phase.WAITING, Reason.ROLLOUT_NOT_BEGUN)
        assert (status.target, status.since) == ("v3", NOW)


@pytest.mark.parametrize(("waits_until", "is_told"), [(NOW + HOUR, False), (None, True)])
def test_sentence_that_counts_down_is_no_news(waits_until: datetime | None, *, is_told: bool) -> None:
    told = RolloutStatus("shop/payments", Phase.WAITING, "RampPaused", "59m", "v3", "v1", 25, NOW, reported())
    before = told.with_details(waits_until=waits_until)
    assert is_news(before, replace(before, message="58m")) is is_told
    assert is_news(before, replace(before, percentage=50))
    assert not is_news(before, before)


def test_status_whose_next_change_is_long_due_fails() -> None:
    told = RolloutStatus("shop/payments", Phase.WAITING, "RampPaused", "it stays", "v3", "v1", 25, NOW, None)
    told = replace(told, report=reported(worker="shop/payments", waitsUntil="2026-11-21T12:00:30Z"))
    assert overdue(told, NOW + 5 * MINUTE) == told
    late = overdue(told, NOW + HOUR)
    assert late.failing == (
        "its next change was due at 2026-11-21T12:00:30Z: check that its Job (or `twgen tick`) is still"
        " running"
    )
    failing, unread = replace(told, failing="Temporal does not answer"), replace(told, report=None)
    for other in (failing, unread, told.with_details(waits_until=None)):
        assert overdue(other, NOW + HOUR) == other


def test_rollout_that_is_tried_again_has_stood_for_as_long_as_its_first_try() -> None:
    told = RolloutStatus("shop/a", Phase.WAITING, "NotServing", "", "v3", "v1", 0, NOW, None, intent="1")
    later = replace(told, since=NOW + MINUTE)
    ended = replace(told, phase=Phase.BLOCKED, reason=Reason.ROLLOUT_ENDED)
    settled = replace(later, phase=Phase.SETTLED, reason=Reason.SETTLED)
    assert since_when(told, later) == since_when(ended, later) == NOW
    for before, now in (
        (told, replace(later, reason="RampPaused")),
        (ended, settled),
        (told, replace(later, intent="2")),
        (ended, replace(later, intent="2")),
    ):
        assert since_when(before, now) == NOW + MINUTE
