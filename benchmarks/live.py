"""One worker rendered from what two real servers say of it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import TWGEN, Row, measured, times
from testing.asking import succeeds
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.processes import eventually
from testing.servers import temporal_server
from testing.workers import DeployedWorker

_IMPORTS = [sys.executable, "-c", "import temporalio.service, kubernetes.client"]
_DESCRIBE = "DescribeWorkerDeployment"


def live(folder: Path) -> Iterator[Row]:
    """A live render of one worker, and how often it asks."""
    folder.mkdir()
    with temporal_server(folder) as temporal, kubernetes_cluster(folder) as cluster:
        specs = _write_specs(folder / "specs", temporal.address)
        worker = DeployedWorker(temporal, "shop/pay", "pay")
        cluster.kubectl("create", "namespace", "shop")
        options = ["--kubeconfig", str(cluster.kubeconfig), "--allow-unlisted-connections", "-q"]
        render = [TWGEN, "render", str(specs), *options]
        with worker.version("v1"):
            eventually(lambda: succeeds(lambda: worker.set_current("v1")))
            rendered = subprocess.run(render, check=True, capture_output=True, text=True).stdout
            cluster.kubectl("apply", "-f", "-", input=rendered)
            ours, imports = measured(render, _IMPORTS, rounds=10)
            asked, listed = temporal.calls()[_DESCRIBE], _lists(cluster)
            subprocess.run(render, check=True, capture_output=True)
            asked, listed = temporal.calls()[_DESCRIBE] - asked, _lists(cluster) - listed
    yield times("live render of one worker", (ours, imports), 1.3, "the imports of both clients", most_mib=80)
    yield Row("its calls to Temporal", f"{asked} {_DESCRIBE}", "1", asked == 1)
    yield Row("its calls to Kubernetes", f"{listed} LIST of deployments", "at most 1", listed <= 1)


def _lists(cluster: Cluster) -> int:
    """How often the API server has listed the Deployments of one namespace."""
    return served(cluster, 'resource="deployments"', 'verb="LIST"', 'scope="namespace"')


def served(cluster: Cluster, *labels: str) -> int:
    """How many requests with these labels the API server has answered, by its own count."""
    metrics = cluster.kubectl("get", "--raw", "/metrics")
    counts = re.findall(r"^apiserver_request_total\{(.*)\} (\d+)$", metrics, re.MULTILINE)
    return sum(int(count) for found, count in counts if all(label in found for label in labels))


def _write_specs(folder: Path, address: str) -> Path:
    folder.mkdir()
    worker = {
        "replicas": 0,
        "workerOptions": {
            "connectionRef": {"name": "temporal"},
            "temporalNamespace": "default",
            "unsafeCustomBuildID": "v1",
        },
        "rollout": {"strategy": "AllAtOnce"},
        "template": {"spec": {"containers": [{"name": "worker", "image": "example.com/pay:1.0.0"}]}},
    }
    for kind, name, spec in (
        ("Connection", "temporal", {"hostPort": address}),
        ("WorkerDeployment", "pay", worker),
    ):
        metadata = {"name": name, "namespace": "shop"}
        document = {"apiVersion": "temporal.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
        (folder / f"{name}.json").write_text(json.dumps(document))
    return folder
