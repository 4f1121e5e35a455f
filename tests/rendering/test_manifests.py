"""The whole output: its order, what it refuses, and what it passes on."""

from dataclasses import replace
from typing import Any

import pytest

from tests.strategies import AUTOSCALER, BUDGET, NOW, a_spec, live_manifest, world
from twgen.errors import InvalidInput
from twgen.model.operator import Caller
from twgen.model.plan import WorkerVersions
from twgen.model.problem import Document
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.model.world import WorkerWorld, World
from twgen.planning.plan import plan_versions
from twgen.rendering.manifests import render_manifests

ME = Caller("me", forced=True)
SPEC = replace(a_spec(), attached=(BUDGET, AUTOSCALER))


def workers(spec: WorkerSpec = SPEC, *live: dict[str, Any]) -> tuple[WorkerVersions, ...]:
    return plan_versions([spec], world(None, list(live)), NOW, ME).workers


def document(**metadata: Any) -> Document:
    return Document("", 0, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})


def attached(template: dict[str, Any], *live: dict[str, Any]) -> dict[str, Any]:
    resource = AttachedResource("extra", template, autoscales=False)
    _, manifest = render_manifests(workers(replace(SPEC, attached=(resource,)), *live), [], ME.of)
    return manifest


def test_passthrough_comes_first_as_it_is_then_ours_in_apply_order() -> None:
    passed = [document(name="z"), document(name="a")]
    manifests = render_manifests(workers(SPEC, live_manifest(SPEC, "v1", 1)), passed, ME.of)
    assert manifests[:2] == [item.value for item in passed]
    assert [(item["kind"], item["metadata"]["labels"]["temporal.io/build-id"]) for item in manifests[2:]] == [
        ("Deployment", "v1"),
        ("Deployment", "v3"),
        ("HorizontalPodAutoscaler", "v1"),
        ("HorizontalPodAutoscaler", "v3"),
        ("PodDisruptionBudget", "v1"),
        ("PodDisruptionBudget", "v3"),
    ]


def test_order_of_the_workers_does_not_matter() -> None:
    orders = replace(a_spec("orders"), attached=SPEC.attached)
    empty = WorkerWorld("shop/orders", "default", None, ())
    (second,) = plan_versions([orders], World(NOW, {("shop/orders", "default"): empty}), NOW, ME).workers
    (first,) = workers()
    manifests = render_manifests([first, second], [], ME.of)
    assert len(manifests) == 6
    assert render_manifests([second, first], [], ME.of) == manifests


def test_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="render to nothing"):
        render_manifests([], [], ME.of)


def test_generated_name_that_collides_names_both_files_and_the_remedy() -> None:
    ours = workers(replace(SPEC, source="pay.yaml"))
    passed = Document("old.yaml", 0, document(name="payments-v3", namespace="shop").value)
    with pytest.raises(InvalidInput) as refused:
        render_manifests(ours, [passed], ME.of)
    assert str(refused.value) == (
        "Deployment shop/payments-v3 is there twice, from worker shop/payments (pay.yaml) and from old.yaml:"
        " remove or rename the one in old.yaml"
    )


def test_two_workers_whose_versions_get_one_name_are_named_with_their_files() -> None:
    first = replace(a_spec("pay", build_id="ments-v3"), source="pay.yaml", attached=())
    second = replace(a_spec("pay-ments", build_id="v3"), source="payments.yaml", attached=())
    empty = {
        (item.worker_deployment, "default"): WorkerWorld(item.worker_deployment, "default", None, ())
        for item in (first, second)
    }
    both = plan_versions([first, second], World(NOW, empty), NOW, ME).workers
    with pytest.raises(InvalidInput, match=r"pay.yaml.*payments.yaml.*: rename the worker shop/pay-ments$"):
        render_manifests(both, [], ME.of)


def test_passed_object_without_namespace_is_in_that_of_the_render() -> None:
    passed = [document(name="payments-v3")]
    assert render_manifests(workers(), passed, ME.of, "other")
    with pytest.raises(InvalidInput, match="Deployment shop/payments-v3 is there twice"):
        render_manifests(workers(), passed, ME.of, "shop")


def test_passed_object_whose_namespace_nobody_knows_may_be_in_that_of_a_worker() -> None:
    with pytest.raises(InvalidInput, match="Deployment shop/payments-v3 is there twice"):
        render_manifests(workers(), [document(name="payments-v3")], ME.of)


def test_two_passed_objects_are_one_when_the_render_has_their_namespace() -> None:
    services = [
        Document(file, 0, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"} | place})
        for file, place in (("a.yaml", {}), ("b.yaml", {"namespace": "shop"}))
    ]
    assert render_manifests([], services, ME.of)
    with pytest.raises(InvalidInput, match=r"remove or rename the one in b\.yaml"):
        render_manifests([], services, ME.of, "shop")


def test_object_of_the_whole_cluster_is_the_same_in_every_namespace() -> None:
    roles = [
        Document(
            "", 0, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": place}
        )
        for place in ({"name": "r"}, {"name": "r", "namespace": "shop"})
    ]
    with pytest.raises(InvalidInput, match="ClusterRole r is there twice"):
        render_manifests([], roles, ME.of)


def test_same_name_in_another_namespace_is_another_object() -> None:
    assert render_manifests(workers(), [document(name="payments-v3", namespace="other")], ME.of)


def test_same_object_of_two_versions_of_its_group_is_refused() -> None:
    old = document(name="payments-v3", namespace="shop")
    old.value["apiVersion"] = "apps/v1beta1"
    with pytest.raises(InvalidInput):
        render_manifests(workers(), [old], ME.of)


def test_objects_that_the_server_names_never_collide() -> None:
    jobs = [document(generateName="migrate-"), document(generateName="migrate-")]
    assert render_manifests([], jobs, ME.of) == [job.value for job in jobs]


def test_attached_object_is_owned_only_by_a_deployment_whose_uid_is_known() -> None:
    template = dict(BUDGET.template)
    live = live_manifest(SPEC, "v3", 1)
    (owner,) = attached(template, live)["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "payments-v3", "uid": "uid-v3"}
    del live["metadata"]["uid"]
    assert "ownerReferences" not in attached(template, live)["metadata"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, {"apiVersion": "apps/v1", "kind": "Deployment", "name": "payments-v3"}),
        ({"kind": "Deployment", "name": "fixed"}, {"kind": "Deployment", "name": "fixed"}),
    ],
)
def test_target_of_an_attached_object_is_filled_in_where_it_is_left_open(
    written: dict[str, str], expected: dict[str, str]
) -> None:
    template = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "spec": {"targetRef": written},
    }
    assert attached(template)["spec"]["targetRef"] == expected
