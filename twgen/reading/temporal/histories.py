"""Reading histories of a worker's workflows, in the form that the replayers of all SDKs accept."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from twgen.model.histories import Recorded
from twgen.model.spec import InTemporal
from twgen.planning.draining.actions import of_deployment, quoted_text, still_open
from twgen.reading.temporal.answers import decoded
from twgen.reading.temporal.reader import PAGE, TemporalReader

if TYPE_CHECKING:
    from temporalio.api.common.v1 import Payload
    from temporalio.api.workflow.v1 import WorkflowExecutionInfo

_VERSION = "TemporalWorkerDeploymentVersion"


class _Kind(NamedTuple):
    """A property by which workflows are grouped; each group is replayed for itself."""

    value: Callable[[Recorded], str]
    """A workflow's value of the property; empty: it has none."""
    query: Callable[[str], str]
    """The condition that selects only workflows with a value."""
    others: Callable[[Iterable[str]], str]
    """The condition that selects workflows with other values."""


class Histories:
    """Reads the histories of one worker's workflows; every method raises StateUnavailable or OutOfTime."""

    def __init__(self, worker: InTemporal, temporal: TemporalReader, page: int = PAGE) -> None:
        self._worker = worker
        self._temporal = temporal
        self._page_size = page

    async def recorded(self, number: int, *, upgrading: bool, task_queue: str = "") -> list[Recorded]:
        """The newest workflows of each type, at least `number`: open ones, of each version, and ended ones.

        With `upgrading`, only auto-upgrade workflows. Workflows that no version has run yet are found by
        their task queue: the first version continues them.
        """
        own = of_deployment(self._worker.worker_deployment)
        upgrades = f"{own} AND TemporalWorkflowVersioningBehavior = 'AutoUpgrade'"
        workflows = await self._of_each(still_open(upgrades), [_BY_TYPE], number)
        if task_queue:
            unversioned = f"TaskQueue = {quoted_text(task_queue)} AND TemporalWorkerDeployment IS NULL"
            workflows += await self._of_each(still_open(unversioned), [_BY_TYPE], number)
        if not upgrading:
            pinned = f"{own} AND TemporalWorkflowVersioningBehavior = 'Pinned'"
            workflows += await self._of_each(still_open(pinned), [self._by_version, _BY_TYPE], number)
        # a workflow that continued as a new run is replayed as the new run
        ended = " AND CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'"
        return workflows + await self._of_each((upgrades if upgrading else own) + ended, [_BY_TYPE], number)

    @property
    def _by_version(self) -> _Kind:
        def version_text(build_id: str) -> str:
            return quoted_text(f"{self._worker.worker_deployment}:{build_id}")

        return _Kind(
            lambda workflow: workflow.build_id,
            lambda build_id: f"{_VERSION} = {version_text(build_id)}",
            lambda build_ids: f"{_VERSION} NOT IN ({', '.join(map(version_text, build_ids))})",
        )

    async def history(self, recorded: Recorded, most_bytes: int) -> str | None:
        """The history of one run as JSON; empty: the server has deleted it; None: it is larger."""
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
            page = await self._temporal.ask(
                self._worker,
                request,
                lambda answer: (answer.history, answer.next_page_token) if answer else None,
                may_be_absent=True,
            )
            if not page:
                return ""
            part, token = page
            whole.events.extend(part.events)
            # JSON is longer than the binary form
            if whole.ByteSize() > most_bytes:
                return None
            if not token:
                text = MessageToJson(whole, indent=1)
                return text if len(text.encode()) <= most_bytes else None

    async def _of_each(self, query: str, kinds: Sequence[_Kind], number: int) -> list[Recorded]:
        """The newest workflows of each kind that the query finds, at least `number` if there are as many.

        A list begins with the newest workflows, so a type that was not started for long is not on its first
        pages: each kind that appears is queried by itself, and then all other kinds. A server may reject both
        queries for a name with quotes: then the listed workflows count, and the list is read further.
        """
        workflows: list[Recorded] = []
        if not kinds:
            workflows, token = await self._page(query, most=number)
            while token and len(workflows) < number:
                page, token = await self._page(query, token, most=number)
                workflows += page
            return workflows
        kind, *finer = kinds
        queried: set[str] = set()
        others, token = query, b""
        while True:
            page, token = await self._page(others, token)
            if not token and not queried:
                return page
            listed: defaultdict[str, list[Recorded]] = defaultdict(list)
            for workflow in page:
                listed[kind.value(workflow)].append(workflow)
            new = listed.keys() - queried
            for value in sorted(new):
                enough = listed[value] if not finer and len(listed[value]) >= number else []
                if token and value and not enough:
                    enough = await self._of_each(f"{query} AND {kind.query(value)}", finer, number)
                workflows += (enough or listed[value])[: number if not finer else None]
            queried |= new
            if not token:
                return workflows
            if values := sorted(new - {""}):
                others, token = f"{others} AND {kind.others(values)}", b""

    async def _page(self, query: str, token: bytes = b"", most: int = PAGE) -> tuple[list[Recorded], bytes]:
        page_size = min(self._page_size, most)
        return await self._temporal.workflows(
            self._worker, query, self._recorded, page_size=page_size, token=token
        )

    def _recorded(self, info: "WorkflowExecutionInfo") -> Recorded:
        attributes, version = info.search_attributes.indexed_fields, ""
        is_open = not info.HasField("close_time")
        if is_open and _text(attributes.get("TemporalWorkflowVersioningBehavior")) == "Pinned":
            version = _text(attributes.get(_VERSION)).removeprefix(f"{self._worker.worker_deployment}:")
        return Recorded(info.type.name, info.execution.workflow_id, info.execution.run_id, is_open, version)


_BY_TYPE = _Kind(
    lambda workflow: workflow.workflow_type,
    lambda name: f"WorkflowType = {quoted_text(name)}",
    lambda names: f"WorkflowType NOT IN ({', '.join(map(quoted_text, names))})",
)


def _text(payload: "Payload | None") -> str:
    return "" if payload is None else str(decoded(payload))
