"""At `maxVersions` a new version waits; everything that exists stays."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC, live, planned, routing, serving, situation, temporal, version
from tests.planning.times import DAY, ago
from tests.strategies import with_policy
from twgen.model.plan import Phase, VersionAction
from twgen.model.temporal import Drainage, Version, VersionStatus

CAPPED = with_policy(SPEC, max_versions=2)
S = VersionStatus
DRAINED = Drainage(S.DRAINED, ago(2 * DAY))
V1, V2 = version("v1", S.DRAINING), version("v2", S.CURRENT)


LEDGER = {"v1": live("v1"), "v2": live("v2")}


@pytest.mark.parametrize(
    "polled", [(), (version("v3"),)], ids=["that never polled waits", "that polled does not"]
)
def test_new_version_where_nobody_sees_its_pods(polled: tuple[Version, ...]) -> None:
    """Left out, the Deployment that it has would be pruned."""
    worker = planned(situation(temporal(V1, V2, *polled, traffic=routing("v2")), None, LEDGER), CAPPED)
    *others, target = (item.action for item in worker.versions.versions)
    assert others == [VersionAction.CREATE, VersionAction.CREATE]
    assert target is (VersionAction.CREATE if polled else VersionAction.NONE)
    assert bool(worker.versions.not_created) is not bool(polled)


def test_new_version_waits_and_the_others_are_rendered() -> None:
    worker = planned(serving(temporal(V1, V2, traffic=routing("v2")), "v1", "v2"), CAPPED)
    because = "2 versions still exist and maxVersions is 2: v3 waits until one is removed"
    actions = {item.build_id: item.action for item in worker.versions.versions}
    assert actions == {"v1": VersionAction.KEEP, "v2": VersionAction.KEEP, "v3": VersionAction.NONE}
    assert (worker.routing.phase, worker.routing.because) == (Phase.BLOCKED, because)
    assert worker.versions.warnings == ("v3 is not rendered: maxVersions (2) is reached",)


@pytest.mark.parametrize(
    ("versions", "deployments"),
    [
        pytest.param([V2], [live("v2")], id="fewer"),
        pytest.param(
            [version("v1", S.DRAINED, drainage=DRAINED), V2],
            [live("v1", 0, protected=False), live("v2")],
            id="one of them drained at zero",
        ),
        pytest.param([version("v1"), V2], [live("v2")], id="one of them inactive without a Deployment"),
    ],
)
def test_new_version_is_made_beside(versions: list[Version], deployments: list[dict[str, Any]]) -> None:
    worker = planned(situation(temporal(*versions, traffic=routing("v2")), deployments), CAPPED)
    (target,) = (item for item in worker.versions.versions if item.build_id == "v3")
    assert target.action is VersionAction.CREATE
    assert worker.versions.not_created == ""


def test_drained_version_with_pods_counts() -> None:
    drained = version("v1", S.DRAINED, drainage=DRAINED)
    worker = planned(serving(temporal(drained, V2, traffic=routing("v2")), "v1", "v2"), CAPPED)
    assert worker.versions.not_created


def test_target_that_exists_goes_on() -> None:
    says = temporal(V1, V2, version("v3"), traffic=routing("v2"))
    worker = planned(serving(says, "v1", "v2", "v3"), CAPPED)
    assert worker.routing.phase is Phase.MOVING


@pytest.mark.parametrize("cluster_read", [True, False])
@pytest.mark.parametrize(
    "target",
    [
        version("v3", S.CURRENT),
        version("v3", S.DRAINING),
        version("v3", S.UNSPECIFIED),
        version("v3", S.DRAINED, open_workflows=1),
    ],
    ids=lambda item: item.status,
)
def test_target_that_may_have_work_is_made_all_the_same(target: Version, *, cluster_read: bool) -> None:
    current = "v3" if target.status is S.CURRENT else "v2"
    says = temporal(V1, replace(V2, status=S.DRAINING), target, traffic=routing(current))
    worker = planned(situation(says, [*LEDGER.values()] if cluster_read else None, LEDGER), CAPPED)
    assert {item.action for item in worker.versions.versions} <= {VersionAction.CREATE, VersionAction.KEEP}
