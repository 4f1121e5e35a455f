"""The calls that read from Temporal."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from twgen.clients.temporal import Call
from twgen.model.spec import WorkerSpec
from twgen.model.world import GateRun, TaskQueue, Version, WorkerDeployment
from twgen.reading.temporal.answers import (
    TASK_QUEUE_TYPES,
    described_version,
    gate_run,
    pollers,
    worker_deployment,
)

Answer = TypeVar("Answer")


def describe_worker(spec: WorkerSpec) -> Call[WorkerDeployment | None]:
    """The worker's routing and versions; None: Temporal has never heard of it."""
    from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest

    request = DescribeWorkerDeploymentRequest(
        namespace=spec.temporal_namespace, deployment_name=spec.worker_deployment
    )
    return _call(
        spec, "describe_worker_deployment", request, _if_there(worker_deployment), may_be_absent=True
    )


def describe_version(spec: WorkerSpec, build_id: str, listed: Version | None) -> Call[Version | None]:
    """One version by name, beside what the list of the worker says of it; None: nobody knows it."""
    from temporalio.api.deployment.v1 import WorkerDeploymentVersion
    from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentVersionRequest

    request = DescribeWorkerDeploymentVersionRequest(
        namespace=spec.temporal_namespace,
        deployment_version=WorkerDeploymentVersion(deployment_name=spec.worker_deployment, build_id=build_id),
    )
    return _call(
        spec,
        "describe_worker_deployment_version",
        request,
        lambda answer: described_version(answer, listed),
        may_be_absent=True,
    )


def describe_task_queue(spec: WorkerSpec, queue: TaskQueue) -> Call[frozenset[tuple[str, str]]]:
    """Who polled a task queue lately, by worker and build ID."""
    from temporalio.api.enums.v1 import TaskQueueType as TypeNumber
    from temporalio.api.taskqueue.v1 import TaskQueue as Named
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

    number = next(number for number, kind in TASK_QUEUE_TYPES.items() if kind is queue.type)
    request = DescribeTaskQueueRequest(
        namespace=spec.temporal_namespace,
        task_queue=Named(name=queue.name),
        task_queue_type=TypeNumber.ValueType(number),
    )
    return _call(spec, "describe_task_queue", request, pollers)


def describe_gate_run(spec: WorkerSpec, task_queue: str, workflow_id: str) -> Call[GateRun | None]:
    """The latest run of a gate workflow; None: it has none."""
    from temporalio.api.common.v1 import WorkflowExecution
    from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

    request = DescribeWorkflowExecutionRequest(
        namespace=spec.temporal_namespace, execution=WorkflowExecution(workflow_id=workflow_id)
    )
    return _call(
        spec,
        "describe_workflow_execution",
        request,
        _if_there(lambda answer: gate_run(task_queue, workflow_id, answer)),
        may_be_absent=True,
    )


def server_version(spec: WorkerSpec) -> Call[str]:
    """The version of the worker's server."""
    from temporalio.api.workflowservice.v1 import GetSystemInfoRequest

    return _call(spec, "get_system_info", GetSystemInfoRequest(), lambda answer: str(answer.server_version))


def count_open_workflows(
    spec: WorkerSpec, versions: Iterable[tuple[str, str]], behaviour: str = "Pinned"
) -> Call[int]:
    """How many workflows of a versioning behaviour have not closed on the versions (worker and build ID).

    A workflow pinned by an override carries the attributes from its start. Having no close time covers
    running and paused ones on servers with and without pausing; the server's own drainage check forgets those
    that are paused.
    """
    from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsRequest

    names = ", ".join(_quoted(f"{worker}:{build_id}") for worker, build_id in versions)
    query = (
        f"TemporalWorkerDeploymentVersion IN ({names}) "
        f"AND TemporalWorkflowVersioningBehavior = '{behaviour}' AND CloseTime IS NULL"
    )
    request = CountWorkflowExecutionsRequest(namespace=spec.temporal_namespace, query=query)
    return _call(spec, "count_workflow_executions", request, lambda answer: int(answer.count))


def _call(
    spec: WorkerSpec,
    method: str,
    request: Any,
    value: Callable[[Any], Answer],
    *,
    may_be_absent: bool = False,
) -> Call[Answer]:
    worker = f"{spec.worker_deployment} of {spec.source}" if spec.source else spec.worker_deployment
    return Call(
        spec.connection, spec.temporal_namespace, worker, method, request, value, may_be_absent=may_be_absent
    )


def _if_there(value: Callable[[Any], Answer]) -> Callable[[Any | None], Answer | None]:
    return lambda answer: None if answer is None else value(answer)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
