"""The whole output: its order, what it refuses, and what it passes on."""

from dataclasses import replace
from typing import Any

import pytest

from tests.strategies import AUTOSCALER, BUDGET, NOW, a_spec, live_manifest, world
from twgen.errors import InvalidInput
from twgen.model.operator import Caller, Links
from twgen.model.plan import WorkerVersions
from twgen.model.problem import Document
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.model.world import WorkerWorld, World
from twgen.planning.plan import plan_versions
from twgen.rendering.manifests import render_manifests
from twgen.versioning.names import LINK

ME = Caller("me", forced=True)
SPEC = replace(a_spec(), attached=(BUDGET, AUTOSCALER))


def workers(spec: WorkerSpec = SPEC, *live: dict[str, Any]) -> tuple[WorkerVersions, ...]:
    return plan_versions([spec], world(None, list(live)), NOW, ME).workers


def document(**metadata: Any) -> Document:
    return Document("", 0, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})


LINKS = Links("https://ui.example.com/base/", dashboard="https://page.example.com")


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


def test_argocd_shows_a_link_to_the_workflows_of_each_version_where_the_operator_says_where() -> None:
    live = live_manifest(SPEC, "v1", 1)
    linked = render_manifests(workers(SPEC, live), [], ME.of, None, LINKS)
    links = {
        item["metadata"]["labels"]["temporal.io/build-id"]: item["metadata"]["annotations"].pop(LINK)
        for item in linked
        if item["kind"] == "Deployment"
    }
    path = "https://ui.example.com/base/namespaces/default/workflows?query="
    query = "TemporalWorkerDeploymentVersion%3D%22shop%2Fpayments%3A{}%22"
    assert links == {
        build_id: f"Workflows in Temporal|{path}{query.format(build_id)}" for build_id in ("v1", "v3")
    }
    # and nothing else of them is another
    assert linked == render_manifests(workers(SPEC, live), [], ME.of)


def test_tokens_of_the_controller_are_filled_in_as_it_does() -> None:
    tokens = "{{temporal_worker_deployment_name}} {{temporal_worker_build_id}} {{temporal_namespace}}"
    found = attached({"apiVersion": "example.com/v1", "kind": "Any", "spec": {"queries": [f"x {tokens}"]}})
    assert found["spec"]["queries"] == ["x shop_payments v3 default"]


@pytest.mark.parametrize(
    "data", ["{{.BuildID}}" * 80_000, [{}] * 300_000], ids=["placeholders", "values without text"]
)
def test_copies_of_many_versions_that_would_take_all_memory_are_refused(data: object) -> None:
    template = {"apiVersion": "example.com/v1", "kind": "Any", "data": data}
    spec = replace(SPEC, attached=(AttachedResource("extra", template, autoscales=False),))
    few, many = (
        workers(spec, *(live_manifest(spec, f"{'v' * 40}{number}", 1) for number in range(versions)))
        for versions in (1, 30)
    )
    assert len(render_manifests(few, [], ME.of)) == 4
    with pytest.raises(
        InvalidInput, match="the attached templates of shop/payments are too large to render: "
    ):
        render_manifests(many, [], ME.of)


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


def test_nothing_to_render_says_what_waits_for_what() -> None:
    [waiting] = workers()
    waits = replace(
        waiting, versions=(), not_created="75 versions still exist: v3 waits until one is removed"
    )
    with pytest.raises(InvalidInput, match=r"render to nothing \(75 versions still exist: v3 waits"):
        render_manifests([waits], [], ME.of)


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
