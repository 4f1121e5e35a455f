"""What a RolloutPolicy says of single steps: a gate before one, what is judged at it, and who ends it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import RAMPS, mark, planned, routing, serving, target_in, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, ago
from tests.strategies import NOW, with_policy
from twgen.errors import NegativeAnswer
from twgen.model.analysis import Analysis, Measurement, Metric, OnFailure, ReportedProblems, StuckWorkflows
from twgen.model.plan import Phase, RoutingAction, WorkerPlan
from twgen.model.policy import PolicyStep
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import Gate, Strategy, WorkerSpec
from twgen.model.temporal import GateRun, GateStatus, VersionStatus
from twgen.model.times import format_time
from twgen.planning.interventions import promote, resume, retry
from twgen.planning.plan import worker_world
from twgen.planning.reads import further_reads
from twgen.planning.routing.target import Target
from twgen.versioning.names import MarkKey

OLD = version("v1", VersionStatus.CURRENT, created_at=NOW - 9 * DAY)
AT_25 = "test@25-shop/payments:v3-main"


def with_steps(*steps: PolicyStep, **changes: Any) -> WorkerSpec:
    return with_policy(RAMPS, steps=steps, **changes)


ANALYSIS = Analysis((Metric("stuck", ReportedProblems(0)),), OnFailure.ABORT, timedelta())
GATED = with_steps(PolicyStep(25, gate="SmokeAt25"))


def world_at(percentage: float, age: timedelta, **facts: Any) -> Any:
    """At a step for so long; at 0%: it has not begun."""
    told: dict[str, Any] = {"metadata": {}, "created_at": NOW - DAY} | facts
    target = version(status=VersionStatus.RAMPING if percentage else VersionStatus.INACTIVE, **told)
    traffic = routing("v1", ("v3", percentage) if percentage else None, age=age)
    return serving(temporal(OLD, target, traffic=traffic))


def at(percentage: float, age: timedelta, spec: WorkerSpec = GATED, **facts: Any) -> WorkerPlan:
    return planned(world_at(percentage, age, **facts), spec)


def target_at(percentage: float, age: timedelta, spec: WorkerSpec = GATED, **facts: Any) -> Target:
    return target_in(world_at(percentage, age, **facts), spec)


def run(status: GateStatus, workflow_id: str = AT_25) -> GateRun:
    return GateRun("main", workflow_id, status, ago(MINUTE))


def test_gate_of_a_step_starts_when_the_pause_before_it_is_over() -> None:
    waits = at(5, 5 * MINUTE)
    assert (waits.gates, waits.routing.reason) == ((), Reason.RAMP_PAUSED)
    over = at(5, HOUR)
    [gate] = over.gates
    assert (gate.task_queue, gate.workflow_id, gate.workflow_type) == ("main", AT_25, "SmokeAt25")
    assert not gate.has_input, "the input is that of the spec's gate"
    assert over.routing.reason is Reason.GATE_RUNNING
    assert "the gate SmokeAt25 before 25% has not completed on task queue main" in over.routing.because


def test_step_begins_when_its_gate_has_completed() -> None:
    running = at(5, HOUR, gate_runs=(run(GateStatus.RUNNING),))
    assert (running.gates, running.routing.reason) == ((), Reason.GATE_RUNNING)
    passed = at(5, HOUR, gate_runs=(run(GateStatus.COMPLETED),))
    assert (passed.routing.action, passed.routing.percentage) == (RoutingAction.SET_RAMP, 25)


def test_gate_of_a_step_that_fails_takes_the_ramp_back_until_a_retry_begins_it_anew() -> None:
    runs = (run(GateStatus.FAILED),)
    failed = at(5, HOUR, gate_runs=runs)
    assert (failed.routing.reason, failed.routing.phase) == (Reason.STEP_GATE_FAILED, Phase.MOVING)
    because = f"the gate SmokeAt25 before 25% on task queue main ended as Failed: {AT_25}"
    assert failed.routing.because == because
    marks = dict(failed.routing.marks)
    assert marks.keys() == {MarkKey.ABORTED, MarkKey.GATE_ATTEMPT}
    marked = at(5, HOUR, gate_runs=runs, metadata=marks)
    assert (marked.routing.reason, marked.routing.action) == (Reason.ABORTED, RoutingAction.CLEAR_RAMP)
    again = retry(target_at(0, HOUR, gate_runs=runs, metadata=marks))
    assert again.marks == {MarkKey.ABORTED: False}
    marks |= again.marks
    assert at(0, HOUR, gate_runs=runs, metadata=marks).routing.reason is Reason.FIRST_STEP
    [gate] = at(5, HOUR, gate_runs=runs, metadata=marks).gates
    assert gate.workflow_id == f"{AT_25}-2"


def test_gate_of_a_step_that_fails_pauses_the_ramp_where_the_policy_says_so() -> None:
    runs, analysis = (run(GateStatus.FAILED),), replace(ANALYSIS, on_failure=OnFailure.PAUSE)
    spec = with_steps(PolicyStep(25, gate="SmokeAt25"), analysis=analysis)
    failed = at(5, HOUR, spec, gate_runs=runs)
    assert (failed.routing.reason, failed.routing.action) == (Reason.STEP_GATE_FAILED, RoutingAction.NONE)
    marks = dict(failed.routing.marks)
    assert marks.keys() == {MarkKey.PAUSED, MarkKey.GATE_ATTEMPT}
    marks |= resume(target_at(5, HOUR, spec, gate_runs=runs, metadata=marks)).marks
    [gate] = at(5, HOUR, spec, gate_runs=runs, metadata=marks).gates
    assert gate.workflow_id == f"{AT_25}-2"


def test_gate_of_the_first_step_that_fails_has_nothing_to_take_back() -> None:
    spec = with_steps(PolicyStep(5, gate="SmokeAt5"))
    failed = at(0, HOUR, spec, gate_runs=(run(GateStatus.FAILED, "test@5-shop/payments:v3-main"),))
    assert (failed.routing.reason, failed.routing.phase) == (Reason.GATE_FAILED, Phase.BLOCKED)


def test_gate_of_the_first_step_passes_beside_that_of_the_spec() -> None:
    spec = replace(
        with_steps(PolicyStep(5, gate="SmokeAt5")), rollout=replace(RAMPS.rollout, gate=Gate("Smoke"))
    )
    assert [gate.workflow_type for gate in at(0, HOUR, spec).gates] == ["Smoke", "SmokeAt5"]
    of_spec = run(GateStatus.COMPLETED, "test-shop/payments:v3-main")
    one = at(0, HOUR, spec, gate_runs=(of_spec,))
    assert one.routing.reason is Reason.GATE_RUNNING
    of_step = run(GateStatus.COMPLETED, "test@5-shop/payments:v3-main")
    both = at(0, HOUR, spec, gate_runs=(of_spec, of_step))
    assert (both.routing.action, both.routing.percentage) == (RoutingAction.SET_RAMP, 5)


def test_person_who_promotes_before_the_gate_of_the_next_step_has_passed_must_say_so() -> None:
    target = target_at(5, MINUTE)
    lacks = "its gate SmokeAt25 before 25% has not passed; to continue without it, use --skip-gate"
    with pytest.raises(NegativeAnswer, match=lacks):
        promote(target, full=False, skip_gate=False)
    skipped = promote(target, full=False, skip_gate=True)
    assert skipped.change
    assert (skipped.change.percentage, skipped.marks) == (25, {}), "the gate of the spec is not skipped by it"
    passed = mark(percentage=25, gates=["SmokeAt25@25"], stay=format_time(ago(MINUTE)))
    moved = target_at(25, MINUTE, metadata={MarkKey.MOVED_BY: passed})
    assert promote(moved, full=False, skip_gate=False).change, "it is behind that gate"
    for percentage, full in ((25, False), (0, True)):
        with pytest.raises(NegativeAnswer, match="before 25%"):
            promote(target_at(percentage, MINUTE), full=full, skip_gate=False)


def test_runs_of_the_gate_of_the_next_step_are_read_before_its_pause_is_over() -> None:
    def read(percentage: float) -> Any:
        gates = ["SmokeAt25@25"] if percentage == 25 else []
        stay = format_time(ago(MINUTE))
        moved = {MarkKey.MOVED_BY: mark(percentage=percentage, gates=gates, stay=stay)}
        found = world_at(percentage, MINUTE, metadata=moved)
        return further_reads(GATED, worker_world(GATED, found), NOW, for_routing=True).gate_runs

    assert read(5) == (("main", AT_25),)
    assert read(25) is None
    assert read(0) is None


def test_step_that_waits_for_a_person_ends_when_one_promotes() -> None:
    spec = with_steps(PolicyStep(25, until_promoted=True))
    assert at(25, MINUTE, spec).routing.reason is Reason.RAMP_PAUSED
    over = at(25, HOUR, spec)
    assert (over.routing.reason, over.routing.action) == (Reason.UNTIL_PROMOTED, RoutingAction.NONE)
    assert over.routing.because == "its pause at 25% is over, and its policy waits for `twgen promote`"
    promoted = promote(target_at(25, HOUR, spec), full=False, skip_gate=False)
    assert promoted.change
    assert promoted.change.action is RoutingAction.SET_CURRENT
    assert at(5, HOUR, spec).routing.action is RoutingAction.SET_RAMP, "another step ends by itself"


def stuck(percentage: float, *, number: int, **changes: Any) -> WorkerPlan:
    """Two metrics, of which the step at 25% is judged by one."""
    metrics = tuple(Metric(name, ReportedProblems(0)) for name in ("stuck", "other"))
    analysis = Analysis(metrics, OnFailure.ABORT, timedelta())
    spec = with_steps(PolicyStep(25, metrics=("other",), **changes), analysis=analysis)
    measured = tuple(
        Measurement(name, NOW - HOUR, stuck=StuckWorkflows(count, ("order-1",)[:count]))
        for name, count in (("stuck", number), ("other", 0))
    )
    return at(percentage, HOUR, spec, measurements=measured)


def test_step_is_judged_by_the_metrics_that_it_names() -> None:
    assert [judged.metric for judged in stuck(25, number=1).judgements] == ["other"]
    assert stuck(25, number=1).routing.action is RoutingAction.SET_CURRENT
    failed = stuck(5, number=1)
    assert failed.routing.reason is Reason.ANALYSIS_FAILED
    assert failed.routing.because == "stuck: 1 running workflow is stuck (order-1), bound 0"


def test_step_that_waits_for_a_person_is_taken_back_all_the_same() -> None:
    spec = with_steps(PolicyStep(25, until_promoted=True), analysis=ANALYSIS)
    measured = (Measurement("stuck", NOW - HOUR, stuck=StuckWorkflows(2)),)
    assert at(25, HOUR, spec, measurements=measured).routing.reason is Reason.ANALYSIS_FAILED


def test_steps_of_a_worker_whose_traffic_a_person_moves_wait_for_their_gates_too() -> None:
    manual = replace(GATED, rollout=replace(GATED.rollout, strategy=Strategy.MANUAL))
    assert [gate.workflow_id for gate in at(5, HOUR, manual).gates] == [AT_25]
    failed = at(5, HOUR, manual, gate_runs=(run(GateStatus.FAILED),))
    assert (failed.routing.reason, failed.routing.marks) == (Reason.GATE_FAILED, {}), "it is a person's ramp"


def test_version_that_is_retried_before_its_ramp_has_ended_is_measured_anew() -> None:
    spec = with_steps(analysis=ANALYSIS)
    aborted = target_at(25, HOUR, spec, metadata={MarkKey.ABORTED: mark(10 * MINUTE)})
    assert retry(aborted).marks.keys() == {MarkKey.ABORTED, MarkKey.MEASURED_SINCE}
