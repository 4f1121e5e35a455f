"""Why a version has no pod that is available, told by a real API server."""

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.processes import eventually
from tests.servers.pods import deployment, shell
from tests.servers.specs import worker_spec
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient
from twgen.model.spec import Connection
from twgen.model.world import WorkerWorld
from twgen.planning.reads import further_reads
from twgen.reading.kubernetes import ClusterReader

pytestmark = pytest.mark.server

MAY_LIST_DEPLOYMENTS = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}


def applied(cluster: Cluster, namespace: str, script: str, *, becomes_ready: bool = True) -> None:
    """A version `v1` of the worker `pay` that runs the script."""
    document = deployment(namespace, "pay-v1", shell(script))
    labels = {"temporal.io/deployment-name": "pay", "temporal.io/build-id": "v1"}
    document["metadata"]["labels"] = labels
    document["spec"]["selector"]["matchLabels"] = labels
    document["spec"]["template"]["metadata"]["labels"] = labels
    if not becomes_ready:
        (container,) = document["spec"]["template"]["spec"]["containers"]
        container["readinessProbe"] = {"exec": {"command": ["/bin/false"]}}
    cluster.apply([document])


def problems(kubeconfig: Path | str, namespace: str) -> Mapping[str, str]:
    """What is read of the pods of the worker `pay` of the namespace."""
    spec = replace(worker_spec("pay", "v1", Connection("here", "127.0.0.1:1")), namespace=namespace)

    async def read(client: KubernetesClient) -> Mapping[str, str]:
        cluster = ClusterReader(client, Deadline(60))
        live = await cluster.deployments(spec)
        world = WorkerWorld(spec.worker_deployment, "default", deployments=live)
        now = live[0].created_at
        assert now
        pods_of = further_reads(spec, world, now, for_routing=True).pods_of
        return await cluster.pod_problems(spec, pods_of)

    with closing(KubernetesClient(ClusterAccess(str(kubeconfig)))) as client:
        return asyncio.run(read(client))


def test_pod_that_crashes_is_told_with_its_exit_code(
    cluster: Cluster,
    node: LocalNode,  # noqa: ARG001
    namespace: str,
) -> None:
    applied(cluster, namespace, "exit 3")

    def crashed() -> bool:
        problem = problems(cluster.kubeconfig, namespace).get("v1", "")
        return problem.startswith("crashes (Error, exit code 3) and waits (CrashLoopBackOff)")

    eventually(crashed)


def test_pod_that_runs_has_no_problem(
    cluster: Cluster,
    node: LocalNode,  # noqa: ARG001
    namespace: str,
) -> None:
    applied(cluster, namespace, "sleep 1000")
    eventually(lambda: cluster.get("deployment", "pay-v1", namespace)["status"].get("availableReplicas"))
    assert problems(cluster.kubeconfig, namespace) == {}


def test_pods_that_may_not_be_listed_fail_nothing(cluster: Cluster, namespace: str) -> None:
    applied(cluster, namespace, "sleep 1000", becomes_ready=False)
    kubeconfig = cluster.user("careful", [MAY_LIST_DEPLOYMENTS], namespace)
    assert problems(kubeconfig, namespace) == {
        "v1": "cannot be read: the account needs the verb list on pods in this namespace"
    }
