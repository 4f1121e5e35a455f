"""What the account of a rollout may do, verb by verb; its Pod is admitted where Pods are restricted."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from http import HTTPStatus
from itertools import product
from pathlib import Path

import pytest

from testing.kubernetes.api import Object
from testing.kubernetes.cluster import Cluster
from tests.servers.live import (
    Document,
    attached_document,
    autoscaler_document,
    connection_document,
    in_namespace,
    policy_document,
    run,
    worker_document,
)
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
RESOURCES = (
    ("", "configmaps"),
    ("", "secrets"),
    ("", "pods"),
    ("", "pods/exec"),
    ("", "pods/log"),
    ("", "events"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("", "services"),
    ("", "namespaces"),
    ("", "nodes"),
    ("apps", "deployments"),
    ("apps", "deployments/scale"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("policy", "poddisruptionbudgets"),
    ("keda.sh", "scaledobjects"),
    ("autoscaling.k8s.io", "verticalpodautoscalers"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
)
NAMES = ("", "pay-rollout", "pay-rollout-status", "pay-v1", "pay-input", "pay-secret", "somebody-else")


def rendered(folder: Path, *documents: Document) -> list[Object]:
    (specs := folder / "specs").mkdir()
    (specs / "specs.yaml").write_text(write_documents(documents))
    operator = {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "OperatorConfig",
        "rollout": {"image": "registry.example.com/twgen:testing"},
    }
    (folder / "operator.json").write_text(json.dumps(operator))
    world = {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "Snapshot",
        "takenAt": "2026-11-21T12:00:00Z",
        "workers": [
            {"name": f"{namespace_of(documents)}/pay", "temporalNamespace": "default", "temporal": None}
            | {"deployments": []}
        ],
    }
    (folder / "world.json").write_text(json.dumps(world))
    ended = run(
        specs,
        "render",
        options=[
            *("--snapshot", str(folder / "world.json"), "--operator-config", str(folder / "operator.json")),
            *("--identity", "twgen/testing", "-q"),
        ],
    )
    assert ended.code == 0, ended.stderr
    return read_documents(ended.stdout)


def namespace_of(documents: tuple[Document, ...]) -> str:
    return str(documents[0]["metadata"]["namespace"])


def documents_of(namespace: str, attached: Document | None = None) -> tuple[Document, ...]:
    worker = worker_document("pay", "v1", steps=(25,), gate="GateWorkflow")
    reference = {"secretKeyRef": {"name": "pay-secret", "key": "input"}}
    worker["spec"]["rollout"]["gate"]["inputFrom"] = reference
    connection = connection_document(
        "temporal.example.com:7233", apiKeySecretRef={"name": "workers-key", "key": "key"}
    )
    policy = policy_document("pay", controlPlaneSecretRef={"name": "rollouts-key"})
    return tuple(in_namespace(namespace, connection, worker, attached or autoscaler_document("pay"), policy))


def allowed(
    cluster: Cluster, namespace: str, resources: Sequence[tuple[str, str]] = RESOURCES
) -> Iterator[tuple[str, str, str]]:
    """Every verb, resource and name that the account may."""
    places = ((namespace, NAMES), ("default", NAMES[:2]), ("", NAMES[:2]))
    for place, names in places:
        for verb, (group, resource), name in product(VERBS, resources, names):
            plural, _, below = resource.partition("/")
            attributes = {
                "namespace": place,
                "verb": verb,
                "group": group,
                "resource": plural,
                "subresource": below,
                "name": name,
            }
            if cluster.may("pay-rollout", namespace, attributes):
                yield (verb, f"{resource} {place}" if place != namespace else resource, name)


def test_account_may_do_what_a_rollout_does_and_nothing_else(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    manifests = rendered(tmp_path, *documents_of(namespace))
    rights = {"ServiceAccount", "Role", "RoleBinding"}
    cluster.apply([item for item in manifests if item["kind"] in rights])
    [role] = [item for item in manifests if item["kind"] == "Role"]
    cluster.await_rights("pay-rollout", namespace, role["rules"][0])
    found = set(allowed(cluster, namespace))
    by_name = {
        ("get", "configmaps", "pay-rollout"),
        ("get", "configmaps", "pay-rollout-status"),
        ("create", "configmaps", "pay-rollout-status"),
        ("patch", "configmaps", "pay-rollout-status"),
        ("get", "secrets", "pay-secret"),
        ("patch", "deployments", "pay-v1"),
    }
    of_any_name = {
        ("create", "events"),
        ("list", "pods"),
        ("list", "deployments"),
        ("list", "jobs"),
        ("delete", "jobs"),
    } | set(
        product(
            ("create", "list", "patch", "delete"),
            ("horizontalpodautoscalers",),  # and nothing of the kinds that it has none of
        )
    )
    assert found == by_name | {(*right, name) for right, name in product(of_any_name, NAMES)}


TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "pay-v1"}
ATTACHED: Mapping[str, tuple[str, str, Document]] = {
    "autoscaling/v2": (
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        {"maxReplicas": 2, "scaleTargetRef": TARGET},
    ),
    "policy/v1": ("poddisruptionbudgets", "PodDisruptionBudget", {"maxUnavailable": 1}),
    "keda.sh/v1alpha1": (
        "scaledobjects",
        "ScaledObject",
        {"scaleTargetRef": TARGET, "triggers": [{"type": "cpu", "metadata": {"value": "50"}}]},
    ),
    "autoscaling.k8s.io/v1": ("verticalpodautoscalers", "VerticalPodAutoscaler", {"targetRef": TARGET}),
}
MAY = {"list": 200, "create": 201, "patch": 200, "delete": 200}
"""And the status of every other verb is FORBIDDEN."""


@pytest.mark.parametrize("api_version", ATTACHED)
def test_account_may_apply_list_and_delete_what_is_attached_and_is_refused_every_other_verb(
    cluster: Cluster, namespace: str, tmp_path: Path, api_version: str
) -> None:
    plural, kind, spec = ATTACHED[api_version]
    cluster.define("keda", "vpa")
    left_open = {"scaleTargetRef", "targetRef"} & spec.keys()
    template = {**spec, **{name: {} for name in left_open}}
    attached = attached_document("pay", "more", api_version, kind, **template)
    manifests = rendered(tmp_path, *documents_of(namespace, attached))
    rights = {"ServiceAccount", "Role", "RoleBinding"}
    cluster.apply([item for item in manifests if item["kind"] in rights])
    path = f"/apis/{api_version}/namespaces/{namespace}/{plural}"
    document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "pay-v1"}, "spec": spec}
    cluster.api.create(path, document)
    token = cluster.token("pay-rollout", namespace)
    kubeconfig = cluster.write_kubeconfig(f"{namespace}-{plural}", token, namespace=namespace)
    one, requests = f"{path}/pay-v1", {"limit": "1"}
    verbs = {
        "get": ("GET", one, {}, None),
        "list": ("GET", path, requests, None),
        "watch": ("GET", path, {"watch": "true", "timeoutSeconds": "1"}, None),
        "create": ("POST", path, {}, {**document, "metadata": {"name": "pay-v2"}}),
        "update": ("PUT", one, {}, document),
        "patch": ("PATCH", one, {"fieldManager": "twgen", "force": "true"}, document),
        "deletecollection": ("DELETE", path, {}, {}),
        "delete": ("DELETE", one, {}, {}),
    }
    assert verbs.keys() == set(VERBS)

    async def statuses() -> dict[str, int]:
        found = {}
        for verb, (method, place, query, body) in verbs.items():
            found[verb], _ = await client.ask(method, place, Deadline(60), query=query, body=body)
        return found

    with closing(KubernetesClient(ClusterAccess(str(kubeconfig)))) as client:
        assert asyncio.run(statuses()) == {verb: MAY.get(verb, HTTPStatus.FORBIDDEN) for verb in verbs}
    assert cluster.api.find(one) is None


def test_account_of_a_worker_whose_objects_have_no_owners_may_nothing_of_what_is_attached(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    *documents, policy = documents_of(namespace)
    policy["spec"]["ownerReferences"] = "None"
    manifests = rendered(tmp_path, *documents, policy)
    rights = {"ServiceAccount", "Role", "RoleBinding"}
    cluster.apply([item for item in manifests if item["kind"] in rights])
    kinds = {plural for plural, _, _ in ATTACHED.values()}
    resources = [resource for resource in RESOURCES if resource[1] in kinds]
    assert len(resources) == len(ATTACHED)
    assert not list(allowed(cluster, namespace, resources))


def test_pod_is_admitted_where_pods_are_restricted(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    manifests = rendered(tmp_path, *documents_of(namespace))
    [job] = [item for item in manifests if item["kind"] == "Job"]
    cluster.apply([item for item in manifests if item["kind"] == "ServiceAccount"])
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "rollout", "namespace": namespace}}
    pod = head | {"spec": job["spec"]["template"]["spec"]}
    cluster.apply([pod], is_stored=False)
    [container] = pod["spec"]["containers"]
    container["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        cluster.apply([pod], is_stored=False)


def test_credentials_of_a_rollout_are_those_of_the_control_plane_and_stand_in_no_manifest(
    tmp_path: Path,
) -> None:
    manifests = rendered(tmp_path, *documents_of("live"))
    [job] = [item for item in manifests if item["kind"] == "Job"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    variables = {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}
    assert variables == {
        "TEMPORAL_ADDRESS": "temporal.example.com:7233",
        "TEMPORAL_NAMESPACE": "default",
        "TWGEN_TEMPORAL_API_KEY_FILE": "/etc/temporal/key/key",
    }
    volumes = {volume["name"]: volume for volume in job["spec"]["template"]["spec"]["volumes"]}
    secret = {"secretName": "rollouts-key", "items": [{"key": "key", "path": "key"}]}
    assert volumes["temporal-key"] == {"name": "temporal-key", "secret": secret}
