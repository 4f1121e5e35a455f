"""The run of a gate, and the reason of its failure."""

import asyncio
from typing import Any

import pytest
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse

from tests.planning.situations import SPEC
from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.temporal import GateRun, GateStatus
from twgen.reading.temporal.reader import TemporalReader

FAILED = 3
"""The number of this status in the API."""


class Temporal(TemporalClients):
    """Describes a failed workflow, but does not return its history."""

    def __init__(self, why: Exception) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})
        self.why = why

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - nothing takes time
        if call.method == "get_workflow_execution_history_reverse":
            raise self.why
        info = WorkflowExecutionInfo(status=FAILED)
        return call.value(DescribeWorkflowExecutionResponse(workflow_execution_info=info))


@pytest.mark.parametrize("why", [StateUnavailable("no right to read it"), OutOfTime("no answer in time")])
def test_gate_whose_history_cannot_be_read_has_failed_without_a_reason(why: Exception) -> None:
    reader = TemporalReader(Temporal(why), Deadline(30))
    run = asyncio.run(reader.gate_run(SPEC, "main", "gate"))
    assert run == GateRun("main", "gate", GateStatus.FAILED)
