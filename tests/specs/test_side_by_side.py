"""What keeps the pods of two versions from running at one time is warned of."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, told, worker
from twgen.specs.spec_document import NamespaceRule

LABELS = {"app": "payments", "tier": "back"}
BUILD = "temporal.io/build-id"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def warned(
    pod: dict[str, Any], *documents: dict[str, Any], rule: NamespaceRule | None = None, **spec: Any
) -> list[str]:
    whole = {"containers": [{"name": "w", "image": "payments:v3"}], **pod}
    template = {"metadata": {"labels": LABELS}, "spec": whole}
    found = parsed(worker(template=template, **spec), CONNECTION, *documents, rule=rule)
    assert told((*found.problems, *found.unknown_fields)) == []
    return told(found.warnings)


def apart(labels: dict[str, str] | None = None, **term: Any) -> dict[str, Any]:
    selector = {} if labels is None else {"labelSelector": {"matchLabels": labels}}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, **selector, **term}]}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    written = {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
    return {"labelSelector": {"matchExpressions": [written]}}


@pytest.mark.parametrize(
    "pod",
    [
        apart({"app": "payments"}),
        apart({"temporal.io/deployment-name": "payments"}),
        apart({}),
        apart(**expression("app", "In", "payments", "orders")),
        apart(**expression(BUILD, "Exists")),
        apart({"app": "payments"}, namespaces=["infra", "shop"]),
        apart({"app": "payments"}, namespaceSelector={}),
        apart({"app": "payments"}, matchLabelKeys=["tier", "unknown"]),
        apart({"app": "payments"}, mismatchLabelKeys=[BUILD]),
    ],
)
def test_anti_affinity_to_the_pods_of_all_versions_is_warned_of(pod: dict[str, Any]) -> None:
    place = f"spec.template.spec.affinity.podAntiAffinity.{REQUIRED}[0]"
    why = f"keeps a new version's pods off each {HOST} where an old version runs until it is drained"
    assert warned(pod) == [f"{place}: {why}: add matchLabelKeys: [{BUILD}]"]


@pytest.mark.parametrize(
    "pod",
    [
        apart({"app": "payments"}, matchLabelKeys=[BUILD]),
        apart({"app": "payments"}, matchLabelKeys=["pod-template-hash"]),
        apart({"app": "orders"}),
        apart({"app": "payments", "tier": "front"}),
        apart({"app": "payments"}, namespaces=["infra"]),
        apart({"app": "payments"}, namespaceSelector={"matchLabels": {"team": "billing"}}),
        apart({"app": "payments"}, mismatchLabelKeys=["tier"]),
        apart(),
        {"affinity": {"podAffinity": apart({"app": "payments"})["affinity"]["podAntiAffinity"]}},
        {
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 1,
                            "podAffinityTerm": apart({})["affinity"]["podAntiAffinity"][REQUIRED][0],
                        }
                    ]
                }
            }
        },
    ],
)
def test_anti_affinity_within_a_version_or_to_others_is_in_order(pod: dict[str, Any]) -> None:
    assert warned(pod) == []


def listening(**port: Any) -> dict[str, Any]:
    return {"name": "w", "image": "payments:v3", "ports": [{"containerPort": 8080, **port}]}


def test_port_of_the_node_is_taken_by_the_version_that_has_it() -> None:
    place, why = "spec.template.spec.containers[0].ports[0]", "where an old version runs until it is drained"
    off = "keeps a new version's pods off each node"
    taken = f"{place}.hostPort: 9090 {off} {why}: remove it"
    assert warned({"containers": [listening(hostPort=9090)]}) == [taken]
    on_host = f"{place}.containerPort: 8080 {off} {why}: remove hostNetwork"
    assert warned({"containers": [listening()], "hostNetwork": True}) == [on_host]
    assert warned({"containers": [listening()]}) == warned({"hostNetwork": True}) == []
    sidecar = {**listening(hostPort=9090), "name": "proxy", "restartPolicy": "Always"}
    assert warned({"initContainers": [sidecar]}) == [taken.replace("containers", "initContainers")]


MOUNTED = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
PLACE = "spec.template.spec.volumes[0].persistentVolumeClaim.claimName: claim data is"


def claim(*modes: Any, namespace: str = "shop", name: str = "data") -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    spec = {"accessModes": list(modes), "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("namespace", ["shop", ""])
def test_claim_that_one_pod_mounts_keeps_a_new_version_from_starting(namespace: str) -> None:
    why = "so no pod of a new version starts while an old version has one: use a ReadWriteMany claim"
    documents = [claim("ReadWriteOncePod", namespace=namespace)]
    assert warned(MOUNTED, *documents) == [f"{PLACE} ReadWriteOncePod, {why}"]
    assert warned(MOUNTED, *documents, rule=NamespaceRule("shop")) == [f"{PLACE} ReadWriteOncePod, {why}"]


def test_claim_that_one_node_mounts_keeps_a_new_version_there() -> None:
    why = (
        "so a new version's pods start only on the node of the old version's pods: use a ReadWriteMany claim"
    )
    assert warned(MOUNTED, claim("ReadWriteOnce")) == [f"{PLACE} ReadWriteOnce, {why}"]
    for field in ("nodeSelector", "affinity"):
        near = apart(LABELS)["affinity"]["podAntiAffinity"]
        on_one_node = {"nodeSelector": {HOST: "a"}, "affinity": {"podAffinity": near}}[field]
        assert warned({**MOUNTED, field: on_one_node}, claim("ReadWriteOnce")) == []


@pytest.mark.parametrize(
    "documents",
    [
        [],
        [claim("ReadWriteMany")],
        [claim("ReadWriteOnce", "ReadWriteMany")],
        [claim("ReadWriteOncePod", namespace="infra")],
        [claim("ReadWriteOncePod", name="other")],
        [claim({"a": 1}, None)],
        [{**claim("ReadWriteOncePod"), "apiVersion": "example.com/v1"}],
    ],
    ids=["unknown", "of many", "of one or many", "another namespace", "another name", "odd", "another kind"],
)
def test_claim_that_many_mount_or_nobody_knows_is_in_order(documents: list[dict[str, Any]]) -> None:
    assert warned(MOUNTED, *documents) == []


def test_claim_of_pods_that_are_wrong_themselves_is_not_told_of() -> None:
    affinity = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [None, 7]}},
        "podAffinity": {REQUIRED: ["a"]},
    }
    pod = {"containers": [{"name": "w", "image": "payments:v3"}], **MOUNTED, "affinity": affinity}
    found = parsed(worker(template={"spec": pod}), CONNECTION, claim("ReadWriteOnce"))
    assert (bool(found.problems), found.warnings) == (True, ())


def test_claim_is_told_of_where_the_pods_stand_in_the_file() -> None:
    whole = {"spec": {"containers": [{"name": "w", "image": "payments:v3"}], **MOUNTED}}
    spec = worker(deployment={"template": whole}, template=None)
    [told_of] = told(parsed(spec, CONNECTION, claim("ReadWriteOncePod")).warnings)
    assert told_of.startswith("spec.deployment.template.spec.volumes[0]")
