"""By how many workflows a version is held, and since when: what people ask of a version that drains."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsResponse, ListWorkflowExecutionsResponse

from tests.planning.situations import NOW, SPEC
from tests.planning.times import DAY, HOUR, ago
from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.reading.temporal.reader import TemporalReader


def started(*moments: datetime) -> list[WorkflowExecutionInfo]:
    return [
        WorkflowExecutionInfo(start_time=Timestamp(seconds=int(moment.timestamp()))) for moment in moments
    ]


class Temporal(TemporalClients):
    """Lists one page of workflows, and says whether there are more."""

    def __init__(self, *moments: datetime, more: bool = False) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})
        self.page = ListWorkflowExecutionsResponse(
            executions=started(*moments), next_page_token=b"1" if more else b""
        )
        self.asked: list[str] = []

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - nothing takes time
        self.asked.append(call.request.query)
        is_count = call.method == "count_workflow_executions"
        return call.value(CountWorkflowExecutionsResponse(count=4711) if is_count else self.page)


def held(server: Temporal, *build_ids: str) -> list[tuple[int | None, datetime | None]]:
    async def story() -> list[tuple[int | None, datetime | None]]:
        shared = TemporalReader(server, Deadline(30))
        return [await shared.pinned_count(SPEC, build_id) for build_id in build_ids]

    return asyncio.run(story())


def test_one_call_tells_how_many_there_are_and_the_oldest() -> None:
    server = Temporal(ago(HOUR), ago(41 * DAY), ago(DAY))
    assert held(server, "v1") == [(3, ago(41 * DAY))]
    [query] = server.asked
    assert query.startswith("TemporalWorkerDeploymentVersion = 'shop/payments:v1' AND ")
    assert query.endswith(" = 'Pinned' AND CloseTime IS NULL")
    assert held(Temporal(), "v1") == [(0, None)]


def test_more_than_a_page_are_counted() -> None:
    assert held(Temporal(NOW - timedelta(days=1), more=True), "v1") == [(4711, None)]


def test_only_few_versions_of_a_namespace_are_asked_for() -> None:
    server = Temporal(ago(HOUR))
    found = held(server, *(f"v{number}" for number in range(10)))
    assert found == [(1, ago(HOUR))] * 8 + [(None, None)] * 2
    assert len(server.asked) == 8
