"""Documents next to the specs that scale or select versions, or pass for one, are warned of."""

import gc
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.specs.parsing import CONNECTION, budget, parsed, told, worker
from tests.strategies import BUDGET, NOW, a_spec, live_manifest, world
from twgen.model.operator import Caller
from twgen.model.plan import VersionAction, WorkerVersions
from twgen.model.problem import Document
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import CurrentVersion, Drainage, Routing, Version, VersionStatus, WorkerDeployment
from twgen.planning.plan import plan_versions
from twgen.specs.neighbours import collisions, generated_objects, target_objects, warnings_of_neighbours
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
            f"metadata.labels['{NAME}']: is the label of worker shop/payments, so this object is removed"
            f" together with the objects of the worker's versions: remove it with {BUILD}"
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
    why = (
        "is the label of worker shop/payments, so the budgets and metrics of the worker's versions count"
        " these pods"
    )
    assert warning == f"{path}.metadata.labels['{NAME}']: {why}: remove it with {BUILD}"
    assert warned(carrying(api, kind, {NAME: "orders"}, {BUILD: "v3"})) == []


def test_deployment_that_carries_the_labels_of_a_version_passes_for_one() -> None:
    labels = {NAME: "payments"}
    assert warned(carrying("apps/v1", "Deployment", labels, labels)) == [
        (
            f"metadata.labels['{NAME}']: is the label of worker shop/payments, so twgen treats this"
            " Deployment as one of the worker's versions: remove it"
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


def document(
    file: str = "old.yaml", api: str = "apps/v1", kind: str = "Deployment", **metadata: Any
) -> Document:
    return Document(file, 0, {"apiVersion": api, "kind": kind, "metadata": metadata})


def colliding_worker(name: str = "payments", build_id: str = "v3", file: str = "pay.yaml") -> WorkerSpec:
    return replace(a_spec(name, build_id=build_id), attached=(BUDGET,), document=Document(file, 0, None))


def collisions_of(
    workers: Sequence[WorkerSpec], passed: Sequence[Document], namespace: str = ""
) -> list[str]:
    made = [item for spec in workers for item in target_objects(spec)]
    found = collisions(made, passed, namespace)
    return [
        " ".join(
            [f"{item.document.source}:", item.message, *([item.other.document.source] if item.other else ())]
        )
        for item in found
    ]


def test_document_that_is_a_generated_object_is_to_be_renamed() -> None:
    assert collisions_of([colliding_worker()], [document(name="payments-v3", namespace="shop")]) == [
        (
            "old.yaml: Deployment shop/payments-v3 is defined twice, from version v3 of worker"
            " shop/payments and from this document: remove or rename this object; the other is at pay.yaml"
        )
    ]


def test_two_workers_whose_versions_get_one_name_are_named_with_their_files() -> None:
    assert collisions_of(
        [colliding_worker("pay", "ments-v3"), colliding_worker("pay-ments", "v3", "other.yaml")], []
    ) == [
        (
            "other.yaml: Deployment shop/pay-ments-v3 is defined twice, from version ments-v3 of worker"
            " shop/pay and from version v3 of worker shop/pay-ments: rename the worker"
            " shop/pay-ments; the other is at pay.yaml"
        )
    ]


def test_versions_of_one_worker_that_get_one_name_need_another_build_id() -> None:
    spec = colliding_worker(build_id="V3")
    live = live_manifest(spec, "v3", 1)
    plans = plan_versions([spec], world(None, [live]), NOW, Caller("me", forced=True)).workers
    [problem] = collisions(generated_objects(plans), [], "")
    worker_of_both = "of worker shop/payments"
    assert f"from version V3 {worker_of_both} and from version v3 {worker_of_both}" in problem.message
    assert problem.message.endswith(": choose another build ID")


def plans_of(spec: WorkerSpec, temporal: WorkerDeployment, *live: dict[str, Any]) -> list[WorkerVersions]:
    found = world(temporal, list(live) if live else None)
    return list(plan_versions([spec], found, NOW, Caller("me", forced=True)).workers)


def test_target_does_not_get_the_name_of_a_version_whose_manifest_is_lost() -> None:
    in_use = Version("1.0", VersionStatus.CURRENT)
    temporal = WorkerDeployment(routing=Routing(current=CurrentVersion("1.0")), versions=(in_use,))
    [problem] = collisions(generated_objects(plans_of(colliding_worker(build_id="1-0"), temporal)), [], "")
    assert problem.message.endswith(": choose another build ID")


def test_target_does_not_get_the_name_of_a_deployment_that_is_dropped() -> None:
    spec, drained = colliding_worker(build_id="1-0"), Drainage(VersionStatus.DRAINED, NOW - timedelta(days=9))
    temporal = WorkerDeployment(versions=(Version("1.0", VersionStatus.DRAINED, drainage=drained),))
    live = live_manifest(spec, "1.0", 0)
    live["metadata"]["annotations"].pop("argocd.argoproj.io/sync-options")
    plans = plans_of(spec, temporal, live)
    assert plans[0].versions[1].action is VersionAction.DROP
    [problem] = collisions(generated_objects(plans), [], "")
    assert problem.message.endswith(": choose another build ID")


def test_lost_version_whose_name_a_live_deployment_has_is_no_collision() -> None:
    spec = colliding_worker(build_id="v3")
    temporal = WorkerDeployment(versions=(Version("1.0", VersionStatus.DRAINING),))
    plans = plans_of(spec, temporal, live_manifest(spec, "1-0", 2))
    assert list(collisions(generated_objects(plans), [], "")) == []


@pytest.mark.parametrize(
    ("namespace", "passed", "count"),
    [
        ("other", document(name="payments-v3"), 0),
        ("shop", document(name="payments-v3"), 1),
        ("", document(name="payments-v3"), 1),
        ("", document(name="payments-v3", namespace="other"), 0),
        ("", document(api="apps/v1beta1", name="payments-v3", namespace="shop"), 1),
        ("", document(kind="StatefulSet", name="payments-v3", namespace="shop"), 0),
    ],
)
def test_object_is_the_same_by_group_kind_namespace_and_name(
    namespace: str, passed: Document, count: int
) -> None:
    assert len(collisions_of([colliding_worker()], [passed], namespace)) == count


def test_two_documents_are_one_object_when_the_render_has_their_namespace() -> None:
    services = [
        document("a.yaml", "v1", "Service", name="s"),
        document("b.yaml", "v1", "Service", name="s", namespace="shop"),
    ]
    assert collisions_of([], services) == []
    assert collisions_of([], services, "shop") == [
        "b.yaml: Service shop/s is defined twice: remove or rename this object; the other is at a.yaml"
    ]


def test_object_of_the_whole_cluster_is_the_same_in_every_namespace() -> None:
    group = "rbac.authorization.k8s.io/v1"
    roles = [document("a", group, "ClusterRole", name="r", **place) for place in ({}, {"namespace": "shop"})]
    assert "ClusterRole r is defined twice" in collisions_of([], roles)[0]


def test_objects_that_the_server_names_never_collide() -> None:
    assert collisions_of([], [document(generateName="migrate-"), document(generateName="migrate-")]) == []


part = st.text("ab-", min_size=1, max_size=4).filter(lambda text: text == text.strip("-"))


@given(st.lists(st.tuples(part, part), min_size=2, max_size=5, unique_by=lambda pair: pair[0]))
def test_two_workers_never_share_a_name_in_silence(pairs: list[tuple[str, str]]) -> None:
    workers = [
        replace(colliding_worker(*pair, str(number)), attached=()) for number, pair in enumerate(pairs)
    ]
    names = {item.name for spec in workers for item in target_objects(spec)}
    assert len(collisions_of(workers, [])) == len(workers) - len(names)


def test_document_that_is_an_object_of_a_rollout_is_told_where_rollouts_are_rendered() -> None:
    plan = plan_versions([colliding_worker()], world(None, []), NOW, Caller("twgen/me", forced=True))
    status = document(api="v1", kind="ConfigMap", name="payments-rollout-status", namespace="shop")
    [told] = collisions(generated_objects(plan.workers, [Driver.AUTO]), [status], "")
    assert "ConfigMap shop/payments-rollout-status is defined twice, from the rollout of" in told.message
    assert not list(collisions(generated_objects(plan.workers), [status], ""))
