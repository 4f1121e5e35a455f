"""A Temporal namespace that has as many Worker Deployments as its server takes, and one worker too many."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import timedelta

import pytest
from temporalio.api.deployment.v1 import WorkerDeploymentOptions
from temporalio.api.enums.v1 import WorkerVersioningMode
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DeleteWorkerDeploymentRequest,
    ListWorkerDeploymentsRequest,
    PollWorkflowTaskQueueRequest,
)
from temporalio.service import ConnectConfig, RPCError, ServiceClient

from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.servers import NEWEST, OLDEST, TemporalServer, temporal_server
from testing.workers import DeployedWorker
from tests.servers.live import Document
from tests.servers.rollouts import SOON, Story

pytestmark = pytest.mark.server

LIMIT = 100
"""Of a server as it comes; those of other tests have more room."""
AS_IT_COMES = {"matching.maxDeployments": LIMIT}
TOLD = re.compile(
    "Temporal does not know it yet, although its Deployment is available: its Temporal namespace has 1\\d\\d"
    " Worker Deployments. At its limit \\(by default 100\\)"
)
UNUSED = "unused"
_CONTENDERS = 20
_ROUNDS = 10
"""In which a namespace that is full takes none of the contenders."""
_MOST_TAKEN = 5
VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, TemporalServer]]:
    versions = (OLDEST, NEWEST)
    with ExitStack() as stack, ThreadPoolExecutor(len(versions)) as pool:
        servers = [
            stack.enter_context(
                temporal_server(tmp_path_factory.mktemp("full"), version, settings=AS_IT_COMES)
            )
            for version in versions
        ]
        list(pool.map(fill, servers))
        yield dict(zip(versions, servers, strict=True))


def fill(server: TemporalServer) -> None:
    """As many workers as the server takes; where that can be asked for, one of them has never polled.

    The oldest counts none of those that it is writing of, now and then, and takes others in their place.
    So its places are contended for until it has as many above its limit as such a moment hides.
    """
    names = {f"test/worker-{number}" for number in range(LIMIT)}
    contenders = {f"test/contender-{number}" for number in range(_CONTENDERS)}
    if server.version == NEWEST:
        DeployedWorker(server, UNUSED, "").create()
        names.pop()

    def is_filled() -> bool:
        # one whose first poll ends too early counts, is not listed, and is refused from then on
        if missing := names - listed(server):
            asyncio.run(poll_once(server.address, missing, seconds=20))
        return not missing

    def is_full() -> bool:
        before = listed(server)
        for _ in range(_ROUNDS):
            asyncio.run(poll_once(server.address, contenders - before, seconds=1))
        return len(before) >= LIMIT and listed(server) == before

    assert eventually(is_filled, SOON)
    assert eventually(is_full, SOON)


def listed(server: TemporalServer) -> set[str]:
    request = ListWorkerDeploymentsRequest(namespace="default", page_size=10 * LIMIT)
    answer = server.ask("list_worker_deployments", request)
    assert not answer.next_page_token
    return {found.name for found in answer.worker_deployments}


async def poll_once(address: str, names: Iterable[str], seconds: float) -> None:
    """A poll of one worker of each name, all at the same time; none waits for a task."""
    client = await ServiceClient.connect(ConnectConfig(target_host=address))

    async def poll(name: str) -> None:
        options = WorkerDeploymentOptions(
            deployment_name=name, build_id="v1", worker_versioning_mode=VERSIONED
        )
        request = PollWorkflowTaskQueueRequest(
            namespace="default",
            task_queue=TaskQueue(name="full"),
            identity="twgen/testing",
            deployment_options=options,
        )
        with suppress(RPCError):
            await client.workflow_service.poll_workflow_task_queue(
                request, retry=False, timeout=timedelta(seconds=seconds)
            )

    await asyncio.gather(*map(poll, names))


@pytest.fixture(params=[OLDEST, NEWEST])
def stories(
    request: pytest.FixtureRequest, full: Mapping[str, TemporalServer], cluster: Cluster, node: LocalNode
) -> Iterator[Iterator[Story]]:
    """Workers one after the other: the oldest may take one too many, and is the fuller for the next."""
    server = full[request.param]
    with ExitStack() as over:

        def told() -> Iterator[Story]:
            for _ in range(1 if server.version == NEWEST else _MOST_TAKEN):
                namespace = over.enter_context(cluster.own_namespace())
                (folder := cluster.folder / namespace / "specs").mkdir(parents=True)
                yield Story(cluster, node, server, server, namespace, folder)

        yield told()


def is_refused(story: Story) -> bool:
    """Temporal does not take the worker, by the status of its rollout; else it is current."""
    story.describe("v1", steps=())
    story.apply()

    def message() -> str:
        status = story.status()
        told: str = status.get("message", "")
        assert TOLD.match(told) or status.get("current") == "v1", status
        return told

    return bool(TOLD.match(eventually(message, SOON)))


def worker(story: Story, command: str) -> Document:
    """What a command prints of the one worker."""
    found: list[Document] = json.loads(story.run(command, "-o", "json").stdout)["workers"]
    assert len(found) == 1
    return found[0]


def test_worker_too_many_is_told_why_by_its_job_by_plan_and_by_status(stories: Iterator[Story]) -> None:
    story = next(filter(is_refused, stories))
    status = story.status()
    assert (status["phase"], status["reason"]) == ("Waiting", "WaitingForRegistration")
    # the list of the oldest lacks some for a moment, now and then
    assert eventually(lambda: TOLD.match(worker(story, "plan")["routing"]["because"]))
    assert eventually(lambda: TOLD.match(worker(story, "status")["because"]))
    assert worker(story, "snapshot")["temporal"] is None
    assert eventually(lambda: worker(story, "snapshot")["workerDeployments"] >= LIMIT)
    if story.temporal.version == NEWEST:
        # one that has no versions may be deleted at once, and makes room
        request = DeleteWorkerDeploymentRequest(
            namespace="default", deployment_name=UNUSED, identity="twgen/testing"
        )
        story.temporal.ask("delete_worker_deployment", request)
        story.stands("Settled", "v1")
