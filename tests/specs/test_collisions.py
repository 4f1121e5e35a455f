"""Two that are one object: told wherever they come from, and nothing else is."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import BUDGET, NOW, a_spec, live_manifest, world
from twgen.model.operator import Caller
from twgen.model.plan import VersionAction, WorkerVersions
from twgen.model.problem import Document
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import CurrentVersion, Drainage, Routing, Version, VersionStatus, WorkerDeployment
from twgen.planning.plan import plan_versions
from twgen.specs.collisions import collisions, generated_objects, target_objects


def document(
    file: str = "old.yaml", api: str = "apps/v1", kind: str = "Deployment", **metadata: Any
) -> Document:
    return Document(file, 0, {"apiVersion": api, "kind": kind, "metadata": metadata})


def worker(name: str = "payments", build_id: str = "v3", file: str = "pay.yaml") -> WorkerSpec:
    return replace(a_spec(name, build_id=build_id), attached=(BUDGET,), document=Document(file, 0, None))


def told(workers: Sequence[WorkerSpec], passed: Sequence[Document], namespace: str = "") -> list[str]:
    made = [item for spec in workers for item in target_objects(spec)]
    found = collisions(made, passed, namespace)
    return [
        " ".join(
            [f"{item.document.source}:", item.message, *([item.other.document.source] if item.other else ())]
        )
        for item in found
    ]


def test_document_that_is_a_generated_object_is_to_be_renamed() -> None:
    assert told([worker()], [document(name="payments-v3", namespace="shop")]) == [
        (
            "old.yaml: Deployment shop/payments-v3 is defined twice, from version v3 of worker"
            " shop/payments and from this document: remove or rename this one; the other is at pay.yaml"
        )
    ]


def test_two_workers_whose_versions_get_one_name_are_named_with_their_files() -> None:
    assert told([worker("pay", "ments-v3"), worker("pay-ments", "v3", "other.yaml")], []) == [
        (
            "other.yaml: Deployment shop/pay-ments-v3 is defined twice, from version ments-v3 of worker"
            " shop/pay and from version v3 of worker shop/pay-ments: rename the worker"
            " shop/pay-ments; the other is at pay.yaml"
        )
    ]


def test_versions_of_one_worker_that_get_one_name_need_another_build_id() -> None:
    spec = worker(build_id="V3")
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
    [problem] = collisions(generated_objects(plans_of(worker(build_id="1-0"), temporal)), [], "")
    assert problem.message.endswith(": choose another build ID")


def test_target_does_not_get_the_name_of_a_deployment_that_is_dropped() -> None:
    spec, drained = worker(build_id="1-0"), Drainage(VersionStatus.DRAINED, NOW - timedelta(days=9))
    temporal = WorkerDeployment(versions=(Version("1.0", VersionStatus.DRAINED, drainage=drained),))
    live = live_manifest(spec, "1.0", 0)
    live["metadata"]["annotations"].pop("argocd.argoproj.io/sync-options")
    plans = plans_of(spec, temporal, live)
    assert plans[0].versions[1].action is VersionAction.DROP
    [problem] = collisions(generated_objects(plans), [], "")
    assert problem.message.endswith(": choose another build ID")


def test_lost_version_whose_name_a_live_deployment_has_is_no_collision() -> None:
    spec = worker(build_id="v3")
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
    assert len(told([worker()], [passed], namespace)) == count


def test_two_documents_are_one_object_when_the_render_has_their_namespace() -> None:
    services = [
        document("a.yaml", "v1", "Service", name="s"),
        document("b.yaml", "v1", "Service", name="s", namespace="shop"),
    ]
    assert told([], services) == []
    assert told([], services, "shop") == [
        "b.yaml: Service shop/s is defined twice: remove or rename this one; the other is at a.yaml"
    ]


def test_object_of_the_whole_cluster_is_the_same_in_every_namespace() -> None:
    group = "rbac.authorization.k8s.io/v1"
    roles = [document("a", group, "ClusterRole", name="r", **place) for place in ({}, {"namespace": "shop"})]
    assert "ClusterRole r is defined twice" in told([], roles)[0]


def test_objects_that_the_server_names_never_collide() -> None:
    assert told([], [document(generateName="migrate-"), document(generateName="migrate-")]) == []


part = st.text("ab-", min_size=1, max_size=4).filter(lambda text: text == text.strip("-"))


@given(st.lists(st.tuples(part, part), min_size=2, max_size=5, unique_by=lambda pair: pair[0]))
def test_two_workers_never_share_a_name_in_silence(pairs: list[tuple[str, str]]) -> None:
    workers = [replace(worker(*pair, str(number)), attached=()) for number, pair in enumerate(pairs)]
    names = {item.name for spec in workers for item in target_objects(spec)}
    assert len(told(workers, [])) == len(workers) - len(names)


def test_document_that_is_an_object_of_a_rollout_is_told_where_rollouts_are_rendered() -> None:
    plan = plan_versions([worker()], world(None, []), NOW, Caller("twgen/me", forced=True))
    status = document(api="v1", kind="ConfigMap", name="payments-rollout-status", namespace="shop")
    [told] = collisions(generated_objects(plan.workers, [Driver.AUTO]), [status], "")
    assert "ConfigMap shop/payments-rollout-status is defined twice, from the rollout of" in told.message
    assert not list(collisions(generated_objects(plan.workers), [status], ""))
