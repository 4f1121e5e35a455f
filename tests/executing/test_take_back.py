"""A share that goes back waits for nothing that its target lacks."""

import asyncio
from typing import Any, cast

import pytest

from tests.executing.trouble import GATED
from tests.planning.situations import NOW, RAMPS, live, routing, situation, temporal, version
from tests.planning.times import DAY, HOUR, ago
from twgen.errors import StateUnavailable
from twgen.executing.rollout import WorkerRollout, roll_out
from twgen.model.operator import Caller
from twgen.model.plan import RoutingPlan
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus, WorkerDeployment
from twgen.model.world import World

S = VersionStatus


class Done(Exception):
    """Enough was seen."""


class Writer:
    """Takes one change of traffic, and nothing else."""

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:  # noqa: ARG002 - as a Writer's
        raise Done(f"{change.action} {change.percentage}")


@pytest.mark.parametrize(("spec", "lacks"), [(GATED, "gate input"), (RAMPS, "autoscaler")])
def test_replaced_ramp_ends_though_its_target_gets_no_gate_and_no_autoscaler(
    spec: WorkerSpec, lacks: str
) -> None:
    says = temporal(
        version("v1", S.CURRENT, created_at=ago(9 * DAY)),
        version("v2", S.RAMPING, first_activated_at=ago(HOUR), created_at=ago(2 * HOUR)),
        version("v3"),
        traffic=routing("v1", ("v2", 25), age=HOUR),
    )
    looks = iter([situation(says, [live(build_id) for build_id in ("v1", "v2", "v3")])] * 3)

    async def read() -> World:
        if found := next(looks, None):
            return found
        raise Done("three looks")

    async def refuse(*_: Any) -> Any:
        raise StateUnavailable(f"no {lacks}")

    async def nothing(*_: Any) -> Any:
        return ""

    async def nothing_new(says: WorkerDeployment) -> WorkerDeployment:
        return says

    rollout = WorkerRollout(
        spec,
        Caller("me", forced=True),
        lambda: NOW,
        nothing,
        read,
        lambda: nothing_new(says),
        lambda _: cast("Any", Writer()),
        refuse,
        nothing,
        lambda _: None,
        adjust=refuse if lacks == "autoscaler" else None,
        is_unattended=True,
    )
    with pytest.raises(Done, match="ClearRamp 0"):
        asyncio.run(roll_out(rollout, once=False))
