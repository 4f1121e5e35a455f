"""What Temporal has in place of a target that has not polled, and the task queues that it does not poll."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import (
    MAIN,
    SPEC,
    live,
    planned,
    routed,
    routing,
    serving,
    situation,
    target_in,
    temporal,
    version,
)
from tests.planning.times import DAY, HOUR, MINUTE, SECOND, ago
from tests.strategies import NOW, with_policy
from twgen.model.plan import Phase, RoutingAction
from twgen.model.policy import EnvironmentNames
from twgen.model.reasons import RoutingReason
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import OtherWorker, TaskQueue, TaskQueueType, VersionStatus, WorkerDeployment
from twgen.model.world import World
from twgen.planning.interventions import promote
from twgen.planning.plan import worker_world
from twgen.planning.reads import further_reads
from twgen.planning.routing.polling import may_be_called

S = VersionStatus
OLD = version("v1", S.CURRENT, created_at=ago(9 * 24 * HOUR))
KNOWN = temporal(OLD, traffic=routing("v1"))
UNREAD, AVAILABLE = None, [live("v3")]
NOBODY = "Temporal does not know it yet: none of its workers has polled"
TAKES_NAME = "does the worker take its deployment name, shop/payments, from TEMPORAL_DEPLOYMENT_NAME?"
REPORTS = TaskQueue("reports-eu", TaskQueueType.ACTIVITY, pollers=True)
COMMANDS = TaskQueue("temporal-sys/worker-commands/shop/pod-1", TaskQueueType.NEXUS, pollers=False)
IGNORING = with_policy(SPEC, ignore_missing_task_queues=("mail", "reports-*"))
MOVES = RoutingAction.SET_CURRENT


def because(
    says: WorkerDeployment | None,
    deployments: Sequence[dict[str, Any]] | None,
    *others: OtherWorker,
    spec: WorkerSpec = SPEC,
) -> str:
    plan = routed(situation(says, deployments, other_workers=others), spec)
    assert (plan.phase, plan.reason) == (Phase.WAITING, "WaitingForRegistration")
    return plan.because


def test_wait_without_anything_to_see_asks_nothing_of_pods_that_nobody_knows_of() -> None:
    assert because(None, UNREAD) == because(KNOWN, UNREAD) == NOBODY


def test_target_whose_pods_crash_between_two_moments_of_being_available_is_said_to_crash() -> None:
    problem = "crashes (Error, exit code 1)"
    plan = routed(situation(KNOWN, AVAILABLE, pod_problems={"v3": problem}))
    assert plan.because.startswith(f"{NOBODY}, and its newest Pod {problem}: does the worker ")


@pytest.mark.parametrize("says", [None, KNOWN], ids=["worker", "version"])
@pytest.mark.parametrize(
    ("others", "seen"),
    [
        pytest.param(
            [OtherWorker(task_queue="main"), OtherWorker("payments", "v7", task_queue="main")],
            f"Worker Deployment payments (build ID v7) polls its task queue main: {TAKES_NAME}",
            id="another name on its task queue",
        ),
        pytest.param(
            [OtherWorker("payments", "v7")],
            f"Temporal has Worker Deployment payments: {TAKES_NAME}",
            id="another name",
        ),
        pytest.param(
            [OtherWorker(name) for name in "abcde"],
            f"Temporal has Worker Deployment a, b, c and 2 more: {TAKES_NAME}",
            id="many names",
        ),
        pytest.param(
            [OtherWorker("payments"), OtherWorker(task_queue="main")],
            "a worker without a version polls its task queue main: does the worker turn versioning on in its"
            " SDK, with the deployment name from TEMPORAL_DEPLOYMENT_NAME and the build ID from"
            " TEMPORAL_WORKER_BUILD_ID?",
            id="no version",
        ),
    ],
)
def test_worker_that_may_be_its_own_is_told_with_the_question_that_helps(
    says: WorkerDeployment | None, others: list[OtherWorker], seen: str
) -> None:
    assert because(says, UNREAD, *others) == f"{NOBODY}; {seen}"
    assert because(says, AVAILABLE, *others) == f"{NOBODY}, although its Deployment is available; {seen}"


@pytest.mark.parametrize(
    ("deployments", "age", "is_told"),
    [
        pytest.param(AVAILABLE, 59 * MINUTE, True, id="lately"),
        pytest.param(AVAILABLE, HOUR, False, id="earlier"),
        pytest.param([live("v3"), live("v3-typo")], MINUTE, False, id="that something deploys"),
        pytest.param(UNREAD, 9 * MINUTE, True, id="just now, of an unread cluster"),
        pytest.param(UNREAD, 10 * MINUTE, False, id="earlier, of an unread cluster"),
    ],
)
def test_version_that_polls_in_place_of_the_target_is_told(
    deployments: list[dict[str, Any]] | None, age: timedelta, *, is_told: bool
) -> None:
    typo = version("v3-typo", created_at=ago(age))
    text = because(temporal(OLD, typo, traffic=routing("v1")), deployments)
    question = "does the worker take its build ID, v3, from TEMPORAL_WORKER_BUILD_ID?"
    assert (f"; v3-typo has polled instead: {question}" in text) is is_told


def test_question_names_the_variables_that_the_policy_has_for_older_workers() -> None:
    policy = replace(SPEC.policy, environment=EnvironmentNames.HOST_PORT)
    text = because(KNOWN, UNREAD, OtherWorker(task_queue="main"), spec=replace(SPEC, policy=policy))
    assert "the build ID from WORKER_BUILD_ID?" in text


def test_worker_deployment_may_be_the_worker_when_it_is_called_alike() -> None:
    alike = {"orders", "Orders_Worker", "order", "SHOP/Orders"}
    other = {"shop/orders", "shop/orders-eu", "staging/orders", "billing", "-"}
    assert {name for name in alike | other if may_be_called(name, "shop/orders")} == alike


def lacking(*queues: TaskQueue, age: timedelta = DAY, **facts: Any) -> World:
    """The target polls MAIN, and the current version these queues too."""
    current = replace(OLD, task_queues=(MAIN, *queues))
    return serving(temporal(current, version(created_at=ago(age)), traffic=routing("v1"), **facts))


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("age", [SECOND, DAY])
@pytest.mark.parametrize("kind", TaskQueueType)
def test_queue_of_temporal_itself_holds_nothing_up(slash: str, age: timedelta, kind: TaskQueueType) -> None:
    queue = replace(COMMANDS, name=slash + COMMANDS.name, type=kind, has_tasks=True)
    plan = planned(lacking(queue, age=age))
    assert (plan.routing.action, plan.versions.warnings) == (MOVES, ())


@pytest.mark.parametrize("name", ["temporal-system", "payments/temporal-sys/x", "payments"])
def test_queue_that_only_looks_like_one_of_temporal_holds_the_target_up(name: str) -> None:
    queue = TaskQueue(name, TaskQueueType.NEXUS)
    assert routed(lacking(queue)).reason is RoutingReason.MISSING_TASK_QUEUE


def test_silent_queue_of_a_process_that_is_gone_keeps_no_target_from_its_traffic() -> None:
    activities = replace(MAIN, type=TaskQueueType.ACTIVITY)
    current = version("v1", VersionStatus.CURRENT, task_queues=(activities,))
    says = temporal(current, version(task_queues=(activities, COMMANDS)), traffic=routing("v1"))
    assert routed(situation(says, None)).action is MOVES


EARLY = 5 * MINUTE - SECOND


@pytest.mark.parametrize(
    ("has_tasks", "age", "moves"),
    [
        (False, DAY, True),
        (False, 5 * MINUTE, True),
        (False, EARLY, False),
        (True, DAY, False),
        (None, DAY, False),
    ],
)
def test_queue_without_tasks_holds_the_target_up_for_its_first_minutes_alone(
    age: timedelta, *, has_tasks: bool | None, moves: bool
) -> None:
    plan = planned(lacking(replace(REPORTS, has_tasks=has_tasks), age=age))
    assert (plan.routing.action is MOVES) == moves
    assert [warning.partition(":")[0] for warning in plan.versions.warnings] == [
        "v3 does not poll activity task queue reports-eu, but v1 does"
    ] * moves
    assert not plan.routing.ignores_missing_queues, "Temporal looks for itself"


def test_rollout_of_another_manager_is_not_said_to_go_on_without_a_queue() -> None:
    plan = planned(lacking(replace(REPORTS, has_tasks=False), manager_identity="somebody"))
    assert (plan.routing.reason, plan.versions.warnings) == (RoutingReason.FOREIGN_MANAGER, ())


@pytest.mark.parametrize("has_tasks", [None, True, False])
def test_queue_that_the_policy_names_holds_nothing_up_and_temporal_is_told_so(
    *, has_tasks: bool | None
) -> None:
    world = lacking(replace(REPORTS, has_tasks=has_tasks), age=SECOND)
    plan = planned(world, IGNORING)
    assert (plan.routing.action, plan.versions.warnings) == (MOVES, ())
    assert plan.routing.ignores_missing_queues == (has_tasks is not False)
    change = promote(target_in(world, IGNORING), full=True, skip_gate=False).change
    assert change
    assert change.ignores_missing_queues == (has_tasks is not False)


def test_queue_whose_name_is_a_pattern_of_something_else_is_named_as_it_is() -> None:
    queue = replace(REPORTS, name="reports[1]")
    spec = with_policy(SPEC, ignore_missing_task_queues=("reports[1]",))
    assert routed(lacking(queue), spec).action is MOVES


def test_queue_beside_those_that_the_policy_names_holds_the_target_up_as_ever() -> None:
    plan = routed(lacking(REPORTS, replace(REPORTS, name="billing")), IGNORING)
    assert (plan.action, plan.reason) == (RoutingAction.NONE, RoutingReason.MISSING_TASK_QUEUE)
    assert "task queue billing, but v1 does" in plan.because
    assert not planned(lacking(), IGNORING).routing.ignores_missing_queues


def test_queues_that_the_target_lacks_are_asked_for_tasks_and_those_of_anybody_for_pollers() -> None:
    world = worker_world(SPEC, lacking(REPORTS, COMMANDS))
    reads = further_reads(SPEC, world, NOW, for_routing=True)
    assert reads.tasks_of == (("v1", REPORTS),)
    assert reads.task_queues == {MAIN, REPORTS}
    settled = replace(SPEC, build_id="v1")
    assert not further_reads(settled, world, NOW, for_routing=True).tasks_of
