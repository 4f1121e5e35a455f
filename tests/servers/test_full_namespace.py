"""A Temporal namespace that has as many Worker Deployments as its server takes, and one worker too many."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

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
from testing.servers import NEWEST, TemporalServer, temporal_server
from testing.workers import DeployedWorker
from tests.servers.live import Document
from tests.servers.rollouts import SOON, Story

pytestmark = pytest.mark.server

LIMIT = 100
"""Of a server as it comes; those of other tests have more room."""
AS_IT_COMES = {"matching.maxDeployments": LIMIT}
TOLD = re.compile(
    "Temporal does not know it yet, although its Deployment is available: its Temporal namespace has 100"
    " Worker Deployments. At its limit \\(by default 100\\)"
)
UNUSED = "unused"
VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED


@pytest.fixture
def story(cluster: Cluster, node: LocalNode, tmp_path: Path) -> Iterator[Story]:
    """A worker of a server that has as many as it takes."""
    with temporal_server(tmp_path, NEWEST, settings=AS_IT_COMES) as server:
        fill(server)
        with cluster.own_namespace() as namespace:
            (folder := cluster.folder / namespace / "specs").mkdir(parents=True)
            yield Story(cluster, node, server, server, namespace, folder)


def fill(server: TemporalServer) -> None:
    """As many workers as the server takes; one of them has never polled."""
    names = {f"test/worker-{number}" for number in range(LIMIT - 1)}
    DeployedWorker(server, UNUSED, "").create()

    def is_filled() -> bool:
        # one whose first poll ends too early counts, is not listed, and is refused from then on
        if missing := names - listed(server):
            asyncio.run(poll_once(server.address, missing, seconds=20))
        return not missing

    assert eventually(is_filled, SOON)


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


def worker(story: Story, command: str) -> Document:
    """What a command prints of the one worker."""
    found: list[Document] = json.loads(story.run(command, "-o", "json").stdout)["workers"]
    assert len(found) == 1
    return found[0]


def test_worker_too_many_is_told_why_by_its_job_by_plan_and_by_status(story: Story) -> None:
    story.describe("v1", steps=())
    story.apply()
    status = eventually(lambda: (told := story.status()) and TOLD.match(told["message"]) and told, SOON)
    assert (status["phase"], status["reason"]) == ("Waiting", "WaitingForRegistration")
    assert TOLD.match(worker(story, "plan")["routing"]["because"])
    assert TOLD.match(worker(story, "status")["because"])
    found = worker(story, "snapshot")
    assert (found["temporal"], found["workerDeployments"]) == (None, LIMIT)
    # one that has no versions may be deleted at once, and makes room
    request = DeleteWorkerDeploymentRequest(
        namespace="default", deployment_name=UNUSED, identity="twgen/testing"
    )
    story.temporal.ask("delete_worker_deployment", request)
    story.stands("Settled", "v1")
