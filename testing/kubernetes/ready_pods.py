"""Makes Pods ready although no node runs them."""

from contextlib import suppress

from testing.kubernetes.api import Refused
from testing.kubernetes.cluster import Cluster

_READY = {
    "phase": "Running",
    "conditions": [
        {"type": name, "status": "True"}
        for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ],
}


def make_ready(cluster: Cluster, namespace: str) -> int:
    """Make the pending Pods in a namespace ready; returns their number."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    waiting = [pod for pod in cluster.api.get(path)["items"] if pod["status"].get("phase") == "Pending"]
    for pod in waiting:
        # a Pod may just have been deleted
        with suppress(Refused):
            cluster.api.patch(f"{path}/{pod['metadata']['name']}/status", {"status": _READY})
    return len(waiting)
