"""What a modelled Temporal answers, as the messages of its API; a function for each method."""

import json
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, WorkflowType
from temporalio.api.deployment.v1 import (
    RoutingConfig,
    VersionDrainageInfo,
    VersionMetadata,
    WorkerDeploymentInfo,
    WorkerDeploymentVersion,
    WorkerDeploymentVersionInfo,
)
from temporalio.api.deployment.v1 import WorkerDeploymentOptions as Options
from temporalio.api.taskqueue.v1 import PollerInfo
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import (
    CountWorkflowExecutionsResponse,
    DescribeTaskQueueResponse,
    DescribeWorkerDeploymentResponse,
    DescribeWorkerDeploymentVersionResponse,
    DescribeWorkflowExecutionResponse,
    GetSystemInfoResponse,
    ListWorkerDeploymentsResponse,
    SetWorkerDeploymentManagerResponse,
)

from twgen.model.temporal import Drainage, GateRun, GateStatus, UpdateState, Version, VersionStatus
from twgen.simulating.servers import TemporalModel
from twgen.versioning.names import MarkKey

_WORKER = "shop/payments"
_STATUSES = {
    VersionStatus.INACTIVE: 1,
    VersionStatus.CURRENT: 2,
    VersionStatus.RAMPING: 3,
    VersionStatus.DRAINING: 4,
    VersionStatus.DRAINED: 5,
}
_GATE_TAKES = timedelta(seconds=20)
_SUMMARY_TIMES = {
    "create_time": "created_at",
    "first_activation_time": "first_activated_at",
    "last_current_time": "last_current_at",
    "last_deactivation_time": "last_deactivated_at",
}


def told(request: Any) -> str:
    """What tells a request from others of its method."""
    version = getattr(request, "deployment_version", None)
    names = (
        getattr(request, "build_id", ""),
        version.build_id if version else "",
        f"{share:g} %" if (share := getattr(request, "percentage", None)) is not None else "",
        getattr(request, "manager_identity", ""),
        request.task_queue.name if hasattr(request, "task_queue") else "",
        getattr(request, "workflow_id", ""),
        request.execution.workflow_id if hasattr(request, "execution") else "",
    )
    return " ".join(filter(None, names))


def describe_worker_deployment(model: TemporalModel, _: Any, token: bytes) -> Any:
    found = model.described()
    if not found:
        return None
    current, ramping = found.routing.current, found.routing.ramping
    routing = RoutingConfig(
        current_deployment_version=_named(current.build_id) if current else None,
        current_version_changed_time=_at(current.since if current else None),
        ramping_deployment_version=_named(ramping.build_id) if ramping and ramping.build_id else None,
        ramping_version_percentage=ramping.percentage if ramping else 0,
        ramping_version_changed_time=_at(ramping.since if ramping else None),
        ramping_version_percentage_changed_time=_at(ramping.percentage_changed_at if ramping else None),
    )
    info = WorkerDeploymentInfo(
        name=_WORKER,
        routing_config=routing,
        routing_config_update_state=1 if found.routing.update_state is UpdateState.IN_PROGRESS else 2,
        manager_identity=found.manager_identity,
        version_summaries=[
            WorkerDeploymentInfo.WorkerDeploymentVersionSummary(
                deployment_version=_named(version.build_id),
                status=_STATUSES[version.status],
                drainage_info=_drainage(version.drainage),
                **{name: _at(getattr(version, field)) for name, field in _SUMMARY_TIMES.items()},
            )
            for version in found.versions
        ],
    )
    return DescribeWorkerDeploymentResponse(conflict_token=token, worker_deployment_info=info)


def list_worker_deployments(model: TemporalModel, _: Any, token: bytes) -> Any:
    found = describe_worker_deployment(model, None, token)
    if not found:
        return ListWorkerDeploymentsResponse()
    info = found.worker_deployment_info
    newest = max(info.version_summaries, key=lambda version: version.create_time.seconds, default=None)
    summary = ListWorkerDeploymentsResponse.WorkerDeploymentSummary(
        name=info.name, routing_config=info.routing_config, latest_version_summary=newest
    )
    return ListWorkerDeploymentsResponse(worker_deployments=[summary])


def describe_worker_deployment_version(model: TemporalModel, request: Any, _: bytes) -> Any:
    version: Version = model.versions[request.deployment_version.build_id]
    marks = {key: Payload(data=json.dumps(mark).encode()) for key, mark in (version.metadata or {}).items()}
    queue = DescribeWorkerDeploymentVersionResponse.VersionTaskQueue
    return DescribeWorkerDeploymentVersionResponse(
        worker_deployment_version_info=WorkerDeploymentVersionInfo(
            deployment_version=_named(version.build_id),
            status=_STATUSES[version.status],
            create_time=_at(version.created_at),
            drainage_info=_drainage(version.drainage),
            metadata=VersionMetadata(entries=marks),
        ),
        version_task_queues=[queue(name=polled.name, type=1) for polled in version.task_queues or ()],
    )


def describe_task_queue(model: TemporalModel, _: Any, __: bytes) -> Any:
    options = (
        Options(deployment_name=_WORKER, build_id=name, worker_versioning_mode=2) for name in model.versions
    )
    return DescribeTaskQueueResponse(pollers=[PollerInfo(deployment_options=each) for each in options])


def describe_workflow_execution(model: TemporalModel, request: Any, _: bytes) -> Any:
    for version in model.versions.values():
        for run in version.gate_runs or ():
            if run.workflow_id == request.execution.workflow_id:
                status = 2 if run.status is GateStatus.COMPLETED else 1
                kind = WorkflowType(name=run.workflow_type)
                info = WorkflowExecutionInfo(status=status, start_time=_at(run.started_at), type=kind)
                return DescribeWorkflowExecutionResponse(workflow_execution_info=info)
    return None


def count_workflow_executions(*_: Any) -> Any:
    return CountWorkflowExecutionsResponse(count=0)


def get_system_info(model: TemporalModel, *_: Any) -> Any:
    return GetSystemInfoResponse(server_version=model.server.version)


def set_worker_deployment_manager(model: TemporalModel, request: Any, token: bytes) -> Any:
    assert request.conflict_token == token
    model.manager = request.manager_identity
    return SetWorkerDeploymentManagerResponse(conflict_token=b"newest")


def set_worker_deployment_current_version(model: TemporalModel, request: Any, token: bytes) -> None:
    assert request.conflict_token == token
    model.set_current(request.build_id)


def set_worker_deployment_ramping_version(model: TemporalModel, request: Any, token: bytes) -> None:
    assert request.conflict_token == token
    model.set_ramp(request.build_id, request.percentage)


def update_worker_deployment_version_metadata(model: TemporalModel, request: Any, _: bytes) -> None:
    entries = request.upsert_entries
    assert list(entries) == [MarkKey.MOVED_BY]
    marks = {key: json.loads(entries[key].data) for key in entries}
    model.mark(request.deployment_version.build_id, marks)


def start_workflow_execution(model: TemporalModel, request: Any, _: bytes) -> None:
    kind = request.workflow_type.name
    names = request.task_queue.name, request.workflow_id
    run = GateRun(*names, GateStatus.RUNNING, model.now, workflow_type=kind)
    target = request.versioning_override.pinned.version.build_id
    model.start_gate(target, run, model.now + _GATE_TAKES, GateStatus.COMPLETED)


def _named(build_id: str) -> WorkerDeploymentVersion:
    return WorkerDeploymentVersion(deployment_name=_WORKER, build_id=build_id)


def _at(moment: datetime | None) -> Timestamp | None:
    if not moment:
        return None
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def _drainage(drainage: Drainage | None) -> VersionDrainageInfo | None:
    if not drainage:
        return None
    statuses = {VersionStatus.DRAINING: 1, VersionStatus.DRAINED: 2}
    return VersionDrainageInfo(
        status=statuses.get(drainage.status, 0),
        last_changed_time=_at(drainage.changed_at),
        last_checked_time=_at(drainage.checked_at),
    )
