"""Pods, Deployments and Jobs that run a command on the local node."""

from collections.abc import Mapping, Sequence
from typing import Any

from testing.kubernetes.api import Object
from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.processes import eventually

UNTIL_TERMINATED = "trap 'echo terminated; exit 0' TERM; echo started; while :; do sleep 1 & wait $!; done"

# in a command, Kubernetes takes two of these for one
SAY_PROCESS = "echo $$$$"


def shell(script: str, **more: Any) -> Object:
    """A container that runs a shell script."""
    return {"name": "main", "image": "local", "command": ["sh", "-c", script], **more}


def pod(namespace: str, name: str, *containers: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": list(containers), **spec},
    }


def deployment(namespace: str, name: str, container: Object, *, replicas: int = 1, **spec: Any) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def job(namespace: str, name: str, container: Object, **spec: Any) -> Object:
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": template, **spec},
    }


def condition(document: Object, kind: str) -> str:
    """The status of a condition; empty when there is none."""
    conditions = document.get("status", {}).get("conditions", [])
    return next((entry["status"] for entry in conditions if entry["type"] == kind), "")


def only_container(document: Object) -> Object:
    """The status of a Pod's one container; empty before there is one."""
    [status] = document.get("status", {}).get("containerStatuses", [{}])
    return dict(status)


def config_map(namespace: str, name: str, data: Mapping[str, str], kind: str = "ConfigMap") -> Object:
    entries = "data" if kind == "ConfigMap" else "stringData"
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        entries: dict(data),
    }


def pods(cluster: Cluster, namespace: str, name: str) -> Sequence[Object]:
    """The Pods of a Deployment or a Job that are not being deleted."""
    found = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector=app={name}")["items"]
    return [one for one in found if "deletionTimestamp" not in one["metadata"]]


def await_phase(cluster: Cluster, namespace: str, name: str, phase: str) -> Object:
    def reached() -> Object | None:
        document = cluster.get("pod", name, namespace)
        return document if document["status"]["phase"] == phase else None

    document = eventually(reached)
    assert document
    return document


def first_line(node: LocalNode, namespace: str, name: str) -> str:
    """What the process says first; the shell writes a line at once."""
    return eventually(lambda: node.logs(namespace, name)).splitlines()[0]
