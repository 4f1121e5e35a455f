"""One worker rendered from what two real servers say of it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import TWGEN, Row, measured
from testing.asking import succeeds
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.processes import eventually
from testing.servers import temporal_server
from testing.workers import DeployedWorker

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
            (cost,) = measured(render)
            before = temporal.calls()
            subprocess.run(render, check=True, capture_output=True)
            calls = temporal.calls()[_DESCRIBE] - before[_DESCRIBE]
    yield Row("live render of one worker", str(cost), "0.6 s", cost.seconds < 0.6)
    yield Row("its calls to Temporal", f"{calls} {_DESCRIBE}", "1", calls == 1)


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
