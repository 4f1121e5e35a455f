"""Workflows of a version: started, and what their histories tell."""

from collections.abc import Mapping, Sequence

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest

from testing.processes import eventually
from testing.workers import DeployedWorker


def start(worker: DeployedWorker, workflows: Mapping[str, Sequence[str]]) -> None:
    """Workflows by type, each of which is on its version: it is that of the first workflow task."""
    for workflow_type, names in workflows.items():
        for name in names:
            worker.start(workflow_type, name)
    started = [name for names in workflows.values() for name in names]
    eventually(lambda: all(events_of(worker, name, "WORKFLOW_TASK_COMPLETED") for name in started))


def history_of(worker: DeployedWorker, workflow_id: str) -> Sequence[HistoryEvent]:
    """The first page of its events, which holds more than any of these has."""
    execution = WorkflowExecution(workflow_id=workflow_id)
    request = GetWorkflowExecutionHistoryRequest(namespace="default", execution=execution)
    answer = worker.server.ask("get_workflow_execution_history", request)
    events: Sequence[HistoryEvent] = answer.history.events
    return events


def events_of(worker: DeployedWorker, workflow_id: str, kind: str) -> int:
    """How many of a kind it has: `WORKFLOW_TASK_COMPLETED`."""
    wanted = EventType.Value(f"EVENT_TYPE_{kind}")
    return sum(event.event_type == wanted for event in history_of(worker, workflow_id))
