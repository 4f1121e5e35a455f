"""The commands on what a real server says of two real versions."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import planned, printed, run, worker_document, write_specs
from twgen.yaml.reader import read_documents

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def specs(temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The specs of `v2`, which has just been registered beside `v1`, the current version; `v1` is locked."""
    folder = tmp_path_factory.mktemp("live")
    write_specs(folder, temporal.address, worker_document("orders", "v1", steps=(33.5,)))
    assert run(folder, "lock", options=()).code == 0
    worker = DeployedWorker(temporal, "live/orders", "orders")
    with ExitStack() as stack:
        for version in ("v1", "v2"):
            stack.enter_context(worker.version(version))
            eventually(lambda: succeeds(lambda: worker.set_current("v1")))
        write_specs(folder, temporal.address, worker_document("orders", "v2", steps=(33.5,)))
        eventually(lambda: "buildID: v2" in printed(folder, "snapshot"))
        yield folder


def test_plan_ramps_the_new_version(specs: Path) -> None:
    def first_step() -> dict[str, Any]:
        [worker] = planned(specs)
        routing: dict[str, Any] = worker["routing"]
        assert routing["action"] == "SetRamp", routing
        return routing

    routing = eventually(first_step)
    assert (routing["buildID"], routing["percentage"], routing["claimManager"]) == ("v2", 33.5, True)


def test_render_holds_both_versions(specs: Path) -> None:
    def labels() -> set[str]:
        manifests = read_documents(printed(specs, "render"))
        return {manifest["metadata"]["labels"]["temporal.io/build-id"] for manifest in manifests}

    # for a moment after a change the oldest server knows no worker
    eventually(lambda: labels() == {"v1", "v2"})


def test_plan_of_a_recorded_snapshot_is_the_plan_of_the_server(specs: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "snapshot.yaml"
    command = ("plan", "-o", "json", "--identity", "me")

    def are_the_same() -> bool:
        recorded.write_text(printed(specs, "snapshot"))
        offline = run(specs, *command, options=("--snapshot", str(recorded)))
        online = printed(specs, *command)
        assert json.loads(offline.stdout)["workers"] == json.loads(online)["workers"]
        return True

    # for a moment after a change the oldest server knows no worker
    eventually(are_the_same)
