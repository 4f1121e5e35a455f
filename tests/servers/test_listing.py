"""Lists of rollouts on a real API server, where one namespace has much more than another."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from typing import Any, TypeVar

import pytest

from testing.kubernetes.cluster import Cluster
from twgen.clients.deadline import AnswerDeadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient, Part, path_of
from twgen.model.plan import Phase
from twgen.model.rollout import Driver, RolloutMetadata
from twgen.model.status import RolloutStatus
from twgen.model.times import parse_time
from twgen.reading import kubernetes
from twgen.reading.kubernetes import list_rollouts, rollout_objects
from twgen.reading.rollouts import rollouts_in_cluster
from twgen.records.rollout_status import write_rollout_status
from twgen.versioning.names import DRIVER, INTENT_HASH, ROLLOUT, rollout_labels
from twgen.yaml.source import Budget, Limits

pytestmark = pytest.mark.server

Answer = TypeVar("Answer")
MIB = 2**20


@pytest.fixture
def namespaces(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Two namespaces, in the order of lists; what they hold must not be in the lists of other tests."""
    with cluster.own_namespace() as one, cluster.own_namespace() as another:
        yield (min(one, another), max(one, another))
        for name in (one, another):
            cluster.api.delete(f"{path_of('v1', 'ConfigMap', name)}?labelSelector={ROLLOUT}")


def put(cluster: Cluster, namespace: str, name: str, **more: Any) -> None:
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": rollout_labels(name),
        **more.pop("metadata", {}),
    }
    cluster.api.create(path_of("v1", "ConfigMap", namespace), {"metadata": metadata, **more})


def put_status(cluster: Cluster, namespace: str) -> None:
    status = RolloutStatus(
        f"{namespace}/pay",
        Phase.WAITING,
        "RampPaused",
        "",
        "v2",
        "v1",
        25,
        parse_time("2026-11-21T12:00:00Z"),
        None,
    )
    metadata = {"name": "pay-rollout-status", "labels": rollout_labels("pay")}
    put(cluster, namespace, "pay-rollout-status", metadata=metadata, data=write_rollout_status(status))


def ask(cluster: Cluster, story: Callable[[KubernetesClient], Awaitable[Answer]]) -> Answer:
    async def asked() -> Answer:
        with closing(KubernetesClient(ClusterAccess(str(cluster.kubeconfig)))) as client:
            return await story(client)

    return asyncio.run(asked())


def test_look_for_requests_gets_metadata_alone_whatever_config_maps_hold(
    cluster: Cluster, namespaces: tuple[str, str]
) -> None:
    namespace, _ = namespaces
    annotations = {DRIVER: Driver.TICK.value, INTENT_HASH: "abc"}
    for number in range(3):
        put(cluster, namespace, f"w{number}", metadata={"annotations": annotations}, data={"a": "x" * MIB})

    async def sizes(client: KubernetesClient) -> list[int]:
        budgets = Budget(Limits(bytes=8 * MIB)), Budget(Limits(bytes=8 * MIB))
        for budget, only in zip(budgets, (Part.METADATA, None), strict=True):
            await client.ask(
                "GET",
                path_of("v1", "ConfigMap", namespace),
                AnswerDeadline(20),
                query={"labelSelector": ROLLOUT},
                only=only,
                budget=budget,
            )
        return [budget.bytes for budget in budgets]

    async def seen(client: KubernetesClient) -> list[RolloutMetadata]:
        return await list_rollouts(client, namespace, AnswerDeadline(20))

    of_metadata, whole = ask(cluster, sizes)
    assert of_metadata < 10_000
    assert whole > 3 * MIB
    assert [metadata.name for metadata in ask(cluster, seen)] == ["w0", "w1", "w2"]


def test_namespace_with_config_maps_that_fill_an_answer_hides_no_rollout_of_another(
    cluster: Cluster, namespaces: tuple[str, str]
) -> None:
    other, namespace = namespaces
    put_status(cluster, namespace)
    for number in range(9):
        put(cluster, other, f"x{number}", data={"a": "<" * (MIB - 10)})

    async def workers(client: KubernetesClient) -> list[str]:
        found = await rollouts_in_cluster(client, "", AnswerDeadline(20))
        assert len([line for line in found.unusable if f" {other}/x" in line]) == 9, found.unusable
        return [status.worker for status in found.statuses]

    assert f"{namespace}/pay" in ask(cluster, workers)


def test_namespace_with_too_much_is_left_out_of_the_rest_of_the_list(
    cluster: Cluster, namespaces: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = namespaces
    for number in range(60):
        put(cluster, first, f"x{number:02}", data={"a": "x" * 2_000})
        if number < 15:
            put(cluster, last, f"y{number:02}")
    monkeypatch.setattr(kubernetes, "_PAGE", 10)
    monkeypatch.setattr(kubernetes, "_LEAST", 1)
    monkeypatch.setattr(kubernetes, "_OF_A_NAMESPACE", 50_000)
    skipped: list[str] = []

    async def names(client: KubernetesClient) -> list[tuple[str, str]]:
        found = rollout_objects(client, "ConfigMap", "", AnswerDeadline(20), skipped.append)
        return [(item["metadata"]["namespace"], item["metadata"]["name"]) async for item in found]

    found = ask(cluster, names)
    assert [name for place, name in found if place == last] == [f"y{number:02}" for number in range(15)]
    assert 10 <= len([name for place, name in found if place == first]) < 60
    assert len([line for line in skipped if f"namespace {first}: " in line]) == 1


@pytest.mark.parametrize("only", [None, Part.METADATA])
def test_config_map_whose_managed_fields_are_too_deep_hides_no_other(
    cluster: Cluster, namespaces: tuple[str, str], only: Part | None
) -> None:
    other, namespace = namespaces
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"f:a": deep}
    entry = {
        "manager": "x",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": deep,
    }
    put(cluster, other, "deep", metadata={"managedFields": [entry]})
    put(cluster, namespace, "whole")
    skipped: list[str] = []

    async def names(client: KubernetesClient) -> list[str]:
        found = rollout_objects(client, "ConfigMap", "", AnswerDeadline(20), skipped.append, only=only)
        return [item["metadata"]["name"] async for item in found]

    assert "whole" in ask(cluster, names)
    assert [line.partition(":")[0] for line in skipped if "deep" in line] == ["ConfigMap deep is left out"]
