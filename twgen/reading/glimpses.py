"""A look at all rollouts that `twgen tick` carries out, by the metadata of their ConfigMaps alone."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable
from twgen.model.paths import value_at
from twgen.model.rollout import Driver, Glimpse
from twgen.reading.kubernetes import rollout_config_maps
from twgen.versioning.names import DRIVER, INTENT_HASH, REQUEST, ROLLOUT

_PAGE = 500


async def read_glimpses(client: KubernetesClient, namespace: str, deadline: Deadline) -> list[Glimpse]:
    """The rollouts by tick in a namespace; empty: in all. Raises StateUnavailable or OutOfTime."""

    async def read(path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        status, page = await client.ask("GET", path, deadline, query=query, only_metadata=True)
        if status != HTTPStatus.OK:
            raise StateUnavailable(f"{path} cannot be read: {page.get('message') or status}")
        # the items of a list without their other fields are of a kind of their own
        return {
            **page,
            "items": [{"metadata": value_at(item, "metadata")} for item in page.get("items") or ()],
        }

    intents: list[Mapping[str, Any]] = []
    asked: set[tuple[str, str]] = set()
    async for item in rollout_config_maps(read, namespace, _PAGE):
        annotations = value_at(item, "metadata", "annotations") or {}
        if annotations.get(DRIVER) == Driver.TICK:
            intents.append(item)
        if REQUEST in annotations:
            asked.add(_worker_of(item))
    return [_glimpse(item, is_asked=_worker_of(item) in asked) for item in intents]


def _worker_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """The namespace, and the label that an intent and the status of its rollout share."""
    return item["metadata"]["namespace"], str(value_at(item, "metadata", "labels", ROLLOUT))


def _glimpse(item: Mapping[str, Any], *, is_asked: bool) -> Glimpse:
    metadata = item["metadata"]
    intent_hash = str(metadata["annotations"].get(INTENT_HASH, ""))
    return Glimpse(metadata["namespace"], metadata["name"], intent_hash, str(metadata.get("uid")), is_asked)
