"""A share that goes back waits for nothing that its target lacks."""

import asyncio
from datetime import datetime, timedelta

import pytest

from tests.executing.server import Server
from tests.executing.trouble import GATED, Client
from tests.planning.situations import NOW, RAMPS, live, routing, situation, temporal, version
from tests.planning.times import DAY, HOUR, ago
from twgen.errors import StateUnavailable
from twgen.executing.rollout import RolloutLoop
from twgen.model.plan import RoutingPlan
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus, WorkerDeployment
from twgen.model.world import World

S = VersionStatus


class Done(Exception):
    """Enough was seen."""


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

    class Lacking(Client):
        async def read(self) -> World:
            if found := next(looks, None):
                return found
            raise Done("three looks")

        async def read_routing(self) -> WorkerDeployment:
            return says

        async def gate_input(self) -> bytes:
            raise StateUnavailable("no gate input")

        async def route(self, change: RoutingPlan, conflict_token: str) -> None:  # noqa: ARG002 - as a writer's
            raise Done(f"{change.action} {change.percentage}")

        async def sleep(self, _: timedelta) -> None: ...

        def now(self) -> datetime:
            return NOW

    class Unwatched(RolloutLoop):
        is_unattended = True

        async def adjust(self, *_: object) -> bool:
            if lacks == "autoscaler":
                raise StateUnavailable("no autoscaler")
            return True

    with pytest.raises(Done, match="ClearRamp 0"):
        asyncio.run(Lacking(Server(), spec, "me").rollout(Unwatched).run(once=False))
