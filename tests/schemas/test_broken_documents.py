"""Every kind: a whole document is valid, and each way to break it is told of at its place."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from twgen.model.document import Document
from twgen.reading.schemas import schema_problems
from twgen.specs.opened import NamespaceRule
from twgen.specs.parse import parse_specs

NOW = "2026-11-21T12:00:00Z"
ABSENT = object()

CONNECTION = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "Connection",
    "metadata": {"name": "c", "namespace": "d"},
    "spec": {
        "hostPort": "temporal:7233",
        "apiKeySecretRef": {"name": "s", "key": "k"},
        "tls": {"serverName": "temporal"},
    },
}
CONTAINER = {
    "name": "w",
    "image": "w:1",
    "env": [{"name": "A", "value": "1"}],
    "ports": [{"containerPort": 80}],
    "readinessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3},
}
WORKER = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "WorkerDeployment",
    "metadata": {"name": "w", "namespace": "d"},
    "spec": {
        "replicas": 2,
        "minReadySeconds": 1,
        "progressDeadlineSeconds": 5,
        "workerOptions": {
            "connectionRef": {"name": "c"},
            "temporalNamespace": "t",
            "unsafeCustomBuildID": "b",
        },
        "sunset": {"scaledownDelay": "1h", "deleteDelay": "1h30m"},
        "rollout": {
            "strategy": "Progressive",
            "steps": [{"rampPercentage": 5, "pauseDuration": "30s"}],
            "gate": {"workflowType": "g", "inputFrom": {"configMapKeyRef": {"name": "n", "key": "k"}}},
        },
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}},
    },
}
ATTACHED = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "WorkerResourceTemplate",
    "metadata": {"name": "a", "namespace": "d"},
    "spec": {
        "workerDeploymentRef": {"name": "w"},
        "template": {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"maxUnavailable": 1}},
    },
}
POLICY = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "RolloutPolicy",
    "metadata": {"name": "p", "namespace": "d"},
    "spec": {
        "workerRef": {"name": "w"},
        "identity": "shop",
        "adoptFrom": ["x"],
        "driver": "Auto",
        "holdFor": "5m",
        "serviceAccountName": "a",
        "controlPlaneSecretRef": {"name": "s"},
        "rollbackWindow": "1h",
        "connectionChanges": "Target",
        "environment": "Current",
        "ownerReferences": "Render",
        "history": ["Ledger", "Git"],
        "missingTemplate": "Warn",
        "onDelete": "Confirm",
        "maxVersions": 75,
    },
}
VERSION = {
    "buildID": "a",
    "status": "Current",
    "createdAt": NOW,
    "drainage": {"status": "Drained", "changedAt": NOW},
    "openWorkflows": 0,
    "taskQueues": [{"name": "main", "type": "Workflow", "pollers": True}],
    "gateRuns": [{"taskQueue": "main", "workflowID": "i", "status": "Running", "startedAt": NOW}],
}
SNAPSHOT = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "Snapshot",
    "takenAt": NOW,
    "workers": [
        {
            "name": "d/w",
            "temporalNamespace": "t",
            "temporal": {
                "routing": {"current": {"buildID": "a"}, "ramping": {"buildID": "", "percentage": 5}},
                "versions": [VERSION],
            },
            "deployments": [],
        }
    ],
}
LEDGER = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "Ledger",
    "versions": [
        {
            "worker": "d/w",
            "buildID": "a",
            "recordedAt": NOW,
            "deployment": {"metadata": {}, "spec": {}},
        }
    ],
}
PLAN = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "Plan",
    "now": NOW,
    "workers": [
        {
            "worker": "d/w",
            "temporalNamespace": "t",
            "targetBuildID": "a",
            "manager": "",
            "phase": "Settled",
            "routing": {
                "action": "None",
                "buildID": None,
                "percentage": None,
                "claimManager": False,
                "because": "it is current",
                "dueAt": None,
            },
            "gates": [{"taskQueue": "main", "workflowID": "i", "workflowType": "g"}],
            "versions": [
                {
                    "buildID": "a",
                    "status": "NotRegistered",
                    "deployment": "w-a",
                    "action": "Keep",
                    "replicas": None,
                    "protected": True,
                    "because": "it is the target",
                }
            ],
            "warnings": [],
        }
    ],
    "warnings": [],
}
SPECS = (CONNECTION, WORKER, ATTACHED, POLICY)
ALL = (*SPECS, SNAPSHOT, LEDGER, PLAN)
WORLD = "workers[0].temporal"
QUEUE = f"{WORLD}.versions[0].taskQueues[0]"
RUN = f"{WORLD}.versions[0].gateRuns[0]"


def kind(document: dict[str, Any]) -> str:
    return str(document["kind"])


def wrong(document: Any) -> list[str]:
    return [problem.path for problem in schema_problems([Document("", 0, document)], ())]


def keys(path: str) -> list[str | int]:
    parts = path.replace("[", ".").replace("]", "").split(".")
    return [int(part) if part.isdecimal() else part for part in parts]


def changed(document: dict[str, Any], path: list[str | int], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(document)
    *above, last = path
    place: Any = result
    for key in above:
        place = place[key]
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return result


@pytest.mark.parametrize("document", ALL, ids=kind)
def test_whole_document_is_valid(document: dict[str, Any]) -> None:
    assert wrong(document) == []


@pytest.mark.parametrize(
    ("document", "path", "value"),
    [
        (CONNECTION, "metadata.name", "Upper"),
        (CONNECTION, "metadata.name", ABSENT),
        (CONNECTION, "spec", ABSENT),
        (CONNECTION, "spec.hostPort", "temporal"),
        (CONNECTION, "spec.hostPort", ABSENT),
        (CONNECTION, "spec.apiKeySecretRef", "s"),
        (CONNECTION, "spec.apiKeySecretRef.key", ABSENT),
        (WORKER, "spec.rollout.steps[0].rampPercentage", 100),
        (WORKER, "spec.rollout.steps[0].rampPercentage", "5"),
        (WORKER, "spec.rollout.steps[0].pauseDuration", "5 minutes"),
        (WORKER, "spec.rollout.steps[0].pauseDuration", ABSENT),
        (WORKER, "spec.rollout.gate.workflowType", ABSENT),
        (WORKER, "spec.rollout.gate.inputFrom.configMapKeyRef.key", ABSENT),
        (WORKER, "spec.progressDeadlineSeconds", 0),
        (WORKER, "spec.workerOptions.connectionRef", "c"),
        (WORKER, "spec.workerOptions.unsafeCustomBuildID", 7),
        (WORKER, "spec.template.spec.containers[0].readinessProbe.httpGet.port", 2**31),
        (ATTACHED, "spec.workerDeploymentRef.name", ABSENT),
        (ATTACHED, "spec.workerDeploymentRef", ABSENT),
        (ATTACHED, "spec.template", ABSENT),
        (ATTACHED, "spec.template.kind", ABSENT),
        (POLICY, "spec.driver", "Cron"),
        (POLICY, "spec.adoptFrom", "x"),
        (POLICY, "spec.history[1]", "Helm"),
        (POLICY, "spec.holdFor", 300),
        (POLICY, "spec.maxVersions", 101),
        (SNAPSHOT, "takenAt", "yesterday"),
        (SNAPSHOT, "workers", {}),
        (SNAPSHOT, WORLD, ABSENT),
        (SNAPSHOT, f"{WORLD}.routing.ramping.percentage", "5%"),
        (SNAPSHOT, f"{WORLD}.versions", ABSENT),
        (SNAPSHOT, f"{WORLD}.versions[0].status", "Retired"),
        (SNAPSHOT, f"{WORLD}.versions[0].openWorkflows", -1),
        (SNAPSHOT, f"{WORLD}.versions[0].createdAt", "2026-11-21"),
        (SNAPSHOT, f"{WORLD}.versions[0].drainage.status", "Done"),
        (SNAPSHOT, f"{QUEUE}.type", "Update"),
        (SNAPSHOT, f"{QUEUE}.pollers", 3),
        (SNAPSHOT, f"{RUN}.status", "Retrying"),
        (SNAPSHOT, "workers[0].deployments[0]", ABSENT),
        (LEDGER, "versions[0].deployment", ABSENT),
        (LEDGER, "versions[0].deployment.spec", []),
        (LEDGER, "versions[0].recordedAt", "now"),
        (PLAN, "now", ABSENT),
        (PLAN, "workers[0].phase", "Done"),
        (PLAN, "workers[0].routing.action", "SetNext"),
        (PLAN, "workers[0].routing.because", ""),
        (PLAN, "workers[0].gates[0].workflowType", ABSENT),
        (PLAN, "workers[0].versions[0].replicas", -1),
        (PLAN, "workers[0].versions[0].protected", "yes"),
    ],
)
def test_broken_field_is_caught_at_its_path(document: dict[str, Any], path: str, value: Any) -> None:
    assert wrong(changed(document, keys(path), value)) == [path]


@pytest.mark.parametrize("document", SPECS, ids=kind)
def test_parser_and_schema_refuse_the_same_types(document: dict[str, Any]) -> None:
    others = [other for other in SPECS if other is not document]
    disagreeing = []
    for path in places(document["spec"], ("spec",)):
        for value in ([], {}, "", "text", True, 7, -7, 0.5, 2**40, [7], None):
            broken = changed(document, list(path), value)
            problems = parse_specs(
                [Document("", index, one) for index, one in enumerate([broken, *others])], NamespaceRule()
            ).problems
            ours = [problem for problem in problems if problem.document.index == 0]
            if bool(ours) != bool(wrong(broken)) and not only_parser_knows(path, value):
                disagreeing.append((path, value, ours))
    assert disagreeing == []


def places(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from places(item, (*path, key))


def only_parser_knows(path: tuple[str | int, ...], value: Any) -> bool:
    """Rules that no schema can say, or that only make sense of a whole document."""
    return (
        (path[-1] in {"steps", "inputFrom", "configMapKeyRef"} and not value)
        or (path[-2:] == ("connectionRef", "name") and value == "text")
        or (path[-2:] == ("template", "kind") and value == "text")
    )
