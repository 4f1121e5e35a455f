"""What a change of traffic asks of Temporal."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC
from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients, subject_of
from twgen.executing.temporal import TemporalWriter
from twgen.model.plan import Phase, RoutingAction, RoutingPlan
from twgen.model.problem import Document
from twgen.model.reasons import RoutingReason


class Temporal(TemporalClients):
    """Takes what is written."""

    def __init__(self) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})
        self.requests: list[Any] = []
        self.workers: list[str] = []

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - nothing takes time
        self.workers.append(subject_of(call.spec))
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


@pytest.mark.parametrize(
    ("file", "named"), [("pay.yaml", "shop/payments of pay.yaml"), ("", "shop/payments")]
)
def test_write_is_about_a_worker_and_the_file_of_its_spec_if_there_is_one(file: str, named: str) -> None:
    server, spec = Temporal(), replace(SPEC, document=Document(file, 0, None))
    asyncio.run(TemporalWriter(spec, "me", server, 10).mark("v3", {}))
    assert server.workers == [named]
