"""The local node: Pods are processes of this machine that live and end as Pods do."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

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


def has_reason(cluster: Cluster, namespace: str, name: str, reason: str) -> Object | None:
    """What the Pod's container waits for, once it waits for this reason."""
    waiting: Object = only_container(cluster.get("pod", name, namespace)).get("state", {}).get("waiting", {})
    return waiting if waiting.get("reason") == reason else None


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


def test_what_a_process_started_ends_with_it(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    cluster.apply([pod(namespace, "one", shell("sleep 1000 & echo $!"), restartPolicy="Never")])
    await_phase(cluster, namespace, "one", "Succeeded")
    child = int(node.logs(namespace, "one"))
    eventually(lambda: not is_alive(child))


def test_forced_deletion_kills_the_process(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    cluster.apply([pod(namespace, "one", shell(f"trap '' TERM; {SAY_PROCESS}; while :; do sleep 1; done"))])
    process = int(first_line(node, namespace, "one"))
    cluster.kubectl("delete", "pod", "one", "--namespace", namespace, "--force", "--grace-period=0")
    eventually(lambda: not is_alive(process))


def test_job_completes(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    cluster.apply([job(namespace, "one", shell("echo done"))])
    cluster.kubectl("wait", "--for=condition=Complete", "job/one", "-n", namespace, "--timeout=120s")
    [done] = cluster.list("pods", namespace)
    assert only_container(done)["state"]["terminated"]["reason"] == "Completed"
    assert node.logs(namespace, done["metadata"]["name"]) == "done\n"


def test_job_fails_with_the_exit_code_of_its_process(
    cluster: Cluster, node: LocalNode, namespace: str
) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [5]}}
    cluster.apply([job(namespace, "one", shell("exit 5"), podFailurePolicy={"rules": [rule]})])
    cluster.kubectl("wait", "--for=condition=Failed", "job/one", "-n", namespace, "--timeout=120s")
    [failed] = cluster.list("pods", namespace)
    assert only_container(failed)["state"]["terminated"]["exitCode"] == 5
    assert node.logs(namespace, failed["metadata"]["name"]) == ""


def test_killed_process_has_the_exit_code_of_its_signal(
    cluster: Cluster, node: LocalNode, namespace: str
) -> None:
    cluster.apply([pod(namespace, "one", shell(f"{SAY_PROCESS}; exec sleep 1000"), restartPolicy="Never")])
    os.kill(int(first_line(node, namespace, "one")), signal.SIGKILL)
    ended = await_phase(cluster, namespace, "one", "Failed")
    assert only_container(ended)["state"]["terminated"]["exitCode"] == 137


def test_crash_looping_pod_is_not_ready(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    cluster.apply([pod(namespace, "one", shell("echo again; exit 3"))])
    eventually(lambda: node.logs(namespace, "one").count("again") >= 2)
    eventually(lambda: has_reason(cluster, namespace, "one", "CrashLoopBackOff"))
    document = cluster.get("pod", "one", namespace)
    assert document["status"]["phase"] == "Running"
    assert condition(document, "Ready") == "False"
    assert only_container(document)["lastState"]["terminated"]["exitCode"] == 3


def test_failed_process_is_started_again_until_it_succeeds(
    cluster: Cluster, node: LocalNode, namespace: str
) -> None:
    script = "echo x >> /scratch/tries; test $(wc -l < /scratch/tries) -ge 2"
    container = shell(script, volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}])
    volumes = [{"name": "scratch", "emptyDir": {}}]
    cluster.apply([pod(namespace, "one", container, volumes=volumes, restartPolicy="OnFailure")])
    document = await_phase(cluster, namespace, "one", "Succeeded")
    assert only_container(document)["restartCount"] == 1
    assert node.logs(namespace, "one") == ""


def test_init_containers_run_in_order_before_the_others(
    cluster: Cluster, node: LocalNode, namespace: str
) -> None:
    mount = {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
    initial = [
        shell(f"echo {name} >> /scratch/log", **mount) | {"name": name} for name in ("first", "second")
    ]
    main = shell("cat /scratch/log", **mount)
    volumes = [{"name": "scratch", "emptyDir": {}}]
    more = {"initContainers": initial, "volumes": volumes, "restartPolicy": "Never"}
    cluster.apply([pod(namespace, "one", main, **more)])
    await_phase(cluster, namespace, "one", "Succeeded")
    assert node.logs(namespace, "one", "main") == "first\nsecond\n"


def test_pod_fails_when_its_init_container_does(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    initial = [shell("exit 1") | {"name": "initial"}]
    cluster.apply([pod(namespace, "one", shell("true"), initContainers=initial, restartPolicy="Never")])
    document = await_phase(cluster, namespace, "one", "Failed")
    assert condition(document, "Initialized") == "False"
    assert node.logs(namespace, "one") == ""


def probe_of(kind: str, port: int) -> Object:
    actions: dict[str, Object] = {
        "exec": {"command": ["test", "-e", "/scratch/ready"]},
        "httpGet": {"path": "/ready", "port": "web"},
        "tcpSocket": {"port": port},
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


@pytest.mark.parametrize("kind", ["exec", "httpGet", "tcpSocket"])
def test_pod_is_ready_when_its_probe_succeeds(
    cluster: Cluster, node: LocalNode, namespace: str, tmp_path: Path, kind: str
) -> None:
    [port] = free_ports(1)
    container = {
        "name": "main",
        "image": "local",
        "command": [sys.executable, "-c", SERVER.format(port=port)],
        "ports": [{"name": "web", "containerPort": port}],
        "readinessProbe": probe_of(kind, port),
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
    waiting = eventually(lambda: has_reason(cluster, namespace, "one", "CreateContainerConfigError"))
    assert waiting
    assert "'late'" in waiting["message"]
    cluster.apply([config_map(namespace, "late", {"password": "sesame"}, kind="Secret")])
    await_phase(cluster, namespace, "one", "Succeeded")
    assert node.logs(namespace, "one") == "sesame"


def test_container_without_a_command_waits_for_an_image(
    cluster: Cluster, node: LocalNode, namespace: str
) -> None:
    container: dict[str, Any] = {"name": "main", "image": "example.com/worker:1"}
    cluster.apply([pod(namespace, "one", container)])
    waiting = eventually(lambda: has_reason(cluster, namespace, "one", "ErrImagePull"))
    assert waiting
    assert "give container 'main' a command" in waiting["message"]
    cluster.kubectl("delete", "pod", "one", "--namespace", namespace)
    assert node.logs(namespace, "one") == ""


def test_command_that_does_not_exist_fails_and_says_so(
    cluster: Cluster, node: LocalNode, namespace: str
) -> None:
    container = {"name": "main", "image": "local", "command": ["/no/such/program"]}
    cluster.apply([pod(namespace, "one", container, restartPolicy="Never")])
    await_phase(cluster, namespace, "one", "Failed")
    assert "/no/such/program cannot be started" in node.logs(namespace, "one")


def test_nothing_is_left_when_the_node_stops(cluster: Cluster, namespace: str) -> None:
    with local_node(cluster, name="short-lived") as short_lived:
        container = shell(f"trap '' TERM; {SAY_PROCESS}; while :; do sleep 1; done")
        cluster.apply(
            [pod(namespace, "one", container, nodeName="short-lived", terminationGracePeriodSeconds=1)]
        )
        process = int(first_line(short_lived, namespace, "one"))
    assert not is_alive(process)
    assert not cluster.list("nodes", selector="kubernetes.io/hostname=short-lived")
