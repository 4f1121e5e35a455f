"""What is measured of a ramp decides whether it goes on, waits, or is taken back."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.planning.situations import RAMPS, planned, routing, serving, target_in, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, SECOND
from tests.strategies import NOW, with_policy
from twgen.model.analysis import (
    Analysis,
    ClosedStatus,
    FailureCount,
    Failures,
    Measurement,
    Metric,
    OnFailure,
    Verdict,
    WorkflowFailures,
)
from twgen.model.plan import RoutingAction, WorkerPlan
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import RolloutStep, Strategy, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.planning.interventions import promote, resume
from twgen.planning.plan import worker_world
from twgen.planning.reads import further_reads
from twgen.planning.rollout import WriteMarks, next_write
from twgen.versioning.names import MarkKey

OLD = version("v1", VersionStatus.CURRENT, created_at=NOW - 9 * DAY)
FAILS, WELL, UNKNOWN = FailureCount(41, 9), FailureCount(41, 0), None


def metric(max_ratio: float | None = 0.02, at_least: int = 0, name: str = "failures") -> Metric:
    statuses = (ClosedStatus.FAILED, ClosedStatus.TIMED_OUT)
    return Metric(name, WorkflowFailures(max_ratio, statuses, (), 0.01, at_least))


def measuring(*metrics: Metric, on_failure: OnFailure = OnFailure.ABORT) -> WorkerSpec:
    analysis = Analysis(metrics or (metric(),), on_failure, MINUTE)
    return with_policy(RAMPS, analysis=analysis)


def ramping(  # noqa: PLR0913 - each is another way to be measured
    target: FailureCount | None,
    current: FailureCount | None = None,
    *,
    percentage: float = 25,
    age: timedelta = HOUR,
    since: datetime | None = None,
    spec: WorkerSpec | None = None,
    problem: str = "",
    metadata: dict[str, Any] | None = None,
) -> WorkerPlan:
    counted = Failures(target, current) if target else None
    measured = Measurement("failures", since or NOW - age, failures=counted, problem=problem)
    told = (measured,) if target or problem else None
    ramps = version(status=VersionStatus.RAMPING, metadata=metadata or {}, measurements=told)
    traffic = routing("v1", ("v3", percentage), age=age)
    return planned(serving(temporal(OLD, ramps, traffic=traffic)), spec or measuring())


def test_version_that_fails_is_marked_with_the_numbers_while_its_step_pauses() -> None:
    plan = ramping(FAILS, age=5 * MINUTE)
    assert (plan.routing.reason, plan.routing.action) == (Reason.ANALYSIS_FAILED, RoutingAction.CLEAR_RAMP)
    because = "failures: 9 of 41 failed (22%), bound 2%, chance of a false alarm below 0.01%"
    assert plan.routing.because == because
    write = next_write(plan)
    assert isinstance(write, WriteMarks)
    of = {"stay": "2026-11-21T11:55:00Z", "ramping": True}
    said = {"by": "me", "at": "2026-11-21T12:00:00Z", "because": because, **of}
    assert write.marks == {MarkKey.ABORTED: said}


def test_version_that_fails_is_paused_where_the_policy_says_so() -> None:
    plan = ramping(FAILS, spec=measuring(on_failure=OnFailure.PAUSE))
    assert (plan.routing.reason, plan.routing.action) == (Reason.ANALYSIS_FAILED, RoutingAction.NONE)
    write = next_write(plan)
    assert isinstance(write, WriteMarks)
    assert list(write.marks) == [MarkKey.PAUSED]


def test_version_that_is_well_goes_on_when_its_pause_is_over() -> None:
    assert ramping(WELL).routing.action is RoutingAction.SET_CURRENT
    assert ramping(WELL, age=5 * MINUTE).routing.reason is Reason.RAMP_PAUSED


def test_analysis_that_is_undecided_holds_no_share_that_does_not_grow() -> None:
    down = ramping(UNKNOWN, percentage=30)
    assert (down.routing.reason, down.routing.percentage) == (Reason.OFF_STEP, 25)
    steps = (*RAMPS.rollout.steps, RolloutStep(100, MINUTE))
    spec = replace(measuring(), rollout=replace(RAMPS.rollout, steps=steps))
    has_all = ramping(UNKNOWN, percentage=100, spec=spec)
    assert has_all.routing.action is RoutingAction.SET_CURRENT
    assert ramping(UNKNOWN, percentage=25, spec=spec).routing.reason is Reason.ANALYSIS_UNDECIDED


@pytest.mark.parametrize(
    ("plan", "because"),
    [
        pytest.param(ramping(UNKNOWN), "failures: it was not measured", id="not measured"),
        pytest.param(
            ramping(UNKNOWN, problem="PERMISSION_DENIED"),
            "failures: it cannot be read: PERMISSION_DENIED",
            id="refused",
        ),
        pytest.param(
            ramping(WELL, since=NOW - DAY), "failures: it was not measured", id="of the ramp before this one"
        ),
        pytest.param(
            ramping(FailureCount(7, 0), spec=measuring(metric(at_least=20))),
            "failures: 0 of 7 failed (0%), bound 2%; at least 20 must start before the last step ends",
            id="too few at the last step",
        ),
        pytest.param(
            ramping(WELL, spec=measuring(metric(), metric(name="other"))),
            "other: it was not measured",
            id="one of two",
        ),
        pytest.param(
            ramping(FAILS, spec=measuring(metric(None))),
            "failures: the current version was not measured",
            id="nothing to compare with",
        ),
    ],
)
def test_ramp_stays_where_it_is_while_nobody_can_tell(plan: WorkerPlan, because: str) -> None:
    assert (plan.routing.reason, plan.routing.action) == (Reason.ANALYSIS_UNDECIDED, RoutingAction.NONE)
    assert because in plan.routing.because


def test_too_few_workflows_hold_no_step_but_the_last() -> None:
    plan = ramping(FailureCount(7, 0), percentage=5, spec=measuring(metric(at_least=20)))
    assert (plan.routing.action, plan.routing.percentage) == (RoutingAction.SET_RAMP, 25)


def test_nothing_is_judged_before_the_initial_delay_is_over() -> None:
    plan = ramping(FAILS, age=MINUTE - SECOND)
    assert plan.routing.reason is Reason.RAMP_PAUSED
    [judged] = plan.judgements
    assert judged.verdict is Verdict.UNDECIDED
    assert judged.because.endswith("; the first verdict comes in 1s")
    assert ramping(FAILS, age=MINUTE).routing.reason is Reason.ANALYSIS_FAILED


@pytest.mark.parametrize(
    ("current", "reason"),
    [
        (FailureCount(400, 0), Reason.ANALYSIS_FAILED),
        (FailureCount(400, 90), Reason.NEXT_STEP),
        (FailureCount(0, 0), Reason.ANALYSIS_UNDECIDED),
        (FailureCount(6, 0), Reason.ANALYSIS_UNDECIDED),
    ],
)
def test_version_may_fail_as_often_as_the_current_one(current: FailureCount, reason: Reason) -> None:
    assert ramping(FAILS, current, spec=measuring(metric(None))).routing.reason is reason
    assert ramping(WELL, current, spec=measuring(metric(None))).routing.reason is Reason.NEXT_STEP


def test_person_who_promotes_what_fails_is_told_and_the_numbers_stay() -> None:
    counted = Measurement("failures", NOW - HOUR, failures=Failures(FAILS, None))
    target = version(status=VersionStatus.RAMPING, metadata={}, measurements=(counted,))
    found = serving(temporal(OLD, target, traffic=routing("v1", ("v3", 25), age=HOUR)))
    promoted = promote(target_in(found, measuring()), full=True, skip_gate=False)
    assert "although its analysis fails (failures: 9 of 41 failed (22%)" in promoted.will
    assert "9 of 41 failed" in promoted.marks[MarkKey.MEASURED_SINCE]["because"]


def test_worker_whose_traffic_a_person_moves_is_measured_by_nobody() -> None:
    manual = replace(measuring(), rollout=replace(RAMPS.rollout, strategy=Strategy.MANUAL))
    plan = ramping(FAILS, spec=manual)
    assert (plan.judgements, plan.routing.reason) == ((), Reason.MANUAL)


def test_what_failed_before_a_person_goes_on_counts_no_more() -> None:
    marked = {MarkKey.PAUSED: {"by": "me", "at": "2026-11-21T11:50:00Z", "because": "failures"}}
    target = version(status=VersionStatus.RAMPING, metadata=marked)
    found = serving(temporal(OLD, target, traffic=routing("v1", ("v3", 25), age=HOUR)))
    spec = measuring(on_failure=OnFailure.PAUSE)
    paused = target_in(found, spec)
    marks = resume(paused).marks
    assert marks[MarkKey.PAUSED] is False
    assert promote(paused, full=False, skip_gate=False).marks == {}, "nothing fails now"

    then = ramping(FAILS, metadata=dict(marks), spec=spec)
    assert then.routing.reason is not Reason.ANALYSIS_FAILED, "that was measured before"
    assert "it was not measured" in then.judgements[0].because
    anew = ramping(WELL, since=NOW, metadata=dict(marks), spec=spec)
    assert "0 of 41 failed" in anew.judgements[0].because


@pytest.mark.parametrize(
    "mark",
    [
        True,
        {},
        {"at": "lately"},
        {"stay": "2026-11-21T11:00:00Z"},
        {"at": "2026-11-22T12:00:00Z"},
        {"at": "2020-01-01T00:00:00Z"},
    ],
)
def test_mark_that_says_no_time_of_the_ramp_changes_nothing(mark: Any) -> None:
    assert ramping(FAILS, metadata={MarkKey.MEASURED_SINCE: mark}).routing.reason is Reason.ANALYSIS_FAILED


def test_ramp_without_analysis_and_worker_without_ramp_measure_nothing() -> None:
    traffic = routing("v1", ("v3", 25), age=HOUR)
    says = temporal(OLD, version(status=VersionStatus.RAMPING, metadata={}), traffic=traffic)
    rests = temporal(OLD, version(metadata={}), traffic=routing("v1"))
    for spec, told, metrics in ((RAMPS, says, 0), (measuring(), rests, 0), (measuring(), says, 1)):
        world = worker_world(spec, serving(told))
        assert len(further_reads(spec, world, NOW, for_routing=True).metrics) == metrics
