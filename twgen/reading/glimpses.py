"""A look at all rollouts that `twgen tick` carries out, by the metadata of their ConfigMaps alone."""

from collections.abc import Mapping
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, Part
from twgen.model.paths import value_at
from twgen.model.rollout import Driver, Glimpse
from twgen.reading.listing import config_maps_path, rollout_objects
from twgen.records.requests import written_requests
from twgen.versioning.names import DRIVER, INTENT_HASH, ROLLOUT


async def read_glimpses(client: KubernetesClient, namespace: str, deadline: Deadline) -> list[Glimpse]:
    """The rollouts by tick in a namespace; empty: in all. Raises StateUnavailable or OutOfTime."""
    intents: list[Mapping[str, Any]] = []
    requests: dict[tuple[str, str], str] = {}
    path = config_maps_path(namespace)
    # each check lists the same objects as a whole, and says which ones are left out
    async for item in rollout_objects(client, path, deadline, lambda _: None, only=Part.METADATA):
        annotations = value_at(item, "metadata", "annotations") or {}
        if annotations.get(DRIVER) == Driver.TICK:
            intents.append(item)
        if written := written_requests(item["metadata"]):
            requests[_worker_of(item)] = written
    return [_glimpse(item, requests.get(_worker_of(item), "")) for item in intents]


def _worker_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """The namespace, and the label that an intent and the status of its rollout share."""
    return item["metadata"]["namespace"], str(value_at(item, "metadata", "labels", ROLLOUT))


def _glimpse(item: Mapping[str, Any], request: str) -> Glimpse:
    metadata = item["metadata"]
    intent_hash = str(metadata["annotations"].get(INTENT_HASH, ""))
    return Glimpse(metadata["namespace"], metadata["name"], intent_hash, str(metadata.get("uid")), request)
