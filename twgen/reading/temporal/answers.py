"""Converts Temporal's responses to values: Worker Deployments, versions, pollers and gate runs."""

import json
from base64 import b64encode
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from twgen.model.analysis import ClosedStatus, FailureCount
from twgen.model.temporal import (
    CurrentVersion,
    Drainage,
    GateRun,
    GateStatus,
    OtherWorker,
    RampingVersion,
    Routing,
    TaskQueue,
    TaskQueueType,
    UpdateState,
    Version,
    VersionStatus,
    WorkerDeployment,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from temporalio.api.common.v1 import Payload
    from temporalio.api.deployment.v1 import RoutingConfig, WorkerDeploymentInfo, WorkerDeploymentVersionInfo
    from temporalio.api.workflowservice import v1 as service

TASK_QUEUE_TYPES = {1: TaskQueueType.WORKFLOW, 2: TaskQueueType.ACTIVITY, 3: TaskQueueType.NEXUS}
"""The task queue types, by their number in the API."""
NUMBERS_OF_TYPES = {kind: number for number, kind in TASK_QUEUE_TYPES.items()}
"""The number of each task queue type in the API."""
_FAILING_ATTEMPT = 3
"""The first attempt at which a workflow task counts as failing. The second attempt follows immediately, and
later attempts follow after increasing delays."""
_LONGEST = 300
"""The maximum length of a workflow's failure message."""
UNVERSIONED = ("", "")
"""The key of unversioned pollers, which have no worker and no build ID."""
Polled = Mapping[tuple[str, str], datetime | None]
"""The time of the last poll for each worker and build ID, or None if the time is unknown. Unversioned pollers
have the key UNVERSIONED."""

_STATUSES = {
    1: VersionStatus.INACTIVE,
    2: VersionStatus.CURRENT,
    3: VersionStatus.RAMPING,
    4: VersionStatus.DRAINING,
    5: VersionStatus.DRAINED,
    6: VersionStatus.CREATED,
}
_DRAINAGE_STATUSES = {1: VersionStatus.DRAINING, 2: VersionStatus.DRAINED}
_UPDATE_STATES = {1: UpdateState.IN_PROGRESS, 2: UpdateState.COMPLETED}
_GATE_STATUSES = {
    2: GateStatus.COMPLETED,
    3: GateStatus.FAILED,
    4: GateStatus.CANCELED,
    5: GateStatus.TERMINATED,
    7: GateStatus.TIMED_OUT,
}
_BETWEEN_POLLS = 75
"""The maximum number of seconds between two polls. An idle worker polls every 60 seconds."""
_VERSIONED = 2
"""The value of WORKER_VERSIONING_MODE_VERSIONED."""


def worker_deployment(answer: "service.DescribeWorkerDeploymentResponse | None") -> WorkerDeployment | None:
    """Convert DescribeWorkerDeployment's response, which is None if the worker does not exist."""
    if answer is None:
        return None
    info = answer.worker_deployment_info
    return WorkerDeployment(
        routing=_routing(info),
        versions=tuple(_version(summary) for summary in info.version_summaries),
        conflict_token=b64encode(answer.conflict_token).decode("ascii"),
        manager_identity=info.manager_identity,
        last_modifier_identity=info.last_modifier_identity,
    )


def described_version(
    answer: "service.DescribeWorkerDeploymentVersionResponse | None", listed: Version | None
) -> Version | None:
    """Combine a version's entry in the list with DescribeWorkerDeploymentVersion's response.

    Only the list says when a version was active. If a version is draining in the list, the response's status
    is more accurate. Just after a change, the oldest supported server sometimes does not find a version, so
    its metadata is unknown. Returns None if neither the list nor the response contains the version.
    https://github.com/temporalio/temporal/blob/v1.32.0/service/worker/workerdeployment/client.go
    """
    if answer is None:
        return replace(listed, metadata=None, task_queues=()) if listed else None
    info = answer.worker_deployment_version_info
    status = _STATUSES.get(info.status, VersionStatus.UNSPECIFIED)
    version = listed or Version(
        build_id=info.deployment_version.build_id,
        # only the list has the times that distinguish an inactive version from one that was never active
        status=VersionStatus.UNSPECIFIED if status is VersionStatus.INACTIVE else status,
        created_at=moment(info, "create_time"),
        drainage=_drainage(info),
        serverless=bool(info.compute_config.scaling_groups),
    )
    if version.status is VersionStatus.DRAINING and status in _DRAINAGE_STATUSES.values():
        version = replace(version, status=status, drainage=_drainage(info))
    entries = info.metadata.entries
    queues = {
        (queue.name, TASK_QUEUE_TYPES[queue.type])
        for queue in answer.version_task_queues
        if queue.type in TASK_QUEUE_TYPES
    }
    return replace(
        version,
        metadata={key: decoded(entries[key]) for key in sorted(entries)},
        task_queues=tuple(TaskQueue(*queue) for queue in sorted(queues)),
    )


def pollers(answer: "service.DescribeTaskQueueResponse") -> Polled:
    """The recent pollers of a task queue."""
    polled: dict[tuple[str, str], datetime | None] = {}
    for poller in answer.pollers:
        options, last = poller.deployment_options, moment(poller, "last_access_time")
        is_versioned = options.worker_versioning_mode == _VERSIONED
        poller_version = (options.deployment_name, options.build_id) if is_versioned else UNVERSIONED
        polled[poller_version] = max(filter(None, (polled.get(poller_version), last)), default=None)
    return polled


def listed_workers(answer: "service.ListWorkerDeploymentsResponse") -> tuple[list[OtherWorker], bytes]:
    """The Worker Deployments on a page, and the next page's token (empty after the last page)."""
    workers = [
        OtherWorker(summary.name, summary.latest_version_summary.deployment_version.build_id)
        for summary in answer.worker_deployments
    ]
    return workers, answer.next_page_token


def summaries(answer: "service.ListWorkerDeploymentsResponse") -> tuple[list[tuple[str, bytes]], bytes]:
    """Each Worker Deployment's entry on a page, serialized for comparison, and the next page's token."""
    items = answer.worker_deployments
    return [(item.name, item.SerializeToString(deterministic=True)) for item in items], answer.next_page_token


def other_workers(worker: str, polled: Mapping[TaskQueue, Polled]) -> list[OtherWorker]:
    """The other workers that recently polled a worker's task queues."""
    return sorted(
        (
            OtherWorker(name, build_id, task_queue=queue.name)
            for queue, pollers_of_queue in polled.items()
            for name, build_id in pollers_of_queue
            if name != worker
        ),
        key=lambda other: (not other.name, other.name, other.build_id, other.task_queue),
    )


def with_pollers(
    version: Version,
    worker: str,
    polled: Mapping[TaskQueue, Polled],
    tasks: Mapping[tuple[str, TaskQueue], bool],
    now: datetime,
) -> tuple[TaskQueue, ...] | None:
    """A version's task queues, with their pollers and tasks."""
    if version.task_queues is None:
        return None
    key = (worker, version.build_id)

    def silence(last: datetime | None) -> int | None:
        seconds = int((now - last).total_seconds()) if last else 0
        return seconds if seconds > _BETWEEN_POLLS else None

    return tuple(
        replace(
            queue,
            pollers=key in polled[queue],
            unversioned_pollers=UNVERSIONED in polled[queue],
            silent_seconds=silence(polled[queue].get(key)),
            has_tasks=tasks.get((version.build_id, queue)),
        )
        if queue in polled
        else queue
        for queue in version.task_queues
    )


def gate_run(
    task_queue: str, workflow_id: str, answer: "service.DescribeWorkflowExecutionResponse | None"
) -> tuple[GateRun | None, bool]:
    """A gate workflow's run, or None if it has not started, and whether its workflow task keeps failing.

    If a workflow task has failed more than once, the worker probably cannot complete it.
    """
    if answer is None:
        return None, False
    info = answer.workflow_execution_info
    # with any other status, such as paused, the workflow is still open
    status = _GATE_STATUSES.get(info.status, GateStatus.RUNNING)
    began, workflow_type = moment(info, "start_time"), info.type.name
    run = GateRun(task_queue, workflow_id, status, began, workflow_type=workflow_type)
    return run, answer.pending_workflow_task.attempt >= _FAILING_ATTEMPT


def last_failure(answer: "service.GetWorkflowExecutionHistoryReverseResponse | None") -> str:
    """The message of the newest failure in a history, in one line, or empty if there is no failure."""
    for event in answer.history.events if answer else ():
        if event.HasField("workflow_execution_terminated_event_attributes"):
            return _one_line(event.workflow_execution_terminated_event_attributes.reason)
        if event.HasField("workflow_execution_failed_event_attributes"):
            failure = event.workflow_execution_failed_event_attributes.failure
        elif event.HasField("workflow_task_failed_event_attributes"):
            failure = event.workflow_task_failed_event_attributes.failure
        else:
            continue
        # outer failures name the failed activity or child workflow, and the innermost failure has the reason
        while failure.HasField("cause"):
            failure = failure.cause
        return _one_line(failure.message)
    return ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def failure_count(
    statuses: Collection[ClosedStatus], answer: "service.CountWorkflowExecutionsResponse"
) -> FailureCount:
    """Convert counts by status to the number of all workflows, and of workflows with one of `statuses`.

    A run that continued as new is not counted, because the run that followed it is counted.
    """
    counts = {decoded(group.group_values[0]): int(group.count) for group in answer.groups}
    counts.pop("ContinuedAsNew", None)
    return FailureCount(sum(counts.values()), sum(counts.get(status.value, 0) for status in statuses))


def moment(message: "Message", name: str) -> datetime | None:
    """A message's timestamp, in UTC, or None if it is not set (1970 in protobuf, or the year 1 in Go)."""
    timestamp = getattr(message, name)
    if timestamp.seconds <= 0:
        return None
    set_at: datetime = timestamp.ToDatetime(tzinfo=UTC)
    return set_at


def decoded(payload: "Payload") -> Any:
    """A payload's JSON value, or its text if it is not JSON, such as metadata that a person set."""
    try:
        return json.loads(payload.data)
    except ValueError:
        return payload.data.decode("utf-8", "replace")


def _routing(info: "WorkerDeploymentInfo") -> Routing:
    config = info.routing_config
    changes = (
        moment(config, "current_version_changed_time"),
        moment(config, "ramping_version_changed_time"),
        moment(config, "ramping_version_percentage_changed_time"),
    )
    current = config.current_deployment_version.build_id
    return Routing(
        current=CurrentVersion(current, changes[0]) if current else None,
        ramping=_ramping(config),
        update_state=_UPDATE_STATES.get(info.routing_config_update_state),
        changed_at=max((change for change in changes if change), default=None),
    )


def _ramping(config: "RoutingConfig") -> RampingVersion | None:
    # a percentage without a version means a ramp to unversioned workers
    if not config.HasField("ramping_deployment_version") and config.ramping_version_percentage <= 0:
        return None
    return RampingVersion(
        build_id=config.ramping_deployment_version.build_id,
        # a single-precision number has six exact decimal digits
        percentage=float(f"{config.ramping_version_percentage:.6g}"),
        since=moment(config, "ramping_version_changed_time"),
        percentage_changed_at=moment(config, "ramping_version_percentage_changed_time"),
    )


def _version(summary: "WorkerDeploymentInfo.WorkerDeploymentVersionSummary") -> Version:
    return Version(
        build_id=summary.deployment_version.build_id,
        status=_STATUSES.get(summary.status, VersionStatus.UNSPECIFIED),
        created_at=moment(summary, "create_time"),
        first_activated_at=moment(summary, "first_activation_time"),
        last_current_at=moment(summary, "last_current_time"),
        last_deactivated_at=moment(summary, "last_deactivation_time"),
        drainage=_drainage(summary),
        serverless=bool(summary.compute_config.scaling_groups),
    )


def _drainage(
    message: "WorkerDeploymentInfo.WorkerDeploymentVersionSummary | WorkerDeploymentVersionInfo",
) -> Drainage | None:
    if not message.HasField("drainage_info"):
        return None
    info = message.drainage_info
    return Drainage(
        status=_DRAINAGE_STATUSES.get(info.status, VersionStatus.UNSPECIFIED),
        changed_at=moment(info, "last_changed_time"),
        checked_at=moment(info, "last_checked_time"),
    )
