"""A plan as text, where the golden files of the stories do not reach."""

from dataclasses import replace

import pytest

from tests.planning.situations import DAY, MAIN, NOW, SPEC, live, routing, situation, temporal, version
from tests.reporting.statuses import plan_of_story
from tests.strategies import TARGET
from twgen.model.draining import BatchAction, DrainingAction, ScheduledAction
from twgen.model.operator import Caller
from twgen.model.plan import Phase, Plan, VersionAction, VersionPlan
from twgen.model.reasons.versions import VersionReason as Reason
from twgen.model.temporal import VersionStatus as S
from twgen.planning.plan import make_plan
from twgen.reporting.plan.document import PLAN
from twgen.reporting.plan.phrases import MOST_ROWS, actions_phrase
from twgen.reporting.plan.text import plan_text


def text(plan: Plan, width: int = 100) -> str:
    return plan_text(plan, colour=False, width=width)


def test_several_workers_have_a_line_each_and_the_worst_is_last() -> None:
    plan = plan_of_story("mid-ramp-waits")
    [worker] = plan.workers
    blocked = replace(worker, routing=replace(worker.routing, phase=Phase.BLOCKED))
    both = replace(plan, workers=(blocked, worker))
    head, *lines = plan_text(both, colour=False, width=80, detailed=False).splitlines()
    assert head.startswith("2 workers: 1 Blocked, 1 Waiting")
    assert [line.split()[2] for line in lines] == ["Waiting", "Blocked"]
    assert all(len(line) <= 80 for line in lines)
    assert plan_text(plan, colour=False, width=100, detailed=False) == text(plan)


def with_versions(count: int) -> Plan:
    """A plan with many drained versions that have no manifest, each with the warning about it."""
    plan = plan_of_story("mid-ramp-waits")
    (worker,) = plan.workers
    drained = tuple(
        VersionPlan(
            f"old-{number}",
            S.DRAINED,
            f"payments-old-{number}",
            VersionAction.NONE,
            f"it is drained for {number}h",
            Reason.MANIFEST_LOST,
        )
        for number in range(count)
    )
    warnings = tuple(f"{old.build_id}: {old.because}; its prune protection keeps it" for old in drained)
    versions = replace(worker.versions, versions=(*worker.versions.versions, *drained), warnings=warnings)
    return Plan(plan.now, (replace(worker, versions=versions),))


def test_table_that_does_not_fit_is_a_block_a_version() -> None:
    lines = text(plan_of_story("superseded-version"), 40).splitlines()
    assert lines[6:16] == [
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
    plan = make_plan([SPEC], situation(says, [live(TARGET), live("v2")]), NOW, Caller("me", forced=True))
    title, alarm, *_ = text(plan).splitlines()
    assert title.startswith("✗ shop/payments")
    said = (
        "5% of new workflows go to v3, but no worker serves them: none of its workers polls task queue main"
    )
    assert alarm == f"  {said}"
    (worker,) = PLAN.write(plan)["workers"]
    assert worker["unserved"] == said


@pytest.mark.parametrize(
    ("manager", "order"),
    [
        ("", "claim the worker and make v3 current, because "),
        ("controller", "take the worker over from controller and make v3 current, because "),
        ("twgen/me", "make v3 current, because "),
    ],
)
def test_plan_says_who_gives_the_worker_up_for_the_change(manager: str, order: str) -> None:
    policy = replace(SPEC.policy, identity="me", adopt_from=("controller",))
    says = temporal(version("v3", task_queues=(MAIN,)), traffic=routing(None), manager_identity=manager)
    world = situation(says, [live("v3")])
    plan = make_plan([replace(SPEC, policy=policy)], world, NOW, Caller("twgen/nobody"))
    assert text(plan, 200).splitlines()[1].startswith(f"  next: {order}")


def test_each_of_many_versions_is_named_once() -> None:
    said = text(with_versions(70), 120)
    assert [number for number in range(70) if said.count(f" old-{number} ") != 1] == []
    assert (
        "warning: 70 versions, such as old-0: it is drained for 0h; its prune protection keeps it\n" in said
    )


def test_versions_without_a_manifest_share_one_warning() -> None:
    lost = [version(f"old-{number}", S.DRAINING) for number in range(70)]
    world = situation(temporal(version("v3", S.CURRENT), *lost, traffic=routing("v3")), None)
    said = text(make_plan([SPEC], world, NOW, Caller("me")), 120)
    assert "warning: 70 versions, such as old-0 has no manifest to render: " in said
    assert [number for number in range(1, 70) if said.count(f" old-{number} ") != 1] == []


def test_versions_that_are_too_many_to_read_share_a_row_and_stay_in_json() -> None:
    plan = with_versions(100 * MOST_ROWS)
    said = text(plan, 120).splitlines()
    assert len(said) < 10
    assert any("old-0, old-1, old-2 and 9,997 more" in line for line in said)
    assert any(line.startswith("  v2.0.1-c656 ") for line in said)
    (worker,) = PLAN.write(plan)["workers"]
    assert len(worker["versions"]) == 100 * MOST_ROWS + 2


@pytest.mark.parametrize(
    ("repeats", "told"),
    [
        (0, "2 workflows)"),
        (1, "2 workflows; repeated 1 time for workflows that started later)"),
        (7, "repeated 7 times for workflows that started later, the maximum: stop whatever starts them)"),
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
