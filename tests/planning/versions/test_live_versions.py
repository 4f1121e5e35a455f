"""Every row of the version table for versions that have a Deployment, and both sides of every limit."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.planning.situations import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    SPEC,
    ago,
    decided,
    live,
    planned,
    routing,
    situation,
    temporal,
    version,
)
from tests.strategies import SIZED_BY_HPA
from twgen.model.plan import VersionAction
from twgen.model.reasons import VersionReason
from twgen.model.spec import AttachedResource
from twgen.model.world import Drainage, Version, VersionStatus, WorkerDeployment

KEEP, SCALE_DOWN, DROP = VersionAction.KEEP, VersionAction.SCALE_DOWN, VersionAction.DROP
S = VersionStatus
TARGET = version("v3")
AT_ZERO = live("v1", 0, protected=False)


def drained(length: timedelta | None, **facts: Any) -> Version:
    drainage = Drainage(S.DRAINED, None if length is None else ago(length))
    return version("v1", S.DRAINED, first_activated_at=ago(9 * DAY), drainage=drainage, **facts)


def knows(*versions: Version, current: str | None = None, **facts: Any) -> WorkerDeployment:
    return temporal(TARGET, *versions, traffic=routing(current), **facts)


CURRENT = knows(version("v1", S.CURRENT), current="v1")
RAMPING = temporal(TARGET, version("v1", S.RAMPING), traffic=routing("v3", ("v1", 5)))
DRAINING = knows(version("v1", S.DRAINING, first_activated_at=ago(DAY)))
INACTIVE = knows(version("v1", created_at=ago(30 * HOUR)))
UNREGISTERED = knows()


@pytest.mark.parametrize(
    ("says", "deployment", "action", "replicas"),
    [
        pytest.param(CURRENT, live("v1", 5), KEEP, 3, id="current has what the spec says"),
        pytest.param(CURRENT, live("v1", 0), KEEP, 3, id="current at zero comes back"),
        pytest.param(RAMPING, live("v1", 1), KEEP, 3, id="ramping has what the spec says"),
        pytest.param(knows(current="v1"), live("v1", 1), KEEP, 3, id="routing alone makes it current"),
        pytest.param(DRAINING, live("v1", 5), KEEP, 5, id="draining keeps its replicas"),
        pytest.param(DRAINING, live("v1", 0), KEEP, 3, id="draining at zero comes back"),
        pytest.param(knows(version("v1", S.CREATED)), live("v1", 5), KEEP, 5, id="created keeps them"),
        pytest.param(
            knows(version("v1", S.UNSPECIFIED)), live("v1", 5), KEEP, 5, id="unspecified keeps them"
        ),
        pytest.param(knows(version("v1", S.CREATED)), live("v1", 0), KEEP, 3, id="created comes back"),
        pytest.param(
            knows(version("v1", S.UNSPECIFIED)), live("v1", 0), KEEP, 3, id="unspecified comes back"
        ),
        pytest.param(
            knows(version("v1", last_deactivated_at=ago(DAY))),
            live("v1", 5),
            KEEP,
            5,
            id="inactive that was active counts as draining",
        ),
        pytest.param(
            knows(version("v1", drainage=Drainage(S.DRAINING))),
            live("v1", 5),
            KEEP,
            5,
            id="inactive whose drainage goes on counts as draining",
        ),
        pytest.param(
            knows(version("v1", S.CURRENT)),
            live("v1", 5),
            KEEP,
            5,
            id="current that routing does not name counts as draining",
        ),
        pytest.param(
            knows(version("v1", S.DRAINED, drainage=Drainage(S.DRAINING, ago(9 * DAY)))),
            live("v1", 5),
            KEEP,
            5,
            id="drained whose drainage goes on counts as draining",
        ),
        pytest.param(None, live("v1", 2), KEEP, 2, id="worker unknown to Temporal keeps all"),
        pytest.param(None, AT_ZERO, KEEP, 0, id="worker unknown to Temporal drops nothing"),
        pytest.param(
            knows(version("v1", open_workflows=1)),
            live("v1", 2),
            KEEP,
            2,
            id="inactive with open workflows stays",
        ),
        pytest.param(
            knows(drained(9 * DAY, open_workflows=1)),
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
            knows(version("v1", created_at=ago(25 * HOUR))),
            AT_ZERO,
            SCALE_DOWN,
            0,
            id="inactive exactly at both delays stays",
        ),
        pytest.param(
            knows(version("v1", created_at=None)),
            AT_ZERO,
            SCALE_DOWN,
            0,
            id="inactive of unknown age stays",
        ),
        pytest.param(knows(drained(MINUTE)), live("v1", 3), KEEP, 3, id="drained lately stays"),
        pytest.param(knows(drained(HOUR)), live("v1", 3), KEEP, 3, id="drained exactly at its delay stays"),
        pytest.param(knows(drained(None)), live("v1", 3), KEEP, 3, id="drained at an unknown time stays"),
        pytest.param(
            knows(drained(HOUR + SECOND)),
            live("v1", 3),
            SCALE_DOWN,
            0,
            id="drained past its delay goes to zero",
        ),
        pytest.param(
            knows(drained(HOUR + SECOND, open_workflows=0)),
            live("v1", 3),
            SCALE_DOWN,
            0,
            id="drained past its delay, counted, goes to zero",
        ),
        pytest.param(
            knows(drained(25 * HOUR)), AT_ZERO, SCALE_DOWN, 0, id="drained exactly at both delays stays"
        ),
        pytest.param(
            knows(drained(25 * HOUR + SECOND)),
            AT_ZERO,
            DROP,
            None,
            id="drained at zero goes after both delays",
        ),
        pytest.param(
            knows(drained(9 * DAY)), live("v1", 3), SCALE_DOWN, 0, id="drained for long goes to zero first"
        ),
        pytest.param(
            knows(drained(9 * DAY)), live("v1", 0), SCALE_DOWN, 0, id="drained is unprotected before it goes"
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
    assert plan
    assert (plan.action, plan.replicas, plan.protected) == (action, replicas, action is KEEP)
    assert plan.because.startswith(("it ", "Temporal "))


@pytest.mark.parametrize("status", [S.INACTIVE, S.UNSPECIFIED, S.CURRENT, S.RAMPING])
def test_status_that_contradicts_the_past_is_told_as_draining(status: VersionStatus) -> None:
    says = knows(version("v1", status, last_deactivated_at=ago(DAY)))
    plan = decided(situation(says, [live("v1")]), "v1")
    assert plan
    assert plan.status is S.DRAINING


def test_target_that_runs_as_its_spec_says_is_rendered_in_the_words_of_the_spec() -> None:
    plan = decided(situation(knows(), [live("v3", 1)]), "v3")
    assert plan
    assert (plan.action, plan.replicas, plan.protected) == (KEEP, 3, True)
    assert plan.recorded is None


def test_target_may_be_at_zero_when_its_spec_says_so() -> None:
    found = situation(knows(current="v3"), [live("v3", 3)])
    spec = replace(SPEC, replicas=0)
    plan = decided(found, "v3", spec)
    assert plan
    assert plan.replicas == 0


def test_version_under_an_autoscaler_has_no_replicas_of_ours() -> None:
    scaled = live("v1", 7, managedFields=SIZED_BY_HPA)
    plan = decided(situation(CURRENT, [live("v3"), scaled]), "v1", replace(SPEC, replicas=None))
    assert plan
    assert plan.replicas is None


@pytest.mark.parametrize(("before", "after"), [(7, 7), (0, 1)])
def test_autoscaled_version_whose_replicas_are_still_ours_keeps_them(before: int, after: int) -> None:
    fields: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
    applied = [{"manager": "argocd-controller", "operation": "Apply", "fieldsV1": fields}]
    found = situation(CURRENT, [live("v3"), live("v1", before, managedFields=applied)])
    plan = decided(found, "v1", replace(SPEC, replicas=None))
    assert plan
    assert plan.replicas == after


def test_autoscaled_version_goes_to_zero_all_the_same() -> None:
    scaled = live("v1", 7, managedFields=SIZED_BY_HPA)
    plan = decided(situation(INACTIVE, [live("v3"), scaled]), "v1", replace(SPEC, replicas=None))
    assert plan
    assert plan.replicas == 0


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(
            drained(2 * DAY, last_deactivated_at=ago(MINUTE)),
            id="traffic left it after it is said to have drained",
        ),
        pytest.param(drained(2 * DAY, last_current_at=ago(MINUTE)), id="it became current since"),
        pytest.param(
            version("v1", drainage=Drainage(S.UNSPECIFIED)),
            id="it is said to be inactive, and has drained once",
        ),
    ],
)
def test_version_of_which_temporal_contradicts_itself_keeps_its_pods(known: Version) -> None:
    plan = decided(situation(knows(known), [live("v3"), live("v1")]), "v1")
    assert plan
    assert (plan.status, plan.action, plan.replicas) == (S.DRAINING, KEEP, 3)


@pytest.mark.parametrize(("from_zero", "replicas"), [(False, 1), (True, None)])
def test_autoscaled_version_at_zero_gets_a_pod_unless_its_autoscaler_would_bring_it_back(
    *, from_zero: bool, replicas: int | None
) -> None:
    attached = (AttachedResource("scale", {}, autoscales=True, scales_from_zero=from_zero),)
    scaled = live("v1", 0, managedFields=SIZED_BY_HPA)
    plan = decided(situation(CURRENT, [live("v3"), scaled]), "v1", replace(SPEC, attached=attached))
    assert plan
    assert plan.replicas == replicas


LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"created_at": ago(HOUR)}, id="it was made later"),
        pytest.param({"first_activated_at": ago(HOUR)}, id="it became active later"),
        pytest.param({"last_current_at": ago(HOUR)}, id="it was current later"),
        pytest.param({"created_at": ago(9 * DAY), "drained_at": LONG_AGO}, id="it drained in 1970"),
    ],
)
def test_version_that_drained_before_it_lived_keeps_its_pods(facts: dict[str, Any]) -> None:
    drainage = Drainage(S.DRAINED, facts.pop("drained_at", ago(5 * DAY)))
    says = knows(version("v1", S.DRAINED, drainage=drainage, **{"created_at": ago(9 * DAY)} | facts))
    plan = decided(situation(says, [live("v1", 5)]), "v1")
    assert plan
    assert (plan.action, plan.replicas, plan.protected) == (KEEP, 5, True)


@pytest.mark.parametrize(
    ("known", "action"),
    [
        pytest.param(version("V1", S.DRAINING, first_activated_at=ago(DAY)), KEEP, id="in capitals"),
        pytest.param(version("V1", S.CREATED), KEEP, id="never routed to"),
        pytest.param(replace(drained(9 * DAY, open_workflows=1), build_id="V1"), KEEP, id="counted"),
        pytest.param(replace(drained(9 * DAY), build_id="V1"), SCALE_DOWN, id="without work"),
        pytest.param(
            version("V2", S.DRAINING, first_activated_at=ago(DAY)), SCALE_DOWN, id="of another name"
        ),
    ],
)
def test_unregistered_version_stays_while_one_with_work_would_have_its_name(
    known: Version, action: VersionAction
) -> None:
    plan = decided(situation(knows(known), [live("v1", 5)]), "v1")
    assert plan
    assert (plan.action, plan.replicas) == (action, 5 if action is KEEP else 0)
    assert (plan.reason is VersionReason.MAY_BE_ANOTHER) is (action is KEEP)
    # where both have a Deployment, each is its own
    plan = decided(situation(knows(known), [live("v1", 5), live(known.build_id, 1, name="own")]), "v1")
    assert plan
    assert plan.action is SCALE_DOWN


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(knows(drained(9 * DAY)), id="drained"),
        pytest.param(INACTIVE, id="never active"),
        pytest.param(UNREGISTERED, id="not registered"),
    ],
)
@pytest.mark.parametrize("is_in_ledger", [False, True])
def test_pods_that_were_told_by_hand_to_be_another_version_stay(
    says: WorkerDeployment, *, is_in_ledger: bool
) -> None:
    reused = live("v1", 5)
    for container in reused["spec"]["template"]["spec"]["containers"]:
        for variable in container["env"]:
            if variable["name"] == "TEMPORAL_WORKER_BUILD_ID":
                variable["value"] = "hotfix"
    ledger = {"v1": live("v1", 5)} if is_in_ledger else None
    worker = planned(situation(says, [reused], ledger)).versions
    plan = next(item for item in worker.versions if item.build_id == "v1")
    assert (plan.action, plan.replicas, plan.protected) == (KEEP, 5, True)
    assert plan.reason is VersionReason.RUNS_ANOTHER_BUILD
    assert plan.recorded
    assert plan.recorded.manifest["spec"]["template"] == reused["spec"]["template"]
    assert any("told to be hotfix: deploy that version" in text for text in worker.warnings)
