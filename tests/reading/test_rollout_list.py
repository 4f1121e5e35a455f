"""What tick sees of rollouts by the metadata of their ConfigMaps."""

import asyncio
from typing import Any

import pytest

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import Part
from twgen.errors import StateUnavailable
from twgen.model.rollout import RolloutMetadata
from twgen.reading.kubernetes import list_rollouts
from twgen.versioning.names import rollout_labels


def config_map(name: str, worker: str = "pay", **annotations: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid of {name}",
        "resourceVersion": "7",
        "labels": rollout_labels(worker),
        "annotations": {f"twgen.io/{key.replace('_', '-')}": text for key, text in annotations.items()},
    }
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}


class Client:
    """An API server that answers with these pages."""

    def __init__(self, *pages: list[dict[str, Any]] | Any) -> None:
        self._pages = list(pages)
        self.asked: list[Any] = []

    async def ask(self, method: str, path: str, _: Deadline, **more: Any) -> tuple[int, Any]:
        self.asked.append((method, path, more["query"]["continue"], more["only"]))
        page = self._pages[len(self.asked) - 1]
        if not isinstance(page, list):
            return 403, {"message": page}
        token = str(len(self.asked)) if len(self.asked) < len(self._pages) else ""
        return 200, {"kind": "PartialObjectMetadataList", "items": page, "metadata": {"continue": token}}


def seen(client: Any, namespace: str = "") -> list[RolloutMetadata]:
    return asyncio.run(list_rollouts(client, namespace, Deadline(9)))


def test_intents_by_tick_are_seen_with_their_requests_from_any_page() -> None:
    intent = config_map("pay-rollout", intent_hash="abc", driver="Tick")
    by_job = config_map("mail-rollout", "mail", intent_hash="def")
    status = config_map("pay-rollout-status", request="{}")
    client = Client([intent, by_job], [status])
    assert seen(client) == [
        RolloutMetadata("shop", "pay-rollout", "abc", "uid of pay-rollout", "twgen.io/request: {}", "7")
    ]
    assert client.asked == [
        ("GET", "/api/v1/configmaps", "", Part.METADATA),
        ("GET", "/api/v1/configmaps", "1", Part.METADATA),
    ]


def test_abort_is_seen_and_a_request_that_a_manifest_has_is_not() -> None:
    intent = config_map("pay-rollout", intent_hash="abc", driver="Tick")
    status = config_map("pay-rollout-status", abort_request="{}")
    assert seen(Client([intent, status]))[0].request == "twgen.io/abort-request: {}"
    fields = {"f:metadata": {"f:annotations": {"f:twgen.io/abort-request": {}}}}
    status["metadata"]["managedFields"] = [{"manager": "helm", "operation": "Apply", "fieldsV1": fields}]
    assert seen(Client([intent, status]))[0].request == ""


def test_status_that_is_not_there_has_no_version() -> None:
    intent = config_map("pay-rollout", intent_hash="abc", driver="Tick")
    assert [metadata.status_version for metadata in seen(Client([intent]))] == [""]


def test_request_to_another_worker_is_not_this_ones() -> None:
    intent = config_map("pay-rollout", intent_hash="abc", driver="Tick")
    client = Client([intent, config_map("mail-rollout-status", "mail", request="{}")])
    [metadata] = seen(client, "shop")
    assert metadata.request == ""
    assert client.asked[0][1] == "/api/v1/namespaces/shop/configmaps"


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        (["configmaps is forbidden"], "cannot be read: configmaps is forbidden"),
        ([[{"metadata": {"name": "pay"}}]], "cannot be read"),
        ([[{"kind": "Status"}]], "cannot be read"),
    ],
)
def test_list_that_is_refused_or_broken_is_no_empty_list(pages: Any, why: str) -> None:
    with pytest.raises(StateUnavailable, match=why):
        seen(Client(*pages), "shop")
