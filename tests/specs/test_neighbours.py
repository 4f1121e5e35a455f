"""Documents next to the specs that scale or select versions, or pass for one, are warned of."""

import gc
from time import process_time
from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, budget, parsed, told, worker
from twgen.model.problem import Document
from twgen.specs.neighbours import warnings_of_neighbours
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.versioning.names import versioned_deployment_name

MANY = range(600)
HPA, KEDA, VPA = (
    ("autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef"),
    ("keda.sh/v1alpha1", "ScaledObject", "scaleTargetRef"),
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "targetRef"),
)

TEMPLATE = {
    "metadata": {"labels": {"app": "payments", "tier": "back"}},
    "spec": {"containers": [{"name": "w", "image": "payments:v3"}]},
}
NAME, BUILD = "temporal.io/deployment-name", "temporal.io/build-id"
ALL_AS_ONE = (
    "spec.selector: counts the pods of all versions of worker shop/payments together, so an old version may"
    " lose its last pod: make it a WorkerResourceTemplate"
)


def warned(*others: dict[str, Any], namespace: str = "") -> list[str]:
    found = parsed(worker(template=TEMPLATE), CONNECTION, *others, rule=NamespaceRule(namespace))
    assert found.problems == ()
    return told(found.warnings)


def budget_of(selector: Any, namespace: str = "shop") -> dict[str, Any]:
    metadata = {"name": "own"} | ({"namespace": namespace} if namespace else {})
    spec = {"maxUnavailable": 1, "selector": selector}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app": "payments"}},
        {"matchLabels": {NAME: "payments"}},
        {},
        expression("app", "In", "orders", "payments"),
        expression("app", "NotIn", "orders"),
        expression(BUILD, "Exists"),
        expression("old", "DoesNotExist"),
    ],
)
@pytest.mark.parametrize("namespace", ["shop", ""])
def test_budget_of_the_pods_of_all_versions_is_to_be_attached(selector: Any, namespace: str) -> None:
    assert warned(budget_of(selector, namespace)) == [ALL_AS_ONE]


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app": "orders"}},
        {"matchLabels": {"app": "payments", "tier": "front"}},
        expression("app", "NotIn", "payments"),
        expression("app", "In", "orders"),
        expression("app", "DoesNotExist"),
        expression("old", "Exists"),
        expression("app", "Near", "payments"),
        None,
        "app=payments",
        {"matchLabels": ["app"]},
        {"matchLabels": {"app": ["payments"]}},
        {"matchLabels": {"app": "payments"}, "matchExpressions": "app"},
        {"matchExpressions": [None]},
    ],
)
def test_budget_of_other_pods_is_nobody_s_concern(selector: Any) -> None:
    assert warned(budget_of(selector)) == []


def test_budget_of_one_version_leaves_the_next_one_without() -> None:
    version = {NAME: "payments", BUILD: parsed(worker(template=TEMPLATE), CONNECTION).workers[0].build_id}
    assert warned(budget_of({"matchLabels": version})) == [
        (
            "spec.selector: selects only the pods of one version of worker shop/payments, so the"
            " next version has no budget: make it a WorkerResourceTemplate"
        )
    ]


@pytest.mark.parametrize(
    ("api", "kind"), [("policy/v1", "PodDisruptionBudget"), ("autoscaling/v2", "HorizontalPodAutoscaler")]
)
def test_object_that_carries_the_labels_of_a_version_goes_with_its_own(api: str, kind: str) -> None:
    metadata = {"name": "other", "namespace": "shop", "labels": {NAME: "payments", BUILD: "v3"}}
    assert warned({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {}}) == [
        (
            f"metadata.labels['{NAME}']: is the label of worker shop/payments, so removing the objects of"
            f" its versions removes this too: remove it with {BUILD}"
        )
    ]


def test_budget_of_another_namespace_selects_none_of_them() -> None:
    assert warned(budget_of({}, "infra")) == warned(budget_of({}, ""), namespace="shop")[1:] == []


def test_budget_beside_an_attached_one_keeps_every_pod_where_it_is() -> None:
    [warning] = warned(budget(), budget_of({"matchLabels": {"app": "payments"}}))
    assert warning == (
        "spec.selector: selects the pods of all versions of worker shop/payments, like attached template"
        " budget, but a pod with two budgets cannot be evicted: remove it"
    )


def carrying(api: str, kind: str, labels: dict[str, str], own: dict[str, str]) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": {"containers": []}}
    job = {"jobTemplate": {"spec": {"template": template}}}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "other", "namespace": "shop", "labels": own},
        "spec": job if kind == "CronJob" else {"template": template},
    }


@pytest.mark.parametrize(
    ("api", "kind", "path"),
    [
        ("apps/v1", "Deployment", "spec.template"),
        ("apps/v1", "StatefulSet", "spec.template"),
        ("batch/v1", "CronJob", "spec.jobTemplate.spec.template"),
    ],
)
def test_pods_that_carry_the_labels_of_a_version_count_as_its_own(api: str, kind: str, path: str) -> None:
    labels = {NAME: "payments", BUILD: "v3"}
    [warning] = warned(carrying(api, kind, labels, {}))
    why = "is the label of worker shop/payments, so its versions' budgets and metrics count these pods"
    assert warning == f"{path}.metadata.labels['{NAME}']: {why}: remove it with {BUILD}"
    assert warned(carrying(api, kind, {NAME: "orders"}, {BUILD: "v3"})) == []


def test_deployment_that_carries_the_labels_of_a_version_passes_for_one() -> None:
    labels = {NAME: "payments"}
    assert warned(carrying("apps/v1", "Deployment", labels, labels)) == [
        (
            f"metadata.labels['{NAME}']: is the label of worker shop/payments, so it is taken for one of its"
            " versions: remove it"
        )
    ]


def test_many_budgets_beside_many_workers_are_looked_through_quickly(
    request: pytest.FixtureRequest,
) -> None:
    """Each with the labels of no worker, or with all that every worker has and one that none has."""
    workers = [
        {**worker(template=TEMPLATE), "metadata": {"name": f"w{at}", "namespace": "shop"}} for at in MANY
    ]
    budgets = [
        {**budget_of({"matchLabels": {"app": "payments", "tier": tier}}), "metadata": {"name": f"{tier}{at}"}}
        for tier in ("front", "middle")
        for at in MANY
    ]
    expressions = [
        {**budget_of(expression("app", "DoesNotExist")), "metadata": {"name": f"e{at}"}} for at in MANY
    ]
    # the garbage of the tests before this one is not what is measured
    gc.disable()
    request.addfinalizer(gc.enable)
    started = process_time()
    read = [Document("f.yaml", at, value) for at, value in enumerate([*workers, CONNECTION])]
    specs = parse_specs(read, NamespaceRule("shop")).workers
    alone = process_time() - started
    documents = [Document("f.yaml", at, value) for at, value in enumerate([*budgets, *expressions])]
    started = process_time()
    assert list(warnings_of_neighbours(documents, specs, "shop")) == []
    assert process_time() - started < 3 * max(alone, 0.1)


def scaling(api: str, scaler: str, field: str, namespace: str = "shop", **target: object) -> dict[str, Any]:
    metadata = {"name": "scaler"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api, "kind": scaler, "metadata": metadata, "spec": {field: target}}


def deployment(name: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}}


@pytest.mark.parametrize("scaler", [HPA, KEDA, VPA])
def test_scaler_of_a_deployment_that_is_called_like_a_worker_scales_nothing(
    scaler: tuple[str, str, str],
) -> None:
    said = "scales Deployment payments, which is not a version of worker shop/payments: make it a Worker"
    [warning] = warned(scaling(*scaler, kind="Deployment", name="payments"))
    assert warning.startswith(f"spec.{scaler[2]}.name: {said}")


@pytest.mark.parametrize("scaler", [HPA, KEDA, VPA])
@pytest.mark.parametrize("namespace", ["shop", ""])
def test_scaler_of_the_deployment_of_one_version_is_to_be_attached(
    scaler: tuple[str, str, str], namespace: str
) -> None:
    (spec,) = parsed(worker(template=TEMPLATE), CONNECTION).workers
    target = versioned_deployment_name(spec.name, spec.build_id)
    [warning] = warned(scaling(*scaler, namespace, kind="Deployment", name=target))
    assert warning == (
        f"spec.{scaler[2]}.name: scales Deployment {target}, which is only one version of worker"
        " shop/payments: make it a WorkerResourceTemplate"
    )


def test_target_of_keda_is_a_deployment_also_where_it_does_not_say_so() -> None:
    assert len(warned(scaling(*KEDA, name="payments"))) == 1


@pytest.mark.parametrize("default", ["", "shop"])
def test_scaler_without_a_namespace_may_be_that_of_the_worker(default: str) -> None:
    assert len(warned(scaling(*HPA, "", name="payments"), namespace=default)) == 1


@pytest.mark.parametrize(
    "others",
    [
        [scaling(*HPA, name="payments"), deployment("payments", "shop")],
        [scaling(*HPA, "infra", name="payments")],
        [scaling(*HPA, name="payments-api")],
        [scaling(*HPA, kind="StatefulSet", name="payments")],
        [scaling(*HPA, name=["payments"])],
        [scaling("example.com/v1", *HPA[1:], name="payments")],
    ],
    ids=["is there", "another namespace", "another name", "another kind", "no name", "another group"],
)
def test_scaler_of_what_may_be_there_is_nobodys_mistake(others: list[dict[str, Any]]) -> None:
    assert warned(*others) == []


def test_deployment_of_another_namespace_is_not_what_is_scaled() -> None:
    assert len(warned(scaling(*HPA, name="payments"), deployment("payments", "infra"))) == 1


@pytest.mark.parametrize("kind", ["WorkerDeployment", "TemporalWorkerDeployment"])
def test_scaler_of_a_worker_itself_scales_nothing(kind: str) -> None:
    [warning] = warned(scaling(*HPA, apiVersion="temporal.io/v1alpha1", kind=kind, name="payments"))
    assert warning.startswith(
        f"spec.scaleTargetRef.name: scales {kind} payments, which is not a version of worker"
    )
    assert warned(scaling(*HPA, kind=["WorkerDeployment"], name="payments")) == []
