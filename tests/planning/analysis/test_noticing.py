"""When a version that fails so often would be noticed, against what is known in closed form."""

from dataclasses import replace
from datetime import timedelta
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twgen.model.analysis import Analysis, BacklogAge, ClosedStatus, Metric, OnFailure, WorkflowFailures
from twgen.model.spec import RolloutStep
from twgen.model.timeline import Noticing, Traffic
from twgen.planning.analysis.noticing import long_enough, noticed, too_short
from twgen.planning.analysis.verdicts import false_alarm

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
STEPS = (RolloutStep(5, 10 * MINUTE), RolloutStep(25, 30 * MINUTE), RolloutStep(75, HOUR))


def failures(max_ratio: float | None = 0.01, at_least: int = 0) -> Metric:
    return Metric("failures", WorkflowFailures(max_ratio, (ClosedStatus.FAILED,), (), 0.01, at_least))


def measuring(*metrics: Metric, delay: timedelta = MINUTE) -> Analysis:
    return Analysis(metrics or (failures(),), OnFailure.ABORT, delay)


def told(
    steps: tuple[RolloutStep, ...] = STEPS,
    analysis: Analysis | None = None,
    starts: float = 100,
    failing: float = 0.2,
) -> Noticing:
    (one,) = noticed(steps, analysis or measuring(), Traffic(starts, failing))
    return one


def test_version_that_always_fails_is_noticed_at_the_first_look_after_its_second_workflow() -> None:
    found = told(failing=1.0)
    assert found.half == found.most
    assert found.half
    # 5 an hour for 10 minutes, then 25 an hour: the second one starts within the next look
    assert (found.half.after, found.half.percentage, found.half.started) == (15 * MINUTE, 25, 2)
    assert found.half.met == pytest.approx(2 / 25)
    assert found.unnoticed == 0


def test_share_of_ramps_that_notice_at_one_look_is_that_of_the_binomial() -> None:
    # one look, at the end of its only step: 40 workflows
    step = (RolloutStep(10, 4 * MINUTE),)
    least = next(failed for failed in range(41) if false_alarm(failed, 40, 0.01) <= 0.01)
    exact = sum(comb(40, failed) * 0.1**failed * 0.9 ** (40 - failed) for failed in range(least))
    found = told(step, starts=6_000, failing=0.1)
    assert found.unnoticed == pytest.approx(exact, abs=0.05)


def test_step_that_does_not_judge_a_metric_notices_nothing_by_it() -> None:
    def noticed_with(**steps: frozenset[str]) -> Noticing:
        judged = tuple((float(step.removeprefix("at_")), names) for step, names in steps.items())
        (one,) = noticed(STEPS, measuring(), Traffic(1000, 1.0), judged)
        return one

    first, later = noticed_with().half, noticed_with(at_5=frozenset()).half
    assert first
    assert later
    assert (first.percentage, later.percentage) == (5, 25)
    none: frozenset[str] = frozenset()
    assert noticed_with(at_5=none, at_25=none, at_75=none).unnoticed == 1
    assert list(too_short(STEPS, measuring(), ((5.0, none),))) == []


def test_version_within_the_bound_or_without_traffic_is_noticed_never() -> None:
    assert told(failing=0.01) == Noticing("failures", None, None, 1.0, is_allowed=True)
    assert told(starts=0.01) == Noticing("failures", None, None, 1.0, is_allowed=False)


def test_last_step_waits_for_the_workflows_that_a_metric_asks_for() -> None:
    found = told(starts=10, analysis=measuring(failures(at_least=200)))
    assert found.unnoticed == 0
    assert found.most
    assert found.most.after > 100 * MINUTE


def test_nothing_is_noticed_before_the_initial_delay_and_no_step_ends_before_it() -> None:
    found = told(starts=10_000, failing=1.0, analysis=measuring(delay=HOUR))
    assert found.half
    assert found.half.after == HOUR
    assert found.half.percentage == 5, "its first step waits until it can be judged"
    (short,) = noticed((RolloutStep(5, MINUTE),), measuring(delay=HOUR), Traffic(10_000, 1.0))
    assert short.half
    assert short.half.after == HOUR


def test_metric_that_compares_takes_the_current_version_for_well() -> None:
    compared, bound = told(analysis=measuring(failures(None))), told()
    assert compared.half
    assert bound.half
    assert compared.half.after > bound.half.after, "what it is compared with must be known first"


def test_only_workflows_that_fail_are_foretold() -> None:
    backlog = Metric("backlog", BacklogAge(MINUTE))
    assert noticed(STEPS, measuring(backlog), Traffic(100, 0.2)) == ()
    assert list(too_short(STEPS, measuring(backlog))) == []


def test_same_ramps_are_drawn_each_time() -> None:
    first = told(failing=0.05, starts=500)
    assert told((*STEPS,), measuring(failures()), 500.0, 0.05) == first


@given(st.floats(0.02, 0.9), st.floats(1.5, 10))
def test_more_traffic_is_never_noticed_much_later(failing: float, more: float) -> None:
    few, many = told(starts=100, failing=failing), told(starts=100 * more, failing=failing)
    assert many.unnoticed <= few.unnoticed + 0.05
    if few.half:
        assert many.half
        # looks are five minutes apart
        assert many.half.after <= few.half.after + 5 * MINUTE


def test_step_that_is_too_short_says_what_it_would_take() -> None:
    (note,) = too_short(STEPS, measuring())
    assert note == (
        "5% for 10m is too short for metric failures: if 100 workflows start per hour, a version that fails"
        " one in five is detected after 6h15m at 5%. With these steps, 9 of 10 such versions are detected"
        " within 55m, at 75%. To assume other numbers, use --starts-per-hour and --failing"
    )
    needed = long_enough(STEPS[0], measuring(), "failures", Traffic(100, 0.2))
    assert needed == 6 * HOUR + 15 * MINUTE
    assert list(too_short((RolloutStep(5, needed), *STEPS[1:]), measuring())) == []


@pytest.mark.parametrize(("days", "is_told"), [(29.5, True), (30.5, False)])
def test_length_that_a_step_needs_is_told_up_to_thirty_days(days: float, *, is_told: bool) -> None:
    # a version that always fails is noticed by its second workflow
    traffic = Traffic(starts_per_hour=2 / (days * 24) * 20, failing=1.0)
    needed = long_enough(STEPS[0], measuring(), "failures", traffic)
    assert (needed is not None) is is_told
    assert not needed or timedelta(days=days) <= needed < timedelta(days=days) + HOUR


@pytest.mark.parametrize(
    ("steps", "metrics", "told"),
    [
        pytest.param(STEPS[:1], [0.01], "100% of such versions become current undetected.", id="short ramp"),
        pytest.param(STEPS, [0.199], "is detected after more than a month at 5%", id="a bound just below it"),
        pytest.param(STEPS, [0.2], "", id="a bound that allows it"),
        pytest.param((RolloutStep(50, HOUR),), [0.19, 0.01], "", id="one metric that notices is enough"),
    ],
)
def test_ramp_is_too_short_for_a_version_that_fails_one_in_five(
    steps: tuple[RolloutStep, ...], metrics: list[float], told: str
) -> None:
    named = (replace(failures(bound), name=f"at most {bound}") for bound in metrics)
    notes = list(too_short(steps, measuring(*named)))
    assert len(notes) == bool(told)
    assert all(told in note for note in notes)
