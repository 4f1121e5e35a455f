"""What is asked of Prometheus: a text that names the target, and moments that every look agrees on."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import NOW, a_spec
from twgen.model.analysis import NoData, PrometheusQuery
from twgen.planning.analysis.verdicts import MOST_POINTS, moments, query_for

MINUTE = timedelta(minutes=1)
ASKED = PrometheusQuery("errors", "", None, 1.0, MINUTE, 0, NoData.WAIT)
AGES = st.timedeltas(timedelta(), timedelta(days=9))


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


def test_delay_that_no_calendar_has_asks_for_nothing() -> None:
    assert moments(ASKED, NOW, timedelta(days=100_000), NOW + MINUTE) is None
    assert moments(ASKED, NOW, timedelta.max, NOW + MINUTE) is None
