"""When Argo CD is asked for another render, and when a Job runs again."""

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.planning.situations import MAIN, NOW, RAMPS, drained, live, routing, situation, temporal, version
from tests.planning.times import HOUR, MINUTE, SECOND
from twgen.model.operator import Caller
from twgen.model.rollout import Driver
from twgen.model.temporal import VersionStatus as S
from twgen.planning.plan import make_plan
from twgen.planning.refresh import (
    ApplicationState,
    Refresh,
    Rendered,
    RenderedBy,
    due_refresh,
    kept_refreshes,
    not_refreshed,
    plan_hash,
    possible_renders,
    rendered_by,
    runs_again,
    within_a_minute,
)
from twgen.versioning.names import MarkKey

CALLER = Caller("me", forced=True)
SAME = Rendered("shop/payments", "pay", "now", frozenset({"now"}))
OLD = Rendered("shop/mail", "pay", "then", frozenset({"now", "unread"}))
IDLE = ApplicationState(is_syncing=False, render_error="")
FAILED = IDLE._replace(render_error="twgen: Temporal did not answer")


@pytest.mark.parametrize(
    ("status", "requires_pruning", "by"),
    [
        ("Synced", False, RenderedBy.APPLICATION),
        ("OutOfSync", False, RenderedBy.APPLICATION),
        ("OutOfSync", True, RenderedBy.APPLICATION_BEFORE),
        ("Unknown", False, RenderedBy.APPLICATION),
        ("Unknown", True, RenderedBy.APPLICATION),
        ("", False, RenderedBy.NOBODY_KNOWN),
    ],
)
def test_intent_counts_only_for_the_application_that_renders_it(
    status: str, *, requires_pruning: bool, by: RenderedBy
) -> None:
    assert rendered_by(status, requires_pruning=requires_pruning) is by


@pytest.mark.parametrize(
    ("workers", "state", "ago", "reason"),
    [
        ([SAME, SAME], IDLE, None, ""),
        ([SAME, OLD], IDLE, None, "a new render of shop/mail would differ"),
        ([OLD], IDLE._replace(is_syncing=True), None, ""),
        ([OLD], IDLE, 29 * SECOND, ""),
        ([OLD], IDLE, 30 * SECOND, "a new render of shop/mail would differ"),
        ([SAME], FAILED, None, "its last render failed: twgen: Temporal did not answer"),
        ([SAME], FAILED._replace(is_syncing=True), None, ""),
        ([SAME], FAILED, MINUTE, ""),
    ],
)
def test_application_is_refreshed_when_that_changes_something_and_disturbs_nothing(
    workers: list[Rendered], state: ApplicationState, ago: timedelta | None, reason: str
) -> None:
    last = None if ago is None else Refresh("something else", at=NOW - ago)
    due = due_refresh(workers, state, last, NOW)
    assert (due.because if due else "") == reason


@pytest.mark.parametrize(("rendered", "is_due"), [("then", True), ("now", False), ("unread", False)])
def test_render_that_is_right_and_not_applied_waits_for_a_person(rendered: str, *, is_due: bool) -> None:
    state = IDLE._replace(rendered={OLD.worker: rendered})
    assert bool(due_refresh([SAME, OLD], state, None, NOW)) is is_due


@pytest.mark.parametrize(
    ("ago", "says"),
    [
        (None, ""),
        (10 * MINUTE - SECOND, ""),
        (25 * MINUTE, "Argo CD was asked 25m ago to refresh it, but has not done so"),
    ],
)
def test_application_that_argocd_does_not_look_at_is_told_after_some_minutes(
    ago: timedelta | None, says: str
) -> None:
    assert not_refreshed(None if ago is None else NOW - ago, NOW) == says


def test_render_that_waits_is_refreshed_once_the_world_is_again_as_it_was_applied() -> None:
    assert due_refresh([SAME], IDLE._replace(rendered={SAME.worker: "then"}), None, NOW)


def refreshes(until: timedelta, situations: Callable[[timedelta], Rendered]) -> list[timedelta]:
    """When an application is refreshed that is looked at every minute."""
    last, found, ago = None, [], timedelta()
    while ago <= until:
        due = due_refresh([situations(ago)], IDLE, last, NOW + ago)
        if due:
            last = due._replace(at=NOW + ago)
            found.append(ago)
        ago += MINUTE
    return found


def test_version_that_goes_at_last_is_refreshed_though_a_render_without_the_cluster_would_keep_it() -> None:
    def at(age: timedelta, replicas: int, *, protected: bool) -> tuple[str, set[str]]:
        """The plan hash of a render that reads the cluster, and those that tick takes for right."""
        says = temporal(version(status=S.CURRENT), drained(age), traffic=routing("v3"))
        found = situation(says, [live("v3"), live("v1", replicas, protected=protected)])
        [plan] = make_plan([RAMPS], found, NOW, CALLER).workers
        renders = possible_renders(plan, found, CALLER)
        return plan_hash(plan.versions), {plan_hash(render) for render in renders}

    to_zero, _ = at(2 * HOUR, 3, protected=True)
    at_zero, taken_for_right = at(2 * HOUR, 0, protected=False)
    assert at_zero == to_zero
    assert to_zero in taken_for_right
    _, taken_for_right = at(48 * HOUR, 0, protected=False)
    assert to_zero not in taken_for_right


def test_refresh_that_changes_nothing_is_asked_for_ever_more_seldom_and_daily_at_last() -> None:
    found = refreshes(5 * 24 * HOUR, lambda _: OLD)
    pauses = [later - earlier for earlier, later in pairwise(found)]
    assert pauses[:4] == [10 * MINUTE, 20 * MINUTE, 40 * MINUTE, 80 * MINUTE]
    assert set(pauses[8:]) == {24 * HOUR}


def test_refresh_that_was_in_vain_for_years_is_due_daily() -> None:
    asked = due_refresh([OLD], IDLE, None, NOW)
    assert asked
    last = asked._replace(at=NOW, in_vain=100_000)
    assert not due_refresh([OLD], IDLE, last, NOW + 23 * HOUR)
    assert due_refresh([OLD], IDLE, last, NOW + 24 * HOUR)


def test_each_delay_of_a_spec_is_followed_by_a_refresh_within_a_minute() -> None:
    """Its Deployment is scaled to zero and deleted 30 s later, and Argo CD applies each render."""

    def situation_at(ago: timedelta) -> Rendered:
        stages = [(timedelta(), "kept"), (3 * MINUTE, "zero"), (4 * MINUTE, "gone"), (9 * MINUTE, "kept")]
        wanted = [(since, name) for since, name in stages if ago >= since]
        rendered = [(since, name) for since, name in stages if ago > since]
        stamped = rendered[-1][1] if rendered else "kept"
        return OLD._replace(stamped=stamped, wanted=frozenset({wanted[-1][1]}))

    assert refreshes(20 * MINUTE, situation_at) == [3 * MINUTE, 4 * MINUTE, 9 * MINUTE]


def test_refresh_that_changed_nothing_for_one_worker_delays_none_for_another() -> None:
    last = Refresh("", frozenset({OLD}), at=NOW)
    assert due_refresh([OLD], IDLE, last, NOW + 9 * MINUTE) is None
    other = OLD._replace(worker="shop/cart")
    due = due_refresh([OLD, other], IDLE, last, NOW + MINUTE)
    assert due
    assert due.outdated == {OLD, other}
    assert due_refresh([OLD], IDLE, due._replace(at=NOW), NOW + 9 * MINUTE) is None
    unexpected = OLD._replace(stamped="neither")
    assert due_refresh([unexpected], IDLE, last, NOW + 9 * MINUTE) is None, "it changed, but not as it should"
    expected = OLD._replace(stamped="now", wanted=frozenset({"later"}))
    assert due_refresh([expected], IDLE, last, NOW + MINUTE)


@pytest.mark.parametrize("back", [HOUR, 3 * HOUR, 1000 * 24 * HOUR])
def test_clock_that_is_set_back_delays_no_refresh_and_no_job(back: timedelta) -> None:
    last = Refresh("", frozenset({OLD}), at=NOW)
    assert due_refresh([OLD], IDLE, last, NOW - back)
    assert due_refresh([SAME], FAILED, last, NOW - back)
    assert again(routing("v1"), ago=-back)
    assert not again(routing("v1"), ago=-5 * MINUTE), "clocks of two machines differ a little"


def test_moments_of_the_last_minute_count_for_the_limit_and_refreshes_of_long_ago_are_forgotten() -> None:
    moments = [NOW - ago for ago in (2 * MINUTE, 60 * SECOND, 59 * SECOND, timedelta())]
    assert within_a_minute(moments, NOW) == moments[2:]
    last = {name: Refresh("", at=NOW - ago) for name, ago in (("a", 47 * HOUR), ("b", 48 * HOUR))}
    assert list(kept_refreshes(last, NOW)) == ["a"]


def test_what_changes_meanwhile_is_refreshed_at_once() -> None:
    """Whatever was in vain before: another plan, or another render."""
    changed = [(55 * MINUTE, {"wanted": frozenset({"later"})}), (100 * MINUTE, {"stamped": "another"})]

    def situation_at(ago: timedelta) -> Rendered:
        item = OLD
        for since, change in changed:
            item = item._replace(**change) if ago >= since else item
        return item

    found = refreshes(105 * MINUTE, situation_at)
    assert {since for since, _ in changed} <= set(found)


def again(traffic: Any, ago: timedelta = HOUR, target: dict[str, Any] | None = None, pods: int = 3) -> bool:
    known = version("v1"), version("v3", **{"task_queues": (MAIN,), **(target or {})})
    world = situation(temporal(*known, traffic=traffic), [live("v1"), live("v3", pods)])
    [plan] = make_plan([RAMPS], world, NOW, Caller("me", forced=True, drives=True)).workers
    return runs_again(plan, NOW - ago, NOW, Driver.JOB)


def test_job_runs_again_when_its_target_has_lost_the_traffic_or_never_got_it() -> None:
    assert again(routing("v1"))
    assert again(routing("v1", ("v3", 5)))
    assert again(routing("v1"), ago=10 * MINUTE)
    assert again(routing("v3", ("v1", 5)), target={"status": S.CURRENT})


@pytest.mark.parametrize(
    "settled",
    [
        {"traffic": routing("v3"), "target": {"status": S.CURRENT}},
        {"traffic": routing("v3"), "target": {"status": S.CURRENT}, "pods": 0},
        {"traffic": routing("v1"), "target": {"metadata": {MarkKey.ABORTED: {"by": "a person"}}}},
        {"traffic": routing("v1"), "ago": 10 * MINUTE - SECOND},
    ],
)
def test_job_that_has_nothing_to_do_or_would_fail_again_stays_as_it_is(settled: dict[str, Any]) -> None:
    assert not again(**settled)
