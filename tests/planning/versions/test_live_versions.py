"""Every row of the version table for versions that have a Deployment, and both sides of every limit."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC, decided, live, routing, serving, situation, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, SECOND, ago
from tests.planning.versions.known import (
    CURRENT,
    DROP,
    INACTIVE,
    KEEP,
    SCALE_DOWN,
    TARGET,
    UNREGISTERED,
    S,
    drained_v1,
    knows,
    v1,
)
from tests.strategies import SIZED_BY_HPA
from twgen.model.plan import VersionAction
from twgen.model.spec import AttachedResource
from twgen.model.temporal import Drainage, WorkerDeployment

AT_ZERO = live("v1", 0, protected=False)
RAMPING = temporal(TARGET, version("v1", S.RAMPING), traffic=routing("v3", ("v1", 5)))
DRAINING = v1(S.DRAINING, first_activated_at=ago(DAY))


@pytest.mark.parametrize(
    ("says", "deployment", "action", "replicas"),
    [
        pytest.param(CURRENT, live("v1", 5), KEEP, 3, id="current has what the spec says"),
        pytest.param(CURRENT, live("v1", 0), KEEP, 3, id="current at zero comes back"),
        pytest.param(RAMPING, live("v1", 1), KEEP, 3, id="ramping has what the spec says"),
        pytest.param(knows(current="v1"), live("v1", 1), KEEP, 3, id="routing alone makes it current"),
        pytest.param(DRAINING, live("v1", 5), KEEP, 5, id="draining keeps its replicas"),
        pytest.param(DRAINING, live("v1", 0), KEEP, 3, id="draining at zero comes back"),
        pytest.param(v1(S.CREATED), live("v1", 5), KEEP, 5, id="created keeps them"),
        pytest.param(v1(S.UNSPECIFIED), live("v1", 5), KEEP, 5, id="unspecified keeps them"),
        pytest.param(v1(S.CREATED), live("v1", 0), KEEP, 3, id="created comes back"),
        pytest.param(v1(S.UNSPECIFIED), live("v1", 0), KEEP, 3, id="unspecified comes back"),
        pytest.param(
            v1(last_deactivated_at=ago(DAY)),
            live("v1", 5),
            KEEP,
            5,
            id="inactive that was active counts as draining",
        ),
        pytest.param(
            v1(drainage=Drainage(S.DRAINING)),
            live("v1", 5),
            KEEP,
            5,
            id="inactive whose drainage goes on counts as draining",
        ),
        pytest.param(
            v1(S.CURRENT), live("v1", 5), KEEP, 5, id="current that routing does not name counts as draining"
        ),
        pytest.param(
            v1(S.DRAINED, drainage=Drainage(S.DRAINING, ago(9 * DAY))),
            live("v1", 5),
            KEEP,
            5,
            id="drained whose drainage goes on counts as draining",
        ),
        pytest.param(None, live("v1", 2), KEEP, 2, id="worker unknown to Temporal keeps all"),
        pytest.param(None, AT_ZERO, KEEP, 0, id="worker unknown to Temporal drops nothing"),
        pytest.param(v1(open_workflows=1), live("v1", 2), KEEP, 2, id="inactive with open workflows stays"),
        pytest.param(
            drained_v1(9 * DAY, open_workflows=1),
            AT_ZERO,
            KEEP,
            1,
            id="drained with open workflows comes back",
        ),
        pytest.param(INACTIVE, live("v1", 3), SCALE_DOWN, 0, id="inactive goes to zero"),
        pytest.param(INACTIVE, live("v1", 0), SCALE_DOWN, 0, id="inactive is unprotected before it goes"),
        pytest.param(
            INACTIVE, live("v1", 1, protected=False), SCALE_DOWN, 0, id="inactive is at zero before it goes"
        ),
        pytest.param(INACTIVE, AT_ZERO, DROP, None, id="inactive at zero goes after both delays"),
        pytest.param(
            v1(created_at=ago(25 * HOUR)), AT_ZERO, SCALE_DOWN, 0, id="inactive exactly at both delays stays"
        ),
        pytest.param(v1(created_at=None), AT_ZERO, SCALE_DOWN, 0, id="inactive of unknown age stays"),
        pytest.param(drained_v1(MINUTE), live("v1", 3), KEEP, 3, id="drained lately stays"),
        pytest.param(drained_v1(HOUR), live("v1", 3), KEEP, 3, id="drained exactly at its delay stays"),
        pytest.param(drained_v1(None), live("v1", 3), KEEP, 3, id="drained at an unknown time stays"),
        pytest.param(
            drained_v1(HOUR + SECOND), live("v1", 3), SCALE_DOWN, 0, id="drained past its delay goes to zero"
        ),
        pytest.param(
            drained_v1(HOUR + SECOND, open_workflows=0),
            live("v1", 3),
            SCALE_DOWN,
            0,
            id="drained past its delay, counted, goes to zero",
        ),
        pytest.param(
            drained_v1(25 * HOUR), AT_ZERO, SCALE_DOWN, 0, id="drained exactly at both delays stays"
        ),
        pytest.param(
            drained_v1(25 * HOUR + SECOND), AT_ZERO, DROP, None, id="drained at zero goes after both delays"
        ),
        pytest.param(
            drained_v1(9 * DAY), live("v1", 3), SCALE_DOWN, 0, id="drained for long goes to zero first"
        ),
        pytest.param(
            drained_v1(9 * DAY), live("v1", 0), SCALE_DOWN, 0, id="drained is unprotected before it goes"
        ),
        pytest.param(
            UNREGISTERED,
            live("v1", 3, age=10 * MINUTE),
            KEEP,
            3,
            id="unregistered for exactly its time stays",
        ),
        pytest.param(
            UNREGISTERED,
            live("v1", 3, age=10 * MINUTE + SECOND),
            SCALE_DOWN,
            0,
            id="unregistered for too long goes to zero",
        ),
        pytest.param(
            UNREGISTERED, live("v1", 0), SCALE_DOWN, 0, id="unregistered is unprotected before it goes"
        ),
        pytest.param(UNREGISTERED, AT_ZERO, DROP, None, id="unregistered at zero goes"),
    ],
)
def test_version_with_a_deployment(
    says: WorkerDeployment | None, deployment: dict[str, Any], action: VersionAction, replicas: int | None
) -> None:
    plan = decided(situation(says, [live("v3"), deployment]), "v1")
    assert (plan.action, plan.replicas, plan.protected) == (action, replicas, action is KEEP)
    assert plan.because.startswith(("it ", "Temporal "))


def test_version_that_drained_at_an_unknown_time_is_not_said_to_have_drained_lately() -> None:
    undated, lately = (decided(serving(drained_v1(age)), "v1") for age in (None, MINUTE))
    assert undated.because.startswith("it is drained, but Temporal does not report when it drained")
    assert lately.because.startswith("it is drained, but scaledownDelay (1h) is not over yet")


def test_target_that_runs_as_its_spec_says_is_rendered_in_the_words_of_the_spec() -> None:
    plan = decided(situation(knows(), [live("v3", 1)]), "v3")
    assert (plan.action, plan.replicas, plan.protected) == (KEEP, 3, True)
    assert plan.recorded is None


def test_target_may_be_at_zero_when_its_spec_says_so() -> None:
    assert decided(serving(knows(current="v3"), "v3"), "v3", replace(SPEC, replicas=0)).replicas == 0


@pytest.mark.parametrize(("says", "replicas"), [(CURRENT, None), (INACTIVE, 0)])
def test_version_under_an_autoscaler_has_no_replicas_of_ours_until_it_goes(
    says: WorkerDeployment, replicas: int | None
) -> None:
    scaled = live("v1", 7, managedFields=SIZED_BY_HPA)
    plan = decided(situation(says, [live("v3"), scaled]), "v1", replace(SPEC, replicas=None))
    assert plan.replicas == replicas


@pytest.mark.parametrize(("before", "after"), [(7, 7), (0, 1)])
def test_autoscaled_version_whose_replicas_are_still_ours_keeps_them(before: int, after: int) -> None:
    fields: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
    applied = [{"manager": "argocd-controller", "operation": "Apply", "fieldsV1": fields}]
    found = situation(CURRENT, [live("v3"), live("v1", before, managedFields=applied)])
    plan = decided(found, "v1", replace(SPEC, replicas=None))
    assert plan.replicas == after


@pytest.mark.parametrize(("from_zero", "replicas"), [(False, 1), (True, None)])
def test_autoscaled_version_at_zero_gets_a_pod_unless_its_autoscaler_would_bring_it_back(
    *, from_zero: bool, replicas: int | None
) -> None:
    attached = (AttachedResource("scale", {}, autoscales=True, scales_from_zero=from_zero),)
    scaled = live("v1", 0, managedFields=SIZED_BY_HPA)
    plan = decided(situation(CURRENT, [live("v3"), scaled]), "v1", replace(SPEC, attached=attached))
    assert plan.replicas == replicas


@pytest.mark.parametrize(
    ("workflows", "oldest", "deployments", "because"),
    [
        (None, None, [live("v1", 3)], "workflows may still need it"),
        (0, None, [live("v1", 3)], "workflows may still need it"),
        (12, 41 * DAY, [live("v1", 3)], "it keeps its pods for 12 open workflows, the oldest 41d old"),
        (1, None, [live("v1", 1)], "it keeps its pods for 1 open workflow"),
        (2, 5 * HOUR, [], "2 open workflows need it, the oldest 5h old; it has no Deployment"),
    ],
)
def test_version_that_drains_says_for_whom_it_keeps_its_pods(
    workflows: int | None, oldest: Any, deployments: list[Any], because: str
) -> None:
    held = version("v1", S.DRAINING, open_workflows=workflows, oldest_open_at=oldest and ago(oldest))
    plan = decided(situation(knows(held), deployments), "v1")
    assert plan.because.startswith(f"it is draining: {because}")
