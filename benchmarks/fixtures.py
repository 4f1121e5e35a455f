"""Inputs of any size: workers with several live versions, as Git and servers would hold them."""

import json
import subprocess
from pathlib import Path
from typing import Any

from twgen.model.problem import Document
from twgen.model.spec import WorkerSpec
from twgen.rendering.deployments import target_deployment
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.versioning.names import ATTACHED, IDENTITY, attached_resource_name
from twgen.yaml.writer import write_documents

NAMESPACE = "shop"
TAKEN_AT = "2026-11-21T12:00:00Z"
RAMPED_AT = "2026-11-21T11:50:00Z"
REPLACED_AT = "2026-11-20T22:00:00Z"
CREATED_AT = "2026-11-16T20:00:00Z"
CONNECTION: dict[str, Any] = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "Connection",
    "metadata": {"name": "temporal", "namespace": NAMESPACE},
    "spec": {"hostPort": "temporal.example.com:7233"},
}
POLICY = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "RolloutPolicy",
    "metadata": {"name": "rollouts", "namespace": NAMESPACE},
    "spec": {"identity": NAMESPACE},
}


def write_inputs(folder: Path, workers: int, versions: int = 5) -> Path:
    """Specs in `folder/specs`, and the same snapshot as `folder/snapshot.yaml` and `.json`.

    The newest version of a worker is its spec's and ramps, the one before is current, all others drain;
    an only version is current.
    """
    specs = folder / "specs"
    specs.mkdir(parents=True, exist_ok=True)
    (specs / "shared.yaml").write_text(write_documents([CONNECTION, POLICY]))
    read = []
    for number in range(workers):
        (specs / f"worker-{number}.yaml").write_text(
            write_documents([_worker(number, versions), _autoscaler(number)])
        )
        read.append(_read(number, versions))
    snapshot = {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "Snapshot",
        "takenAt": TAKEN_AT,
        "workers": read,
    }
    (folder / "snapshot.json").write_text(json.dumps(snapshot))
    (folder / "snapshot.yaml").write_text(write_documents([snapshot]))
    return specs


def write_drained(folder: Path, versions: int) -> Path:
    """One worker with that many drained versions beside its target: specs, and `folder/snapshot.json`."""
    specs = write_inputs(folder, 1, versions=1)
    path = folder / "snapshot.json"
    snapshot = json.loads(path.read_text())
    drainage = {"status": "Drained", "changedAt": CREATED_AT}
    snapshot["workers"][0]["temporal"]["versions"] += [
        {"buildID": f"v{number}", "status": "Drained", "createdAt": CREATED_AT, "drainage": drainage}
        for number in range(versions)
    ]
    path.write_text(json.dumps(snapshot))
    return specs


def write_history(folder: Path, commits: int) -> Path:
    """One worker whose old version only the first of so many commits has: specs, and `folder/snapshot.json`.

    Every hundredth commit changes its spec, in what is no part of a version.
    """
    specs = write_inputs(folder, 1, versions=2)
    path = folder / "snapshot.json"
    snapshot = json.loads(path.read_text())
    snapshot["workers"][0]["deployments"] = []
    path.write_text(json.dumps(snapshot))
    stream = []
    for number in range(commits):
        files = {"notes": str(number)}
        if number % 100 == 0:
            worker = _worker(0, 2 if number else 1)
            worker["spec"]["replicas"] = number // 100 + 1
            files["worker-0.yaml"] = write_documents([worker, _autoscaler(0)])
        if not number:
            files["shared.yaml"] = (specs / "shared.yaml").read_text()
        stream.append(f"commit refs/heads/main\ncommitter . <> {1700000000 + number} +0000\ndata 0\n")
        stream += [
            f"M 100644 inline {name}\ndata {len(text.encode())}\n{text}\n" for name, text in files.items()
        ]
    git = ["git", "-C", str(specs)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(stream).encode(), check=True)
    return specs


def _worker(number: int, version: int) -> dict[str, Any]:
    container = {
        "name": "worker",
        "image": f"registry.example.com/shop/worker-{number}:v{version}",
        "args": ["--queue", "main"],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
    }
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": f"worker-{number}", "namespace": NAMESPACE},
        "spec": {
            "workerOptions": {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"},
            "rollout": {
                "strategy": "Progressive",
                "steps": [
                    {"rampPercentage": 5, "pauseDuration": "5m"},
                    {"rampPercentage": 50, "pauseDuration": "5m"},
                ],
            },
            "template": {
                "metadata": {"labels": {"app": f"worker-{number}"}},
                "spec": {"serviceAccountName": "worker", "containers": [container]},
            },
        },
    }


def _autoscaler(number: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": 70}
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerResourceTemplate",
        "metadata": {"name": f"scale-{number}", "namespace": NAMESPACE},
        "spec": {
            "workerDeploymentRef": {"name": f"worker-{number}"},
            "template": {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "spec": {
                    "scaleTargetRef": {},
                    "minReplicas": 1,
                    "maxReplicas": 10,
                    "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
                },
            },
        },
    }


def _spec(number: int, version: int) -> WorkerSpec:
    documents = [Document("", 0, _worker(number, version)), Document("", 1, CONNECTION)]
    return parse_specs(documents, NamespaceRule()).workers[0]


def _read(number: int, versions: int) -> dict[str, Any]:
    specs = [_spec(number, version) for version in range(1, versions + 1)]
    return {
        "name": specs[-1].worker_deployment,
        "temporalNamespace": "default",
        "temporal": {
            "conflictToken": "dG9rZW4=",
            "managerIdentity": f"twgen/{NAMESPACE}",
            "routing": _routing(specs),
            "versions": [
                _version(spec, status) for spec, status in zip(specs, _statuses(versions), strict=True)
            ],
        },
        "deployments": [_live(spec, number) for spec in specs],
    }


def _statuses(versions: int) -> list[str]:
    return [*["Draining"] * (versions - 2), *["Current", "Ramping"][:versions]]


def _routing(specs: list[WorkerSpec]) -> dict[str, Any]:
    *_, current = specs[:-1] or specs
    routing: dict[str, Any] = {"current": {"buildID": current.build_id, "since": REPLACED_AT}}
    if current is not specs[-1]:
        times = {"since": RAMPED_AT, "percentageChangedAt": RAMPED_AT}
        routing["ramping"] = {"buildID": specs[-1].build_id, "percentage": 5} | times
    return routing


def _version(spec: WorkerSpec, status: str) -> dict[str, Any]:
    known = {
        "buildID": spec.build_id,
        "status": status,
        "createdAt": CREATED_AT,
        "firstActivatedAt": CREATED_AT,
    }
    if status == "Draining":
        return known | {"drainage": {"status": "Draining", "changedAt": REPLACED_AT}}
    return known | {"taskQueues": [{"name": "main", "type": "Workflow", "pollers": True}]}


def _live(spec: WorkerSpec, number: int) -> dict[str, Any]:
    deployment = target_deployment(spec)
    autoscaler = attached_resource_name(spec.name, _autoscaler(number)["metadata"]["name"], spec.build_id)
    deployment["metadata"]["annotations"] |= {
        ATTACHED: f"HorizontalPodAutoscaler/{autoscaler}",
        IDENTITY: f"twgen/{NAMESPACE}",
    }
    deployment["metadata"] |= {
        "uid": f"uid-{spec.name}-{spec.build_id}",
        "generation": 1,
        "creationTimestamp": CREATED_AT,
        "managedFields": [
            {
                "manager": "argocd-controller",
                "operation": "Apply",
                "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {}}},
            }
        ],
    }
    deployment["spec"]["replicas"] = 2
    available = {"type": "Available", "status": "True", "lastTransitionTime": "2026-11-16T20:01:00Z"}
    status = {"observedGeneration": 1, "replicas": 2, "availableReplicas": 2, "conditions": [available]}
    return deployment | {"status": status}
