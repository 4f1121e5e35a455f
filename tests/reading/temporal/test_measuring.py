"""The points that a Prometheus has of a target."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.deployment.v1 import RoutingConfig, WorkerDeploymentInfo, WorkerDeploymentVersion
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentResponse, GetSystemInfoResponse

from tests.clients.prometheus import Served, serving
from tests.strategies import NOW, STEPS, a_spec, with_policy
from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.prometheus import PrometheusServers
from twgen.clients.temporal import Call, TemporalClients
from twgen.errors import StateUnavailable
from twgen.model.analysis import Analysis, Measurement, Metric, NoData, OnFailure, Point, PrometheusQuery
from twgen.model.operator import PrometheusServer
from twgen.model.spec import Rollout, Strategy, WorkerSpec
from twgen.model.temporal import Version, VersionStatus
from twgen.model.world import World
from twgen.reading.temporal.measuring import Measuring
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.world import Reading, read_world

MINUTE = timedelta(minutes=1)
QUERY = PrometheusQuery("a{b='{{ .BuildID }}'}", "shared", None, 1.0, MINUTE, 0, NoData.WAIT)
SPEC = with_policy(a_spec(), analysis=Analysis((Metric("errors", QUERY),), OnFailure.ABORT, MINUTE))
SINCE = NOW + timedelta(microseconds=345_678)
"""Temporal tells microseconds, and a Prometheus counts milliseconds."""
FIRST = SINCE + 2 * MINUTE


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Served()) as server:
        yield server


def read(served: Served, passed: timedelta, asked: PrometheusQuery = QUERY) -> tuple[Point, ...]:
    async def story() -> tuple[Point, ...]:
        servers = PrometheusServers((PrometheusServer("shared", served.address),), "ask the operator")
        temporal = TemporalReader(TemporalClients(Profiles, {}), Deadline(60))
        target = Version(SPEC.build_id, VersionStatus.RAMPING)
        measuring = Measuring(SPEC, target, None, temporal, SINCE, lambda _: servers, SINCE + passed)
        return await measuring.points(asked, servers)

    return asyncio.run(story())


def values(served: Served, *texts: str, moved: float = 0) -> list[float | None]:
    """Of the points that five minutes have; the numbers begin with the first of them."""
    start = float(f"{FIRST.timestamp():.3f}") + moved
    served.answers([[start + 60 * number, text] for number, text in enumerate(texts) if text])
    points = read(served, 5 * MINUTE)
    assert [point.at for point in points] == [FIRST + number * MINUTE for number in range(4)]
    return [point.value for point in points]


def test_every_moment_has_one_point_and_some_have_no_number(served: Served) -> None:
    assert values(served, "0.5", "NaN", "", "2") == [0.5, None, None, 2]
    [form] = served.forms
    assert form["query"] == "a{b='v3'}"
    assert float(form["end"]) - float(form["start"]) == pytest.approx(180, abs=0.01)
    assert form["step"] == "60.000"


def test_infinity_is_the_largest_number_that_a_document_has(served: Served) -> None:
    assert values(served, "+Inf", "-Inf", "1e999") == [
        sys.float_info.max,
        -sys.float_info.max,
        sys.float_info.max,
        None,
    ]


@pytest.mark.parametrize("moved", [0.0004, -0.5, 20, -29])
def test_number_belongs_to_the_moment_that_it_is_nearest_to(served: Served, moved: float) -> None:
    assert values(served, "1", "2", "3", "4", moved=moved) == [1, 2, 3, 4]


def test_number_of_no_moment_is_left_out(served: Served) -> None:
    assert values(served, "9", "1", "2", "3", "4", "9", moved=-60) == [1, 2, 3, 4]


def test_query_without_any_series_has_no_number_at_any_moment(served: Served) -> None:
    served.answers()
    assert [point.value for point in read(served, 3 * MINUTE)] == [None, None]
    assert values(served) == [None] * 4


def test_nothing_is_asked_before_the_first_moment(served: Served) -> None:
    assert read(served, timedelta(seconds=119)) == ()
    assert not served.paths


def test_several_series_are_no_number(served: Served) -> None:
    served.answers([[1, "1"]], [[1, "2"]], [])
    with pytest.raises(
        StateUnavailable, match=r"^Prometheus shared returned 3 series: aggregate them to one"
    ):
        read(served, 5 * MINUTE)


@pytest.mark.parametrize("pairs", [[[1, "a"]], [[1]], [1], [["x", "1"]], [[1, None]], 1, None])
def test_what_is_no_number_is_told(served: Served, pairs: Any) -> None:
    served.answers(pairs)
    with pytest.raises(StateUnavailable, match=r"^Prometheus shared did not return a number$"):
        read(served, 5 * MINUTE)


@pytest.mark.parametrize("moment", [1e999, 10**400])
def test_moment_that_json_cannot_tell_is_no_answer_of_a_prometheus(served: Served, moment: float) -> None:
    served.answers([[moment, "1"]])
    with pytest.raises(StateUnavailable, match="did not answer like Prometheus"):
        read(served, 5 * MINUTE)


def test_histograms_are_no_numbers(served: Served) -> None:
    served.answers([])
    served.body = served.body.replace(b'"values"', b'"histograms"')
    with pytest.raises(StateUnavailable, match=r"did not return a number$"):
        read(served, 5 * MINUTE)


def test_server_that_may_not_be_asked_is_told_at_once(served: Served) -> None:
    with pytest.raises(
        StateUnavailable, match=r"^no Prometheus 'other' is available here: ask the operator$"
    ):
        read(served, timedelta(), replace(QUERY, server="other"))


class Temporal(TemporalClients):
    """Says that the target ramps, and nothing else."""

    def __init__(self) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - nothing takes time
        if call.method != "describe_worker_deployment":
            return call.value(GetSystemInfoResponse() if call.method == "get_system_info" else None)
        version = WorkerDeploymentVersion(deployment_name="shop/payments", build_id="v3")
        routing = RoutingConfig(ramping_deployment_version=version, ramping_version_percentage=5)
        routing.ramping_version_changed_time.FromDatetime(SINCE)
        known = WorkerDeploymentInfo.WorkerDeploymentVersionSummary(deployment_version=version)
        info = WorkerDeploymentInfo(routing_config=routing, version_summaries=[known])
        return call.value(DescribeWorkerDeploymentResponse(worker_deployment_info=info))


def measured(
    spec: WorkerSpec, servers_of: Callable[[WorkerSpec], PrometheusServers], *, for_routing: bool = True
) -> tuple[Measurement, ...] | None:
    """What one look at the worker says of its target."""
    now = SINCE + 2 * MINUTE

    async def story() -> World:
        temporal = TemporalReader(Temporal(), Deadline(60))
        reading = Reading(temporal, None, now, for_routing, now, prometheus_of=servers_of)
        return await asyncio.create_task(read_world([spec], reading))

    found = asyncio.run(story()).workers[spec.key].temporal
    assert found
    [version] = found.versions
    return version.measurements


def test_look_has_the_points_of_the_target_and_tells_what_it_could_not_read(served: Served) -> None:
    policy = SPEC.policy.analysis
    assert policy
    other = Metric("other", replace(QUERY, server="other"))
    spec = with_policy(SPEC, analysis=replace(policy, metrics=(*policy.metrics, other)))
    progressive = replace(spec, rollout=Rollout(Strategy.PROGRESSIVE, STEPS))
    served.answers([[FIRST.timestamp(), "0.5"]])

    def shared(_: WorkerSpec) -> PrometheusServers:
        return PrometheusServers((PrometheusServer("shared", served.address),), "ask the operator")

    assert measured(progressive, shared) == (
        Measurement("errors", SINCE, points=(Point(FIRST, 0.5),)),
        Measurement("other", SINCE, problem="no Prometheus 'other' is available here: ask the operator"),
    )


def test_look_that_needs_no_number_makes_nothing_that_asks_for_one() -> None:
    def unasked(_: WorkerSpec) -> PrometheusServers:
        raise AssertionError

    progressive = replace(SPEC, rollout=Rollout(Strategy.PROGRESSIVE, STEPS))
    assert measured(progressive, unasked, for_routing=False) is None
    assert measured(with_policy(progressive, analysis=None), unasked) is None
