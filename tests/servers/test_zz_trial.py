import time, json
import pytest
from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.servers import TemporalServer
from testing.processes import eventually
from testing.worker_controller import worker_controller, NAMESPACE
from tests.servers.live import *
from tests.servers.gitops import budget_document
pytestmark = pytest.mark.server

def test_trial(cluster: Cluster, node: LocalNode, newest_temporal: TemporalServer, namespace: str):
    w = worker_document("greeter", "v1", steps=())
    w["spec"]["template"]["spec"]["containers"] = [worker_container("v1", f"q-{namespace}")]
    w["spec"]["sunset"] = {"scaledownDelay": "1h", "deleteDelay": "24h"}
    docs = in_namespace(namespace, connection_document(newest_temporal.address), w, budget_document("greeter"))
    with worker_controller(cluster, namespace) as identity:
        cluster.apply(docs)
        def up():
            found = cluster.api.get(f"/apis/temporal.io/v1alpha1/namespaces/{namespace}/workerdeployments/greeter")
            print(json.dumps(found.get("status")))
            for pod in cluster.list("pods", NAMESPACE):
                print(node.logs(NAMESPACE, pod["metadata"]["name"])[-1500:])
            return found.get("status", {}).get("currentVersion", {}).get("buildID") == "v1"
        try:
            eventually(up, 120)
        finally:
            print(identity)
            print(json.dumps(cluster.list("deployments,poddisruptionbudgets", namespace), indent=1))
            print(json.dumps(cluster.api.get(f"/apis/temporal.io/v1alpha1/namespaces/{namespace}/workerresourcetemplates/budget"), indent=1))
            print(cluster.kubectl("get","connections,workerdeployments","-n",namespace,"-o","yaml"))
