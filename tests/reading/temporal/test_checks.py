"""Looks again and again: which workers are described, and which are as they were."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.deployment.v1 import RoutingConfig, WorkerDeploymentInfo, WorkerDeploymentVersion
from temporalio.api.enums.v1 import RoutingConfigUpdateState
from temporalio.api.workflowservice.v1 import (
    CountWorkflowExecutionsResponse,
    DescribeWorkerDeploymentResponse,
    GetSystemInfoResponse,
    ListWorkerDeploymentsRequest,
    ListWorkerDeploymentsResponse,
)

from tests.planning.situations import SPEC
from tests.strategies import NOW
from twgen.clients.deadline import AnswerDeadline, Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.model.world import World
from twgen.reading.temporal.checks import Check, Checks
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.world import Reading, read_each

LIST, DESCRIBE = "list_worker_deployments", "describe_worker_deployment"
SPECS = [replace(SPEC, name=f"w{number}") for number in range(120)]
NAMES = [spec.worker_deployment for spec in SPECS]
Summary = ListWorkerDeploymentsResponse.WorkerDeploymentSummary
ListedVersion = WorkerDeploymentInfo.WorkerDeploymentVersionSummary
DRAINING, DRAINED, INACTIVE = 4, 5, 1
OTHERS = {
    "count_workflow_executions": CountWorkflowExecutionsResponse(),
    "get_system_info": GetSystemInfoResponse(),
}


class Temporal(TemporalClients):
    """Counts its calls; each worker has a current version, and says of it what it is told to."""

    def __init__(self) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})
        self.calls: Counter[str] = Counter()
        self.described: list[str] = []
        self.current = dict.fromkeys(NAMES, "v1")
        self.older: dict[str, int] = {}
        """The status of an older version, by worker."""
        self.update_state = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_COMPLETED
        self.list_fails: TwgenError | None = None

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - it answers at once
        self.calls[call.method] += 1
        if call.method == LIST:
            if self.list_fails:
                raise self.list_fails
            return call.value(self._page(call.request))
        if call.method != DESCRIBE:
            return call.value(OTHERS.get(call.method))
        self.described.append(name := call.request.deployment_name)
        if name not in self.current:
            return call.value(None)
        older = WorkerDeploymentVersion(deployment_name=name, build_id="v0")
        versions = (
            [ListedVersion(deployment_version=older, status=self.older[name])] if name in self.older else []
        )
        info = WorkerDeploymentInfo(
            routing_config=self._routing(name),
            version_summaries=versions,
            routing_config_update_state=self.update_state,
        )
        return call.value(DescribeWorkerDeploymentResponse(worker_deployment_info=info))

    def _page(self, request: ListWorkerDeploymentsRequest) -> ListWorkerDeploymentsResponse:
        begin = int(request.next_page_token or b"0")
        names = sorted(self.current)
        more = begin + request.page_size < len(names)
        return ListWorkerDeploymentsResponse(
            worker_deployments=[
                Summary(name=name, routing_config=self._routing(name))
                for name in names[begin : begin + request.page_size]
            ],
            next_page_token=str(begin + request.page_size).encode() if more else b"",
        )

    def _routing(self, name: str) -> RoutingConfig:
        version = WorkerDeploymentVersion(deployment_name=name, build_id=self.current[name])
        return RoutingConfig(current_deployment_version=version)


def looked(
    server: Temporal,
    check: Check,
    *,
    for_routing: bool = False,
    parts: Sequence[slice] = (slice(0, 50), slice(50, 120)),
) -> dict[str, str]:
    """The current version of each worker that is known, after one look in several readings at once."""
    server.calls.clear()
    server.described.clear()

    async def story() -> list[World]:
        shared = [TemporalReader(server, AnswerDeadline(30), check) for _ in parts]
        readings = [Reading(reads, None, NOW, for_routing=for_routing, read_at=NOW) for reads in shared]
        found = await asyncio.gather(
            *(read_each(SPECS[part], reading) for part, reading in zip(parts, readings, strict=True))
        )
        return [world for world, _ in found]

    worlds = asyncio.run(asyncio.wait_for(story(), 30))
    known = [worker for world in worlds for worker in world.workers.values() if worker.temporal]
    return {
        worker.key[0]: worker.temporal.routing.current.build_id
        for worker in known
        if worker.temporal and worker.temporal.routing.current
    }


def test_quiet_fleet_is_listed_and_described_only_in_the_first_look_and_each_tenth() -> None:
    server, checks = Temporal(), Checks()
    calls = []
    for _ in range(21):
        assert looked(server, checks.next_check()) == server.current
        calls.append((server.calls[LIST], server.calls[DESCRIBE]))
    assert calls == [(2, 120), *[(2, 0)] * 9] * 2 + [(2, 120)]


def test_worker_that_moved_is_described_at_once() -> None:
    server, checks = Temporal(), Checks()
    looked(server, checks.next_check())
    server.current[NAMES[7]] = "v2"
    assert looked(server, checks.next_check()) == server.current
    assert server.described == [NAMES[7]]
    del server.current[NAMES[9]]
    assert looked(server, checks.next_check()) == server.current
    assert set(server.described) == {NAMES[9]}


@pytest.mark.parametrize(
    ("status", "describes"), [(DRAINING, True), (0, True), (DRAINED, False), (INACTIVE, False)]
)
def test_worker_with_a_version_that_drains_is_described_in_each_look(status: int, *, describes: bool) -> None:
    server, checks = Temporal(), Checks()
    server.older[NAMES[7]] = status
    looked(server, checks.next_check())
    looked(server, checks.next_check())
    assert server.described == [NAMES[7]] * describes


def test_worker_whose_task_queues_are_still_told_is_described_again() -> None:
    server, checks = Temporal(), Checks()
    server.update_state = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS
    looked(server, checks.next_check())
    looked(server, checks.next_check())
    assert server.calls[DESCRIBE] == len(NAMES)


def test_decision_on_traffic_sees_the_worker_as_it_is_now() -> None:
    server, checks = Temporal(), Checks()
    looked(server, checks.next_check())
    check = checks.next_check()
    looked(server, check)
    assert server.calls[DESCRIBE] == 0
    server.current[NAMES[7]] = "v2"
    assert looked(server, check, for_routing=True, parts=[slice(5, 10)])[NAMES[7]] == "v2"
    assert (server.calls[LIST], server.calls[DESCRIBE]) == (0, 5)


def test_decision_on_traffic_takes_nothing_that_the_same_look_has_described_before() -> None:
    """The workers of a large fleet wait for their turns: a version may have traffic again since then."""
    server, checks = Temporal(), Checks()
    check = checks.next_check()
    looked(server, check)
    server.current[NAMES[7]] = "v2"
    assert looked(server, check, for_routing=True, parts=[slice(5, 10)])[NAMES[7]] == "v2"
    assert server.calls[DESCRIBE] == 5


@pytest.mark.parametrize("fails", [StateUnavailable("it may not list"), OutOfTime("it did not answer")])
def test_server_that_does_not_give_the_list_describes_every_worker(fails: TwgenError) -> None:
    """Its index may be away for long, and nothing else would be."""
    server, checks = Temporal(), Checks()
    server.list_fails = fails
    for _ in range(2):
        assert looked(server, checks.next_check()) == server.current
        assert server.calls == {LIST: 1, DESCRIBE: len(NAMES)}


def test_one_look_alone_lists_nothing() -> None:
    server = Temporal()
    assert looked(server, Check()) == server.current
    assert server.calls == {DESCRIBE: len(NAMES)}


class Lying(Temporal):
    """Lists what it wants, of now and of before, and possibly without end."""

    def __init__(self) -> None:
        super().__init__()
        self.current = dict.fromkeys(NAMES[:3], "v1")
        self.listed: list[tuple[str, str]] = []
        self.is_endless = False

    def _page(self, _: ListWorkerDeploymentsRequest) -> ListWorkerDeploymentsResponse:
        summaries = []
        for name, build_id in self.listed:
            version = WorkerDeploymentVersion(deployment_name=name, build_id=build_id)
            summaries.append(
                Summary(name=name, routing_config=RoutingConfig(current_deployment_version=version))
            )
        token = b"again" if self.is_endless else b""
        return ListWorkerDeploymentsResponse(worker_deployments=summaries, next_page_token=token)


moves = st.tuples(st.sampled_from(NAMES[:3]), st.sampled_from("abc"))
told = st.sampled_from(("truth", "lies", "lies without end", "nothing")) | st.none()


@given(
    history=st.lists(
        st.tuples(st.lists(moves), told, st.lists(moves), st.booleans()), min_size=12, max_size=20
    ),
    is_stuck=st.booleans(),
)
def test_whatever_is_listed_workers_are_as_of_the_last_ten_looks_and_decisions_as_of_now(
    history: list[tuple[list[tuple[str, str]], str | None, list[tuple[str, str]], bool]], *, is_stuck: bool
) -> None:
    server, checks, before = Lying(), Checks(), list[dict[str, str]]()
    server.listed = [*server.current.items()]
    for changes, how, lies, decides in history:
        server.current |= changes
        if how and not is_stuck:
            server.listed = [*server.current.items()] if how == "truth" else lies
            server.list_fails = OutOfTime("no answer") if how == "nothing" else None
            server.is_endless = how == "lies without end"
        before = [*before[-9:], dict(server.current)]
        check, parts = checks.next_check(), [slice(3)]
        found = looked(server, check, parts=parts)
        assert found.keys() == server.current.keys()
        assert all(build_id in {known[name] for known in before} for name, build_id in found.items())
        assert server.calls[LIST] <= 100
        if decides and not is_stuck:
            assert looked(server, check, parts=parts, for_routing=True) == server.current
