"""Reading how far the gate workflows of a target are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from twgen.clients.temporal import Call, TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.world import GateRun, GateStatus, WorkerDeployment, WorkerWorld
from twgen.planning.routing.gates import gate_attempt, gate_workflow_id
from twgen.planning.routing.target import Target
from twgen.reading.temporal_describe import moment, with_versions

_STATUSES = {
    2: GateStatus.COMPLETED,
    3: GateStatus.FAILED,
    4: GateStatus.CANCELED,
    5: GateStatus.TERMINATED,
    7: GateStatus.TIMED_OUT,
}


def with_gate_runs(
    known: Sequence[tuple[WorkerSpec, WorkerDeployment]], clients: TemporalClients, now: datetime
) -> list[tuple[WorkerSpec, WorkerDeployment]]:
    """The workers with the gate runs of their targets read, where the spec has a gate; needs task queues."""
    targets = [_target(spec, deployment, now) for spec, deployment in known]
    answers = iter(clients.ask(call for target in targets for call in _describe_all(target)))
    return [(target.spec, _with_runs(target, answers)) for target in targets]


def _target(spec: WorkerSpec, deployment: WorkerDeployment, now: datetime) -> Target:
    return Target(spec, WorkerWorld(spec.worker_deployment, spec.temporal_namespace, deployment), now)


def _gates(target: Target) -> list[tuple[str, str]]:
    if not target.spec.rollout.gate:
        return []
    worker, attempt = target.spec.worker_deployment, gate_attempt(target)
    return [
        (queue, gate_workflow_id(worker, target.build_id, queue, attempt))
        for queue in target.workflow_task_queues
    ]


def _describe_all(target: Target) -> Iterable[Call]:
    from temporalio.api.common.v1 import WorkflowExecution
    from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

    namespace = target.spec.temporal_namespace
    for _, workflow_id in _gates(target):
        request = DescribeWorkflowExecutionRequest(
            namespace=namespace, execution=WorkflowExecution(workflow_id=workflow_id)
        )
        method = "describe_workflow_execution"
        yield Call(target.spec.connection, namespace, method, request, may_be_absent=True)


def _with_runs(target: Target, answers: Iterator[Any]) -> WorkerDeployment:
    if not target.version or not target.spec.rollout.gate:
        return target.temporal
    found = [(queue, workflow_id, next(answers)) for queue, workflow_id in _gates(target)]
    runs = tuple(_gate_run(*run) for run in found if run[-1])
    return with_versions(target.temporal, {target.build_id: replace(target.version, gate_runs=runs)})


def _gate_run(task_queue: str, workflow_id: str, answer: Any) -> GateRun:
    info = answer.workflow_execution_info
    # whatever has no end status is still open, paused included
    status = _STATUSES.get(info.status, GateStatus.RUNNING)
    return GateRun(task_queue, workflow_id, status, moment(info, "start_time"))
