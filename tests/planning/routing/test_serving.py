"""Whether the target can take traffic, and what is said when it cannot."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import MAIN, SPEC, live, planned, routed, routing, situation, temporal, version
from tests.strategies import AUTOSCALER
from twgen.model.plan import Phase, RoutingAction
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import TaskQueue, TaskQueueType, VersionStatus
from twgen.model.world import World

OLD = version("v1", VersionStatus.CURRENT)
ACTIVITIES = TaskQueue("main", TaskQueueType.ACTIVITY, pollers=True)


def found() -> World:
    return situation(temporal(OLD, version(), traffic=routing("v1")), [live("v3")])


def moves(world: World, spec: WorkerSpec = SPEC) -> bool:
    return routed(world, spec).action is RoutingAction.SET_CURRENT


def silent(**facts: Any) -> TaskQueue:
    return replace(MAIN, **({"pollers": False} | facts))


def condition(**status: Any) -> dict[str, Any]:
    manifest = live("v3")
    manifest["status"] |= status
    return manifest


UNAVAILABLE = "its Deployment is not available yet"
SILENT = "none of its workers polls task queue main"
UNREAD = "the cluster was not read, and Temporal lists no poller for it on task queue main"
NOTHING_READ = "neither the cluster nor its {} were read, so it is unknown whether it serves"
UNVERSIONED = ", but an unversioned worker does: is versioning enabled in the worker's SDK options?"
PODS, BESIDE_ANOTHER = [live("v3")], silent(unversioned_pollers=True)


@pytest.mark.parametrize(
    ("deployments", "queue", "because"),
    [
        pytest.param([], MAIN, "it has no Deployment yet", id="gone"),
        pytest.param([live("v3", 0)], MAIN, "its Deployment has zero replicas", id="at zero"),
        pytest.param(
            [condition(conditions=[{"type": "Available", "status": "False"}])],
            MAIN,
            UNAVAILABLE,
            id="unavailable",
        ),
        pytest.param([condition(observedGeneration=0)], MAIN, UNAVAILABLE, id="just changed"),
        pytest.param([condition(availableReplicas=0)], MAIN, UNAVAILABLE, id="no Pod"),
        pytest.param(PODS, silent(), SILENT, id="silent"),
        pytest.param(
            PODS, BESIDE_ANOTHER, f"{SILENT}{UNVERSIONED}", id="silent beside one without a version"
        ),
        pytest.param(None, silent(), UNREAD, id="silent, of an unread cluster"),
        pytest.param(None, BESIDE_ANOTHER, f"{UNREAD}{UNVERSIONED}", id="silent, cluster not read"),
        pytest.param(None, silent(pollers=None), NOTHING_READ.format("pollers"), id="nothing read"),
        pytest.param(None, None, NOTHING_READ.format("task queues"), id="nothing known"),
    ],
)
def test_target_that_does_not_serve_waits(
    deployments: list[dict[str, Any]] | None, queue: TaskQueue | None, because: str
) -> None:
    says = temporal(OLD, version(task_queues=queue and (queue,)), traffic=routing("v1"))
    plan = routed(situation(says, deployments))
    assert plan.phase is Phase.WAITING
    assert plan.because == because


def test_target_that_its_spec_holds_at_zero_needs_another_spec() -> None:
    plan = routed(found(), replace(SPEC, replicas=0))
    assert plan.phase is Phase.BLOCKED
    assert plan.because == "its spec says zero replicas: no worker can take traffic"


def test_replicas_of_a_spec_that_an_autoscaler_overrides_hold_nothing_up() -> None:
    spec = replace(SPEC, replicas=0, attached=(AUTOSCALER,))
    assert moves(found(), spec)


@pytest.mark.parametrize(
    ("deployments", "queue"),
    [
        pytest.param([live("v3")], silent(pollers=None), id="an available Deployment, pollers not read"),
        pytest.param([live("v3")], silent(type=TaskQueueType.ACTIVITY), id="a silent activity queue"),
        pytest.param(None, MAIN, id="a poller alone, cluster not read"),
        pytest.param(None, ACTIVITIES, id="a poller of activities alone, cluster not read"),
    ],
)
def test_target_serves_by(deployments: list[dict[str, Any]] | None, queue: TaskQueue) -> None:
    says = temporal(replace(OLD, task_queues=None), version(task_queues=(queue,)), traffic=routing("v1"))
    assert moves(situation(says, deployments))


def test_second_deployment_of_the_target_says_nothing_of_its_pods() -> None:
    twin = live("v3", 0)
    twin["metadata"]["name"] = "a-copy"
    says = temporal(OLD, version(), traffic=routing("v1"))
    assert routed(situation(says, [twin, live("v3")])).reason != "NotServing"


@pytest.mark.parametrize(("share", "alarm"), [(5, "5% of new workflows go to v3"), (0, "")])
def test_ramp_without_workers_is_an_alarm_only_if_it_has_a_share(share: float, alarm: str) -> None:
    ramp = temporal(OLD, version("v3", VersionStatus.RAMPING), traffic=routing("v1", ("v3", share)))
    unserved = planned(situation(ramp, [live("v1"), live("v3", 0)])).unserved
    assert unserved.startswith(alarm)
    assert bool(unserved) is bool(alarm)


REPLACED = condition(replicas=4, updatedReplicas=1, availableReplicas=3)


def test_target_whose_new_pods_never_came_up_takes_no_more_traffic_by_its_older_ones() -> None:
    says = temporal(OLD, version(), traffic=routing("v1"))
    plan = routed(situation(says, [REPLACED]))
    assert plan.action is RoutingAction.NONE
    assert plan.because == "its pods are being replaced, and no new pod is available yet"
    assert moves(situation(says, [condition(replicas=4, updatedReplicas=2, availableReplicas=3)]))


def test_current_target_is_served_while_its_pods_are_replaced() -> None:
    says = temporal(version("v3", VersionStatus.CURRENT), traffic=routing("v3"))
    worker = planned(situation(says, [REPLACED]))
    assert (worker.routing.phase, worker.unserved) == (Phase.SETTLED, "")
