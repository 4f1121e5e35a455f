"""What is read of a worker, and what is left alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import (
    MAIN,
    NOW,
    SPEC,
    drained,
    live,
    mark,
    routing,
    serving,
    situation,
    temporal,
    version,
)
from tests.planning.times import DAY, HOUR, MINUTE, ago
from twgen.model.spec import Gate, PodTemplate, Rollout, Strategy, WorkerSpec
from twgen.model.temporal import Drainage, TaskQueue, TaskQueueType, WorkerDeployment
from twgen.model.temporal import VersionStatus as S
from twgen.model.times import format_time
from twgen.planning.plan import worker_world
from twgen.planning.reads import Reads, further_reads, versions_to_describe
from twgen.versioning.injection import with_task_queue
from twgen.versioning.names import MarkKey

GATED = replace(SPEC, rollout=Rollout(Strategy.ALL_AT_ONCE, gate=Gate("Smoke")))
CURRENT = version("v1", S.CURRENT, task_queues=(TaskQueue("old", TaskQueueType.WORKFLOW),))


def asked(name: str) -> TaskQueue:
    return TaskQueue(name, TaskQueueType.WORKFLOW)


def described(
    says: WorkerDeployment, deployments: list[dict[str, object]] | None = None, *, for_routing: bool = False
) -> tuple[str, ...]:
    world = worker_world(SPEC, situation(says, deployments))
    return versions_to_describe(SPEC, world, NOW, for_routing=for_routing)


def reads(
    says: WorkerDeployment | None,
    deployments: list[dict[str, object]] | None = None,
    *,
    spec: WorkerSpec = SPEC,
    for_routing: bool = True,
) -> Reads:
    return further_reads(spec, worker_world(spec, situation(says, deployments)), NOW, for_routing=for_routing)


def draining(checked: timedelta | None, changed: timedelta | None = DAY) -> WorkerDeployment:
    times = [None if age is None else ago(age) for age in (changed, checked)]
    return temporal(version("v1", S.DRAINING, drainage=Drainage(S.DRAINING, *times)))


def test_live_version_that_the_list_leaves_out_is_asked_for_by_name() -> None:
    assert described(temporal(version("v3")), [live("v3"), live("v2")]) == ("v2",)
    assert described(temporal(version("v3")), None) == ()


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        pytest.param(draining(16 * MINUTE), ("v1",), id="checked long ago"),
        pytest.param(draining(14 * MINUTE), (), id="checked lately"),
        pytest.param(draining(None, 14 * MINUTE), (), id="not checked, and draining for a short time"),
        pytest.param(draining(None, 16 * MINUTE), ("v1",), id="not checked, and draining for long"),
        pytest.param(draining(None, None), ("v1",), id="draining for nobody knows how long"),
        pytest.param(temporal(drained(2 * DAY)), (), id="drained"),
    ],
)
def test_draining_version_is_asked_for_by_name_when_it_was(
    says: WorkerDeployment, expected: tuple[str, ...]
) -> None:
    assert described(says) == expected


def test_target_and_current_version_decide_on_traffic_if_they_are_listed() -> None:
    says = temporal(version("v3"), CURRENT, drained(DAY, "v0"), traffic=routing("v1"))
    assert described(says, for_routing=True) == ("v1", "v3")
    assert reads(says).task_queues == {MAIN, *(CURRENT.task_queues or ())}
    assert described(says) == ()
    settled = temporal(version("v3", S.CURRENT), drained(DAY, "v1"), traffic=routing("v3"))
    assert described(settled, for_routing=True) == ("v3",)
    assert reads(settled).task_queues == {MAIN}
    assert described(temporal(CURRENT, traffic=routing("v1")), for_routing=True) == ("v1",)


def test_gate_is_read_on_every_workflow_task_queue_until_the_target_is_current() -> None:
    says = temporal(version("v3"), CURRENT, traffic=routing("v1"))
    assert reads(says, spec=GATED).gate_runs == (("main", "test-shop/payments:v3-main"),)
    assert reads(says).gate_runs is None
    moved = mark(percentage=5, gates=["Smoke"], stay=format_time(ago(DAY)))
    past_it = version("v3", metadata={MarkKey.MOVED_BY: moved})
    ramps = temporal(past_it, CURRENT, traffic=routing("v1", ("v3", 5)))
    assert reads(ramps, spec=GATED).gate_runs is None
    settled = temporal(version("v3", S.CURRENT), traffic=routing("v3"))
    assert reads(settled, spec=GATED).gate_runs is None


@pytest.mark.parametrize("age", [MINUTE, 2 * HOUR, 3 * DAY])
def test_workflows_of_a_drained_version_are_counted_unless_it_keeps_its_pods(age: timedelta) -> None:
    says = temporal(version("v3", S.CURRENT), drained(age, "v1"), traffic=routing("v3"))
    assert reads(says, [live("v3")]).open_workflows == {"v1"}
    assert reads(says, [live("v3"), live("v1")]).open_workflows == ({"v1"} if age > HOUR else set())


def test_render_counts_what_holds_pods_and_what_may_need_some_again() -> None:
    says = temporal(version("v3"), drained(2 * HOUR, "v1"), drained(2 * HOUR, "v2"), version("v0"))
    counted = reads(says, [live("v3"), live("v1")], for_routing=False)
    assert counted == Reads(frozenset({"v0", "v1", "v2"}))


def a_rollback() -> WorkerDeployment:
    left = {"last_current_at": ago(HOUR), "last_deactivated_at": ago(MINUTE), "created_at": ago(2 * DAY)}
    newer = version("v4", S.CURRENT, created_at=ago(HOUR))
    return temporal(version("v3", S.DRAINING, **left), newer, traffic=routing("v4", age=MINUTE))


def test_rollback_counts_the_workflows_that_it_moves_and_reads_its_gate_since_it_may_be_too_late() -> None:
    assert reads(a_rollback()).auto_upgrade_workflows == ("v4",)
    assert reads(a_rollback(), spec=GATED).gate_runs == (("main", "test-shop/payments:v3-main"),)


def test_pods_are_looked_at_where_a_deployment_has_none_that_is_available() -> None:
    broken = live("v3") | {"status": {"observedGeneration": 1}}
    for says in (None, temporal(CURRENT, traffic=routing("v1"))):
        found = reads(says, [broken, live("v2", 0), live("v1")]).pods_of
        assert [item.build_id for item in found] == ["v3"]


def test_worker_deployments_are_counted_where_a_full_namespace_may_keep_a_worker_out() -> None:
    assert reads(None, [live("v3")]).worker_deployments
    assert not reads(None, [live("v3", 0)]).worker_deployments
    assert not reads(None, [live("v1")]).worker_deployments
    assert reads(None, None).worker_deployments
    assert not reads(None, None, spec=replace(SPEC, replicas=0)).worker_deployments
    assert not reads(None, [live("v3")], for_routing=False).worker_deployments
    assert not reads(temporal(CURRENT, traffic=routing("v1")), [live("v3")]).worker_deployments


TOLD = replace(SPEC, template=PodTemplate(with_task_queue(SPEC.template.content, "main"), SPEC.template.hash))


def test_task_queue_of_the_spec_is_asked_for_others_while_nobody_polls_for_the_target() -> None:
    unknown = temporal(CURRENT, traffic=routing("v1"))
    for says, deployments in ((None, None), (None, [live("v3")]), (unknown, None), (unknown, [live("v3")])):
        wanted = reads(says, deployments, spec=TOLD)
        assert (wanted.other_workers, wanted.task_queue_of_variables) == (True, asked("main"))
    assert reads(None, None).task_queue_of_variables is None
    for says, deployments in ((None, [live("v3", 0)]), (None, []), (temporal(version("v3")), None)):
        wanted = reads(says, deployments, spec=TOLD)
        assert (wanted.other_workers, wanted.task_queue_of_variables) == (False, None)


def test_task_queue_that_the_current_version_polls_too_is_asked_once() -> None:
    polls = version("v1", S.CURRENT, task_queues=(asked("main"),))
    wanted = reads(temporal(polls, traffic=routing("v1")), spec=TOLD)
    assert (wanted.task_queues, wanted.task_queue_of_variables) == ({asked("main")}, None)


def test_pods_of_an_available_target_that_has_not_polled_are_looked_at_since_they_may_crash() -> None:
    for says in (None, temporal(CURRENT, traffic=routing("v1"))):
        assert [item.build_id for item in reads(says, [live("v1"), live("v3")]).pods_of] == ["v3"]
    assert reads(temporal(version("v3")), [live("v3")]).pods_of == ()


def test_workflows_of_what_drains_with_pods_are_asked_for_by_people_alone() -> None:
    says = temporal(
        version("v3", S.CURRENT),
        version("v1", S.DRAINING),
        version("v2", S.DRAINING),
        version("v9", S.DRAINING),
        drained(DAY, "v0"),
        traffic=routing("v3"),
    )
    world = worker_world(SPEC, situation(says, [live("v3"), live("v1"), live("v2", 0), live("v0")]))
    for_people = further_reads(SPEC, world, NOW, for_routing=True, for_people=True)
    assert for_people.held == ("v1",)
    assert further_reads(SPEC, world, NOW, for_routing=True).held == ()
    back = temporal(version("v3", S.DRAINING), version("v4", S.CURRENT), traffic=routing("v4"))
    reverted = worker_world(SPEC, serving(back, "v3", "v4"))
    assert not further_reads(SPEC, reverted, NOW, for_routing=True, for_people=True).held, "not the target"
    unread = worker_world(SPEC, situation(says, None))
    assert further_reads(SPEC, unread, NOW, for_routing=True, for_people=True).held == ("v1", "v2", "v9")
