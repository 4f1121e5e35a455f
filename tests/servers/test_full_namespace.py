"""A Temporal namespace that has more Worker Deployments than its server takes, and one worker too many."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import DeleteWorkerDeploymentRequest
from temporalio.service import RPCError

from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.servers import NEWEST, TemporalServer, temporal_server
from testing.temporal_configuration import write_settings
from testing.workers import IDENTITY, DeployedWorker
from tests.servers.live import Document
from tests.servers.rollouts import SOON, Story

pytestmark = pytest.mark.server

LIMIT = 100
"""Of a server as it comes; those of other tests have more room."""
SETTING = "matching.maxDeployments"
NAMES = [f"test/worker-{number}" for number in range(LIMIT + 10)]
"""More than the limit: while the server changes one of them, it does not count that one."""
TOLD = (
    "Temporal does not know it yet, although its Deployment is available: its Temporal namespace has"
    f" {len(NAMES)} Worker Deployments. At its limit (by default {LIMIT})"
)


@pytest.fixture
def story(cluster: Cluster, node: LocalNode, tmp_path: Path) -> Iterator[Story]:
    """A worker of a server that takes no more workers."""
    with temporal_server(tmp_path, NEWEST, settings={SETTING: len(NAMES)}) as server:
        requests = [DeployedWorker(server, name, "").create_request() for name in NAMES]
        server.asker.ask("create_worker_deployment", requests)
        write_settings(tmp_path, int(server.address.rpartition(":")[2]), {SETTING: LIMIT})
        eventually(lambda: is_full(server), SOON)
        with cluster.own_namespace() as namespace:
            (folder := cluster.folder / namespace / "specs").mkdir(parents=True)
            yield Story(cluster, node, server, server, namespace, folder)


def delete(server: TemporalServer, names: list[str]) -> None:
    """One that has no versions may be deleted at once."""
    requests = [
        DeleteWorkerDeploymentRequest(namespace="default", deployment_name=name, identity=IDENTITY)
        for name in names
    ]
    server.asker.ask("delete_worker_deployment", requests)


def is_full(server: TemporalServer) -> bool:
    """The server refuses one more worker."""
    one_more = DeployedWorker(server, "test/one-more", "")
    try:
        server.asker.ask("create_worker_deployment", [one_more.create_request()], retry=False)
    except RPCError as error:
        return "reached maximum deployments" in str(error)
    delete(server, [one_more.name])
    return False


def worker(story: Story, command: str) -> Document:
    """What a command prints of the one worker."""
    found: list[Document] = json.loads(story.run(command, "-o", "json").stdout)["workers"]
    assert len(found) == 1
    return found[0]


def test_worker_too_many_is_told_why_by_its_job_by_plan_and_by_status(story: Story) -> None:
    story.describe("v1", steps=())
    story.apply()

    def told() -> Document:
        status = story.status()
        assert status.get("message", "").startswith(TOLD), status
        return status

    status = eventually(told, SOON)
    assert (status["phase"], status["reason"]) == ("Waiting", "WaitingForRegistration")
    assert worker(story, "plan")["routing"]["because"].startswith(TOLD)
    assert worker(story, "status")["because"].startswith(TOLD)
    found = worker(story, "snapshot")
    assert (found["temporal"], found["workerDeployments"]) == (None, len(NAMES))
    delete(story.temporal, NAMES[LIMIT - 1 :])
    story.stands("Settled", "v1")
