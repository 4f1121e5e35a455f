"""Asking Temporal about one worker; every answer is a value."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from twgen.errors import StateUnavailable
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import GateRun, OtherWorker, TaskQueue, Version, WorkerDeployment
from twgen.reading.temporal.answers import (
    TASK_QUEUE_TYPES,
    Polled,
    described_version,
    fails_by_task,
    gate_run,
    last_failure,
    pollers,
    worker_deployment,
)
from twgen.reading.temporal.shared import Held, SharedReads

_EVENTS = 10
"""Of a history, the newest: a failure is the last of them, or a signal has come since."""


class TemporalReader:
    """What Temporal says of one worker; every method raises StateUnavailable or OutOfTime."""

    def __init__(self, spec: WorkerSpec, shared: SharedReads) -> None:
        self._spec = spec
        self._shared = shared

    async def deployment(self) -> WorkerDeployment | None:
        """The worker's routing and its list of versions; None: Temporal has never heard of it."""
        from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest

        request = DescribeWorkerDeploymentRequest(
            namespace=self._spec.temporal_namespace, deployment_name=self._spec.worker_deployment
        )
        method = "describe_worker_deployment"
        return await self._shared.ask(self._spec, method, request, worker_deployment, may_be_absent=True)

    async def version(self, build_id: str, listed: Version | None) -> Version | None:
        """One version by name, beside what the list says of it; None: neither knows it."""
        from temporalio.api.deployment.v1 import WorkerDeploymentVersion
        from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentVersionRequest

        request = DescribeWorkerDeploymentVersionRequest(
            namespace=self._spec.temporal_namespace,
            deployment_version=WorkerDeploymentVersion(
                deployment_name=self._spec.worker_deployment, build_id=build_id
            ),
        )
        return await self._shared.ask(
            self._spec,
            "describe_worker_deployment_version",
            request,
            lambda answer: described_version(answer, listed),
            may_be_absent=True,
        )

    async def pollers(self, queue: TaskQueue) -> Polled:
        """Who polled a task queue lately."""
        from temporalio.api.enums.v1 import TaskQueueType as TypeNumber
        from temporalio.api.taskqueue.v1 import TaskQueue as Named
        from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

        number = next(number for number, kind in TASK_QUEUE_TYPES.items() if kind is queue.type)
        request = DescribeTaskQueueRequest(
            namespace=self._spec.temporal_namespace,
            task_queue=Named(name=queue.name),
            task_queue_type=TypeNumber.ValueType(number),
        )
        return await self._shared.ask(self._spec, "describe_task_queue", request, pollers)

    async def has_tasks(self, build_id: str, queue: TaskQueue) -> bool:
        """Tasks of a version wait in a task queue, or have come lately: Temporal's own question."""
        told = await self._shared.tasks(self._spec, queue.name, build_id)
        return any(stats.approximate_backlog_count or stats.tasks_add_rate for stats in told[queue.type])

    async def gate_run(self, task_queue: str, workflow_id: str) -> GateRun | None:
        """The latest run of a gate workflow, with why it fails; None: it has none."""
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

        request = DescribeWorkflowExecutionRequest(
            namespace=self._spec.temporal_namespace, execution=WorkflowExecution(workflow_id=workflow_id)
        )
        run, fails = await self._shared.ask(
            self._spec,
            "describe_workflow_execution",
            request,
            lambda answer: (gate_run(task_queue, workflow_id, answer), fails_by_task(answer)),
            may_be_absent=True,
        )
        if run is None or not (fails or run.status.has_failed):
            return run
        failure = await self._failure(workflow_id)
        return replace(run, failure=failure or ("no failure is recorded" if fails else ""))

    async def _failure(self, workflow_id: str) -> str:
        """What the newest events of a workflow's latest run say of its failure; empty: nothing."""
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest

        request = GetWorkflowExecutionHistoryReverseRequest(
            namespace=self._spec.temporal_namespace,
            execution=WorkflowExecution(workflow_id=workflow_id),
            maximum_page_size=_EVENTS,
        )
        method = "get_workflow_execution_history_reverse"
        try:
            return await self._shared.ask(self._spec, method, request, last_failure, may_be_absent=True)
        except StateUnavailable:
            # it explains a decision, and decides nothing
            return ""

    async def server_version(self) -> str:
        """The version of the worker's server."""
        return await self._shared.server_version(self._spec)

    async def worker_deployments(self) -> Sequence[OtherWorker]:
        """The Worker Deployments of its Temporal namespace, as far as they are counted."""
        return await self._shared.worker_deployments(self._spec)

    async def open_workflows(self, build_ids: Collection[str]) -> Mapping[str, int]:
        """How many open workflows are pinned to each of the versions."""
        return await self._shared.open_workflows(self._spec, build_ids)

    async def held(self, build_id: str) -> Held:
        """By how many open workflows a version is held, and since when; unknown where many versions are."""
        return await self._shared.held(self._spec, build_id)

    async def auto_upgrade_workflows(self, build_id: str) -> int:
        """How many open auto-upgrade workflows run on a version."""
        version = (self._spec.worker_deployment, build_id)
        return await self._shared.count(self._spec, [version], "AutoUpgrade")
