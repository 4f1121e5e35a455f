"""Versioned Deployments as twgen renders them run real workers, which register with a real Temporal."""

import json
from pathlib import Path

import pytest

from testing.asking import succeeds
from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import (
    ALONE,
    PATIENT,
    Document,
    connection_document,
    run,
    worker_container,
    worker_document,
)
from tests.servers.pods import condition
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

WORKER = "greeter"
TASK_QUEUE = "greetings"


def write_version(folder: Path, temporal: TemporalServer, namespace: str, build_id: str) -> None:
    worker = worker_document(WORKER, build_id)
    worker["spec"]["template"]["spec"]["containers"] = [worker_container(build_id, TASK_QUEUE)]
    documents = [connection_document(temporal.address), worker]
    for document in documents:
        document["metadata"]["namespace"] = namespace
    (folder / "specs.yaml").write_text(write_documents(documents))


def applied(cluster: Cluster, folder: Path) -> None:
    options = ["--kubeconfig", str(cluster.kubeconfig), "-q", *PATIENT]
    rendered = run(folder, "render", options=options)
    assert rendered.code == 0, rendered.stderr
    cluster.apply(read_documents(rendered.stdout))


def registered(folder: Path) -> dict[str, Document]:
    """The worker's versions that Temporal knows, by build ID."""
    options = [*ALONE, "-o", "json"]
    [worker] = json.loads(run(folder, "snapshot", options=options).stdout)["workers"]
    return {version["buildID"]: version for version in (worker["temporal"] or {}).get("versions", [])}


def await_version(cluster: Cluster, folder: Path, namespace: str, build_id: str) -> None:
    """Its Deployment is Available, and its worker registered."""
    deployment = f"deployment/{WORKER}-{build_id}"
    cluster.kubectl("rollout", "status", deployment, "--namespace", namespace, "--timeout=120s")
    eventually(lambda: build_id in registered(folder))


def test_rendered_deployments_run_workers_that_register(
    cluster: Cluster, node: LocalNode, oldest_temporal: TemporalServer, namespace: str, tmp_path: Path
) -> None:
    write_version(tmp_path, oldest_temporal, namespace, "v1")
    applied(cluster, tmp_path)
    await_version(cluster, tmp_path, namespace, "v1")
    worker = DeployedWorker(oldest_temporal, f"{namespace}/{WORKER}", TASK_QUEUE)
    eventually(lambda: succeeds(lambda: worker.set_current("v1")))
    write_version(tmp_path, oldest_temporal, namespace, "v2")
    applied(cluster, tmp_path)
    await_version(cluster, tmp_path, namespace, "v2")

    def are_told() -> bool:
        known = registered(tmp_path)
        statuses = {build_id: known[build_id]["status"] for build_id in known}
        assert statuses == {"v1": "Current", "v2": "Inactive"}
        options = ["--kubeconfig", str(cluster.kubeconfig), *PATIENT]
        status = run(tmp_path, "status", options=options).stdout
        assert f"{namespace}/{WORKER} v1: 100%, Current for" in status
        return status.count(", 1/1 pods") == 2

    # for a moment after a change the server knows no worker
    eventually(are_told)
    pods = cluster.list("pods", namespace)
    assert [condition(one, "Ready") for one in pods] == ["True", "True"]
    assert [node.logs(namespace, one["metadata"]["name"]) for one in pods] == ["", ""]
