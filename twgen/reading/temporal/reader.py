"""Asking Temporal about one worker; every answer is a value."""

from collections.abc import Collection, Mapping

from twgen.model.spec import WorkerSpec
from twgen.model.temporal import GateRun, TaskQueue, Version, WorkerDeployment
from twgen.reading.temporal.answers import (
    TASK_QUEUE_TYPES,
    Polled,
    described_version,
    gate_run,
    pollers,
    worker_deployment,
)
from twgen.reading.temporal.shared import Held, SharedReads


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

    async def gate_run(self, task_queue: str, workflow_id: str) -> GateRun | None:
        """The latest run of a gate workflow; None: it has none."""
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

        request = DescribeWorkflowExecutionRequest(
            namespace=self._spec.temporal_namespace, execution=WorkflowExecution(workflow_id=workflow_id)
        )
        return await self._shared.ask(
            self._spec,
            "describe_workflow_execution",
            request,
            lambda answer: gate_run(task_queue, workflow_id, answer),
            may_be_absent=True,
        )

    async def server_version(self) -> str:
        """The version of the worker's server."""
        return await self._shared.server_version(self._spec)

    async def worker_deployments(self) -> int:
        """How many Worker Deployments its Temporal namespace has, as far as they are counted."""
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
