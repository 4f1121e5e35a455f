"""Specs of what runs already say what it says, and leave to a person what it does not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twgen.model.problem import Document
from twgen.specs.imported_workers import Imported
from twgen.specs.imports import imported
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.editing import commented
from twgen.yaml.reader import read_documents

CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "vectors" / "plans.json").read_text())
OF_A_SERVER = {
    "uid": "5f2c1b1e",
    "resourceVersion": "12",
    "generation": 3,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "finalizers": ["temporal.io/delete-protection"],
    "managedFields": [],
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "pay"},
}
CONTAINER = {
    "name": "worker",
    "image": "pay:1",
    "env": [
        {"name": "TEMPORAL_ADDRESS", "value": "temporal.example.com:7233"},
        {"name": "TEMPORAL_NAMESPACE", "value": "pay"},
        {"name": "LOG", "value": "info"},
    ],
}


def documents(*values: dict[str, Any]) -> list[Document]:
    return [Document("live.yaml", index, value) for index, value in enumerate(values)]


def deployment(**container: Any) -> dict[str, Any]:
    labels = {"app": "payments", "team": "pay"}
    pods = {
        "containers": [{**CONTAINER, **container}],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "payments", "namespace": "shop", **OF_A_SERVER},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "payments"}},
            "template": {"metadata": {"creationTimestamp": None, "labels": labels}, "spec": pods},
        },
        "status": {"replicas": 3},
    }


def parsed(specs: list[Imported]) -> Any:
    return parse_specs(documents(*(dict(spec.document) for spec in specs)), NamespaceRule("shop"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_objects_of_the_controller_are_the_same_versions_as_before(case: dict[str, Any]) -> None:
    live = [
        {**value, "metadata": {**OF_A_SERVER, **value["metadata"]}, "status": {"conditions": []}}
        for value in case["documents"]
    ]
    found, left = imported(documents(*live), "default")
    assert left == []
    before = parse_specs(documents(*case["documents"]), NamespaceRule())
    after = parse_specs(documents(*(dict(one.document) for one in found)), NamespaceRule())
    assert after.problems == ()
    assert [spec.build_id for spec in after.workers] == [spec.build_id for spec in before.workers]
    assert not {"status", "uid", "finalizers"} & {
        name for one in found for name in (*one.document, *one.document["metadata"])
    }


def test_defaults_that_a_stored_worker_has_beside_its_deployment_are_left_out() -> None:
    [worker] = [value for value in CASES[0]["documents"] if value["kind"] == "WorkerDeployment"]
    body = dict(worker["spec"])
    deployment = {"template": body.pop("template"), "minReadySeconds": 10}
    stored = {"minReadySeconds": 0, "progressDeadlineSeconds": 600, "deployment": deployment}
    [found], _ = imported(documents({**worker, "spec": body | stored}), "default")
    assert found.document["spec"] == body | {"deployment": deployment}


def test_plain_deployment_becomes_a_worker_and_its_connection() -> None:
    found, _ = imported(documents(deployment()), "")
    assert [one.file for one in found] == ["payments.yaml", "connection-temporal.yaml"]
    assert [one.missing for one in found] == [(), ()]
    specs = parsed(found)
    [worker] = specs.workers
    assert specs.problems == ()
    assert (worker.worker_deployment, worker.temporal_namespace) == ("shop/payments", "pay")
    assert (worker.connection.host_port, worker.replicas) == ("temporal.example.com:7233", 3)
    template = found[0].document["spec"]["template"]
    # what selects the old Deployment would take the new pods too
    assert template["metadata"]["labels"] == {"team": "pay"}
    assert template["spec"] == {
        "containers": [{"name": "worker", "image": "pay:1", "env": [{"name": "LOG", "value": "info"}]}]
    }


def test_what_a_deployment_does_not_tell_is_to_be_filled_in() -> None:
    found, _ = imported(documents(deployment(env=[])), "")
    assert [place for one in found for place in one.missing] == [
        "payments.yaml: fill in spec.workerOptions.temporalNamespace",
        "connection-temporal.yaml: fill in spec.hostPort",
    ]


def test_pods_keep_what_twgen_does_not_set_and_the_worker_has_their_task_queue_and_pace() -> None:
    value = deployment(
        env=[
            {"name": "TEMPORAL_TASK_QUEUE", "value": "payments"},
            {"name": "TEMPORAL_API_KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "own"}}},
            {"name": "TEMPORAL_TLS", "value": "true"},
            {"name": "LOG", "value": "info"},
        ]
    )
    annotations = {"vault.hashicorp.com/role": "pay", "kubectl.kubernetes.io/restartedAt": "now"}
    value["spec"]["template"]["metadata"]["annotations"] = annotations
    value["spec"] |= {"minReadySeconds": 10, "strategy": {"type": "Recreate"}}
    [worker, connection], _ = imported(documents(value), "")
    spec = worker.document["spec"]
    assert spec["workerOptions"]["taskQueue"] == "payments"
    pods = spec["deployment"]["template"]
    assert pods["metadata"]["annotations"] == {"vault.hashicorp.com/role": "pay"}
    assert [one["name"] for one in pods["spec"]["containers"][0]["env"]] == ["TEMPORAL_TLS", "LOG"]
    assert (spec["deployment"]["minReadySeconds"], spec["deployment"]["strategy"]) == (
        10,
        {"type": "Recreate"},
    )
    assert connection.document["spec"]["apiKeySecretRef"] == {"name": "keys", "key": "own"}
    assert not any("TEMPORAL_TLS" in place for place in worker.missing)
    specs = parsed([worker, connection])
    assert [problem.message for problem in specs.problems] == [
        "is not filled in yet: write the namespace that the program polls",
        "is not filled in yet: write the address of Temporal",
    ]


def test_worker_beside_a_sidecar_stands_first_and_is_named() -> None:
    value = deployment()
    pods = value["spec"]["template"]["spec"]
    pods["containers"] = [{"name": "istio-proxy", "image": "auto"}, *pods["containers"]]
    found, _ = imported(documents(value), "")
    [spec] = parsed(found).workers
    assert spec.build_id.startswith("1-")
    said = found[0].comments["spec", "template", "spec", "containers"]
    assert said == "the first container, 'worker', is probably the worker: the build ID comes from its image"


def test_name_of_a_container_does_not_end_the_comment_that_holds_it() -> None:
    value = deployment(name="worker\nkind: Secret")
    value["spec"]["template"]["spec"]["containers"].append({"name": "other", "image": "o:1"})
    found, _ = imported(documents(value), "")
    assert read_documents(commented(found[0].document, found[0].comments)) == [found[0].document]


def test_container_with_another_address_is_told() -> None:
    value = deployment()
    proxy = {"name": "proxy", "image": "p:1", "env": [{"name": "TEMPORAL_ADDRESS", "value": "cloud:7233"}]}
    value["spec"]["template"]["spec"]["containers"].append(proxy)
    [worker, connection], _ = imported(documents(value), "")
    assert connection.document["spec"]["hostPort"] == "temporal.example.com:7233"
    [note] = worker.missing
    assert note.startswith(
        "payments.yaml: TEMPORAL_ADDRESS of container 'proxy' is left out: it is 'cloud:7233' here"
    )


def test_variable_of_the_pods_says_what_it_said_without_those_that_it_referred_to() -> None:
    value = deployment(
        env=[
            {"name": "HOST", "value": "temporal.example.com"},
            {"name": "TEMPORAL_ADDRESS", "value": "$(HOST):7233"},
            {"name": "TEMPORAL_NAMESPACE", "value": "pay"},
            {"name": "TEMPORAL_WORKER_BUILD_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": "TEMPORAL_TASK_QUEUE", "value": "payments"},
            {"name": "URL", "value": "grpc://$(TEMPORAL_ADDRESS)"},
            {"name": "GREETING", "value": "$(TEMPORAL_WORKER_BUILD_ID) on $(TEMPORAL_TASK_QUEUE)"},
        ]
    )
    [worker, connection], _ = imported(documents(value), "")
    assert connection.document["spec"]["hostPort"] == "temporal.example.com:7233"
    [container] = worker.document["spec"]["template"]["spec"]["containers"]
    assert {one["name"]: one["value"] for one in container["env"]} == {
        "HOST": "temporal.example.com",
        "TEMPORAL_TASK_QUEUE": "payments",
        "URL": "grpc://temporal.example.com:7233",
        "GREETING": "$(TEMPORAL_WORKER_BUILD_ID) on $(TEMPORAL_TASK_QUEUE)",
    }
    assert "taskQueue" not in worker.document["spec"]["workerOptions"]
    [note] = worker.missing
    left = "payments.yaml: GREETING refers to TEMPORAL_WORKER_BUILD_ID, which is left out"
    assert note == f"{left}: write the value itself"


def test_key_in_a_variable_is_not_written_into_another_one() -> None:
    env = [{"name": "TEMPORAL_API_KEY", "value": "secret"}, {"name": "A", "value": "$(TEMPORAL_API_KEY)"}]
    [worker, *_], _ = imported(documents(deployment(env=[*CONTAINER["env"], *env])), "")
    assert "secret" not in json.dumps(worker.document)
    instead = "put it into a Secret, and set apiKeySecretRef of the Connection"
    assert worker.missing == (
        f"payments.yaml: TEMPORAL_API_KEY is left out: {instead}",
        "payments.yaml: A refers to TEMPORAL_API_KEY, which is left out: write the value itself",
    )


def test_containers_of_several_task_queues_keep_their_own() -> None:
    value = deployment(env=[*CONTAINER["env"], {"name": "TEMPORAL_TASK_QUEUE", "value": "payments"}])
    mails = {"name": "mails", "image": "m:1", "env": [{"name": "TEMPORAL_TASK_QUEUE", "value": "mails"}]}
    value["spec"]["template"]["spec"]["containers"].append(mails)
    [worker, *_], _ = imported(documents(value), "")
    containers = worker.document["spec"]["template"]["spec"]["containers"]
    assert [container["env"][-1]["value"] for container in containers] == ["payments", "mails"]
    assert "taskQueue" not in worker.document["spec"]["workerOptions"]


def test_variable_of_an_older_generation_stays_since_nothing_sets_it() -> None:
    env = [{"name": "TEMPORAL_HOST_PORT", "value": "temporal.example.com:7233"}]
    [worker, connection], _ = imported(documents(deployment(env=env)), "")
    assert connection.document["spec"]["hostPort"] == "temporal.example.com:7233"
    assert worker.document["spec"]["template"]["spec"]["containers"][0]["env"] == env


def test_objects_that_are_left_for_the_same_reason_are_one_line() -> None:
    services = [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"}, "spec": {}}
        for name in ("a", "b", "c", "d", "e")
    ]
    _, left = imported(documents(deployment(), *services), "")
    why = "each is neither an object of the controller nor a Deployment"
    assert left == [f"live.yaml: Service a, b, c and 2 more are not imported: {why}"]


def test_of_several_deployments_those_are_taken_that_know_temporal() -> None:
    web, other = deployment(env=[]), deployment()
    for value, name in ((web, "web"), (other, "mail")):
        value["metadata"] = {**value["metadata"], "name": name}
    found, left = imported(documents(deployment(), web, other), "")
    assert [one.file for one in found] == ["payments.yaml", "connection-temporal.yaml", "mail.yaml"]
    assert left == ["live.yaml: Deployment web is not imported: it has no Temporal variables"]
    elsewhere = json.loads(json.dumps(other).replace("temporal.example.com", "other.example.com"))
    found, _ = imported(documents(deployment(), elsewhere), "")
    names = [one.file for one in found]
    assert names == ["payments.yaml", "connection-payments.yaml", "mail.yaml", "connection-mail.yaml"]


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": None},
        {"metadata": "text"},
        {"metadata": {"name": "../../etc/passwd"}},
        {"metadata": {"name": "payments", "labels": ["a"]}},
        {"spec": None},
        {"spec": ["a"]},
        {"spec": {"template": {"spec": "text"}}},
        {"spec": {"template": {"spec": {"containers": {"a": "b"}}}}},
        {"spec": {"template": {"spec": {"containers": ["a"]}}}},
        {"spec": {"template": {"spec": {"containers": [{"env": ["a"]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"image": 5}]}}}},
        {"spec": {"template": {"metadata": "text", "spec": {"containers": [{}]}}}},
        {"metadata": {"name": "payments", "namespace": "../../etc"}},
        {
            "spec": {
                "template": {"spec": {"containers": [{"name": "w"}], "topologySpreadConstraints": [None]}}
            }
        },
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Rollout",
            "spec": {"strategy": {"canary": {"steps": 5}}},
        },
    ],
)
def test_object_that_is_not_as_kubernetes_has_it_is_left_and_told(change: dict[str, Any]) -> None:
    found, [left] = imported(documents({**deployment(), **change}), "")
    assert found == []
    assert "is not imported: it is not a valid Kubernetes object: " in left


def test_strategy_keeps_its_type_because_the_controller_ignores_one_without() -> None:
    value = deployment()
    value["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    [worker, connection], _ = imported(documents(value), "")
    assert worker.document["spec"]["deployment"]["strategy"] == value["spec"]["strategy"]
    assert parsed([worker, connection]).warnings == ()


def test_autoscaler_and_budget_are_left_with_the_kind_that_copies_them_for_each_version() -> None:
    metadata = {"name": "pay"}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata,
        "spec": {},
    }
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": {}}
    _, left = imported(documents(scaler, budget), "")
    why = "each version needs its own copy: put the object into a WorkerResourceTemplate"
    assert left == [
        f"live.yaml: HorizontalPodAutoscaler pay is not imported: {why}",
        f"live.yaml: PodDisruptionBudget pay is not imported: {why}",
    ]


def test_versions_and_other_objects_are_left_and_told() -> None:
    version = deployment()
    version["metadata"] = {**version["metadata"], "labels": {"temporal.io/build-id": "v1"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    assert imported(documents(version, service), "") == (
        [],
        [
            (
                "live.yaml: Deployment payments is not imported: it is a version's Deployment, but its"
                " worker is missing"
            ),
            (
                "live.yaml: Service web is not imported: it is neither an object of the controller"
                " nor a Deployment"
            ),
        ],
    )


def test_workers_of_two_namespaces_have_files_and_a_connection_of_their_own() -> None:
    other = deployment()
    other["metadata"] = {**other["metadata"], "namespace": "mail"}
    found, left = imported(documents(deployment(), other), "")
    assert left == []
    assert [one.file for one in found] == [
        "shop.payments.yaml",
        "shop.connection-temporal.yaml",
        "mail.payments.yaml",
        "mail.connection-temporal.yaml",
    ]
    assert parse_specs(documents(*(dict(one.document) for one in found)), NamespaceRule()).problems == ()


def named(name: str, **changes: Any) -> dict[str, Any]:
    """A Deployment with another name, whose container has these changes."""
    value = deployment(**changes)
    metadata = {**value["metadata"], "name": name}
    return {**value, "metadata": metadata}


def test_name_of_any_object_that_cannot_be_a_file_name_is_refused() -> None:
    metadata = {"name": "x/../../evil", "namespace": "shop"}
    labels = {"matchLabels": {"app": "payments"}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
    budget["spec"] = {"maxUnavailable": 1, "selector": labels}
    theirs = {"apiVersion": "temporal.io/v1alpha1", "kind": "WorkerResourceTemplate", "metadata": metadata}
    theirs["spec"] = {"workerDeploymentRef": {"name": "payments"}, "template": {}}
    for evil in (budget, theirs):
        found, [left] = imported(documents(deployment(), evil), "")
        assert [one.file for one in found] == ["payments.yaml", "connection-temporal.yaml"]
        assert "metadata.name 'x/../../evil' is not a valid Kubernetes name" in left


def test_deployment_that_is_there_twice_is_imported_once_and_told() -> None:
    other = deployment()
    other["spec"] = {**other["spec"], "replicas": 9}
    found, [left] = imported(documents(deployment(), other), "")
    why = "it is there twice, and twgen reads the last one: remove one of them"
    assert left == f"live.yaml: Deployment payments is not imported: {why}"
    assert found[0].document["spec"]["replicas"] == 9
    assert imported(documents(deployment(), deployment()), "")[1] == [], "both are the same"


def test_deployment_with_the_name_of_a_rollout_is_told() -> None:
    rollout = {**deployment(), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    _, [left] = imported(documents(deployment(), rollout), "")
    assert left.endswith("a Rollout of the same name is imported: remove one of them")


def variables(**values: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, **({"value": value} if isinstance(value, str) else {"valueFrom": value})}
        for name, value in {"TEMPORAL_ADDRESS": "temporal.example.com:7233", **values}.items()
    ]


def key_of(secret: str) -> dict[str, Any]:
    return {"secretKeyRef": {"name": secret, "key": "k"}}


@pytest.mark.parametrize(
    ("first", "second", "connections"),
    [
        (key_of("a"), key_of("a"), ["temporal"]),
        (key_of("a"), key_of("b"), ["payments", "mail"]),
        (key_of("a"), None, ["payments", "mail"]),
        ("plain", "text", ["payments", "mail"]),
        (None, None, ["temporal"]),
    ],
)
def test_workers_share_a_connection_only_with_the_same_credentials(
    first: Any, second: Any, connections: list[str]
) -> None:
    values = [
        named(name, env=variables(**({"TEMPORAL_API_KEY": key} if key else {})))
        for name, key in (("payments", first), ("mail", second))
    ]
    found, _ = imported(documents(*values), "")
    specs = {
        one.document["metadata"]["name"]: one.document["spec"] for one in found if "host" in str(one.document)
    }
    assert list(specs) == connections
    used = [one.document["spec"]["workerOptions"]["connectionRef"]["name"] for one in found if one.file in
            {"payments.yaml", "mail.yaml"}]  # fmt: skip
    for name, key in zip(used, (first, second), strict=True):
        secret = key["secretKeyRef"] if isinstance(key, dict) else None
        assert specs[name].get("apiKeySecretRef") == secret


@pytest.mark.parametrize(("secret", "name"), [("a", "temporal"), ("b", "payments")])
def test_connection_of_the_namespace_with_other_credentials_is_not_used(secret: str, name: str) -> None:
    connection = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "Connection",
        "metadata": {"name": "temporal", "namespace": "shop"},
        "spec": {"hostPort": "temporal.example.com:7233", "apiKeySecretRef": {"name": secret, "key": "k"}},
    }
    worker = deployment(env=variables(TEMPORAL_API_KEY=key_of("a")))
    found, left = imported(documents(connection, worker), "")
    [spec] = [one.document["spec"] for one in found if one.file == "payments.yaml"]
    assert (spec["workerOptions"]["connectionRef"]["name"], left) == (name, [])


def test_unknown_addresses_are_not_taken_for_the_same() -> None:
    addresses = {"a": "a.example.com:7233", "b": "b.example.com:7233", "c": key_of("c"), "d": key_of("d")}
    values = [named(name, env=variables(TEMPORAL_ADDRESS=address)) for name, address in addresses.items()]
    found, _ = imported(documents(*values), "")
    names = [one.file for one in found if one.file.startswith("connection-")]
    assert names == [f"connection-{name}.yaml" for name in addresses]


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths_of(item, (*path, key))


def changed(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copied = value.copy()
    copied[path[0]] = changed(value[path[0]], path[1:], other)
    return copied


ALL_KINDS = (Path(__file__).parents[1] / "fixtures" / "imports" / "all-kinds.yaml").read_text()
FIELDS = [(at, path) for at, value in enumerate(read_documents(ALL_KINDS)) for path in paths_of(value)]


@given(st.sampled_from(FIELDS), st.sampled_from(["x", 5, True, None, [5], ["x"], {}, {"a": 5}, {"a": ["x"]}]))
def test_field_of_any_wrong_type_is_never_a_bug(field: tuple[int, tuple[Any, ...]], other: Any) -> None:
    at, path = field
    values = list(read_documents(ALL_KINDS))
    values[at] = changed(values[at], path, other)
    found, _ = imported(documents(*values), "")
    assert all("/" not in one.file for one in found)


def test_objects_whose_files_would_have_one_name_get_their_own() -> None:
    env = CONTAINER["env"]
    found, left = imported(documents(named("connection-temporal", env=env)), "")
    assert [one.file for one in found] == ["connection-temporal.yaml", "shop.connection-temporal.yaml"]
    assert left == []


def test_second_object_of_a_file_is_left_and_told() -> None:
    connection = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "Connection",
        "metadata": {"name": "temporal", "namespace": "shop"},
        "spec": {"hostPort": "temporal.example.com:7233"},
    }
    other = {**connection, "kind": "ClusterConnection", "metadata": {"name": "temporal"}}
    third = {**connection, "metadata": {"name": "temporal-clusterconnection", "namespace": "shop"}}
    worker = {**connection, "kind": "WorkerDeployment", "metadata": {"name": "shop.connection-temporal"}}
    assert len(imported(documents(connection, other), "shop")[0]) == 2
    found, left = imported(documents(connection, third, worker, other), "shop")
    assert len(found) == 3
    [told] = left
    assert told.startswith("live.yaml: ClusterConnection temporal is not imported: ")
    assert told.endswith("connection-temporal.yaml is the file of another object as well: rename one")


def test_template_of_the_folder_keeps_its_name_and_no_other_worker_takes_it() -> None:
    def scaler(worker: str) -> dict[str, Any]:
        metadata = {"name": "scaler", "namespace": "shop"}
        target = {"kind": "Deployment", "name": worker}
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata,
            "spec": {"maxReplicas": 3, "scaleTargetRef": target},
        }

    first, _ = imported(documents(deployment(), scaler("payments")), "")
    folder = [Document(spec.file, 0, spec.document) for spec in first]
    again, _ = imported(documents(deployment(), scaler("payments")), "", folder)
    assert [one.file for one in again] == ["payments.yaml", "template-scaler.yaml"]
    other, _ = imported(documents(named("mail"), scaler("mail")), "", folder)
    assert [one.file for one in other] == [
        "mail.yaml",
        "connection-temporal.yaml",
        "template-scaler-hpa.yaml",
    ]


@pytest.mark.parametrize(
    ("rules", "label"),
    [
        ({"topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"app": "payments"}}}]}, "app"),
        (
            {"affinity": {"podAntiAffinity": {"x": [{"podAffinityTerm": {"labelSelector": {
                "matchExpressions": [{"key": "app.kubernetes.io/instance", "operator": "Exists"}]}}}]}}},
            "app.kubernetes.io/instance",
        ),
        ({"affinity": {"podAffinity": {"x": [{"labelSelector": {"matchLabels": {"team": "pay"}}}]}}}, ""),
        ({"topologySpreadConstraints": [{"labelSelector": None}]}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_label_that_is_left_out_and_that_pods_are_spread_by_is_told(
    rules: dict[str, Any], label: str
) -> None:
    value = deployment()
    value["spec"]["template"]["spec"] |= rules
    value["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/instance"] = "pay"
    [found, _] = imported(documents(value), "")[0]
    why = "is left out, but the pods' affinity or topologySpreadConstraints use it"
    instead = "write temporal.io/deployment-name: payments there"
    assert found.missing == ((f"payments.yaml: label {label} {why}: {instead}",) if label else ())
