"""The autoscalers of Deployments, as an API server lists them, whoever made them."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.planning.situations import SPEC, live
from tests.reading.test_world import Temporal
from tests.strategies import NOW
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.model.world import Autoscaler, WorkerWorld
from twgen.reading.kubernetes import ClusterReader
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.world import Reading, read_world

FOLDERS = {
    "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers": "HorizontalPodAutoscaler",
    "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects": "ScaledObject",
}
HPA, SCALED_OBJECT = FOLDERS.values()


def scaler(name: str, deployment: str = "payments-v3", kind: str = "Deployment", **metadata: Any) -> Any:
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, **metadata},
        "spec": {"scaleTargetRef": {"kind": kind, "name": deployment}},
    }


class Cluster:
    """Has a Deployment, and lists these autoscalers; of a kind that is absent, nothing is installed."""

    def __init__(self, **listed: list[Any] | None) -> None:
        self.listed = listed
        self.asked: list[str] = []

    async def deployments(self, *_: object) -> list[Mapping[str, Any]]:
        return [{**live("v3"), "apiVersion": "apps/v1", "kind": "Deployment"}]

    async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
        self.asked.append(path)
        items = self.listed.get(FOLDERS[path], "absent")
        if items == "absent":
            return 404, {"message": "not found"}
        return (403, {"message": "forbidden"}) if items is None else (200, {"items": items})


def read(cluster: Cluster, *, autoscalers: bool = True, workers: int = 1) -> WorkerWorld:
    specs = [SPEC, *(replace(SPEC, name=f"other-{number}") for number in range(1, workers))]

    async def story() -> WorkerWorld:
        lists = ClusterReader(cast("KubernetesClient", cluster), Deadline(30))
        reading = Reading(
            TemporalReader(Temporal(), Deadline(30)), lists, NOW, for_routing=False, read_at=NOW
        )
        world = await read_world(specs, replace(reading, autoscalers=autoscalers))
        return world.workers[SPEC.key]

    return asyncio.run(story())


def test_autoscalers_of_the_deployments_of_a_worker_are_read_whoever_made_them() -> None:
    keda = scaler("by-keda")
    del keda["spec"]["scaleTargetRef"]["kind"]  # which KEDA takes for a Deployment
    found = read(Cluster(HorizontalPodAutoscaler=[scaler("by-hand")], ScaledObject=[keda]))
    assert found.autoscalers == (
        Autoscaler(HPA, "by-hand", "payments-v3"),
        Autoscaler(SCALED_OBJECT, "by-keda", "payments-v3"),
    )
    assert not found.autoscalers_unread


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(scaler("another", "payments"), id="of another Deployment"),
        pytest.param(scaler("set", kind="StatefulSet"), id="of another kind"),
        pytest.param(scaler("keda-hpa-scale", ownerReferences=[{"kind": SCALED_OBJECT}]), id="made by KEDA"),
        pytest.param(scaler("going", deletionTimestamp="2026-11-21T12:00:00Z"), id="being deleted"),
        pytest.param({**scaler("none"), "spec": {}}, id="without a target"),
        pytest.param({**scaler("odd"), "spec": {"scaleTargetRef": "odd"}}, id="with an odd target"),
    ],
)
def test_what_does_not_scale_the_deployment_of_a_version_is_left_out(item: Any) -> None:
    assert read(Cluster(HorizontalPodAutoscaler=[item])).autoscalers == ()


def test_kind_that_may_not_be_listed_hides_no_other_and_is_said() -> None:
    found = read(Cluster(HorizontalPodAutoscaler=None, ScaledObject=[scaler("by-keda")]))
    assert [item.name for item in found.autoscalers] == ["by-keda"]
    [folder, _] = FOLDERS
    assert found.autoscalers_unread == f"{folder} cannot be read: forbidden"


def test_namespace_is_listed_once_and_only_if_people_ask() -> None:
    cluster = Cluster(HorizontalPodAutoscaler=[])
    assert read(cluster, workers=5).autoscalers == ()
    assert cluster.asked == list(FOLDERS)
    read(cluster := Cluster(), autoscalers=False)
    assert cluster.asked == []
