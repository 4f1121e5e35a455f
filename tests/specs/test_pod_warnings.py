"""What nobody means in a worker's pods, and what two versions cannot both have, is warned of."""

import json
from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, told, worker
from twgen.specs.spec_document import NamespaceRule


def warnings(**container: Any) -> list[str]:
    template = {"spec": {"containers": [{"name": "w", "image": "payments:v3", **container}]}}
    found = parsed(worker(template=template), CONNECTION)
    assert found.problems == found.unknown_fields == ()
    return told(found.warnings)


@pytest.mark.parametrize(("written", "told"), [("512m", "512m"), (512, "512"), ("1000", "1k")])
@pytest.mark.parametrize("field", ["limits", "requests"])
def test_memory_of_a_few_bytes_is_warned_of(field: str, written: str | int, told: str) -> None:
    [warning] = warnings(resources={field: {"memory": written}})
    place = f"spec.template.spec.containers[0].resources.{field}.memory"
    why = "is less than a mebibyte, too little for any container: write Mi or Gi"
    assert warning == f"{place}: {told} {why}"


@pytest.mark.parametrize("amount", ["1Mi", "512M", "0", 2**20, "1.5Gi"])
def test_memory_that_holds_a_program_is_not(amount: str | int) -> None:
    assert warnings(resources={"limits": {"memory": amount, "cpu": "500m"}}) == []


@pytest.mark.parametrize(
    ("label", "is_there"),
    [("app", False), ("temporal.io/build-id", True), ("pod-template-hash", True)],
)
def test_variable_of_a_label_that_the_pods_do_not_have_is_warned_of(label: str, *, is_there: bool) -> None:
    path = f"metadata.labels['{label}']"
    found = warnings(env=[{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": path}}}])
    place = "spec.template.spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"
    warning = f"{place}: the pods have no label app, so NAME is empty: write its value"
    assert found == ([] if is_there else [warning])


@pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe", "startupProbe"])
def test_probe_of_a_port_that_is_not_there_is_warned_of(probe: str) -> None:
    asked = {probe: {"httpGet": {"port": "health"}}}
    said = "there is no port named 'health': the probe always fails"
    assert warnings(**asked) == [f"spec.template.spec.containers[0].{probe}.httpGet.port: {said}"]
    assert warnings(**asked, ports=[{"name": "health", "containerPort": 8080}]) == []
    assert warnings(**{probe: {"tcpSocket": {"port": 8080}}}) == []


@pytest.mark.parametrize("field", ["limits", "requests"])
@pytest.mark.parametrize(
    ("amounts", "warning"),
    [
        ({"cpu": 500}, "cpu: is 500 whole cores: write 500m for millicores"),
        (
            {"cpu": "250", "memory": "512Mi"},
            "cpu: is 250 whole cores: write 250m for millicores",
        ),
        ({"cpu": "500M"}, "cpu: is 500000000 whole cores: write 500m for millicores"),
        ({"cpu": "1k"}, "cpu: is 1000 whole cores: write 1000m for millicores"),
        ({"memory": "512Ti"}, "memory: 512Ti is more than a node has: write Mi or Gi"),
        ({"cpu": "500m", "memory": "4Ti"}, "memory: 4Ti is more than a node has: write Mi or Gi"),
        ({"cpu": "500", "memory": "512Ti"}, "memory: 512Ti is more than a node has: write Mi or Gi"),
    ],
)
def test_resources_of_a_mistaken_unit_are_warned_of(
    field: str, amounts: dict[str, Any], warning: str
) -> None:
    assert warnings(resources={field: amounts}) == [
        f"spec.template.spec.containers[0].resources.{field}.{warning}"
    ]


@pytest.mark.parametrize(
    "amounts", [{"cpu": "64", "memory": "1Ti"}, {"cpu": "180", "memory": "1900Gi"}, {"cpu": "99999m"}]
)
def test_resources_of_a_whole_machine_are_not(amounts: dict[str, str]) -> None:
    assert warnings(resources={"limits": amounts}) == []


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


TERM = apart({})["affinity"]["podAntiAffinity"][REQUIRED][0]
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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
        {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}}},
    ],
)
def test_anti_affinity_within_a_version_or_to_others_is_in_order(pod: dict[str, Any]) -> None:
    assert warned(pod) == []


def listening(**port: Any) -> dict[str, Any]:
    return {"name": "w", "image": "payments:v3", "ports": [{"containerPort": 8080, **port}]}


def test_port_of_the_node_is_taken_by_the_version_that_has_it() -> None:
    place, why = (
        "spec.template.spec.containers[0].ports[0]",
        "where an old version runs until it is drained",
    )
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
        "so a new version's pods can start only on the node of the old version's pods: use a ReadWriteMany"
        " claim"
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


def of_pods(**pod: Any) -> list[str]:
    """The warnings about pods with the label `team: pay`."""
    pod = {"containers": [{"name": "w", "image": "payments:v3"}], **pod}
    found = parsed(worker(template={"metadata": {"labels": {"team": "pay"}}, "spec": pod}), CONNECTION)
    assert found.problems == found.unknown_fields == ()
    return told(found.warnings)


@pytest.mark.parametrize("mode", [400, 440, 444, 500])
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ({"secret": {"secretName": "k", "defaultMode": 0}}, "secret.defaultMode"),
        (
            {"configMap": {"name": "k", "items": [{"key": "a", "path": "a", "mode": 0}]}},
            "configMap.items[0].mode",
        ),
    ],
)
def test_mode_of_files_that_is_octal_without_a_zero_is_warned_of(
    mode: int, source: dict[str, Any], place: str
) -> None:
    written = json.loads(json.dumps(source).replace(": 0", f": {mode}"))
    [warning] = of_pods(volumes=[{"name": "k", **written}])
    assert warning.startswith(f"spec.template.spec.volumes[0].{place}: {mode} is decimal, so the files get 0")
    assert f"write {int(str(mode), 8)}, which is 0{mode}" in warning


@pytest.mark.parametrize("mode", [0, 256, 288, 420, 493, 511])
def test_mode_of_files_that_is_meant_so_is_not(mode: int) -> None:
    assert of_pods(volumes=[{"name": "k", "secret": {"secretName": "k", "defaultMode": mode}}]) == []


def spread(labels: dict[str, str], how: str = "DoNotSchedule", *keys: str) -> list[str]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": how}
    constraint |= {
        "labelSelector": {"matchLabels": labels},
        **({"matchLabelKeys": list(keys)} if keys else {}),
    }
    return of_pods(topologySpreadConstraints=[constraint])


@pytest.mark.parametrize("how", ["DoNotSchedule", "ScheduleAnyway"])
def test_spread_of_pods_that_are_not_the_workers_is_warned_of(how: str) -> None:
    [warning] = spread({"app": "payments"}, how)
    why = "selects none of this worker's pods, so they are not spread"
    path = "spec.template.spec.topologySpreadConstraints[0]"
    assert warning == f"{path}: {why}: select temporal.io/deployment-name: payments"


def test_spread_without_a_selector_spreads_no_pods() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    [warning] = of_pods(topologySpreadConstraints=[constraint])
    assert "selects none of this worker's pods" in warning


@pytest.mark.parametrize("labels", [{}, {"team": "pay"}, {"temporal.io/deployment-name": "payments"}])
def test_hard_spread_over_the_pods_of_all_versions_is_warned_of(labels: dict[str, str]) -> None:
    [warning] = spread(labels)
    assert "also counts the pods of draining versions" in warning
    assert warning.endswith("add matchLabelKeys: [temporal.io/build-id]")
    assert spread(labels, "ScheduleAnyway") == []
    for key in ("temporal.io/build-id", "pod-template-hash"):
        assert spread(labels, "DoNotSchedule", key) == []
    assert len(spread(labels, "DoNotSchedule", "team")) == 1
