"""What a real API server fills into a pod template is told from what people change by hand."""

import json
from typing import Any

import pytest

from testing.kubernetes.cluster import Cluster
from twgen.cluster.server_defaults import Comparison, compare, without_server_fields
from twgen.model.problem import Document
from twgen.model.spec import WorkerSpec
from twgen.rendering.deployments import target_deployment
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

PROBE = {"httpGet": {"port": "health"}}
SOURCES: dict[str, Any] = {
    "empty": {"emptyDir": {}},
    "settings": {"configMap": {"name": "settings"}},
    "keys": {"secret": {"secretName": "keys"}},
    "pod": {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    "token": {
        "projected": {
            "sources": [
                {"serviceAccountToken": {"path": "token"}},
                {"downwardAPI": {"items": [{"path": "uid", "fieldRef": {"fieldPath": "metadata.uid"}}]}},
                {"configMap": {"name": "settings"}},
            ]
        }
    },
    "host": {"hostPath": {"path": "/var/log"}},
    "claim": {"persistentVolumeClaim": {"claimName": "data"}},
    "scratch": {
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            }
        }
    },
    "iscsi": {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
    "rbd": {"rbd": {"monitors": ["10.0.0.1:6789"], "image": "a"}},
    "azure": {"azureDisk": {"diskName": "a", "diskURI": "https://example.blob.core.windows.net/a/a.vhd"}},
    "scaleio": {
        "scaleIO": {
            "gateway": "https://example.com",
            "system": "a",
            "volumeName": "a",
            "secretRef": {"name": "a"},
        }
    },
}
CONTAINER: dict[str, Any] = {
    "name": "worker",
    "image": "payments:v3",
    "ports": [{"name": "health", "containerPort": 8080}, {"containerPort": 9090, "protocol": "UDP"}],
    "env": [
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "EMPTY"},
    ],
    "resources": {"requests": {"cpu": "0.5", "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "2048Mi"}},
    "livenessProbe": PROBE,
    "readinessProbe": {"grpc": {"port": 9090}},
    "startupProbe": {"exec": {"command": ["true"]}},
    "lifecycle": {"postStart": {"httpGet": {"port": 8080}}, "preStop": {"exec": {"command": ["true"]}}},
    "securityContext": {"runAsNonRoot": True},
    "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in SOURCES],
}
POD: dict[str, Any] = {
    "serviceAccountName": "worker",
    "containers": [CONTAINER, {"name": "beside", "image": "beside"}],
    "initContainers": [{"name": "before", "image": "before:latest", "restartPolicy": "Always"}],
    "volumes": [{"name": name, **source} for name, source in SOURCES.items()],
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
    ],
    "affinity": {"nodeAffinity": {}},
    "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a"]}],
    "imagePullSecrets": [{"name": "registry"}],
}


def spec_with(pod: dict[str, Any], namespace: str) -> WorkerSpec:
    worker = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": "payments", "namespace": namespace},
        "spec": {
            "replicas": 0,
            "workerOptions": {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"},
            "rollout": {"strategy": "AllAtOnce"},
            "template": {"metadata": {"labels": {"team": "payments"}}, "spec": pod},
        },
    }
    connection = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "Connection",
        "metadata": {"name": "temporal", "namespace": namespace},
        "spec": {"hostPort": "temporal.example.com:7233", "mutualTLSSecretRef": {"name": "client"}},
    }
    specs = parse_specs([Document("", 0, worker), Document("", 1, connection)], NamespaceRule())
    assert specs.problems == ()
    return specs.workers[0]


@pytest.mark.parametrize("how", [(), ("--server-side", "--field-manager", "argocd-controller")])
def test_nothing_that_a_server_fills_in_is_taken_for_an_edit(
    cluster: Cluster, namespace: str, how: tuple[str, ...]
) -> None:
    spec = spec_with(POD, namespace)
    manifest = target_deployment(spec)
    cluster.kubectl("apply", *how, "-f", "-", input=write_documents([manifest]))
    command = ("get", "deployment", "-n", namespace, "-o", "json")
    (live,) = json.loads(cluster.kubectl(*command))["items"]
    written = manifest["spec"]["template"]
    assert compare(written, live["spec"]["template"]) == Comparison()
    plain = without_server_fields(live)["spec"]["template"]
    assert compare(plain, live["spec"]["template"]) == Comparison()
