"""Runs the Temporal Worker Controller in a cluster, like its chart."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import copyfile

from testing.credentials import Authority
from testing.install import installed
from testing.kubernetes.api import Object
from testing.kubernetes.cluster import Cluster
from testing.processes import eventually
from testing.recipes import WORKER_CONTROLLER

NAMESPACE = "temporal-system"
NAME = "temporal-worker-controller-manager"
_RELEASE = "temporal-worker-controller"
_CERTIFICATES = Path("k8s-webhook-server", "serving-certs")
"""The folder of its webhooks' certificates, below TMPDIR."""


@cache
def define_kinds(cluster: Cluster) -> None:
    """Define the controller's kinds, as its chart does."""
    cluster.define_kinds(installed(WORKER_CONTROLLER).with_name("crds"))


@contextmanager
def worker_controller(cluster: Cluster, watched: str) -> Iterator[str]:
    """Run the controller on the local node for one namespace; returns its manager identity.

    The port of its webhooks is fixed: if another process uses it, the controller's Pod waits.
    """
    define_kinds(cluster)
    folder = cluster.folder / _RELEASE
    _certificates(folder)
    if not cluster.api.find(f"/api/v1/namespaces/{NAMESPACE}"):
        cluster.create_namespace(NAMESPACE)
    place = {"name": _RELEASE, "namespace": NAMESPACE}
    account = {"kind": "ServiceAccount", **place}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    cluster.apply(
        [
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": _RELEASE, "namespace": NAMESPACE},
            },
            {**binding, "metadata": {"name": _RELEASE}, "subjects": [account], "roleRef": role},
            _deployment(folder, watched),
        ]
    )
    try:
        uid = cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}")["metadata"]["uid"]
        yield f"{_RELEASE}/{NAMESPACE}/{uid}"
    finally:
        cluster.clear(NAMESPACE)
        eventually(lambda: not cluster.list("pods", NAMESPACE))


def _certificates(folder: Path) -> None:
    place = folder / _CERTIFICATES
    place.mkdir(parents=True, exist_ok=True)
    files = Authority(folder, "webhooks").server()
    copyfile(files.certificate, place / "tls.crt")
    copyfile(files.key, place / "tls.key")


def _deployment(folder: Path, watched: str) -> Object:
    labels = {"app.kubernetes.io/name": _RELEASE}
    container = {
        "name": "manager",
        "image": f"example.com/{_RELEASE}:{WORKER_CONTROLLER.version}",
        "command": [str(installed(WORKER_CONTROLLER))],
        "args": ["--metrics-bind-address=0", "--health-probe-bind-address=0"],
        "env": [
            {"name": "CONTROLLER_IDENTITY", "value": f"{_RELEASE}/{NAMESPACE}"},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "ALLOWED_KINDS", "value": "HorizontalPodAutoscaler,PodDisruptionBudget"},
            {"name": "WATCH_NAMESPACES", "value": watched},
            {"name": "TMPDIR", "value": str(folder)},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"serviceAccountName": _RELEASE, "containers": [container]},
            },
        },
    }
