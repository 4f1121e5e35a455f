"""Listing the objects of rollouts: one namespace, whatever it contains, hides nothing of the others."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.http import Unreadable
from twgen.clients.kubernetes import MOST_LISTED, KubernetesClient, Part, listed
from twgen.errors import StateUnavailable
from twgen.model.paths import value_at
from twgen.model.rollout import Driver, RolloutMetadata
from twgen.records.rollout_status import written_requests
from twgen.versioning.names import DRIVER, INTENT_HASH, ROLLOUT
from twgen.yaml.source import Budget, Limits

_PAGE, _PAGE_OF_METADATA = 50, 500
_OF_A_PAGE = Limits(text_bytes=12 * 2**20, bytes=12 * 2**20, nodes=600_000)
"""A ConfigMap of an API server, of 1.5 MiB at most, has up to 9 MiB as JSON, where `<` takes six bytes."""
_OF_A_NAMESPACE = 8 * _OF_A_PAGE.bytes
_LEAST = 2**12
"""Bytes that an object counts as, so that a namespace has a most of objects too."""


def config_maps_path(namespace: str) -> str:
    """The path of the ConfigMaps of a namespace; empty: of all namespaces."""
    return f"/api/v1{f'/namespaces/{namespace}' if namespace else ''}/configmaps"


async def rollout_objects(
    client: KubernetesClient,
    path: str,
    deadline: Deadline,
    skip: Callable[[str], None],
    *,
    only: Part | None = None,
) -> AsyncIterator[Mapping[str, Any]]:
    """The objects with the label of rollouts in the list at a path, page by page.

    A page that is too large is asked for again with half as many objects. `skip` gets a sentence about an
    object that is too large alone, and about a namespace with too much: the rest of it is left out. Raises
    StateUnavailable or OutOfTime.
    """
    kind = "Job" if path.endswith("/jobs") else "ConfigMap"
    most = size = _PAGE_OF_METADATA if only else _PAGE
    query, left_out = {"labelSelector": ROLLOUT, "continue": ""}, list[str]()
    seen, used = 0, Counter[str]()
    while seen < MOST_LISTED:
        budget = Budget(_OF_A_PAGE)
        query["limit"] = str(size)
        try:
            page = await _page(client, path, query, deadline, budget, only=only)
        except Unreadable as error:
            if size > 1:
                size //= 2
                continue
            page = await _names(client, path, query, deadline)
            for name in page.pop("names"):
                skip(f"{kind} {name} is left out: {error}")
        items = page.get("items", [])
        for item in items:
            used[_namespace(item)] += max(_LEAST, budget.bytes // len(items))
            yield item
        for namespace in [name for name, total in used.items() if total > _OF_A_NAMESPACE]:
            del used[namespace]
            left_out.append(f"metadata.namespace!={namespace}")
            skip(
                f"namespace {namespace}: its {kind}s with the label {ROLLOUT} have more than"
                f" {_OF_A_NAMESPACE // 2**20} MiB, so twgen leaves out the rest of them: delete those that"
                " are not of rollouts"
            )
        query["fieldSelector"] = ",".join(left_out)
        query["continue"] = value_at(page, "metadata", "continue") or ""
        if not query["continue"] or (left_out and "/namespaces/" in path):
            return
        if 2 * budget.bytes <= _OF_A_PAGE.bytes:
            size = min(2 * size, most)
        seen += len(items) or size
    raise StateUnavailable(f"{path} cannot be read: its list has more than {MOST_LISTED} objects")


async def _page(  # noqa: PLR0913 - each is a part of a request
    client: KubernetesClient,
    path: str,
    query: Mapping[str, str],
    deadline: Deadline,
    budget: Budget,
    *,
    only: Part | None,
) -> dict[str, Any]:
    status, page = await client.ask("GET", path, deadline, query=query, only=only, budget=budget)
    if status != HTTPStatus.OK:
        raise StateUnavailable(f"{path} cannot be read: {page.get('message') or status}")
    if only is Part.NAME:
        return {**page}
    if only and isinstance(items := page.get("items"), list):
        # the items of a list without their other fields are of a kind of their own
        page = {**page, "items": [{"metadata": value_at(item, "metadata")} for item in items]}
    return {**page, "items": listed(path, page)}


async def _names(
    client: KubernetesClient, path: str, query: Mapping[str, str], deadline: Deadline
) -> dict[str, Any]:
    """The page, with only the `names` of its objects, from which the list continues."""
    with suppress(Unreadable):
        page = await _page(client, path, query, deadline, Budget(_OF_A_PAGE), only=Part.METADATA)
        return page | {
            "names": [f"{_namespace(item)}/{item['metadata']['name']}" for item in page.pop("items")]
        }
    # its metadata may be nested so deep that no reader of JSON takes it
    page = await _page(
        client, path, {**query, "includeObject": "None"}, deadline, Budget(_OF_A_PAGE), only=Part.NAME
    )
    rows = page.pop("rows", None) or ()
    return page | {"names": [str(row["cells"][0]) for row in rows if value_at(row, "cells")]}


def _namespace(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["namespace"])


async def list_rollouts(
    client: KubernetesClient, namespace: str, deadline: Deadline
) -> list[RolloutMetadata]:
    """The rollouts by tick in a namespace; empty: in all. Raises StateUnavailable or OutOfTime."""
    intents: list[Mapping[str, Any]] = []
    requests: dict[tuple[str, str], str] = {}
    versions: dict[tuple[str, str], str] = {}
    path = config_maps_path(namespace)
    # each check lists the same objects as a whole, and says which ones are left out
    async for item in rollout_objects(client, path, deadline, lambda _: None, only=Part.METADATA):
        annotations = value_at(item, "metadata", "annotations") or {}
        if annotations.get(DRIVER) == Driver.TICK:
            intents.append(item)
        elif not annotations.get(INTENT_HASH):
            versions[_worker_of(item)] = str(item["metadata"].get("resourceVersion"))
        if written := written_requests(item["metadata"]):
            requests[_worker_of(item)] = written
    return [
        RolloutMetadata(
            item["metadata"]["namespace"],
            item["metadata"]["name"],
            str(item["metadata"]["annotations"].get(INTENT_HASH, "")),
            str(item["metadata"].get("uid")),
            requests.get(_worker_of(item), ""),
            versions.get(_worker_of(item), ""),
        )
        for item in intents
    ]


def _worker_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """The namespace, and the label that an intent and the status of its rollout share."""
    return item["metadata"]["namespace"], str(value_at(item, "metadata", "labels", ROLLOUT))
