"""Of which version workflows are ended, by whom, and what a server is asked for."""

from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import drained, live, routing, situation, target_in, temporal, version
from tests.planning.times import DAY, HOUR, ago
from tests.strategies import NOW
from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.model.draining import Batch, BatchAction, DrainingAction
from twgen.model.temporal import VersionStatus
from twgen.planning.draining.batch_operations import batch_of, in_words
from twgen.planning.routing.target import Target

S = VersionStatus
CANCEL = DrainingAction(BatchAction.CANCEL)


def target(*, manager: str = "me", current: str | None = "v2", now: Any = NOW) -> Target:
    versions = (
        version("v0", S.DRAINING, created_at=ago(9 * DAY)),
        drained(DAY, "v1"),
        version("v2", S.CURRENT if current else S.INACTIVE),
        version("v3", S.INACTIVE),
        version("v4", S.RAMPING),
        version("v5", S.CREATED),
    )
    says = temporal(*versions, traffic=routing(current, ("v4", 5)), manager_identity=manager)
    return target_in(situation(says, [live("v3")]), now=now)


def asked(what: DrainingAction = CANCEL, build_id: str = "v0", **facts: Any) -> Batch:
    return batch_of(target(**facts), build_id, what)


@pytest.mark.parametrize("build_id", ["v0", "v1"])
def test_version_that_drains_or_is_drained_may_be_emptied(build_id: str) -> None:
    assert asked(build_id=build_id).query == (
        f"TemporalWorkerDeploymentVersion = 'shop/payments:{build_id}'"
        " AND TemporalWorkflowVersioningBehavior = 'Pinned'"
        " AND StartTime <= '2026-11-21T12:00:00Z'"
    )


@pytest.mark.parametrize(
    ("build_id", "because"),
    [
        ("v2", "it is Current, but only the workflows of draining versions can be ended"),
        ("v3", "it is the target, but only the workflows of draining versions can be ended"),
        ("v4", "it is Ramping, but only the workflows of draining versions can be ended"),
        ("v5", "it is Created, but only the workflows of draining versions can be ended"),
        ("v9", "Temporal does not know it"),
    ],
)
def test_no_other_version_is_emptied(build_id: str, because: str) -> None:
    with pytest.raises(NegativeAnswer, match=f"^shop/payments, version {build_id}: {because}$"):
        asked(build_id=build_id)


@pytest.mark.parametrize("key", ["twgen.io/retired", "twgen.io/aborted"])
def test_target_is_emptied_once_its_worker_is_retired(key: str) -> None:
    left = version("v3", S.DRAINING, metadata={key: {"by": "twgen/ana"}})
    says = temporal(left, traffic=routing(None), manager_identity="me")
    retired = target_in(situation(says, [live("v3")]))
    if key == "twgen.io/retired":
        assert batch_of(retired, "v3", CANCEL).query.startswith("TemporalWorkerDeploymentVersion = 'shop/pay")
    else:
        with pytest.raises(NegativeAnswer, match="it is the target"):
            batch_of(retired, "v3", CANCEL)


def test_worker_that_somebody_else_manages_is_left_alone() -> None:
    with pytest.raises(OwnedBySomebodyElse, match="its manager is somebody, and you act as me"):
        asked(manager="somebody")


def test_type_and_age_are_part_of_the_query_whatever_is_in_them() -> None:
    batch = asked(DrainingAction(BatchAction.SIGNAL, ("it's \\ here", "Order"), HOUR, signal_name="stop"))
    assert batch.query.endswith(
        r" AND WorkflowType IN ('it\'s \\ here', 'Order') AND StartTime <= '2026-11-21T11:00:00Z'"
    )
    assert in_words(batch.what, "all") == "send signal stop to all"


def test_same_demand_is_the_same_batch_operation_at_any_time() -> None:
    older = DrainingAction(BatchAction.CANCEL, older_than=HOUR)
    first, later = asked(older), asked(older, now=NOW + timedelta(minutes=5))
    assert first.job_id == later.job_id
    assert first.query != later.query
    others = [
        asked(),
        asked(build_id="v1"),
        asked(DrainingAction(BatchAction.TERMINATE)),
        asked(DrainingAction(BatchAction.SIGNAL, signal_name="a")),
        asked(DrainingAction(BatchAction.SIGNAL, signal_name="a", signal_input=b"1")),
        asked(DrainingAction(BatchAction.CANCEL, ("Order",))),
    ]
    assert len({batch.job_id for batch in [first, *others]}) == 1 + len(others)


def test_workflows_move_to_the_current_version_or_to_one_that_is_named() -> None:
    assert asked(DrainingAction(BatchAction.MOVE, without_replay=True)).what.to_build_id == "v2"
    moved = asked(DrainingAction(BatchAction.MOVE, without_replay=True, to_build_id="v3")).what
    assert in_words(moved, "all") == "move all to v3"


@pytest.mark.parametrize(
    ("to", "current", "because"),
    [
        ("", None, "there is no current version: choose the destination with --to"),
        ("v0", "v2", "the workflows are already on v0"),
        ("v5", "v2", "no worker of v5 has polled"),
        ("v9", "v2", "no worker of v9 has polled"),
    ],
)
def test_workflows_do_not_move_where_nobody_goes_on_with_them(
    to: str, current: str | None, because: str
) -> None:
    with pytest.raises(NegativeAnswer, match=because):
        asked(DrainingAction(BatchAction.MOVE, without_replay=True, to_build_id=to), current=current)
