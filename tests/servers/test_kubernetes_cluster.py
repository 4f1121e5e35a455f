"""The cluster that other tests run on: who may do what, and that its controllers work."""

from typing import Any

import pytest

from testing.kubernetes.cluster import Cluster
from tests.servers.pods import deployment, shell

pytestmark = pytest.mark.server

READ_DEPLOYMENTS = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]}]


def test_limited_user_may_do_what_its_rules_say_and_nothing_else(cluster: Cluster, namespace: str) -> None:
    cluster.apply([deployment(namespace, "one", shell("true"))])
    viewer = cluster.user("viewer", READ_DEPLOYMENTS, namespace)
    assert "one" in cluster.kubectl("get", "deployments", "-o", "name", kubeconfig=viewer)
    for command in (["get", "pods"], ["get", "deployments", "--namespace", "default"]):
        with pytest.raises(AssertionError, match=f"Forbidden.*system:serviceaccount:{namespace}:viewer"):
            cluster.kubectl(*command, kubeconfig=viewer)


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
    [answer] = cluster.apply([document], is_stored=False)
    assert document["spec"].items() <= answer["spec"].items()
    with pytest.raises(AssertionError, match="Required value"):
        cluster.apply([document | {"spec": {}}], is_stored=False)
