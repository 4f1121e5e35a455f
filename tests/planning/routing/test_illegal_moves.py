"""Over every world that one version can be in: nothing with possible work loses its pods or protection."""

import itertools
from datetime import timedelta

import pytest

from tests.planning.situations import decided, live, routing, situation, temporal
from tests.planning.times import DAY, HOUR, MINUTE, SECOND, ago
from twgen.model.plan import VersionAction
from twgen.model.temporal import Drainage, Version, VersionStatus
from twgen.model.world import World

S = VersionStatus
STATUSES = [status for status in S if status is not S.NOT_REGISTERED]
LIMITS = (10 * MINUTE, HOUR, 25 * HOUR)
AGES = [timedelta(), *LIMITS, *(limit + SECOND for limit in LIMITS), 9 * DAY]
DRAINAGES = [None, S.DRAINING, S.DRAINED, S.UNSPECIFIED]
COUNTS = [None, 0, 2]
TAKEN_AWAY = {VersionAction.SCALE_DOWN, VersionAction.DROP}


def worlds(
    status: VersionStatus, *, is_target: bool, live_replicas: int, age: timedelta
) -> list[tuple[str, Version, World]]:
    """Every world of a version of this status and age, by drainage, open workflows, past and protection."""
    build_id = "v3" if is_target else "v1"
    traffic = {S.CURRENT: routing(build_id), S.RAMPING: routing("v2", (build_id, 5))}.get(status)
    deployed = {
        protected: live(build_id, live_replicas, protected=protected, age=age) for protected in (False, True)
    }
    found = []
    for drainage, counted, active, protected in itertools.product(
        DRAINAGES, COUNTS, (False, True), (False, True)
    ):
        known = Version(
            build_id,
            status,
            created_at=ago(age),
            first_activated_at=ago(age) if active else None,
            drainage=Drainage(drainage, ago(age)) if drainage else None,
            open_workflows=counted,
        )
        world = situation(temporal(known, traffic=traffic), [deployed[protected]])
        found.append((build_id, known, world))
    return found


def is_idle(version: Version, age: timedelta) -> bool:
    """It has no work, by what the design promises: inactive and never active, or drained past its delay."""
    draining = version.drainage and version.drainage.status
    if version.open_workflows:
        return False
    if version.status is S.INACTIVE:
        return version.first_activated_at is None and draining is not S.DRAINING
    return version.status is S.DRAINED and draining is S.DRAINED and age > HOUR


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("is_target", [False, True], ids=["other", "target"])
@pytest.mark.parametrize("live_replicas", [0, 1, 5])
@pytest.mark.parametrize("age", AGES, ids=str)
def test_version_with_possible_work_is_neither_scaled_down_nor_dropped(
    status: VersionStatus, live_replicas: int, age: timedelta, *, is_target: bool
) -> None:
    for build_id, known, found in worlds(status, is_target=is_target, live_replicas=live_replicas, age=age):
        plan = decided(found, build_id)
        if is_target or not is_idle(known, age):
            assert plan.action not in TAKEN_AWAY
            assert plan.protected
            assert plan.replicas is not None
            is_resized = is_target or status in {S.CURRENT, S.RAMPING}
            assert plan.replicas >= (min(live_replicas, 3) if is_resized else live_replicas)
        elif plan.action is VersionAction.DROP:
            assert plan.live
            assert (plan.live.replicas, plan.live.protected) == (0, False)
            assert age > 25 * HOUR
