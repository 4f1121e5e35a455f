"""Records of versions that are over, deleted in real servers."""

import json
from pathlib import Path

import pytest

from testing.kubernetes.cluster import Cluster
from testing.processes import eventually
from testing.servers import NEWEST, OLDEST, temporal_server
from testing.workers import DeployedWorker
from tests.servers.live import (
    PATIENT,
    connection_document,
    in_namespace,
    run,
    worker_container,
    worker_document,
)
from tests.servers.rollouts import SOON
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
BUILD_IDS = tuple(f"v{number}" for number in range(1, 9))
HELD = ("v1", "v3")
"""Versions to which workflows are pinned after they have drained."""


@pytest.mark.parametrize("release", [NEWEST, OLDEST], ids=["newest", "oldest"])
def test_old_records_go_and_those_with_open_workflows_and_the_newest_stay(
    cluster: Cluster, tmp_path: Path, release: str
) -> None:
    # a version that was polled lately is not deleted, and by default five minutes are lately
    settings = {"matching.PollerHistoryTTL": "3s"}
    with (
        cluster.own_namespace() as namespace,
        temporal_server(tmp_path, release, settings=settings) as server,
    ):
        worker = DeployedWorker(server, f"{namespace}/greeter", "greetings")
        for build_id in BUILD_IDS:
            with worker.version(build_id):
                eventually(lambda build_id=build_id: _is_current(worker, build_id), SOON)
        (folder := tmp_path / "specs").mkdir()
        document = worker_document("greeter", BUILD_IDS[-1], steps=())
        document["spec"]["template"]["spec"]["containers"] = [worker_container(BUILD_IDS[-1], "greetings")]
        document["spec"]["sunset"] = {"scaledownDelay": "1s", "deleteDelay": "1s"}
        documents = in_namespace(namespace, connection_document(server.address), document)
        (folder / "specs.yaml").write_text(write_documents(documents))
        options = ("--kubeconfig", str(cluster.kubeconfig), "--keep", "2", *PATIENT)

        def shown() -> str:
            ended = run(folder, "prune", options=("--dry-run", *options))
            assert ended.code == 0, ended
            assert f"would delete the {len(BUILD_IDS) - 3} records" in ended.stderr, ended
            return ended.stderr

        assert "v1: drained for" in eventually(shown, SOON)
        for build_id in HELD:
            worker.start("WaitingWorkflow", f"held-by-{build_id}", pinned_to=build_id)

        def pruned() -> dict[str, object]:
            ended = run(folder, "prune", options=("-y", "-o", "json", *options))
            found: dict[str, object] = json.loads(ended.stdout)
            return found

        assert run(folder, "prune", options=options).code == 2, "it asks, and nobody is there"
        expected = {*BUILD_IDS[:-3]} - {*HELD}
        gone: set[str] = set()

        def all_gone() -> bool:
            gone.update(pruned()["deleted"])
            return gone == expected

        eventually(all_gone, SOON)
        left = {version.deployment_version.build_id for version in worker.described().version_summaries}
        assert left == {*BUILD_IDS} - expected
        again = run(folder, "prune", options=("-y", *options))
        assert (again.code, again.stdout) == (0, f"{namespace}/greeter: deleted 0 records\n")


def _is_current(worker: DeployedWorker, build_id: str) -> bool:
    from temporalio.service import RPCError

    try:
        worker.set_current(build_id)
    except RPCError:
        return False
    return True
