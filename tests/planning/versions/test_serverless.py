"""Versions without pods by design: Temporal starts their workers."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import (
    SPEC,
    decided,
    drained,
    live,
    planned,
    routing,
    serving,
    situation,
    temporal,
    version,
)
from tests.planning.times import DAY
from tests.strategies import NOW
from twgen.model.plan import VersionAction
from twgen.model.reasons import VersionReason
from twgen.model.temporal import Version, VersionStatus
from twgen.model.world import World
from twgen.planning.forgetting import old_records
from twgen.planning.plan import worker_world


def serverless(status: VersionStatus) -> Version:
    found = drained(8 * DAY, "v1") if status is VersionStatus.DRAINED else version("v1", status)
    return replace(found, serverless=True)


def world_of(status: VersionStatus, *, has_pods: bool = False, ledger: Any = None) -> World:
    current = "v1" if status is VersionStatus.CURRENT else "v3"
    target = version("v3") if current == "v1" else version("v3", VersionStatus.CURRENT)
    deployments = [live("v3", 2), *([live("v1", 2)] if has_pods else [])]
    return situation(temporal(target, serverless(status), traffic=routing(current)), deployments, ledger)


@pytest.mark.parametrize("status", [VersionStatus.CURRENT, VersionStatus.DRAINING, VersionStatus.DRAINED])
def test_version_whose_workers_temporal_starts_is_left_alone(status: VersionStatus) -> None:
    world = world_of(status)
    worker, plan = planned(world), decided(world, "v1")
    assert (plan.reason, plan.action, plan.deployment) == (VersionReason.SERVERLESS, VersionAction.NONE, "")
    assert plan.because.endswith("and Temporal starts its workers: it needs no pods")
    assert (worker.unserved, worker.versions.warnings) == ("", ())
    assert old_records(SPEC, worker_world(SPEC, world), NOW, 0) == ()


def test_version_with_pods_keeps_them_whatever_else_serves_it() -> None:
    plan = decided(world_of(VersionStatus.DRAINING, has_pods=True), "v1")
    assert (plan.reason, plan.action, plan.replicas) == (VersionReason.MAY_BE_NEEDED, VersionAction.KEEP, 2)


def test_version_that_had_pods_gets_them_back() -> None:
    plan = decided(world_of(VersionStatus.DRAINING, ledger={"v1": live("v1", 2)}), "v1")
    assert (plan.reason, plan.action) == (VersionReason.MAY_BE_NEEDED, VersionAction.CREATE)


def test_traffic_is_unserved_only_where_a_version_has_pods_of_its_own_to_wait_for() -> None:
    assert planned(world_of(VersionStatus.CURRENT)).unserved == ""
    says = temporal(version("v3"), serverless(VersionStatus.CURRENT), traffic=routing("v1"))
    unserved = planned(situation(says, [live("v3"), live("v1", 0)])).unserved
    assert unserved == "new workflows go to v1, but none of its pods is available"
    says = temporal(version("v3"), version("v1", VersionStatus.CURRENT), traffic=routing("v1"))
    assert planned(serving(says, "v3")).unserved == "new workflows go to v1, but it has no Deployment"
