"""Record the three versions in examples/three-versions from a real Temporal server, and write their ledger.

Run `make example` when the snapshot format changes. In `before.yaml`, the newest version has just been
committed. In `snapshot.yaml`, it has its first share. There is no cluster: the Deployments are those that
twgen renders, in the form that an API server returns.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import temporal_server
from testing.workers import DeployedWorker
from twgen.model.problem import Document
from twgen.specs.kinds import LEDGER_FOLDER
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.versioning.names import BUILD_ID_LABEL
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

EXAMPLE = Path("examples/three-versions")
ADDRESS = "temporal.example.com:7233"
OLD_TAGS = ("v1.4.2", "v2.0.1")
NEW_TAG = "v3.0.0"
MANAGER = "twgen/prod-eu/payments"
TWGEN = str(Path(sys.executable).with_name("twgen"))


def main() -> None:
    """Write the snapshots and the ledger of the example."""
    worker, connection = _file("worker.yaml"), _file("connection.yaml")
    shutil.rmtree(EXAMPLE / LEDGER_FOLDER, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        temporal_server(Path(folder)) as server,
        ExitStack() as stack,
    ):
        specs = Path(folder) / "specs"
        specs.mkdir()
        deployed = DeployedWorker(server, "shop/payments", "payments")
        builds = []
        for tag in (*OLD_TAGS, NEW_TAG):
            text = worker.replace(NEW_TAG, tag)
            _lock(text)
            builds.append(_build_id(f"{text}---\n{connection}"))
        (specs / "worker.yaml").write_text(worker)
        (specs / "connection.yaml").write_text(connection.replace(ADDRESS, server.address))
        for build_id in builds[:2]:
            stack.enter_context(deployed.version(build_id))
        _roll_out(deployed, builds[:2])
        deployed.set_manager(MANAGER)
        before = eventually(lambda: _snapshot(specs), 60)
        stack.enter_context(deployed.version(builds[2]))
        deployed.set_manager("")  # a server accepts a ramp only from the manager
        eventually(lambda: succeeds(lambda: deployed.set_ramp(builds[2], 5)), 60)
        deployed.set_manager(MANAGER)
        snapshot = eventually(lambda: _snapshot(specs), 60)
    write_with_cluster("before.yaml", before, dict(zip(builds[:2], (2, 6), strict=True)))
    write_with_cluster("snapshot.yaml", snapshot, dict(zip(builds, (2, 6, 2), strict=True)))


def write_with_cluster(name: str, snapshot: str, replicas: Mapping[str, int]) -> None:
    """Write a snapshot, and add Deployments with these numbers of pods to its versions."""
    file = EXAMPLE / name
    file.write_text(snapshot)
    rendered = _twgen("render", EXAMPLE, "--snapshot", file, "-q")
    [document] = read_documents(snapshot)
    created = {one["buildID"]: one["createdAt"] for one in document["workers"][0]["temporal"]["versions"]}
    manifests = [item for item in read_documents(rendered) if item["kind"] == "Deployment"]
    document["workers"][0]["deployments"] = [
        deployed_as(item, replicas[build_id], f"{created[build_id][:19]}Z")
        for item in manifests
        if (build_id := item["metadata"]["labels"][BUILD_ID_LABEL]) in replicas
    ]
    file.write_text(write_documents([document]))


def deployed_as(manifest: dict[str, Any], replicas: int, created_at: str) -> dict[str, Any]:
    """A rendered Deployment in the form that an API server returns after an autoscaler has scaled it."""
    sized = {"manager": "kube-controller-manager", "operation": "Update", "subresource": "scale"}
    manifest["metadata"] |= {
        "uid": str(uuid5(NAMESPACE_URL, manifest["metadata"]["name"])),
        "generation": 2,
        "creationTimestamp": created_at,
        "managedFields": [{**sized, "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
    }
    manifest["spec"] = {"replicas": replicas, **manifest["spec"]}
    manifest["status"] = {
        "observedGeneration": 2,
        "replicas": replicas,
        "updatedReplicas": replicas,
        "availableReplicas": replicas,
        "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
    }
    return manifest


def _file(name: str) -> str:
    return (EXAMPLE / name).read_text()


def _lock(text: str) -> None:
    spec = EXAMPLE / "worker.yaml"
    current = spec.read_text()
    try:
        spec.write_text(text)
        subprocess.run([TWGEN, "lock", EXAMPLE], check=True)
    finally:
        spec.write_text(current)


def _build_id(text: str) -> str:
    documents = [Document("", index, value) for index, value in enumerate(read_documents(text))]
    return parse_specs(documents, NamespaceRule()).workers[0].build_id


def _roll_out(deployed: DeployedWorker, builds: list[str]) -> None:
    first, second = builds
    eventually(lambda: succeeds(lambda: deployed.set_current(first)), 60)
    deployed.start("WaitingWorkflow", "order-1001")
    eventually(lambda: succeeds(lambda: deployed.set_current(second)), 60)
    deployed.start("WaitingWorkflow", "order-1002")


def _snapshot(specs: Path) -> str:
    snapshot = _twgen("snapshot", specs, "--allow-unlisted-connections", "--no-cluster")
    return snapshot if "Draining" in snapshot and "pollers: true" in snapshot else ""


def _twgen(*command: str | Path) -> str:
    return subprocess.run([TWGEN, *command], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
