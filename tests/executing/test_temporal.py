"""What a change of traffic asks of Temporal."""

import asyncio
from typing import Any

import pytest

from tests.planning.situations import SPEC
from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.executing.temporal import TemporalWriter
from twgen.model.plan import Phase, RoutingAction, RoutingPlan
from twgen.model.reasons import RoutingReason


class Temporal(TemporalClients):
    """Takes what is written."""

    def __init__(self) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})
        self.requests: list[Any] = []

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - nothing takes time
        self.requests.append(call.request)


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("action", [RoutingAction.SET_CURRENT, RoutingAction.SET_RAMP])
def test_temporal_lets_missing_task_queues_pass_only_where_the_plan_says_so(
    action: RoutingAction, *, ignores: bool
) -> None:
    server = Temporal()
    change = RoutingPlan(
        action,
        "it is due",
        Phase.MOVING,
        RoutingReason.NEXT_STEP,
        build_id="v3",
        percentage=5,
        ignores_missing_queues=ignores,
    )
    asyncio.run(TemporalWriter(SPEC, "me", server, 10).route(change, ""))
    assert [request.ignore_missing_task_queues for request in server.requests] == [ignores]
