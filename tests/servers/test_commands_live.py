"""The commands on what a real server says of two real versions."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import TWGEN, printed
from twgen.model.document import Document
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server


def documents(server: TemporalServer, tag: str) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "temporal.io/v1alpha1",
            "kind": "WorkerDeployment",
            "metadata": {"name": "orders", "namespace": "live"},
            "spec": {
                "replicas": 2,
                "workerOptions": {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"},
                "rollout": {
                    "strategy": "Progressive",
                    "steps": [{"rampPercentage": 33.5, "pauseDuration": "10m"}],
                },
                "template": {"spec": {"containers": [{"name": "worker", "image": f"orders:{tag}"}]}},
            },
        },
        {
            "apiVersion": "temporal.io/v1alpha1",
            "kind": "Connection",
            "metadata": {"name": "temporal", "namespace": "live"},
            "spec": {"hostPort": server.address},
        },
    ]


def build_id(server: TemporalServer, tag: str) -> str:
    values = enumerate(documents(server, tag))
    return parse_specs([Document("", *value) for value in values], NamespaceRule()).workers[0].build_id


@pytest.fixture(scope="module")
def specs(temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The specs of `v2`, which has just been registered beside `v1`, the current version; `v1` is locked."""
    folder = tmp_path_factory.mktemp("live")
    file = folder / "orders.yaml"
    file.write_text(write_documents(documents(temporal, "v1")))
    subprocess.run([TWGEN, "lock", folder], check=True)
    worker = DeployedWorker(temporal, "live/orders", "orders")
    old, new = build_id(temporal, "v1"), build_id(temporal, "v2")
    with ExitStack() as stack:
        for version in (old, new):
            stack.enter_context(worker.version(version))
            eventually(lambda: succeeds(lambda: worker.set_current(old)))
        file.write_text(write_documents(documents(temporal, "v2")))
        eventually(lambda: new in printed(folder, "snapshot"))
        yield folder


def test_plan_ramps_the_new_version(temporal: TemporalServer, specs: Path) -> None:
    def first_step() -> dict[str, Any] | None:
        (worker,) = json.loads(printed(specs, "plan", "-o", "json", "--identity", "me"))["workers"]
        routing: dict[str, Any] = worker["routing"]
        return routing if routing["action"] == "SetRamp" else None

    routing = eventually(first_step)
    assert routing
    assert (routing["buildID"], routing["percentage"]) == (build_id(temporal, "v2"), 33.5)
    assert routing["claimManager"]


def test_render_holds_both_versions(temporal: TemporalServer, specs: Path) -> None:
    manifests = read_documents(printed(specs, "render"))
    labels = {manifest["metadata"]["labels"]["temporal.io/build-id"] for manifest in manifests}
    assert labels == {build_id(temporal, "v1"), build_id(temporal, "v2")}


def test_plan_of_a_recorded_snapshot_is_the_plan_of_the_server(specs: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "snapshot.yaml"
    recorded.write_text(printed(specs, "snapshot"))
    offline = [TWGEN, "plan", specs, "--snapshot", recorded, "-o", "json", "--identity", "me"]
    plan = json.loads(subprocess.run(offline, capture_output=True, check=True).stdout)
    live = json.loads(printed(specs, "plan", "-o", "json", "--identity", "me"))
    assert plan["workers"] == live["workers"]
