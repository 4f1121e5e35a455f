"""The Worker Deployments of a Temporal namespace: counted for a worker whose pods poll in vain."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from temporalio.api.deployment.v1 import WorkerDeploymentOptions
from temporalio.api.enums.v1 import WorkerVersioningMode
from temporalio.api.taskqueue.v1 import PollerInfo
from temporalio.api.workflowservice.v1 import DescribeTaskQueueResponse, ListWorkerDeploymentsResponse

from tests.planning.situations import NOW, SPEC, live
from tests.strategies import live_manifest
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.errors import StateUnavailable
from twgen.model.spec import PodTemplate
from twgen.model.temporal import OtherWorker
from twgen.model.world import World
from twgen.reading.kubernetes import ClusterReader
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.world import Reading, read_each, read_world
from twgen.versioning.injection import with_task_queue

Page = ListWorkerDeploymentsResponse
ORDERS = replace(SPEC, name="orders")


def versioned(name: str, build_id: str) -> PollerInfo:
    mode = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED
    options = {"deployment_name": name, "build_id": build_id, "worker_versioning_mode": mode}
    return PollerInfo(deployment_options=WorkerDeploymentOptions(**options))


def page(number: int, token: bytes = b"") -> Page:
    summaries = [Page.WorkerDeploymentSummary(name=f"w{index}") for index in range(number)]
    return Page(worker_deployments=summaries, next_page_token=token)


class Temporal(TemporalClients):
    """Knows no worker, and lists those of others in pages, unless it refuses."""

    def __init__(self, *pages: Page) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})
        self.pages = pages
        self.listed: list[tuple[str, bytes]] = []
        self.polling: list[PollerInfo] | None = []

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - nothing takes time
        if call.method == "describe_task_queue":
            if self.polling is None:
                raise StateUnavailable("nobody may describe")
            return call.value(DescribeTaskQueueResponse(pollers=self.polling))
        if call.method != "list_worker_deployments":
            return call.value(None)
        token = call.request.next_page_token
        self.listed.append((call.spec.temporal_namespace, token))
        await asyncio.sleep(0)
        if not self.pages:
            raise StateUnavailable("nobody may list")
        return call.value(self.pages[int(token or 0)])


class Cluster(KubernetesClient):
    """Has the Deployments of one worker."""

    def __init__(self, *manifests: Mapping[str, Any]) -> None:
        self.manifests = manifests

    async def deployments(self, *_: Any) -> Sequence[Mapping[str, Any]]:
        return self.manifests

    async def pods(self, *_: Any) -> list[Mapping[str, Any]]:
        return []


SERVES = Cluster(live("v3"))
TOLD = replace(SPEC, template=PodTemplate(with_task_queue(SPEC.template.content, "main"), SPEC.template.hash))


def look(server: Temporal, cluster: KubernetesClient = SERVES, **how: bool) -> Reading:
    lists = ClusterReader(cluster, Deadline(30))
    return Reading(
        TemporalReader(server, Deadline(30)), lists, NOW, **({"for_routing": True, "read_at": NOW} | how)
    )


def read(server: Temporal, cluster: KubernetesClient = SERVES, **how: bool) -> World:
    return asyncio.run(read_world([SPEC], look(server, cluster, **how)))


def counted(server: Temporal, cluster: KubernetesClient = SERVES, **how: bool) -> int | None:
    return read(server, cluster, **how).workers[SPEC.key].worker_deployments


@pytest.mark.parametrize(
    ("pages", "number"),
    [
        pytest.param([page(3)], 3, id="one page"),
        pytest.param([page(500, b"1"), page(7)], 507, id="two pages"),
        pytest.param([page(499, b"1"), page(7)], 506, id="a page that the server did not fill"),
        pytest.param([page(500, b"1"), page(500, b"2"), page(1)], 1000, id="more than are counted"),
    ],
)
def test_they_are_counted_by_two_calls_at_most(pages: list[Page], number: int) -> None:
    assert counted(server := Temporal(*pages)) == number
    assert len(server.listed) == min(len(pages), 2)


@pytest.mark.parametrize(
    ("cluster", "how"),
    [
        pytest.param(Cluster(), {}, id="without pods"),
        pytest.param(Cluster(live("v3", 0)), {}, id="with none wanted"),
        pytest.param(SERVES, {"for_routing": False}, id="for a render"),
    ],
)
def test_nobody_counts_them(cluster: KubernetesClient, how: dict[str, bool]) -> None:
    assert counted(server := Temporal(), cluster, **how) is None
    assert server.listed == []


def test_workers_of_one_namespace_share_one_count() -> None:
    server, both = Temporal(page(100)), Cluster(live("v3"), live_manifest(ORDERS, "v3", 3))
    world = asyncio.run(read_world([SPEC, ORDERS], look(server, both)))
    assert [worker.worker_deployments for worker in world.workers.values()] == [100, 100]
    assert server.listed == [("default", b"")]


def test_list_that_fails_is_an_error_for_whoever_asks_once() -> None:
    with pytest.raises(StateUnavailable, match="nobody may list"):
        read(Temporal())


def test_list_that_fails_keeps_no_rollout_from_waiting() -> None:
    assert counted(server := Temporal(), goes_on=True) is None
    assert server.listed
    world, failures = asyncio.run(read_each([SPEC], look(Temporal(), goes_on=True)))
    assert (list(world.workers), failures) == ([SPEC.key], [])


def others(server: Temporal, **how: bool) -> tuple[OtherWorker, ...]:
    return asyncio.run(read_world([TOLD], look(server, **how))).workers[TOLD.key].other_workers


def test_those_that_may_be_the_worker_are_kept_and_who_polls_its_task_queue() -> None:
    listed = [Page.WorkerDeploymentSummary(name=name) for name in ("w0", "payments", "shop/payments")]
    server = Temporal(Page(worker_deployments=listed))
    server.polling = [PollerInfo(), versioned("payments", "v7"), versioned("shop/payments", "v3")]
    assert others(server) == (
        OtherWorker("payments", "v7", task_queue="main"),
        OtherWorker(task_queue="main"),
        OtherWorker("payments"),
    )


def test_task_queue_that_cannot_be_asked_keeps_no_rollout_from_waiting() -> None:
    server = Temporal(page(0))
    server.polling = None
    with pytest.raises(StateUnavailable, match="nobody may describe"):
        others(server)
    assert others(server, goes_on=True) == ()


@pytest.mark.parametrize(("timeout", "most"), [(0, 1), (30, 100)])
def test_list_whose_pages_never_end_is_read_as_long_as_one_answer_may_take(timeout: int, most: int) -> None:
    temporal = Temporal(page(1, token=b"0"))
    summaries = asyncio.run(TemporalReader(temporal, Deadline(timeout)).summaries(ORDERS))
    assert list(summaries) == ["w0"]
    assert len(temporal.listed) == most
