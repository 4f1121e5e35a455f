"""The queries for Prometheus, and the test of a ratio of failures, in closed form and by simulation."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from math import comb
from random import Random
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import NOW, a_spec
from twgen.model.analysis import (
    Analysis,
    Backlog,
    BacklogAge,
    Measure,
    Measurement,
    Metric,
    NoData,
    OnFailure,
    Point,
    PrometheusQuery,
    ReportedProblems,
    StuckWorkflows,
    Verdict,
)
from twgen.planning.analysis.verdicts import (
    MOST_POINTS,
    false_alarm,
    judgements,
    moments,
    query_for,
    upper_bound,
)

MINUTE = timedelta(minutes=1)
ASKED = PrometheusQuery("errors", "", None, 1.0, MINUTE, 0, NoData.WAIT)
AGES = st.timedeltas(timedelta(), timedelta(days=9))
COUNTS = st.integers(0, 60).flatmap(lambda started: st.tuples(st.integers(0, started), st.just(started)))
BOUNDS = st.floats(0.001, 0.9)
FAILS, PASSES, UNDECIDED = Verdict.FAILS, Verdict.PASSES, Verdict.UNDECIDED


def verdict(measure: Measure, **measured: Any) -> Verdict:
    """The verdict an hour after the ramp began, in the middle of it."""
    since = NOW - 60 * MINUTE
    analysis = Analysis((Metric("its", measure),), OnFailure.ABORT, MINUTE)
    [judged] = judgements(analysis, [Measurement("its", since, **measured)], since, NOW, is_last=False)
    return judged.verdict


@pytest.mark.parametrize(
    ("limits", "values", "expected"),
    [
        ({"least": 1.0}, [1.0, 9.0], PASSES),
        ({"least": 1.0}, [0.9, 9.0], FAILS),
        ({"most": 3.0}, [-9.0, 3.0], PASSES),
        ({"most": 3.0}, [3.1, 0.0], FAILS),
        ({"least": 1.0, "most": 3.0}, [1.0, 3.0], PASSES),
        ({"least": 1.0, "most": 3.0}, [0.9], FAILS),
        ({"least": 1.0, "most": 3.0}, [3.1], FAILS),
        ({"most": 3.0, "failure_limit": 1}, [4.0, 0.0], PASSES),
        ({"most": 3.0, "failure_limit": 1}, [4.0, 4.0], FAILS),
        ({"most": 3.0}, [], UNDECIDED),
        ({"most": 3.0}, [0.0, None], UNDECIDED),
        ({"most": 3.0}, [4.0, None], FAILS),
        ({"most": 3.0}, [None, 0.0], PASSES),
        ({"most": 3.0, "no_data": NoData.PASS}, [0.0, None], PASSES),
        ({"most": 3.0, "no_data": NoData.FAIL}, [None, 0.0], FAILS),
    ],
)
def test_points_of_a_query_may_be_outside_of_its_range_only_so_often(
    limits: dict[str, Any], values: list[float | None], expected: Verdict
) -> None:
    points = tuple(Point(NOW, value) for value in values)
    assert verdict(PrometheusQuery("errors", **limits), points=points) is expected


@pytest.mark.parametrize(
    ("number", "is_all", "expected"),
    [(1, True, PASSES), (2, True, FAILS), (1, False, UNDECIDED), (2, False, FAILS)],
)
def test_stuck_workflows_are_judged_by_their_number_unless_there_may_be_more(
    number: int, expected: Verdict, *, is_all: bool
) -> None:
    assert verdict(ReportedProblems(1), stuck=StuckWorkflows(number, is_all=is_all)) is expected


@pytest.mark.parametrize(
    ("seconds", "dispatched", "expected"),
    [(0, 0.0, PASSES), (60, 0.0, PASSES), (61, 7.9, FAILS), (61, 8.0, UNDECIDED)],
)
def test_old_task_fails_a_version_unless_it_takes_nearly_all_that_arrives(
    seconds: int, dispatched: float, expected: Verdict
) -> None:
    backlog = Backlog("main", seconds, added=10.0, dispatched=dispatched)
    assert verdict(BacklogAge(MINUTE), backlog=backlog) is expected


def test_measurement_of_an_earlier_metric_of_that_name_counts_for_nothing() -> None:
    assert verdict(ReportedProblems(1), points=(Point(NOW, 0.0),)) is UNDECIDED


def test_placeholders_are_filled_in_with_the_target() -> None:
    asked = replace(ASKED, query='rate(e{b="{{ .BuildID }}", d="{{ .DeploymentName }}"}[2m])')
    spec = a_spec()
    assert query_for(asked, spec) == f'rate(e{{b="{spec.build_id}", d="payments-{spec.build_id}"}}[2m])'


@pytest.mark.parametrize("quote", ['"', "'", "`", "\\", "\n"])
def test_name_with_a_quote_stays_inside_its_string(quote: str) -> None:
    asked = replace(ASKED, query='up{n="{{ .TemporalNamespace }}"}')
    told = query_for(asked, replace(a_spec(), temporal_namespace=f"a{quote}}} or vector(0) #"))
    assert told == f'up{{n="a\\x{ord(quote):02x}}} or vector(0) #"}}'


def test_first_moment_is_an_interval_after_the_delay() -> None:
    assert moments(ASKED, NOW, MINUTE, NOW + 119 * timedelta(seconds=1)) is None
    assert moments(ASKED, NOW, timedelta.max, NOW + MINUTE) is None, "no calendar has it"
    assert moments(ASKED, NOW, MINUTE, NOW + 2 * MINUTE) == (NOW + 2 * MINUTE, NOW + 2 * MINUTE)
    assert moments(ASKED, NOW, MINUTE, NOW + 3.5 * MINUTE) == (NOW + 2 * MINUTE, NOW + 3 * MINUTE)


@given(AGES, AGES)
def test_later_look_asks_for_the_same_moments_and_newer_ones(age: timedelta, more: timedelta) -> None:
    before, after = (moments(ASKED, NOW, MINUTE, NOW + length) for length in (age, age + more))
    if not before:
        return
    assert after
    assert (after[0] - before[0]) % MINUTE == timedelta()
    assert after[0] >= before[0]
    assert after[1] >= before[1]
    assert after[1] <= NOW + age + more
    assert (after[1] - after[0]) // MINUTE < MOST_POINTS


def caught_at(ratio: float, bound: float, ends: int, draws: Random) -> int | None:
    """The workflow at which a version that fails so often is noticed, looked at after each one."""
    failed = 0
    for started in range(1, ends + 1):
        failed += draws.random() < ratio
        if failed and false_alarm(failed, started, bound) <= 0.01:
            return started
    return None


@pytest.mark.parametrize(("ratio", "earliest", "latest"), [(1.0, 2, 2), (0.2, 9, 15), (0.05, 110, 170)])
def test_version_that_fails_more_than_its_bound_is_noticed_early(
    ratio: float, earliest: int, latest: int
) -> None:
    draws = Random(20261125)  # noqa: S311 - a simulation
    found = [caught_at(ratio, 0.01, 1_000, draws) or 1_001 for _ in range(61)]
    assert earliest <= median(found) <= latest


@pytest.mark.parametrize("bound", [0.01, 0.1])
def test_version_at_its_bound_is_not_taken_for_worse_however_often_one_looks(bound: float) -> None:
    draws = Random(20261126)  # noqa: S311 - a simulation
    assert sum(caught_at(bound, bound, 400, draws) is not None for _ in range(100)) <= 3


@given(COUNTS, BOUNDS)
def test_one_more_failure_is_never_better(counts: tuple[int, int], bound: float) -> None:
    failed, started = counts
    assert false_alarm(failed + 1, started + 1, bound) <= false_alarm(failed, started, bound)
    assert false_alarm(failed, started + 1, bound) >= false_alarm(failed, started, bound)


@given(COUNTS, BOUNDS)
def test_ratio_at_or_below_the_bound_says_nothing_against_a_version(
    counts: tuple[int, int], bound: float
) -> None:
    failed, started = counts
    if failed <= bound * started:
        assert false_alarm(failed, started, bound) == 1.0


@pytest.mark.parametrize("bound", [0.95, 0.99, 1.0, 0.0])
def test_bound_that_cannot_be_tested_fails_nobody(bound: float) -> None:
    assert false_alarm(1_000, 1_000, bound) == 1.0


def test_millions_of_workflows_are_tested_as_ten_are() -> None:
    assert false_alarm(20_000, 1_000_000, 0.01) == 0.0
    assert false_alarm(10_000, 1_000_000, 0.01) == 1.0


@pytest.mark.parametrize("started", [1, 10, 1_000])
def test_upper_bound_of_no_failure_is_what_would_be_seen_once_in_a_hundred_times(started: int) -> None:
    assert upper_bound(0, started) == pytest.approx(max(1 - 0.01 ** (1 / started), 0.001))


def test_version_that_never_failed_allows_one_in_a_thousand_and_one_that_always_did_everything() -> None:
    assert upper_bound(0, 1_000_000) == 0.001
    assert upper_bound(0, 0) == upper_bound(3, 3) == 1.0


@given(COUNTS)
def test_upper_bound_fits_the_count_with_one_percent_exactly(counts: tuple[int, int]) -> None:
    failed, started = counts
    bound = upper_bound(failed, started)
    if failed == started or bound == 0.001:
        return
    exact = Fraction(bound)
    fits = sum(comb(started, k) * exact**k * (1 - exact) ** (started - k) for k in range(failed + 1))
    assert float(fits) == pytest.approx(0.01, rel=1e-6)
