"""The cluster that other tests run on: who may do what, and that its controllers work."""

import json
from typing import Any

import pytest

from testing.kubernetes.cluster import Cluster
from testing.processes import eventually
from tests.servers.pods import deployment, shell

pytestmark = pytest.mark.server

READ_DEPLOYMENTS = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]}]


def test_api_server_is_the_version_that_the_tests_are_written_for(cluster: Cluster) -> None:
    assert cluster.api.get("/version")["gitVersion"] == "v1.36.1"


def test_administrator_may_do_everything(cluster: Cluster) -> None:
    assert cluster.kubectl("auth", "can-i", "*", "*", "--all-namespaces").strip() == "yes"


def test_limited_user_may_do_what_its_rules_say(cluster: Cluster, namespace: str) -> None:
    cluster.apply([deployment(namespace, "one", shell("true"))])
    viewer = cluster.user("viewer", READ_DEPLOYMENTS, namespace)
    assert "one" in cluster.kubectl("get", "deployments", "-o", "name", kubeconfig=viewer)


@pytest.mark.parametrize(
    "command",
    [
        ["get", "pods"],
        ["delete", "deployment", "one"],
        ["get", "deployments", "--namespace", "default"],
    ],
    ids=["another resource", "another verb", "another namespace"],
)
def test_limited_user_is_forbidden_everything_else(
    cluster: Cluster, namespace: str, command: list[str]
) -> None:
    viewer = cluster.user("viewer", READ_DEPLOYMENTS, namespace)
    with pytest.raises(AssertionError, match=f"Forbidden.*system:serviceaccount:{namespace}:viewer"):
        cluster.kubectl(*command, kubeconfig=viewer)


def test_kubeconfig_can_have_several_contexts(cluster: Cluster, namespace: str) -> None:
    viewer = cluster.user("viewer", READ_DEPLOYMENTS, namespace, contexts=["first", "second"])
    assert cluster.kubectl("config", "current-context", kubeconfig=viewer).strip() == "first"
    assert cluster.kubectl("get", "deployments", "--context", "second", kubeconfig=viewer) == ""


def test_unknown_token_is_unauthorized(cluster: Cluster) -> None:
    stranger = cluster.write_kubeconfig("stranger", "no-token-of-anybody")
    with pytest.raises(AssertionError, match=r"Unauthorized|must be logged in"):
        cluster.kubectl("get", "pods", kubeconfig=stranger)


def test_controllers_make_pods_of_a_deployment(cluster: Cluster, namespace: str) -> None:
    cluster.apply([deployment(namespace, "one", shell("true"), replicas=3)])
    eventually(lambda: len(cluster.list("pods", namespace, "app=one")) == 3)


def test_deleted_deployment_takes_its_pods_along(cluster: Cluster, namespace: str) -> None:
    cluster.apply([deployment(namespace, "one", shell("true"), replicas=2)])
    eventually(lambda: len(cluster.list("pods", namespace)) == 2)
    cluster.kubectl("delete", "deployment", "one", "--namespace", namespace)
    eventually(lambda: not cluster.list("pods", namespace))


TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}
TRIGGER = {"type": "cron", "metadata": {"timezone": "UTC", "start": "0 6 * * *", "end": "0 20 * * *"}}


@pytest.mark.parametrize(
    ("name", "document"),
    [
        (
            "keda",
            {
                "apiVersion": "keda.sh/v1alpha1",
                "kind": "ScaledObject",
                "spec": {"scaleTargetRef": TARGET, "triggers": [TRIGGER]},
            },
        ),
        (
            "vpa",
            {
                "apiVersion": "autoscaling.k8s.io/v1",
                "kind": "VerticalPodAutoscaler",
                "spec": {"targetRef": TARGET},
            },
        ),
    ],
)
def test_defined_kinds_are_checked_by_their_own_definitions(
    cluster: Cluster, namespace: str, name: str, document: dict[str, Any]
) -> None:
    cluster.define(name)
    document = {**document, "metadata": {"name": "one", "namespace": namespace}}
    answer = json.loads(cluster.apply([document], "--dry-run=server", "-o", "json"))
    assert document["spec"].items() <= answer["spec"].items()
    with pytest.raises(AssertionError, match="missing required field"):
        cluster.apply([document | {"spec": {}}], "--dry-run=server", "-o", "json")
