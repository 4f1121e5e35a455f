import json
from base64 import b64decode
from datetime import UTC, datetime

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload
from temporalio.api.compute.v1 import ComputeConfigScalingGroupSummary, ComputeConfigSummary
from temporalio.api.deployment.v1 import (
    RoutingConfig,
    VersionDrainageInfo,
    WorkerDeploymentInfo,
    WorkerDeploymentVersion,
)
from temporalio.api.workflowservice.v1 import (
    CountWorkflowExecutionsResponse,
    DescribeWorkerDeploymentResponse,
)

from twgen.model.analysis import ClosedStatus, FailureCount
from twgen.model.temporal import (
    CurrentVersion,
    Drainage,
    RampingVersion,
    Routing,
    UpdateState,
    VersionStatus,
    WorkerDeployment,
)
from twgen.reading.temporal.answers import decoded, failure_count, worker_deployment

Summary = WorkerDeploymentInfo.WorkerDeploymentVersionSummary

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
GO_ZERO = Timestamp(seconds=-62135596800)


def at(hour: int) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(NOON.replace(hour=hour))
    return timestamp


def described(routing: RoutingConfig, *summaries: Summary, token: bytes = b"") -> WorkerDeployment:
    info = WorkerDeploymentInfo(routing_config=routing, version_summaries=summaries)
    return worker_deployment(
        DescribeWorkerDeploymentResponse(conflict_token=token, worker_deployment_info=info)
    )


def ramping_at(percentage: float) -> RampingVersion | None:
    version = WorkerDeploymentVersion(deployment_name="default/pay", build_id="v2")
    config = RoutingConfig(ramping_deployment_version=version, ramping_version_percentage=percentage)
    return described(config).routing.ramping


def test_nothing_set_is_all_traffic_to_unversioned_workers() -> None:
    assert described(RoutingConfig()).routing == Routing()


def test_newest_change_of_routing_is_found() -> None:
    version = WorkerDeploymentVersion(deployment_name="default/pay", build_id="v1")
    config = RoutingConfig(
        current_deployment_version=version,
        current_version_changed_time=at(3),
        ramping_version_changed_time=at(5),
        ramping_version_percentage_changed_time=at(4),
    )
    routing = described(config).routing
    assert routing.current == CurrentVersion("v1", NOON.replace(hour=3))
    assert routing.changed_at == NOON.replace(hour=5)


@pytest.mark.parametrize("percentage", [1, 5.5, 12.345, 33.3, 66.6667, 99.9999, 100])
def test_percentage_survives_single_precision(percentage: float) -> None:
    assert ramping_at(percentage) == RampingVersion("v2", percentage)


def test_version_that_ramps_at_zero_percent_still_ramps() -> None:
    assert ramping_at(0) == RampingVersion("v2", 0)


def test_percentage_without_a_version_ramps_to_unversioned_workers() -> None:
    assert described(RoutingConfig(ramping_version_percentage=5)).routing.ramping == RampingVersion("", 5)


@pytest.mark.parametrize("never", [None, Timestamp(), GO_ZERO])
def test_time_that_is_not_set_is_never(never: Timestamp | None) -> None:
    drainage = VersionDrainageInfo(status=2, last_changed_time=never, last_checked_time=at(4))
    summary = Summary(
        status=5,
        create_time=at(3),
        first_activation_time=never,
        last_current_time=never,
        drainage_info=drainage,
    )
    [version] = described(RoutingConfig(), summary).versions
    assert version.created_at == NOON.replace(hour=3)
    assert (version.first_activated_at, version.last_current_at) == (None, None)
    assert version.drainage == Drainage(VersionStatus.DRAINED, None, NOON.replace(hour=4))


def test_status_of_a_newer_server_is_unspecified() -> None:
    status = Summary.DESCRIPTOR.fields_by_name["status"].number
    unknown = Summary.FromString(bytes([status << 3, 99]))
    [version] = described(RoutingConfig(), unknown).versions
    assert version.status is VersionStatus.UNSPECIFIED
    assert version.drainage is None


def test_version_whose_workers_temporal_starts_is_serverless() -> None:
    lambdas = ComputeConfigSummary(scaling_groups={"all": ComputeConfigScalingGroupSummary()})
    summaries = Summary(), Summary(compute_config=ComputeConfigSummary()), Summary(compute_config=lambdas)
    versions = described(RoutingConfig(), *summaries).versions
    assert [version.serverless for version in versions] == [False, False, True]


def test_update_state_is_absent_on_older_servers() -> None:
    infos = [WorkerDeploymentInfo(routing_config_update_state=state) for state in (0, 1, 2)]
    answers = [DescribeWorkerDeploymentResponse(worker_deployment_info=info) for info in infos]
    states = [worker_deployment(answer).routing.update_state for answer in answers]
    assert states == [None, UpdateState.IN_PROGRESS, UpdateState.COMPLETED]


def test_conflict_token_is_base64() -> None:
    assert b64decode(described(RoutingConfig(), token=b"\xfftoken").conflict_token) == b"\xfftoken"


@pytest.mark.parametrize("value", [None, True, 2, "by hand", {"reason": "größer"}])
def test_metadata_is_json(value: object) -> None:
    assert decoded(Payload(data=json.dumps(value).encode())) == value


def test_mark_that_is_no_json_still_counts() -> None:
    assert decoded(Payload(data=b"by hand")) == "by hand"
    assert decoded(Payload(data=b"\xff")) == "\N{REPLACEMENT CHARACTER}"


def test_run_that_was_continued_is_not_counted_beside_the_one_that_continues_it() -> None:
    groups = {"Running": 2, "ContinuedAsNew": 150, "Failed": 3, "TimedOut": 1, "Completed": 4}
    answer = CountWorkflowExecutionsResponse(
        groups=[
            CountWorkflowExecutionsResponse.AggregationGroup(
                group_values=[Payload(data=json.dumps(status).encode())], count=count
            )
            for status, count in groups.items()
        ]
    )
    assert failure_count((ClosedStatus.FAILED, ClosedStatus.TIMED_OUT), answer) == FailureCount(10, 4)
