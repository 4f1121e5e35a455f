"""Whether a version has tasks in a task queue, by what the server tells of its tasks and of nobody's."""

import asyncio
from typing import Any

import pytest
from temporalio.api.taskqueue.v1 import TaskQueueStats, TaskQueueTypeInfo
from temporalio.api.workflowservice.v1 import DescribeTaskQueueResponse

from tests.planning.situations import SPEC
from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.model.temporal import TaskQueue, TaskQueueType
from twgen.reading.temporal.reader import TemporalReader

WORKFLOWS, ACTIVITIES = 1, 2
V1 = "shop/payments:v1"
WAITING, COMING = TaskQueueStats(approximate_backlog_count=1), TaskQueueStats(tasks_add_rate=0.01)


class Temporal(TemporalClients):
    """Tells of one queue: statistics by version and number of a type."""

    def __init__(self, told: dict[tuple[str, int], TaskQueueStats]) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})
        self.told = told
        self.request: Any = None

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - nothing takes time
        self.request = call.request
        answer = DescribeTaskQueueResponse()
        for (version, number), stats in self.told.items():
            infos = answer.versions_info.get_or_create(version).types_info
            infos[number].CopyFrom(TaskQueueTypeInfo(stats=stats))
        return call.value(answer)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, False),
        ({(V1, ACTIVITIES): TaskQueueStats(tasks_dispatch_rate=3)}, False),
        ({(V1, ACTIVITIES): WAITING}, True),
        ({(V1, ACTIVITIES): COMING}, True),
        ({("", ACTIVITIES): WAITING}, True),
        ({(V1, WORKFLOWS): WAITING}, False),
        ({("shop/payments:v2", ACTIVITIES): WAITING}, False),
    ],
)
def test_version_has_tasks_where_some_wait_or_come(
    told: dict[tuple[str, int], TaskQueueStats], *, expected: bool
) -> None:
    server = Temporal(told)
    reader = TemporalReader(server, Deadline(30))
    queue = TaskQueue("reports", TaskQueueType.ACTIVITY)
    assert asyncio.run(reader.has_tasks(SPEC, "v1", queue)) is expected
    assert (server.request.task_queue.name, list(server.request.versions.build_ids)) == ("reports", [V1])
