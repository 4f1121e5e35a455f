"""Counting the workflows that hold versions: with few calls, and also where the server forgets them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import printed, recorded_versions, run, worker_document, write_specs
from tests.servers.reading import clients
from tests.servers.specs import worker_spec
from twgen.clients.deadline import Deadline
from twgen.reading.temporal.reader import TemporalReader

pytestmark = pytest.mark.server

WORKERS, VERSIONS = 40, 25


@pytest.fixture(scope="module")
def held(temporal: TemporalServer) -> Iterator[DeployedWorker]:
    """A worker whose current version holds a pinned workflow and one that will be upgraded."""
    worker = DeployedWorker(temporal, "default/held-7", "held-7")
    with worker.version("v7"):
        eventually(lambda: succeeds(lambda: worker.set_current("v7")))
        worker.start("WaitingWorkflow", "held-waits", pinned_to="v7")
        worker.start("UpgradingWorkflow", "held-upgrades")
        yield worker


def test_versions_of_many_workers_are_counted_with_few_calls(held: DeployedWorker) -> None:
    async def counted() -> dict[str, dict[str, int]]:
        shared = TemporalReader(clients(), Deadline(60))
        specs = [worker_spec(f"held-{number}", "v", held.server.connection) for number in range(WORKERS)]
        build_ids = [f"v{number}" for number in range(VERSIONS)]
        counts = await asyncio.gather(*(shared.open_workflows(spec, build_ids) for spec in specs))
        return {spec.name: dict(count) for spec, count in zip(specs, counts, strict=True)}

    eventually(lambda: asyncio.run(counted())["held-7"]["v7"])
    before = held.server.calls()
    found = asyncio.run(counted())
    assert {(name, key) for name, each in found.items() for key, number in each.items() if number} == {
        ("held-7", "v7")
    }
    assert sum(len(each) for each in found.values()) == WORKERS * VERSIONS
    assert (held.server.calls() - before)["CountWorkflowExecutions"] < WORKERS


def test_workflows_that_upgrade_by_themselves_are_counted_apart(held: DeployedWorker) -> None:
    spec = worker_spec("held-7", "v7", held.server.connection)

    async def counts() -> list[int]:
        shared = TemporalReader(clients(), Deadline(60))
        named = [("default/held-7", "v7")]
        return [await shared.count(spec, named, kind) for kind in ("Pinned", "AutoUpgrade")]

    eventually(lambda: asyncio.run(counts()) == [1, 1])


def test_drained_version_without_a_deployment_that_a_workflow_is_pinned_to_has_pods_again(
    temporal: TemporalServer, tmp_path: Path
) -> None:
    worker = DeployedWorker(temporal, "live/forgotten", "forgotten")

    def describe(build_id: str) -> None:
        document = worker_document("forgotten", build_id)
        document["spec"]["sunset"] = {"scaledownDelay": "0s", "deleteDelay": "0s"}
        write_specs(tmp_path, temporal.address, document)

    def version() -> dict[str, object]:
        [of_v1] = [item for item in recorded_versions(tmp_path) if item["buildID"] == "v1"]
        return dict(of_v1)

    def replicas() -> int:
        [of_v1] = [
            item
            for item in yaml.safe_load_all(printed(tmp_path, "render"))
            if (item["kind"], item["metadata"]["name"]) == ("Deployment", "forgotten-v1")
        ]
        return int(of_v1["spec"]["replicas"])

    describe("v1")
    assert run(tmp_path, "lock", options=()).code == 0
    describe("v2")
    with worker.version("v1"):
        eventually(lambda: succeeds(lambda: worker.set_current("v1")))
        with worker.version("v2"):
            eventually(lambda: succeeds(lambda: worker.set_current("v2")))
            eventually(lambda: version()["status"] == "Drained")
            assert version()["openWorkflows"] == 0
            eventually(lambda: replicas() == 0)
            worker.start("WaitingWorkflow", "forgotten-waits", pinned_to="v1")
            eventually(lambda: replicas() == 1)
            worker.finish("forgotten-waits")
