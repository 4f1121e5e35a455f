"""The lines of `twgen status`, and what of them is news."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import (
    MINUTE,
    NOW,
    RAMPS,
    SPEC,
    drained,
    live,
    routing,
    situation,
    temporal,
    version,
)
from tests.reporting.statuses import of_situation, of_story
from twgen.model.analysis import Judgement, Verdict
from twgen.model.plan import LaterAction, VersionAction
from twgen.model.status import AttachedState, AttachedView, Move, Status
from twgen.model.temporal import VersionStatus as S
from twgen.model.world import World
from twgen.reporting.status.lines import StatusLine, news, state_lines, status_lines


def texts(status: Status) -> list[str]:
    return [line.text for line in status_lines(status)]


def test_every_line_names_its_worker() -> None:
    full = "2 versions still exist and maxVersions is 2: v3.0.0-b456 waits until one is removed"
    assert texts(of_story("version-cap")) == [
        f"shop/payments: Blocked, target v3.0.0-b456: {full}; manager: twgen/payments/prod-eu (ours)",
        "shop/payments v3.0.0-b456: Not registered, no Deployment, target, is not rendered",
        "shop/payments v2.0.1-c656: 100%, Current for 24h, 3/3 pods",
        "shop/payments v1.4.2-6964: Draining for 2h, 3/3 pods",
        "shop/payments: warning: v3.0.0-b456 is not rendered: maxVersions (2) is reached",
    ]


def test_alarm_of_a_worker_does_not_hide_its_state() -> None:
    says = temporal(version("v2", S.CURRENT), traffic=routing("v2"))
    alarm, state = [line.text for line in state_lines(of_situation(situation(says, [live("v2", 0)])))]
    assert alarm.startswith("shop/payments: ALARM: new workflows go to v2, but ")
    assert state.startswith("shop/payments: Waiting, target v3: ")
    assert len(state_lines(of_story("mid-ramp"))) == 1, "without an alarm, and without versions"


def test_patched_version_says_so_and_what_its_patch_will_change() -> None:
    target, gone, edited = texts(of_story("patch-is-gone-or-edited"))[1:]
    assert target.endswith("2/2 pods, target, is patched")
    assert "the patch for its containers[worker].image was removed" in gone
    assert "to keep the edit, add it to patches of a RolloutPolicy" in edited


def test_name_from_a_server_cannot_start_a_line() -> None:
    says = temporal(version("v3", S.CURRENT), traffic=routing("v3"), manager_identity="a\nshop/payments: b")
    lines = texts(of_situation(situation(says, [live("v3")])))
    assert [line.count("\n") for line in lines] == [0] * len(lines)


def ramps(percentage: float = 5, age: timedelta = 4 * MINUTE, replicas: int = 3, available: int = 3) -> World:
    target = live("v3", replicas)
    target["status"]["availableReplicas"] = available
    says = temporal(
        version("v3", S.RAMPING),
        drained(20 * MINUTE),
        version("v2", S.CURRENT),
        traffic=routing("v2", ("v3", percentage), age=age),
    )
    return situation(says, [target, live("v2"), live("v1")])


def later(status: Status, length: timedelta) -> Status:
    return replace(status, now=status.now + length)


def test_time_alone_is_no_news() -> None:
    before = of_situation(ramps(), RAMPS)
    after = later(before, MINUTE)
    assert texts(before) != texts(after)
    assert news(status_lines(before), status_lines(after)) == []


def with_target(status: Status, **changes: Any) -> Status:
    [worker] = status.workers
    target, *others = worker.versions
    return replace(status, workers=(replace(worker, versions=(replace(target, **changes), *others)),))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda: ramps(25, MINUTE),
            ["shop/payments: Waiting", "shop/payments v3: 25%", "shop/payments v2: 75%"],
        ),
        (lambda: ramps(age=11 * MINUTE), ["shop/payments: Moving"]),
        (lambda: ramps(available=1), ["shop/payments v3: 5%"]),
    ],
)
def test_change_is_news_in_its_line_alone(change: Callable[[], World], told: list[str]) -> None:
    before, after = of_situation(ramps(), RAMPS), of_situation(change(), RAMPS)
    new = news(status_lines(before), status_lines(after))
    assert len(new) == len(told)
    assert all(line.startswith(expected) for line, expected in zip(new, told, strict=True))


MOVED = Move("me", "0123456789", "shop", "")
GOES = LaterAction(VersionAction.DROP, NOW)


@pytest.mark.parametrize("change", [{"is_patched": True}, {"moved_by": MOVED}, {"next": GOES}])
def test_what_a_line_says_about_a_version_is_news_once(change: dict[str, Any]) -> None:
    before = of_situation(ramps(), RAMPS)
    after = with_target(before, **change)
    [line] = news(status_lines(before), status_lines(after))
    assert line.startswith("shop/payments v3: 5%")
    assert news(status_lines(after), status_lines(later(after, MINUTE))) == []


def test_problem_of_an_attached_object_is_news_and_its_counters_are_not() -> None:
    def lines(state: AttachedState, says: str) -> list[StatusLine]:
        item = AttachedView("HorizontalPodAutoscaler", "cpu", state, says)
        return status_lines(with_target(of_situation(ramps(), RAMPS), attached=(item,)))

    before, after = lines(AttachedState.READY, ""), lines(AttachedState.FAILING, "failed 3 times")
    [line] = news(before, after)
    assert line.endswith("HorizontalPodAutoscaler cpu: failed 3 times")
    assert news(after, lines(AttachedState.FAILING, "failed 4 times")) == []


def test_version_that_is_there_no_more_is_news() -> None:
    traffic = routing("v3")
    there = situation(
        temporal(version("v3"), drained(20 * MINUTE), traffic=traffic), [live("v3"), live("v1")]
    )
    gone = situation(temporal(version("v3"), traffic=traffic), [live("v3")])
    lines = [status_lines(of_situation(found, SPEC)) for found in (there, gone)]
    assert news(*lines) == ["shop/payments v1: gone"]


def test_each_warning_is_news_although_another_begins_with_the_same_words() -> None:
    def lines(*warnings: str) -> list[StatusLine]:
        status = of_situation(ramps(), RAMPS)
        [worker] = status.workers
        return status_lines(replace(status, workers=(replace(worker, warnings=warnings),), warnings=warnings))

    first, second = "v1: its pods: edited by hand", "v1: its pods: too few"
    assert news(lines(first), lines(first, second)) == [
        f"shop/payments: warning: {second}",
        f"warning: {second}",
    ]


def test_first_look_is_all_news() -> None:
    lines = status_lines(of_story("mid-ramp"))
    assert news([], lines) == [line.text for line in lines]


def test_metric_has_a_line_which_is_news_when_it_says_something_else() -> None:
    def lines(verdict: Verdict, because: str) -> list[StatusLine]:
        status = of_situation(ramps(), RAMPS)
        [worker] = status.workers
        judged = (Judgement("failures", verdict, because, 0.01, 0.02),)
        return status_lines(replace(status, workers=(replace(worker, analysis=judged),)))

    before = lines(Verdict.PASSES, "1 of 41 failed (2.44%), bound 2%")
    line = "shop/payments: metric: failures passes: 1 of 41 failed (2.44%), bound 2%"
    assert line in [each.text for each in before]
    assert news(before, lines(Verdict.PASSES, "1 of 42 failed (2.38%), bound 2%")) == []
    assert news(before, lines(Verdict.FAILS, "9 of 41 failed (22%), bound 2%")) == [
        "shop/payments: metric: failures fails: 9 of 41 failed (22%), bound 2%"
    ]
