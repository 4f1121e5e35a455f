"""Temporal's answers as values: a Worker Deployment, its routing and its versions."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from twgen.clients.temporal import Call
from twgen.model.spec import WorkerSpec
from twgen.model.world import (
    CurrentVersion,
    Drainage,
    RampingVersion,
    Routing,
    UpdateState,
    Version,
    VersionStatus,
    WorkerDeployment,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from temporalio.api.common.v1 import Payload
    from temporalio.api.deployment.v1 import RoutingConfig, VersionDrainageInfo, WorkerDeploymentInfo
    from temporalio.api.workflowservice.v1 import (
        DescribeWorkerDeploymentResponse,
        DescribeWorkerDeploymentVersionResponse,
    )

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


def worker_deployment(response: "DescribeWorkerDeploymentResponse") -> WorkerDeployment:
    """What DescribeWorkerDeployment answered, less the server's version."""
    info = response.worker_deployment_info
    return WorkerDeployment(
        routing=_routing(info),
        versions=tuple(_version(summary) for summary in info.version_summaries),
        conflict_token=b64encode(response.conflict_token).decode("ascii"),
        manager_identity=info.manager_identity,
        last_modifier_identity=info.last_modifier_identity,
    )


def describe_version(spec: WorkerSpec, build_id: str) -> Call:
    """The call that asks for one version by name; its answer is None when Temporal does not know it."""
    from temporalio.api.deployment.v1 import WorkerDeploymentVersion
    from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentVersionRequest

    request = DescribeWorkerDeploymentVersionRequest(
        namespace=spec.temporal_namespace,
        deployment_version=WorkerDeploymentVersion(deployment_name=spec.worker_deployment, build_id=build_id),
    )
    method = "describe_worker_deployment_version"
    return Call(spec.connection, spec.temporal_namespace, method, request, may_be_absent=True)


def described_version(response: "DescribeWorkerDeploymentVersionResponse") -> Version:
    """What DescribeWorkerDeploymentVersion answered; it never says when a version was active.

    https://github.com/temporalio/temporal/blob/v1.32.0/service/worker/workerdeployment/client.go
    """
    info = response.worker_deployment_version_info
    status = _STATUSES.get(info.status, VersionStatus.UNSPECIFIED)
    return Version(
        build_id=info.deployment_version.build_id,
        # inactive may only be told from never active by the times that are missing here
        status=VersionStatus.UNSPECIFIED if status is VersionStatus.INACTIVE else status,
        created_at=moment(info, "create_time"),
        drainage=_drainage(info.drainage_info) if info.HasField("drainage_info") else None,
    )


def with_versions(deployment: WorkerDeployment, changed: Mapping[str, Version]) -> WorkerDeployment:
    """The deployment with those of its versions replaced that the mapping holds, by build ID."""
    versions = tuple(changed.get(version.build_id, version) for version in deployment.versions)
    return replace(deployment, versions=versions)


def moment(message: "Message", name: str) -> datetime | None:
    """A timestamp of a message, in UTC; None: not set, 1970 to protobuf and year 1 to Go."""
    timestamp = getattr(message, name)
    if timestamp.seconds <= 0:
        return None
    set_at: datetime = timestamp.ToDatetime(tzinfo=UTC)
    return set_at


def decoded(payload: "Payload") -> Any:
    """A payload's JSON value; its text when it is no JSON, so that a mark made by hand still counts."""
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
    # a ramp to unversioned workers is a percentage without a version
    if not config.HasField("ramping_deployment_version") and config.ramping_version_percentage <= 0:
        return None
    return RampingVersion(
        build_id=config.ramping_deployment_version.build_id,
        percentage=_percentage(config.ramping_version_percentage),
        since=moment(config, "ramping_version_changed_time"),
        percentage_changed_at=moment(config, "ramping_version_percentage_changed_time"),
    )


def _percentage(single_precision: float) -> float:
    # six digits are what single precision keeps of any decimal number
    return float(f"{single_precision:.6g}")


def _version(summary: "WorkerDeploymentInfo.WorkerDeploymentVersionSummary") -> Version:
    return Version(
        build_id=summary.deployment_version.build_id,
        status=_STATUSES.get(summary.status, VersionStatus.UNSPECIFIED),
        created_at=moment(summary, "create_time"),
        first_activated_at=moment(summary, "first_activation_time"),
        last_current_at=moment(summary, "last_current_time"),
        last_deactivated_at=moment(summary, "last_deactivation_time"),
        drainage=_drainage(summary.drainage_info) if summary.HasField("drainage_info") else None,
    )


def _drainage(info: "VersionDrainageInfo") -> Drainage:
    return Drainage(
        status=_DRAINAGE_STATUSES.get(info.status, VersionStatus.UNSPECIFIED),
        changed_at=moment(info, "last_changed_time"),
        checked_at=moment(info, "last_checked_time"),
    )
