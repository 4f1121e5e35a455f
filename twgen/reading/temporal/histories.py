"""Reading histories of a worker's workflows, as the replayers of all SDKs take them."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from twgen.model.histories import Recorded
from twgen.model.spec import InTemporal
from twgen.planning.visibility import of_deployment, quoted_text, still_open
from twgen.reading.temporal.answers import decoded
from twgen.reading.temporal.shared import SharedReads

if TYPE_CHECKING:
    from temporalio.api.workflow.v1 import WorkflowExecutionInfo

PAGE = 1000
"""Workflows of one call; a server gives no more."""
_VERSION = "TemporalWorkerDeploymentVersion"


class _Kind(NamedTuple):
    """What tells workflows apart that are to be replayed each for themselves."""

    attribute: str
    """As a query calls it."""
    of: Callable[["WorkflowExecutionInfo"], str]
    """Its value; empty: it has none."""


def _version_of(info: "WorkflowExecutionInfo") -> str:
    payload = info.search_attributes.indexed_fields.get(_VERSION)
    return str(decoded(payload)) if payload is not None else ""


_BY_TYPE = _Kind("WorkflowType", lambda info: info.type.name)
_BY_VERSION = _Kind(_VERSION, _version_of)


class Histories:
    """Reads the histories of one worker's workflows; every method raises StateUnavailable or OutOfTime."""

    def __init__(self, worker: InTemporal, shared: SharedReads, page: int = PAGE) -> None:
        self._worker = worker
        self._shared = shared
        self._page_size = page

    async def recorded(self, number: int, *, upgrading: bool) -> list[Recorded]:
        """The newest of each workflow type, so many at least: open ones, of each version, and ended ones.

        With `upgrading` of those alone that go on with the next version by themselves, and stay on none.
        """
        ours = of_deployment(self._worker.worker_deployment)
        upgrades = f"{ours} AND TemporalWorkflowVersioningBehavior = 'AutoUpgrade'"
        pinned = f"{ours} AND TemporalWorkflowVersioningBehavior = 'Pinned'"
        found = [
            Recorded(info.type.name, info.execution.workflow_id, info.execution.run_id, is_open=True)
            for info in await self._of_each(still_open(upgrades), [_BY_TYPE], number)
        ]
        if not upgrading:
            found += [
                Recorded(
                    info.type.name,
                    info.execution.workflow_id,
                    info.execution.run_id,
                    is_open=True,
                    build_id=_version_of(info).removeprefix(f"{self._worker.worker_deployment}:"),
                )
                for info in await self._of_each(still_open(pinned), [_BY_VERSION, _BY_TYPE], number)
            ]
        # what goes on as another run is replayed as that one
        ended = " AND CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'"
        return found + [
            Recorded(info.type.name, info.execution.workflow_id, info.execution.run_id, is_open=False)
            for info in await self._of_each((upgrades if upgrading else ours) + ended, [_BY_TYPE], number)
        ]

    async def history(self, recorded: Recorded, most_bytes: int) -> str | None:
        """The history of one run as JSON; empty: nobody keeps it any more; None: it is larger."""
        from google.protobuf.json_format import MessageToJson
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.history.v1 import History
        from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest

        whole, token = History(), b""
        while True:
            request = GetWorkflowExecutionHistoryRequest(
                namespace=self._worker.temporal_namespace,
                execution=WorkflowExecution(workflow_id=recorded.workflow_id, run_id=recorded.run_id),
                next_page_token=token,
            )
            page = await self._shared.ask(
                self._worker,
                "get_workflow_execution_history",
                request,
                lambda answer: (answer.history, answer.next_page_token) if answer else None,
                may_be_absent=True,
            )
            if not page:
                return ""
            part, token = page
            whole.events.extend(part.events)
            # as JSON it is longer than what is sent
            if whole.ByteSize() > most_bytes:
                return None
            if not token:
                text = MessageToJson(whole, indent=1)
                return text if len(text.encode()) <= most_bytes else None

    async def _of_each(
        self, query: str, kinds: Sequence[_Kind], number: int
    ) -> list["WorkflowExecutionInfo"]:
        """The newest workflows of each kind that the query finds, so many at least where there are.

        A list begins with the newest of all, and what nobody has started for long is not on its first pages:
        each kind that is found is asked for by itself, and then those that are none of these.
        """
        if not kinds:
            return await self._newest(query, number)
        kind, *finer = kinds
        found: list[WorkflowExecutionInfo] = []
        seen: list[str] = []
        others = query
        while True:
            page, token = await self._page(others)
            if not token:
                return found + page
            listed: defaultdict[str, list[WorkflowExecutionInfo]] = defaultdict(list)
            for info in page:
                listed[kind.of(info)].append(info)
            new = [value for value in listed if value not in seen]
            for value in new:
                infos = listed[value]
                is_enough = not finer and len(infos) >= number
                one_kind = f"{query} AND {kind.attribute} = {quoted_text(value)}"
                found += infos if is_enough or not value else await self._of_each(one_kind, finer, number)
            if not new:
                return found
            seen += new
            others = f"{query} AND {kind.attribute} NOT IN ({', '.join(map(quoted_text, seen))})"

    async def _newest(self, query: str, number: int) -> list["WorkflowExecutionInfo"]:
        found, token = await self._page(query)
        while token and len(found) < number:
            page, token = await self._page(query, token)
            found += page
        return found

    async def _page(self, query: str, token: bytes = b"") -> tuple[list["WorkflowExecutionInfo"], bytes]:
        from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest

        request = ListWorkflowExecutionsRequest(
            namespace=self._worker.temporal_namespace,
            query=query,
            page_size=self._page_size,
            next_page_token=token,
        )
        return await self._shared.ask(
            self._worker,
            "list_workflow_executions",
            request,
            lambda answer: (list(answer.executions), answer.next_page_token),
        )
