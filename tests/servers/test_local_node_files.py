"""What a process of the local node finds: the environment, files and account of its Pod."""

import json
import sys
from pathlib import Path

import pytest

from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.recipes import KUBECTL
from tests.servers.pods import (
    await_phase,
    config_map,
    pod,
    shell,
)

pytestmark = pytest.mark.server

ALL_KINDS_OF_VARIABLES = [
    {"name": "PLAIN", "value": "plain"},
    {"name": "COMPOSED", "value": "$(PLAIN) $(UNKNOWN) $$(PLAIN)"},
    {"name": "OF_SECRET", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "password"}}},
    {"name": "OF_CONFIG", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "colour"}}},
    {"name": "ABSENT", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "no", "optional": True}}},
    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
]
SHOWN = ("PLAIN", "COMPOSED", "OF_SECRET", "OF_CONFIG", "ABSENT", "POD", "LABEL", "NODE", "APP_colour")


def test_process_has_the_environment_of_its_pod(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    script = f"import json, os; print(json.dumps([os.environ.get(name) for name in {SHOWN!r}]))"
    container = {
        "name": "main",
        "image": "local",
        "command": [sys.executable, "-c"],
        "args": [script],
        "env": ALL_KINDS_OF_VARIABLES,
        "envFrom": [{"configMapRef": {"name": "config"}, "prefix": "APP_"}],
    }
    cluster.apply(
        [
            config_map(namespace, "config", {"colour": "green"}),
            config_map(namespace, "secret", {"password": "sesame"}, kind="Secret"),
            pod(namespace, "one", container, restartPolicy="Never"),
        ]
    )
    await_phase(cluster, namespace, "one", "Succeeded")
    composed = "plain $(UNKNOWN) $(PLAIN)"
    shown = ["plain", composed, "sesame", "green", None, "one", "one", node.name, "green"]
    assert json.loads(node.logs(namespace, "one")) == shown


def test_process_has_the_files_of_its_pod(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    volumes = [
        {"name": "config", "configMap": {"name": "config"}},
        {"name": "secret", "secret": {"secretName": "secret"}},
        {"name": "scratch", "emptyDir": {}},
    ]
    seen = [
        {"name": "config", "mountPath": "/config"},
        {"name": "config", "mountPath": "/etc/app/settings.ini", "subPath": "settings.ini"},
        {"name": "secret", "mountPath": "/var/run/secrets/app"},
        {"name": "scratch", "mountPath": "/scratch/here"},
    ]
    script = """
        cat /config/settings.ini /etc/app/settings.ini /var/run/secrets/app/password
        pwd; echo kept > kept; cat /scratch/here/kept
        touch /config/new 2> /dev/null || echo read-only
        test -f /etc/passwd && echo the rest is there
    """
    container = shell(script, volumeMounts=seen, workingDir="/scratch/here")
    cluster.apply(
        [
            config_map(namespace, "config", {"settings.ini": "settings\n"}),
            config_map(namespace, "secret", {"password": "sesame\n"}, kind="Secret"),
            pod(namespace, "one", container, volumes=volumes, restartPolicy="Never"),
        ]
    )
    await_phase(cluster, namespace, "one", "Succeeded")
    expected = ["settings", "settings", "sesame", "/scratch/here", "kept", "read-only", "the rest is there"]
    assert node.logs(namespace, "one").splitlines() == expected
    assert not Path("/scratch/here").exists()
    assert not Path("/etc/app").exists()


def test_process_is_the_account_of_its_pod(cluster: Cluster, node: LocalNode, namespace: str) -> None:
    container = shell(f"{installed(KUBECTL)} auth whoami -o jsonpath='{{.status.userInfo.username}}'")
    cluster.apply([pod(namespace, "one", container, restartPolicy="Never")])
    await_phase(cluster, namespace, "one", "Succeeded")
    assert node.logs(namespace, "one") == f"system:serviceaccount:{namespace}:default"
