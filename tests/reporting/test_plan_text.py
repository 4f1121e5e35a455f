"""A plan as text, where the golden files of the stories do not reach."""

from dataclasses import replace

import pytest

from tests.planning.situations import DAY, MAIN, NOW, SPEC, live, routing, situation, temporal, version
from tests.reporting.statuses import of_situation, of_story, tree
from tests.strategies import TARGET
from twgen.model.draining import BatchAction, DrainingAction, ScheduledAction
from twgen.model.operator import Caller
from twgen.model.plan import Phase, VersionAction
from twgen.model.reasons import VersionReason as Reason
from twgen.model.status import Status
from twgen.model.temporal import VersionStatus as S
from twgen.planning.plan import make_plan
from twgen.reporting.phrases import MOST_ROWS, actions_phrase
from twgen.reporting.plan.document import PLAN
from twgen.reporting.plan.text import plan_text


def text(status: Status, width: int = 100) -> str:
    return plan_text(status, colour=False, width=width)


def test_several_workers_have_a_line_each_and_the_worst_is_last() -> None:
    status = of_story("mid-ramp-waits")
    [worker] = status.workers
    both = replace(status, workers=(replace(worker, phase=Phase.BLOCKED), worker))
    head, *lines = plan_text(both, colour=False, width=80, detailed=False).splitlines()
    assert head.startswith("2 workers: 1 Blocked, 1 Waiting")
    assert [line.split()[2] for line in lines] == ["Waiting", "Blocked"]
    assert all(len(line) <= 80 for line in lines)
    assert plan_text(status, colour=False, width=100, detailed=False) == text(status)


def test_head_of_a_worker_is_that_of_its_status() -> None:
    for story in ("mid-ramp-waits", "gate-starts", "replay-and-endings-of-a-policy", "version-cap"):
        status = of_story(story)
        above, _, _ = tree(status).partition("├")
        assert text(status, 80).startswith(above)


def with_versions(count: int) -> Status:
    """A status with many drained versions that have no manifest, each with the warning about it."""
    status = of_story("mid-ramp-waits")
    (worker,) = status.workers
    drained = tuple(
        replace(
            worker.versions[-1],
            build_id=f"old-{number}",
            status=S.DRAINED,
            pods=None,
            action=VersionAction.NONE,
            because=f"it is drained for {number}h",
            reason=Reason.MANIFEST_LOST,
        )
        for number in range(count)
    )
    warnings = tuple(f"{old.build_id}: {old.because}; its prune protection keeps it" for old in drained)
    return replace(
        status, workers=(replace(worker, versions=(*worker.versions, *drained), warnings=warnings),)
    )


def test_table_that_does_not_fit_is_a_block_a_version() -> None:
    lines = text(of_story("superseded-version"), 40).splitlines()
    assert lines[13:23] == [
        "  v1.4.2-6964",
        "    status    Current",
        "    action    Keep",
        "    replicas  3",
        "    because   it is current: new",
        "              workflows go to it",
        "  v2.0.1-c656",
        "    status    Inactive",
        "    action    ScaleDown",
        "    replicas  3 → 0",
    ]


def test_target_that_gets_traffic_while_nobody_polls_is_said_first() -> None:
    silent = replace(MAIN, pollers=False)
    says = temporal(
        version(TARGET, S.RAMPING, task_queues=(silent,)),
        version("v2", S.CURRENT),
        traffic=routing("v2", (TARGET, 5)),
    )
    world = situation(says, [live(TARGET), live("v2")])
    title, alarm, *_ = text(of_situation(world)).splitlines()
    assert title.startswith("✗ shop/payments")
    said = (
        "5% of new workflows go to v3, but no worker serves them: none of its workers polls task queue main"
    )
    assert alarm == f"  {said}"
    (worker,) = PLAN.write(make_plan([SPEC], world, NOW, Caller("me", forced=True)))["workers"]
    assert worker["unserved"] == said


@pytest.mark.parametrize(
    ("manager", "order"),
    [
        ("", "claim the worker and make v3 current now"),
        ("controller", "take the worker over from controller and make v3 current now"),
        ("twgen/me", "make v3 current now"),
    ],
)
def test_plan_says_who_gives_the_worker_up_for_the_change(manager: str, order: str) -> None:
    policy = replace(SPEC.policy, identity="me", adopt_from=("controller",))
    says = temporal(version("v3", task_queues=(MAIN,)), traffic=routing(None), manager_identity=manager)
    world = situation(says, [live("v3")])
    status = of_situation(world, replace(SPEC, policy=policy), Caller("twgen/nobody"))
    assert text(status, 200).splitlines()[2] == f"  next     {order}"


def test_each_of_many_versions_is_named_once() -> None:
    said = text(with_versions(70), 120)
    assert [number for number in range(70) if said.count(f" old-{number} ") != 1] == []
    assert (
        "warning: 70 versions, such as old-0: it is drained for 0h; its prune protection keeps it\n" in said
    )


def test_versions_without_a_manifest_share_one_warning() -> None:
    lost = [version(f"old-{number}", S.DRAINING) for number in range(70)]
    world = situation(temporal(version("v3", S.CURRENT), *lost, traffic=routing("v3")), None)
    said = text(of_situation(world, caller=Caller("me")), 120)
    assert "warning: 70 versions, such as old-0 has no manifest to render: " in said
    assert [number for number in range(1, 70) if said.count(f" old-{number} ") != 1] == []


def test_versions_that_are_too_many_to_read_share_a_row() -> None:
    said = text(with_versions(100 * MOST_ROWS), 120).splitlines()
    assert len(said) < 10
    assert any("old-0, old-1, old-2 and 9,997 more" in line for line in said)
    assert any(line.startswith("  v2.0.1-c656 ") for line in said)


@pytest.mark.parametrize(
    ("repeats", "told"),
    [
        (0, "2 workflows)"),
        (1, "2 workflows; repeated 1 time for workflows that started later)"),
        (
            7,
            (
                "repeated 7 times for workflows that started later, the maximum: find and stop the"
                " program that starts them)"
            ),
        ),
    ],
)
def test_ending_says_how_often_it_was_begun_again_and_when_it_no_longer_is(repeats: int, told: str) -> None:
    since = NOW - 3 * DAY
    scheduled_action = ScheduledAction(
        "v1", DrainingAction(BatchAction.CANCEL), "", "", since, since, is_begun=True, workflows=2
    )
    phrase = actions_phrase([replace(scheduled_action, repeats=repeats)], NOW)
    assert phrase.startswith("v1: cancel all workflows (started ")
    assert phrase.endswith(told)
