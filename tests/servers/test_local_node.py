"""The local node: Pods are processes of this machine that live and end as Pods do."""

import os
import sys
from pathlib import Path

import pytest

from testing.kubernetes.api import Object
from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode, local_node
from testing.processes import eventually, free_ports
from tests.servers.pods import (
    SAY_PROCESS,
    UNTIL_TERMINATED,
    await_phase,
    condition,
    config_map,
    deployment,
    first_line,
    job,
    only_container,
    pod,
    pods,
    shell,
)

pytestmark = pytest.mark.server


def waiting(cluster: Cluster, namespace: str, name: str, reason: str) -> Object:
    """The Pod, once its container waits for this reason."""

    def waits() -> Object:
        document = cluster.get("pod", name, namespace)
        assert only_container(document)["state"]["waiting"]["reason"] == reason
        return document

    return eventually(waits)


def await_available(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.kubectl("rollout", "status", f"deployment/{name}", "--namespace", namespace, "--timeout=120s")


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_deployment_becomes_available_and_rolls_over_to_a_new_template(
    cluster: Cluster, node: LocalNode, namespace: str
) -> None:
    for colour in ("green", "blue"):
        container = shell(f"echo $COLOUR; {UNTIL_TERMINATED}", env=[{"name": "COLOUR", "value": colour}])
        cluster.apply([deployment(namespace, "one", container, replicas=2)])
        await_available(cluster, namespace, "one")
        names = [one["metadata"]["name"] for one in pods(cluster, namespace, "one")]
        assert [first_line(node, namespace, name) for name in names] == [colour] * 2
    assert condition(cluster.get("deployment", "one", namespace), "Available") == "True"


def test_scaling_to_zero_stops_the_processes(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    container = shell(f"{SAY_PROCESS}; {UNTIL_TERMINATED}")
    cluster.apply([deployment(namespace, "one", container, replicas=2)])
    await_available(cluster, namespace, "one")
    names = [one["metadata"]["name"] for one in pods(cluster, namespace, "one")]
    processes = [int(first_line(node, namespace, name)) for name in names]
    assert all(is_alive(process) for process in processes)
    eventually(lambda: all("started" in node.logs(namespace, name) for name in names))
    cluster.kubectl("scale", "deployment/one", "--replicas=0", "--namespace", namespace)
    eventually(lambda: not cluster.list("pods", namespace))
    assert not any(is_alive(process) for process in processes)
    assert [node.logs(namespace, name).splitlines()[-1] for name in names] == ["terminated"] * 2


def test_deleted_pod_that_ignores_sigterm_is_killed_after_its_grace_period(
    cluster: Cluster, node: LocalNode, namespace: str
) -> None:
    container = shell(f"trap 'echo ignored' TERM; {SAY_PROCESS}; while :; do sleep 1 & wait $!; done")
    cluster.apply([pod(namespace, "one", container, terminationGracePeriodSeconds=1)])
    process = int(first_line(node, namespace, "one"))
    cluster.kubectl("delete", "pod", "one", "--namespace", namespace)
    assert not is_alive(process)
    assert "ignored" in node.logs(namespace, "one")


def test_job_fails_with_the_exit_code_of_its_process(
    cluster: Cluster, node: LocalNode, namespace: str
) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [5]}}
    cluster.apply([job(namespace, "one", shell("exit 5"), podFailurePolicy={"rules": [rule]})])
    cluster.kubectl("wait", "--for=condition=Failed", "job/one", "-n", namespace, "--timeout=120s")
    [failed] = cluster.list("pods", namespace)
    assert only_container(failed)["state"]["terminated"]["exitCode"] == 5
    assert node.logs(namespace, failed["metadata"]["name"]) == ""


def test_crash_looping_pod_is_not_ready(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    cluster.apply([pod(namespace, "one", shell("echo again; exit 3"))])
    eventually(lambda: node.logs(namespace, "one").count("again") >= 2)
    document = waiting(cluster, namespace, "one", "CrashLoopBackOff")
    assert document["status"]["phase"] == "Running"
    assert condition(document, "Ready") == "False"
    assert only_container(document)["lastState"]["terminated"]["exitCode"] == 3


def probe_of(kind: str) -> Object:
    actions: dict[str, Object] = {
        "exec": {"command": ["test", "-e", "/scratch/ready"]},
        "httpGet": {"path": "/ready", "port": "web"},
    }
    return {kind: actions[kind], "periodSeconds": 1, "timeoutSeconds": 5}


SERVER = """
import http.server, pathlib, time
while not pathlib.Path("/scratch/go").exists(): time.sleep(0.05)
pathlib.Path("/scratch/ready").touch()
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/ready" else 404)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", {port}), Answers).serve_forever()
"""


@pytest.mark.parametrize("kind", ["exec", "httpGet"])
def test_pod_is_ready_when_its_probe_succeeds(
    cluster: Cluster, node: LocalNode, namespace: str, tmp_path: Path, kind: str
) -> None:
    [port] = free_ports(1)
    container = {
        "name": "main",
        "image": "local",
        "command": [sys.executable, "-c", SERVER.format(port=port)],
        "ports": [{"name": "web", "containerPort": port}],
        "readinessProbe": probe_of(kind),
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    volumes = [{"name": "scratch", "hostPath": {"path": str(tmp_path)}}]
    cluster.apply([pod(namespace, "one", container, volumes=volumes)])
    running = await_phase(cluster, namespace, "one", "Running")
    assert condition(running, "Ready") == "False"
    (tmp_path / "go").touch()
    eventually(lambda: condition(cluster.get("pod", "one", namespace), "Ready") == "True")
    assert node.name == running["spec"]["nodeName"]


def test_pod_waits_for_a_secret_and_says_so(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    volumes = [{"name": "late", "secret": {"secretName": "late"}}]
    container = shell("cat /late/password", volumeMounts=[{"name": "late", "mountPath": "/late"}])
    cluster.apply([pod(namespace, "one", container, volumes=volumes, restartPolicy="Never")])
    document = waiting(cluster, namespace, "one", "CreateContainerConfigError")
    assert "'late'" in only_container(document)["state"]["waiting"]["message"]
    cluster.apply([config_map(namespace, "late", {"password": "sesame"}, kind="Secret")])
    await_phase(cluster, namespace, "one", "Succeeded")
    assert node.logs(namespace, "one") == "sesame"


def test_nothing_is_left_when_the_node_stops(cluster: Cluster, namespace: str) -> None:
    with local_node(cluster, name="short-lived") as short_lived:
        container = shell(f"trap '' TERM; {SAY_PROCESS}; while :; do sleep 1; done")
        cluster.apply(
            [pod(namespace, "one", container, nodeName="short-lived", terminationGracePeriodSeconds=1)]
        )
        process = int(first_line(short_lived, namespace, "one"))
    assert not is_alive(process)
    assert not cluster.list("nodes", selector="kubernetes.io/hostname=short-lived")
