"""How many calls a command makes, by the server's own count, and many workers inside its read limit."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.servers import NEWEST, TemporalServer, temporal_server
from testing.workers import DeployedWorker
from tests.servers.live import ALONE, Ended, run, worker_document, write_specs

pytestmark = pytest.mark.server

MANY, REGISTERED = 300, 60
"""Worker Deployments, and how many of them have a version."""
TIMEOUT = 40.0


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    """A server with the read limit that is its default, 50 a second, and many workers."""
    settings = {"matching.maxDeployments": 2 * MANY}
    with temporal_server(tmp_path_factory.mktemp("crowded"), NEWEST, settings=settings) as server:
        create_workers(server)
        yield server


def names(count: int) -> list[str]:
    return [f"crowd-{number}" for number in range(count)]


def create_workers(server: TemporalServer) -> None:
    workers = [DeployedWorker(server, f"live/{name}", "") for name in names(MANY)]
    server.asker.ask("create_worker_deployment", [worker.create_request() for worker in workers])
    versions = [worker.create_version_request("v1") for worker in workers[:REGISTERED]]
    server.asker.ask("create_worker_deployment_version", versions)


def calls_of(server: TemporalServer, folder: Path, count: int, *command: str) -> tuple[Ended, Counter[str]]:
    """How a command on so many workers ended, and what it asked."""
    workers = (worker_document(name, "v1") for name in names(count))
    write_specs(folder, server.address, *workers)
    before = server.calls()
    ended = run(folder, *command, options=(*ALONE, "--timeout", f"{TIMEOUT:g}s"))
    return ended, server.calls() - before


def test_render_describes_each_worker_once(crowded: TemporalServer, tmp_path: Path) -> None:
    ended, calls = calls_of(crowded, tmp_path, 40, "render")
    assert (ended.code, ended.stderr) == (0, "")
    assert calls == {"DescribeWorkerDeployment": 40, "GetSystemInfo": 1}


def test_plan_describes_each_target_once_more(crowded: TemporalServer, tmp_path: Path) -> None:
    ended, calls = calls_of(crowded, tmp_path, 3, "plan")
    assert (ended.code, ended.stderr) == (0, "")
    # the SDK greets each server, and the plan reads the version of each
    assert calls == {
        "DescribeWorkerDeployment": 3,
        "DescribeWorkerDeploymentVersion": 3,
        "GetSystemInfo": 2,
    }


def test_many_workers_are_planned_inside_the_read_limit(crowded: TemporalServer, tmp_path: Path) -> None:
    ended, calls = calls_of(crowded, tmp_path, MANY, "plan", "-o", "json")
    assert (ended.code, ended.stderr) == (0, "")
    assert [worker["phase"] for worker in json.loads(ended.stdout)["workers"]] == ["Waiting"] * MANY
    assert ended.seconds < TIMEOUT
    # no call was refused and made again
    assert (calls["DescribeWorkerDeployment"], calls["DescribeWorkerDeploymentVersion"]) == (MANY, REGISTERED)
