"""What is doubtful keeps its pods: answers that contradict themselves, pods that are said to be another's."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.planning.situations import decided, drained, live, planned, serving, situation, version
from tests.planning.times import DAY, HOUR, MINUTE, ago
from tests.planning.versions.known import INACTIVE, KEEP, SCALE_DOWN, UNREGISTERED, S, drained_v1, knows, v1
from twgen.model.plan import VersionAction
from twgen.model.reasons import VersionReason
from twgen.model.temporal import Drainage, Version, VersionStatus, WorkerDeployment


@pytest.mark.parametrize("status", [S.INACTIVE, S.UNSPECIFIED, S.CURRENT, S.RAMPING])
def test_status_that_contradicts_the_past_is_told_as_draining(status: VersionStatus) -> None:
    says = v1(status, last_deactivated_at=ago(DAY))
    plan = decided(serving(says, "v1"), "v1")
    assert plan.status is S.DRAINING


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
    plan = decided(serving(knows(known)), "v1")
    assert (plan.status, plan.action, plan.replicas) == (S.DRAINING, KEEP, 3)


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
    says = v1(S.DRAINED, drainage=drainage, **{"created_at": ago(9 * DAY)} | facts)
    plan = decided(situation(says, [live("v1", 5)]), "v1")
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
    assert (plan.action, plan.replicas) == (action, 5 if action is KEEP else 0)
    assert (plan.reason is VersionReason.MAY_BE_ANOTHER) is (action is KEEP)
    # where both have a Deployment, each is its own
    plan = decided(situation(knows(known), [live("v1", 5), live(known.build_id, 1, name="own")]), "v1")
    assert plan.action is SCALE_DOWN


def told_to_be(build_id: str, replicas: int) -> dict[str, Any]:
    """The Deployment of v1, whose pods were told by hand to be another version."""
    reused = live("v1", replicas)
    for container in reused["spec"]["template"]["spec"]["containers"]:
        for variable in container["env"]:
            if variable["name"] == "TEMPORAL_WORKER_BUILD_ID":
                variable["value"] = build_id
    return reused


@pytest.mark.parametrize(("replicas", "runs"), [(0, False), (1, True)])
def test_deployment_without_pods_runs_no_other_version(replicas: int, *, runs: bool) -> None:
    worker = planned(situation(drained_v1(9 * DAY), [told_to_be("hotfix", replicas)])).versions
    plan = next(item for item in worker.versions if item.build_id == "v1")
    assert (plan.reason is VersionReason.RUNS_ANOTHER_BUILD) is runs


@pytest.mark.parametrize(
    "says", [drained_v1(9 * DAY), INACTIVE, UNREGISTERED], ids=["drained", "never active", "not registered"]
)
@pytest.mark.parametrize("is_in_ledger", [False, True])
def test_pods_that_were_told_by_hand_to_be_another_version_stay(
    says: WorkerDeployment, *, is_in_ledger: bool
) -> None:
    reused = told_to_be("hotfix", 5)
    ledger = {"v1": live("v1", 5)} if is_in_ledger else None
    worker = planned(situation(says, [reused], ledger)).versions
    plan = next(item for item in worker.versions if item.build_id == "v1")
    assert (plan.action, plan.replicas, plan.protected) == (KEEP, 5, True)
    assert plan.reason is VersionReason.RUNS_ANOTHER_BUILD
    assert plan.recorded
    assert plan.recorded.manifest["spec"]["template"] == reused["spec"]["template"]
    assert any("run as hotfix. Deploy that version" in text for text in worker.warnings)
