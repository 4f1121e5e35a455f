"""One document of each kind, with every field that can be mistyped."""

from dataclasses import replace

from tests.records.ledgers import entry, ledger, spec

NOW = "2026-11-21T12:00:00Z"

CONNECTION = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "Connection",
    "metadata": {"name": "c", "namespace": "d"},
    "spec": {
        "hostPort": "temporal:7233",
        "apiKeySecretRef": {"name": "s", "key": "k", "optional": False},
        "tls": {"serverName": "temporal", "caCertSecretRef": {"name": "ca"}},
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
        "progressDeadlineSeconds": 9,
        "workerOptions": {
            "connectionRef": {"apiGroup": "temporal.io", "kind": "Connection", "name": "c"},
            "temporalNamespace": "t",
            "taskQueue": "q",
            "unsafeCustomBuildID": "b",
        },
        "sunset": {"scaledownDelay": "1h", "deleteDelay": "1h30m"},
        "rollout": {
            "strategy": "Progressive",
            "steps": [{"rampPercentage": 5, "pauseDuration": "30s"}],
            "gate": {
                "workflowType": "g",
                "inputFrom": {"configMapKeyRef": {"name": "n", "key": "k"}},
                "encoding": "binary/protobuf",
                "messageType": "shop.v1.Order",
            },
        },
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}},
    },
}
WORKER_OF_TODAY = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "WorkerDeployment",
    "metadata": {"name": "v", "namespace": "d"},
    "spec": {
        "deployment": {
            "replicas": 2,
            "minReadySeconds": 1,
            "progressDeadlineSeconds": 9,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0},
            },
            "revisionHistoryLimit": 3,
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}},
        },
        "workerOptions": {
            "connectionRef": {"objectRef": {"apiGroup": "temporal.io", "kind": "Connection", "name": "c"}},
            "temporalNamespace": "t",
        },
        "rollout": {"strategy": "AllAtOnce"},
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
        "history": ["Ledger", "Cluster", "Git"],
        "missingTemplate": "Warn",
        "onDelete": "Confirm",
        "maxVersions": 75,
        "ignoreMissingTaskQueues": ["reports-*"],
        "analysis": {
            "onFailure": "Abort",
            "initialDelay": "1m",
            "metrics": [
                {
                    "name": "failures",
                    "workflowFailures": {
                        "maxRatio": 0.02,
                        "statuses": ["Failed"],
                        "workflowTypes": ["Greet"],
                        "falseAlarms": 0.01,
                        "atLeast": 5,
                    },
                },
                {"name": "stuck", "reportedProblems": {"max": 0}},
                {"name": "backlog", "backlogAge": {"max": "2m"}},
                {
                    "name": "errors",
                    "prometheus": {
                        "server": "shared",
                        "query": "errors{build='{{ .BuildID }}'}",
                        "thresholdRange": {"min": 0, "max": 0.5},
                        "interval": "1m",
                        "failureLimit": 2,
                        "noData": "Wait",
                    },
                },
                {"name": "compared", "workflowFailures": {"notAbove": "Current"}},
            ],
        },
        "unserved": {"after": "5m", "action": "Abort"},
        "draining": [
            {
                "after": "24h",
                "action": "Signal",
                "signalName": "continue-as-new",
                "signalInput": {"soon": True},
                "workflowTypes": ["Poller"],
            },
            {"after": "168h", "action": "Move", "withoutReplay": True},
            {"after": "720h", "action": "Cancel", "allowTermination": True},
        ],
        "replay": {
            "command": ["replay"],
            "sample": 50,
            "maxBytes": "64Mi",
            "when": "Both",
            "within": "1h",
            "inMemory": False,
        },
        "deploymentLabels": {"team": "a"},
        "deploymentAnnotations": {"a.b/c": "d"},
        "drainingReplicas": 1,
        "patches": [
            {
                "buildID": "b",
                "containers": [
                    {
                        "name": "w",
                        "image": "w:2",
                        "resources": {"requests": {"cpu": "1"}},
                        "env": [{"name": "A", "value": "1"}],
                    }
                ],
                "replicas": 1,
                "sunset": {"scaledownDelay": "1h", "deleteDelay": "1h30m"},
            }
        ],
    },
}
DEPLOYMENT = {
    "metadata": {
        "name": "w-a",
        "uid": "u",
        "generation": 1,
        "creationTimestamp": NOW,
        "labels": {"temporal.io/build-id": "a"},
        "annotations": {"a": "b"},
        "managedFields": [
            {"manager": "m", "operation": "Apply", "subresource": "scale", "fieldsV1": {"f:spec": {}}}
        ],
    },
    "spec": {
        "replicas": 2,
        "paused": False,
        "selector": {"matchLabels": {"temporal.io/build-id": "a"}},
        "template": {
            "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
            "spec": {
                "containers": [
                    {
                        "name": "w",
                        "image": "w:1",
                        "env": [{"name": "TEMPORAL_ADDRESS", "value": "t:7233"}],
                        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    }
                ],
                "initContainers": [{"name": "i"}],
                "volumes": [{"name": "v"}],
            },
        },
    },
    "status": {
        "observedGeneration": 1,
        "availableReplicas": 2,
        "conditions": [{"type": "Available", "status": "True", "reason": "r", "message": "m"}],
    },
}
VERSION = {
    "buildID": "a",
    "status": "Current",
    "createdAt": NOW,
    "drainage": {"status": "Drained", "changedAt": NOW},
    "openWorkflows": 0,
    "openAutoUpgradeWorkflows": 0,
    "metadata": {},
    "taskQueues": [
        {"name": "main", "type": "Workflow", "pollers": True, "silentSeconds": 3, "hasTasks": False}
    ],
    "gateRuns": [
        {
            "taskQueue": "main",
            "workflowID": "i",
            "status": "Running",
            "startedAt": NOW,
            "workflowType": "Smoke",
        }
    ],
    "measurements": [
        {
            "metric": "failures",
            "since": NOW,
            "failures": {"target": {"started": 5, "failed": 1}, "current": {"started": 50, "failed": 1}},
        },
        {"metric": "stuck", "since": NOW, "stuck": {"number": 1, "first": ["order-1"], "isAll": False}},
        {
            "metric": "backlog",
            "since": NOW,
            "backlog": {"taskQueue": "main", "seconds": 90, "added": 2.5, "dispatched": 1},
        },
        {"metric": "errors", "since": NOW, "points": [{"at": NOW, "value": 0.25}, {"at": NOW}]},
        {"metric": "other", "since": NOW, "problem": "PERMISSION_DENIED"},
    ],
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
                "conflictToken": "dA==",
                "serverVersion": "1.32.0",
                "managerIdentity": "",
                "lastModifierIdentity": "",
                "routing": {
                    "updateState": "Completed",
                    "changedAt": NOW,
                    "current": {"buildID": "a", "since": NOW},
                    "ramping": {"buildID": "", "percentage": 5, "since": NOW, "percentageChangedAt": NOW},
                },
                "versions": [VERSION],
            },
            "deployments": [DEPLOYMENT],
            "podProblems": {"a": "ImagePullBackOff"},
        }
    ],
}
LEDGER = ledger(
    entry(
        replace(
            spec(),
            pace={
                "minReadySeconds": 5,
                "progressDeadlineSeconds": 600,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "5%"},
                },
                "revisionHistoryLimit": 3,
            },
        )
    )
)
OPERATOR = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "OperatorConfig",
    "metadata": {},
    "instance": "prod-eu",
    "temporal": {"configFile": "/f", "profiles": [{"name": "n", "projects": ["p"]}]},
    "clusters": [
        {"project": "p", "application": "a", "kubeconfig": "/k", "context": "c", "inCluster": False},
        {"project": "p", "inCluster": True},
    ],
    "rollout": {
        "image": "twgen",
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3}],
        "imagePullSecrets": [{"name": "a"}],
        "resources": {"limits": {"memory": "1Gi"}},
        "caBundle": {"configMap": "a", "key": "b"},
    },
    "attached": {"kinds": [{"kind": "ScaledJob", "group": "keda.sh"}]},
    "prometheus": [
        {
            "name": "a",
            "url": "https://a.example.com/b",
            "projects": ["p"],
            "bearerTokenFile": "/t",
            "caFile": "/c",
            "headers": {"X-Scope-OrgID": "a"},
            "secretName": "s",
        },
        {"name": "b", "url": "http://b:9090", "username": "u", "passwordFile": "/p"},
    ],
}
