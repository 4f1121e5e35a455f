"""What Temporal has in place of a target that has not polled, and what to ask then."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import SPEC, live, routed, routing, situation, version
from tests.planning.situations import temporal as says_temporal
from tests.planning.times import HOUR, MINUTE, ago
from twgen.model.plan import Phase
from twgen.model.policy import EnvironmentNames
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import OtherWorker, VersionStatus, WorkerDeployment
from twgen.planning.routing.registration import may_be_called

S = VersionStatus
OLD = version("v1", S.CURRENT, created_at=ago(9 * 24 * HOUR))
KNOWN = says_temporal(OLD, traffic=routing("v1"))
UNREAD, AVAILABLE = None, [live("v3")]
NOBODY = "Temporal does not know it yet: none of its workers has polled"
TAKES_NAME = "does the worker take its deployment name, shop/payments, from TEMPORAL_DEPLOYMENT_NAME?"


def because(
    says: WorkerDeployment | None,
    deployments: Sequence[dict[str, Any]] | None,
    *others: OtherWorker,
    spec: WorkerSpec = SPEC,
) -> str:
    found = situation(says, deployments)
    workers = {key: replace(one, other_workers=others) for key, one in found.workers.items()}
    plan = routed(replace(found, workers=workers), spec)
    assert (plan.phase, plan.reason) == (Phase.WAITING, "WaitingForRegistration")
    return plan.because


def test_wait_without_anything_to_see_asks_nothing_of_pods_that_nobody_knows_of() -> None:
    assert because(None, UNREAD) == because(KNOWN, UNREAD) == NOBODY


def test_target_whose_pods_crash_between_two_moments_of_being_available_is_said_to_crash() -> None:
    found = situation(KNOWN, AVAILABLE)
    problem = "crashes (Error, exit code 1)"
    workers = {key: replace(one, pod_problems={"v3": problem}) for key, one in found.workers.items()}
    plan = routed(replace(found, workers=workers), SPEC)
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
    text = because(says_temporal(OLD, typo, traffic=routing("v1")), deployments)
    question = "does the worker take its build ID, v3, from TEMPORAL_WORKER_BUILD_ID?"
    assert (f"; v3-typo has polled instead: {question}" in text) is is_told


def test_question_names_the_variables_that_the_policy_has_for_older_workers() -> None:
    policy = replace(SPEC.policy, environment=EnvironmentNames.HOST_PORT)
    text = because(KNOWN, UNREAD, OtherWorker(task_queue="main"), spec=replace(SPEC, policy=policy))
    assert "the build ID from WORKER_BUILD_ID?" in text


@pytest.mark.parametrize(
    ("name", "may_be"),
    [
        ("orders", True),
        ("Orders_Worker", True),
        ("order", True),
        ("SHOP/Orders", True),
        ("shop/orders", False),
        ("shop/orders-eu", False),
        ("staging/orders", False),
        ("billing", False),
        ("-", False),
    ],
)
def test_worker_deployment_may_be_the_worker_when_it_is_called_alike(name: str, *, may_be: bool) -> None:
    assert may_be_called(name, "shop/orders") is may_be
