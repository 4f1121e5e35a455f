"""A live Deployment is rendered as somebody would have written it."""

import copy
from typing import Any

import pytest

from twgen.cluster.server_defaults import without_server_fields

WRITTEN: dict[str, Any] = {
    "metadata": {"annotations": {"team": "payments"}},
    "spec": {
        "replicas": 3,
        "template": {
            "metadata": {"labels": {"app": "worker"}},
            "spec": {
                "serviceAccountName": "worker",
                "containers": [
                    {
                        "name": "worker",
                        "image": "registry.example.com:5000/worker:v1",
                        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        "livenessProbe": {"httpGet": {"path": "/live", "port": 80}},
                        "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5},
                    }
                ],
                "volumes": [
                    {"name": "settings", "configMap": {"name": "settings"}},
                    {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 256}},
                    {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
                ],
            },
        },
    },
}


def as_the_server_returns_it(written: dict[str, Any]) -> dict[str, Any]:
    """With what an API server 1.36 and the Deployment controller add."""
    live = copy.deepcopy(written)
    live["metadata"]["annotations"] |= {
        "deployment.kubernetes.io/revision": "4",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "argocd.argoproj.io/tracking-id": "app:apps/Deployment:shop/worker",
    }
    spec = live["spec"]
    spec["revisionHistoryLimit"] = 10
    rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
    spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    spec["template"]["metadata"]["creationTimestamp"] = None
    pod = spec["template"]["spec"]
    pod |= {
        "serviceAccount": "worker",
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    (container,) = pod["containers"]
    container |= {
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    probe = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    container["livenessProbe"] = probe | container["livenessProbe"]
    container["readinessProbe"] = probe | container["readinessProbe"]
    container["livenessProbe"]["httpGet"]["scheme"] = "HTTP"
    settings, _, token = pod["volumes"]
    settings["configMap"]["defaultMode"] = 420
    token["projected"]["defaultMode"] = 420
    token["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] = 3600
    return live


def test_what_the_server_added_goes_and_what_was_written_stays() -> None:
    assert without_server_fields(as_the_server_returns_it(WRITTEN)) == WRITTEN


def test_what_differs_from_the_defaults_stays() -> None:
    live = as_the_server_returns_it(WRITTEN)
    pod = live["spec"]["template"]["spec"]
    live["spec"]["revisionHistoryLimit"] = 2
    pod["terminationGracePeriodSeconds"] = 3600
    pod["serviceAccount"] = "another"
    pod["containers"][0]["livenessProbe"]["failureThreshold"] = 5
    rendered = without_server_fields(live)
    kept = rendered["spec"]["template"]["spec"]
    assert rendered["spec"]["revisionHistoryLimit"] == 2
    assert (kept["terminationGracePeriodSeconds"], kept["serviceAccount"]) == (3600, "another")
    assert kept["containers"][0]["livenessProbe"]["failureThreshold"] == 5


def test_live_deployment_is_not_changed_in_place() -> None:
    live = as_the_server_returns_it(WRITTEN)
    before = copy.deepcopy(live)
    without_server_fields(live)
    assert live == before


@pytest.mark.parametrize(
    ("image", "default"),
    [
        ("worker", "Always"),
        ("worker:latest", "Always"),
        ("registry.example.com:5000/worker", "Always"),
        ("worker:v1", "IfNotPresent"),
        ("worker@sha256:00", "IfNotPresent"),
        ("worker:latest@sha256:00", "IfNotPresent"),
    ],
)
def test_pull_policy_goes_only_when_it_is_the_default_of_its_image(image: str, default: str) -> None:
    def rendered(policy: str) -> dict[str, Any]:
        container = {"name": "worker", "image": image, "imagePullPolicy": policy}
        manifest = {"metadata": {}, "spec": {"template": {"spec": {"containers": [container]}}}}
        (left,) = without_server_fields(manifest)["spec"]["template"]["spec"]["containers"]
        return dict(left)

    assert "imagePullPolicy" not in rendered(default)
    assert rendered("Never")["imagePullPolicy"] == "Never"
