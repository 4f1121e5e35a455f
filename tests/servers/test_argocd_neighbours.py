"""Workers and Applications beside each other: what is wrong with one stays its own."""

import shutil
from base64 import b64encode
from dataclasses import replace
from json import dumps

import pytest

from testing.argocd.argocd import NAMESPACE, OWN_CLUSTER
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.local_node.node import local_node
from testing.processes import eventually
from tests.servers.gitops import SOON, ApplicationStory
from tests.servers.live import Document, attached_document, policy_document
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server
ELSEWHERE = "twgen-elsewhere"


def refused_by_the_api_server(worker: str) -> Document:
    """No schema tells that a policy has no such type, and twgen does not know the kind's fields."""
    spec = {"podSelector": {"matchLabels": {"app": worker}}, "policyTypes": ["Sideways"]}
    return attached_document(worker, "policy", "networking.k8s.io/v1", "NetworkPolicy", **spec)


@side_by_side
def test_attached_object_that_the_api_server_refuses_is_named_and_holds_up_no_other_worker(
    story: ApplicationStory,
) -> None:
    biller = replace(story, worker_name="biller")

    def commit(greeter: str, bill: str, *more: Document) -> str:
        policies = [policy_document(each.worker_name, driver="Job") for each in (story, biller)]
        _, other = biller.documents(bill, steps=())
        return story.commit(greeter, other, *policies, *more, steps=())

    commit("v1", "v1")
    story.application.create(retry={"limit": 1, "refresh": True})
    for each in (story, biller):
        each.stands("Settled", "v1")
    commit("v1", "v1", refused_by_the_api_server("greeter"))
    story.application.refresh()

    def named() -> bool:
        results = story.application.operation().get("syncResult", {}).get("resources", [])
        refused = {one["name"]: one["message"] for one in results if one.get("status") == "SyncFailed"}
        assert len(refused) == 1
        [(name, message)] = refused.items()
        return name.startswith("greeter-policy-v1") and "Sideways" in message

    eventually(named, SOON)
    commit("v1", "v2", refused_by_the_api_server("greeter"))
    story.application.refresh()
    biller.stands("Settled", "v2")
    assert biller.share("v2") == 100
    assert story.share("v1") == 100
    mended = commit("v2", "v2")
    story.application.synced(mended)
    story.stands("Settled", "v2")


@side_by_side
def test_second_argo_cd_identity_of_one_worker_deployment_is_blocked_and_says_who_has_it(
    story: ApplicationStory,
) -> None:
    """The same worker of the same namespace in another cluster, as a copy of an environment may have it."""
    story.settled()
    owner = story.manager()
    folder = story.argo.folder / f"{story.namespace}-elsewhere"
    with kubernetes_cluster(folder) as cluster, local_node(cluster):
        cluster.create_namespace(story.namespace)
        destination = introduced(story, cluster)
        name = f"{story.namespace}-{ELSEWHERE}"
        application = replace(story.application, name=name, server=destination)
        other = replace(story, application=application, elsewhere=cluster)
        other.commit("v2", steps=())
        application.create()
        blocked = other.stands("Blocked", "v2")
        assert owner in blocked["message"], blocked
        assert other.running_job()
        story.application.refresh("hard")
        application.refresh("hard")
        assert (story.manager(), story.share("v1")) == (owner, 100)
        assert story.stands("Settled", "v1")["phase"] == "Settled"
        other.discard()
        other.application.goes()


def introduced(story: ApplicationStory, cluster: Cluster) -> str:
    """The address of a cluster of which Argo CD and the plugin's operator have been told."""
    cluster.apply(
        [
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "argocd", "namespace": "kube-system"},
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "argocd"},
                "subjects": [{"kind": "ServiceAccount", "name": "argocd", "namespace": "kube-system"}],
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
            },
        ]
    )
    token = cluster.token("argocd", "kube-system")
    trust = b64encode(cluster.authority.read_bytes()).decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": ELSEWHERE,
            "namespace": NAMESPACE,
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "stringData": {
            "name": ELSEWHERE,
            "server": cluster.address,
            "config": dumps({"bearerToken": token, "tlsClientConfig": {"caData": trust}}),
        },
    }
    story.cluster.apply([secret])
    shutil.copy(cluster.write_kubeconfig("plugin", token), story.argo.sidecar.folder / "twgen-clusters")
    access = {"kubeconfig": "/etc/twgen/clusters/plugin.kubeconfig", "context": "testing"}
    story.argo.configure(
        [story.temporal.address],
        clusters=[{"project": "default", "application": f"*-{ELSEWHERE}", **access}, OWN_CLUSTER],
    )
    return cluster.address


@side_by_side
def test_application_outside_of_argo_cds_namespace_has_the_identity_of_both_its_names(
    story: ApplicationStory,
) -> None:
    home = f"apps-{story.namespace}"
    story.cluster.create_namespace(home)
    story = replace(story, application=replace(story.application, home=home))
    story.settled()
    commit = story.commit("v2", steps=())
    story.application.synced(commit)
    story.stands("Settled", "v2")
    assert story.manager() == f"twgen/testing/{home}_{story.application.name}"
    found = story.deployment("v2")
    assert found
    tracked = found["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"]
    assert tracked.startswith(f"{home}_{story.application.name}:")
    story.application.refresh("hard")
    story.application.synced(commit)
    story.application.discard()
