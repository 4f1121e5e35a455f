"""Reading histories of a worker's workflows, as the replayers of all SDKs take them."""

from typing import TYPE_CHECKING

from twgen.model.histories import Recorded
from twgen.model.spec import WorkerSpec
from twgen.planning.visibility import of_deployment, still_open
from twgen.reading.temporal.shared import SharedReads

if TYPE_CHECKING:
    from temporalio.api.workflow.v1 import WorkflowExecutionInfo

PAGE = 1000
_MOST_PAGES = 5
"""Of open workflows, and of closed ones."""


class Histories:
    """Reads the histories of one worker's workflows; every method raises StateUnavailable or OutOfTime."""

    def __init__(self, spec: WorkerSpec, shared: SharedReads) -> None:
        self._spec = spec
        self._shared = shared

    async def recorded(self, *, upgrading: bool) -> list[Recorded]:
        """The newest open workflows of its versions, and the newest that ended.

        With `upgrading` of those alone that go on with the next version by themselves, and stay on none.
        """
        ours = of_deployment(self._spec.worker_deployment)
        if upgrading:
            ours = f"{ours} AND TemporalWorkflowVersioningBehavior = 'AutoUpgrade'"
        still = await self._list(still_open(ours), is_open=True)
        # what goes on as another run is replayed as that one
        ended = f"{ours} AND CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'"
        return still + await self._list(ended, is_open=False)

    async def history(self, recorded: Recorded, most_bytes: int) -> str | None:
        """The history of one run as JSON; None: it is larger, or nobody keeps it any more."""
        from google.protobuf.json_format import MessageToJson
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.history.v1 import History
        from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest

        whole, token = History(), b""
        while True:
            request = GetWorkflowExecutionHistoryRequest(
                namespace=self._spec.temporal_namespace,
                execution=WorkflowExecution(workflow_id=recorded.workflow_id, run_id=recorded.run_id),
                next_page_token=token,
            )
            page = await self._shared.ask(
                self._spec,
                "get_workflow_execution_history",
                request,
                lambda answer: (answer.history, answer.next_page_token) if answer else None,
                may_be_absent=True,
            )
            if not page:
                return None
            part, token = page
            whole.events.extend(part.events)
            # as JSON it is longer than what is sent
            if whole.ByteSize() > most_bytes:
                return None
            if not token:
                text = MessageToJson(whole, indent=1)
                return text if len(text.encode()) <= most_bytes else None

    async def _list(self, query: str, *, is_open: bool) -> list[Recorded]:
        from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest

        found: list[WorkflowExecutionInfo] = []
        token = b""
        for _ in range(_MOST_PAGES):
            request = ListWorkflowExecutionsRequest(
                namespace=self._spec.temporal_namespace, query=query, page_size=PAGE, next_page_token=token
            )
            page, token = await self._shared.ask(
                self._spec,
                "list_workflow_executions",
                request,
                lambda answer: (list(answer.executions), answer.next_page_token),
            )
            found += page
            if not token:
                break
        return [
            Recorded(info.type.name, info.execution.workflow_id, info.execution.run_id, is_open)
            for info in found
        ]
