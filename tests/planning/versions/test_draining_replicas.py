"""The replicas of draining versions, and of those whose autoscaler comes or goes with where they stand."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC, decided, live, routing, situation, version
from tests.planning.times import DAY, ago
from tests.planning.versions.known import CURRENT, TARGET, S, drained_v1, knows, v1
from tests.strategies import (
    AUTOSCALER,
    BUSY_AUTOSCALER,
    CURRENT_BUDGET,
    DRAINING_AUTOSCALER,
    SIZED_BY_HPA,
    with_policy,
)
from twgen.model.plan import VersionPlan
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.model.temporal import Drainage, WorkerDeployment
from twgen.versioning.names import attached_resource_name

ONE = with_policy(SPEC, draining_replicas=1)
DRAINING = v1(S.DRAINING, first_activated_at=ago(DAY))


def attaching(*resources: AttachedResource, spec: WorkerSpec = SPEC) -> WorkerSpec:
    return replace(spec, replicas=None, attached=resources)


def scaled(build_id: str, replicas: int, *there: AttachedResource) -> dict[str, Any]:
    """A Deployment that an autoscaler has sized, and what was rendered with it."""
    manifest = live(build_id, replicas, managedFields=SIZED_BY_HPA)
    names = [f"{item.kind}/{attached_resource_name('payments', item.name, build_id)}" for item in there]
    manifest["metadata"]["annotations"]["twgen.io/attached"] = ",".join(names)
    return manifest


def plan_of(
    spec: WorkerSpec, says: WorkerDeployment | None, *deployments: dict[str, Any], build_id: str = "v1"
) -> VersionPlan:
    return decided(situation(says, deployments), build_id, spec)


def rendered_with(plan: VersionPlan) -> list[str]:
    return [item.name.removeprefix("payments-").rsplit("-", 2)[0] for item in plan.attached]


@pytest.mark.parametrize(
    ("says", "before", "after"),
    [
        pytest.param(DRAINING, 5, 1, id="draining has what the policy says"),
        pytest.param(DRAINING, 0, 1, id="draining at zero comes back with what the policy says"),
        pytest.param(
            v1(S.CURRENT, first_activated_at=ago(DAY)), 5, 5, id="said to be current, and not routed to"
        ),
        pytest.param(v1(S.DRAINING, drainage=Drainage(S.UNSPECIFIED)), 5, 5, id="drainage is not known"),
        pytest.param(v1(S.UNSPECIFIED), 5, 5, id="unspecified keeps them"),
        pytest.param(CURRENT, 5, 3, id="current has what the spec says"),
        pytest.param(drained_v1(None), 5, 5, id="drained keeps them"),
        pytest.param(None, 5, 5, id="the worker is unknown"),
    ],
)
def test_policy_speaks_for_the_replicas_of_what_temporal_calls_draining(
    says: WorkerDeployment | None, before: int, after: int
) -> None:
    assert plan_of(ONE, says, live("v1", before)).replicas == after


def test_lost_draining_version_comes_back_with_the_replicas_of_the_policy() -> None:
    found = situation(DRAINING, [live("v3")], {"v1": live("v1", 7)})
    plan = decided(found, "v1", ONE)
    assert (plan.action, plan.replicas) == ("Create", 1)
    assert "with 1 replica (drainingReplicas)" in plan.because


def test_target_that_drains_is_not_made_small() -> None:
    plan = plan_of(ONE, knows(version("v3", S.DRAINING)), live("v3", 3), build_id="v3")
    assert plan.replicas == 3


def test_autoscaler_of_a_draining_version_decides_beside_the_policy() -> None:
    spec = attaching(AUTOSCALER, spec=ONE)
    plan = plan_of(spec, DRAINING, scaled("v1", 7, AUTOSCALER))
    assert plan.replicas is None
    assert plan.replicas_are_external


def test_autoscaler_goes_in_two_syncs_and_its_version_keeps_its_pods() -> None:
    spec = attaching(BUSY_AUTOSCALER, CURRENT_BUDGET)
    first = plan_of(spec, DRAINING, scaled("v1", 7, BUSY_AUTOSCALER, CURRENT_BUDGET))
    assert [item.kind for item in first.leaving] == ["HorizontalPodAutoscaler", "PodDisruptionBudget"]
    assert (first.attached, first.replicas) == ((), None)
    goes = ", ".join(f"{item.kind} {item.name}" for item in first.leaving)
    assert f"attached objects ({goes} are removed)" in first.changed_marks
    second = plan_of(spec, DRAINING, scaled("v1", 7))
    assert (second.attached, second.leaving) == ((), ())
    # nobody applied the number that the autoscaler left, and nobody changes it any more
    assert second.replicas is None


def test_number_of_the_policy_waits_until_the_autoscaler_is_gone() -> None:
    spec = attaching(BUSY_AUTOSCALER, spec=ONE)
    assert plan_of(spec, DRAINING, scaled("v1", 7, BUSY_AUTOSCALER)).replicas is None
    assert plan_of(spec, DRAINING, scaled("v1", 7)).replicas == 1


def test_number_of_the_spec_waits_until_the_autoscaler_is_gone() -> None:
    spec = replace(attaching(replace(DRAINING_AUTOSCALER)), replicas=3)
    back = knows(current="v1")
    first = plan_of(spec, back, scaled("v1", 7, DRAINING_AUTOSCALER))
    assert (len(first.leaving), first.replicas) == (1, None)
    assert plan_of(spec, back, scaled("v1", 7)).replicas == 3


def test_second_autoscaler_waits_until_the_first_one_is_gone() -> None:
    spec = attaching(BUSY_AUTOSCALER, DRAINING_AUTOSCALER)
    first = plan_of(spec, DRAINING, scaled("v1", 7, BUSY_AUTOSCALER))
    assert (rendered_with(first), len(first.leaving), first.replicas) == ([], 1, None)
    second = plan_of(spec, DRAINING, scaled("v1", 7))
    assert (rendered_with(second), second.leaving, second.replicas) == (["draining"], (), None)


@pytest.mark.parametrize(
    ("says", "there", "kept"),
    [
        pytest.param(v1(S.UNSPECIFIED), (BUSY_AUTOSCALER,), ["cpu"], id="unspecified"),
        pytest.param(v1(S.CREATED), (BUSY_AUTOSCALER,), ["cpu"], id="created"),
        pytest.param(None, (BUSY_AUTOSCALER,), ["cpu"], id="the worker is unknown"),
        pytest.param(v1(S.UNSPECIFIED), (), ["draining"], id="nothing is there"),
    ],
)
def test_version_of_which_nothing_is_known_keeps_what_it_has(
    says: WorkerDeployment | None, there: tuple[AttachedResource, ...], kept: list[str]
) -> None:
    spec = attaching(BUSY_AUTOSCALER, DRAINING_AUTOSCALER)
    plan = plan_of(spec, says, scaled("v1", 7, *there))
    assert (rendered_with(plan), plan.leaving) == (kept, ())


@pytest.mark.parametrize("status", [S.INACTIVE, S.DRAINING, S.DRAINED, S.RAMPING, S.CURRENT])
def test_target_has_what_is_for_targets_wherever_it_stands(status: S) -> None:
    spec = attaching(BUSY_AUTOSCALER, DRAINING_AUTOSCALER)
    traffic = {S.CURRENT: routing("v3"), S.RAMPING: routing("v2", ("v3", 5))}.get(status, routing())
    says = replace(knows(version("v3", status)), routing=traffic)
    plan = plan_of(spec, says, scaled("v3", 3), build_id="v3")
    assert rendered_with(plan) == ["cpu"]


def test_what_is_for_current_versions_alone_waits_for_the_traffic() -> None:
    spec = attaching(CURRENT_BUDGET)
    before = plan_of(spec, knows(TARGET, current="v1"), scaled("v3", 3), build_id="v3")
    after = plan_of(spec, knows(TARGET, current="v3"), scaled("v3", 3), build_id="v3")
    assert (rendered_with(before), rendered_with(after)) == ([], ["budget"])


def test_where_no_cluster_was_read_the_autoscaler_may_still_be_there() -> None:
    spec = attaching(BUSY_AUTOSCALER, spec=replace(ONE, replicas=3))
    found = situation(DRAINING, None, {"v1": live("v1", 7)})
    plan = decided(found, "v1", spec)
    assert (plan.attached, plan.leaving, plan.replicas) == ((), (), None)
