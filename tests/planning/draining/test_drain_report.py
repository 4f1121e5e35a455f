"""What holds a version, by what was counted, listed and asked."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import SPEC, drained, live, routing, serving, situation, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, ago
from tests.strategies import NOW, patched
from twgen.model.draining import Described, EndedWorkflow, OpenWorkflow, PinnedWorkflows, VersionInUse
from twgen.model.operator import Caller
from twgen.model.temporal import VersionStatus
from twgen.planning.draining.drain_report import versions_without_traffic, worker_in_use
from twgen.planning.plan import plan_versions

DRAINING = version("v1", VersionStatus.DRAINING, created_at=ago(9 * DAY))
OTHERS = (version("v2", VersionStatus.CURRENT), version("v3", VersionStatus.RAMPING))


def opened(age: timedelta, workflow_type: str = "Order", **facts: Any) -> OpenWorkflow:
    return OpenWorkflow(workflow_type, facts.pop("task_queue", "main"), ago(age), **facts)


def ended(*lengths: timedelta, workflow_type: str = "Order") -> tuple[EndedWorkflow, ...]:
    return tuple(EndedWorkflow(workflow_type, length) for length in lengths)


def pinned(*workflows: OpenWorkflow, **facts: Any) -> PinnedWorkflows:
    oldest = min((one.started_at for one in workflows), default=None)
    return PinnedWorkflows(**{"number": len(workflows), "listed": workflows, "oldest_at": oldest} | facts)


def held(found: PinnedWorkflows, deployment: dict[str, Any] | None = None) -> VersionInUse:
    says = temporal(*OTHERS, DRAINING, traffic=routing("v2", ("v3", 5)))
    world = situation(says, [live("v2"), live("v3"), deployment or live("v1")])
    [worker] = plan_versions([SPEC], world, NOW, Caller("me")).workers
    assert [one.build_id for one in versions_without_traffic(worker)] == ["v1"]
    [one] = worker_in_use(worker, {"v1": found}, NOW).versions
    return one


@pytest.mark.parametrize(
    ("status", "is_told"), [("DRAINING", True), ("DRAINED", True), ("INACTIVE", False), ("CREATED", False)]
)
def test_target_is_told_of_once_it_had_traffic_and_has_none(status: str, *, is_told: bool) -> None:
    says = temporal(version("v3", VersionStatus[status]), traffic=routing(None))
    [worker] = plan_versions([SPEC], serving(says, "v3"), NOW, Caller("me")).workers
    assert [one.build_id for one in versions_without_traffic(worker)] == (["v3"] if is_told else [])


def test_workflows_are_grouped_and_the_largest_group_is_first() -> None:
    one, of_b, elsewhere = opened(HOUR), opened(HOUR, "B"), opened(HOUR, task_queue="other")
    found = held(pinned(of_b, one, one, elsewhere, of_b))
    told = [(group.workflow_type, group.task_queue, group.number) for group in found.groups]
    assert told == [("B", "main", 2), ("Order", "main", 2), ("Order", "other", 1)]


def test_ages_are_told_in_classes() -> None:
    ages = (MINUTE, 2 * HOUR, 3 * HOUR, 2 * DAY, 8 * DAY, 40 * DAY)
    found = held(pinned(*map(opened, ages)))
    assert [numbers for _, numbers in found.ages] == [1, 2, 1, 1, 1]
    assert found.oldest == 40 * DAY


def test_of_a_sample_the_ages_are_those_that_the_server_counts() -> None:
    found = held(pinned(opened(MINUTE), number=9000, older_than=(8000, 500, 20, 0), oldest_at=ago(9 * DAY)))
    assert [numbers for _, numbers in found.ages] == [1000, 7500, 480, 20, 0]
    assert (found.number, found.grouped, found.oldest) == (9000, 1, 9 * DAY)
    assert (found.ends_within, found.unknown_because) == (None, "not all of its workflows are listed")


def test_what_keeps_workflows_is_counted_by_the_list_or_by_those_that_were_asked() -> None:
    both = pinned(opened(HOUR, has_problems=True, is_paused=True), opened(HOUR), described=Described(2, 2, 1))
    found = held(both)
    assert (found.failing, found.paused, found.waiting_for_child, found.looked_at) == (2, 1, 1, 2)
    assert held(replace(both, described=Described(0, 0, 0))).failing == 1


@pytest.mark.parametrize("is_patched", [False, True])
def test_pods_are_told_with_what_they_request_together(*, is_patched: bool) -> None:
    deployment = live("v1", 3)
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    if is_patched:
        deployment = patched(deployment, {"name": "worker", "resources": resources})
    else:
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        container["resources"] = resources
    found = held(pinned(opened(HOUR)), deployment)
    assert (found.replicas, found.cpu, found.memory) == (3, 1.5, 3 * 2**30)


LENGTHS = (10 * HOUR, 12 * HOUR, 14 * HOUR, 16 * HOUR, 30 * HOUR)


@pytest.mark.parametrize(
    ("workflows", "lengths", "within"),
    [
        pytest.param([HOUR], LENGTHS, (13 * HOUR, 29 * HOUR), id="from the middle to the slowest"),
        pytest.param([HOUR, 2 * HOUR], LENGTHS, (13 * HOUR, 29 * HOUR), id="the youngest takes longest"),
        pytest.param([HOUR], LENGTHS[:4], None, id="too few have ended"),
        pytest.param([11 * HOUR], LENGTHS, None, id="too few lasted for longer than it has by now"),
        pytest.param(
            [11 * HOUR],
            (HOUR, *LENGTHS[1:], 31 * HOUR),
            (5 * HOUR, 20 * HOUR),
            id="shorter ones do not count",
        ),
    ],
)
def test_time_until_it_is_drained_is_that_of_those_that_ended_lately(
    workflows: list[timedelta], lengths: tuple[timedelta, ...], within: Any
) -> None:
    found = held(pinned(*map(opened, workflows), ended=ended(*lengths)))
    assert found.ends_within == within
    assert bool(found.unknown_because) is (within is None)


def test_one_type_of_which_nothing_is_known_makes_the_whole_time_unknown() -> None:
    found = held(pinned(opened(HOUR), opened(HOUR, "Poller"), ended=ended(*LENGTHS)))
    assert found.ends_within is None
    assert found.unknown_because == "too few workflows of type Poller that ran this long have ended recently"


def test_version_that_nothing_holds_is_told_of_while_it_keeps_pods_or_drains() -> None:
    assert held(PinnedWorkflows(0), live("v1", 0)).number == 0
    says = temporal(*OTHERS, drained(HOUR), traffic=routing("v2", ("v3", 5)))
    for replicas, told in ((1, 1), (0, 0)):
        world = situation(says, [live("v2"), live("v3"), live("v1", replicas)])
        [worker] = plan_versions([SPEC], world, NOW, Caller("me")).workers
        assert len(worker_in_use(worker, {"v1": PinnedWorkflows(0)}, NOW).versions) == told
