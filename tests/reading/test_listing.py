"""Lists of the objects of rollouts in which one namespace has much more than the others."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from twgen.clients.deadline import Deadline
from twgen.clients.http import Unreadable
from twgen.clients.kubernetes import KubernetesClient, Part
from twgen.errors import StateUnavailable
from twgen.reading import kubernetes
from twgen.reading.kubernetes import rollout_objects
from twgen.yaml.source import Budget, Limits

PAGE = Limits(bytes=10_000)


def config_map(namespace: str, name: str, size: int = 100) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "annotations": {}}, "data": {"a": "x" * size}}


class ApiServer:
    """Objects in pages; an answer that is larger than its budget is unreadable, as for the client."""

    def __init__(self, items: Sequence[Mapping[str, Any]]) -> None:
        self.items, self.bytes, self.limits = items, 0, list[int]()

    async def ask(
        self,
        _: str,
        path: str,
        deadline: Deadline,  # noqa: ARG002 - nothing is late here
        *,
        query: Mapping[str, str],
        only: Part | None,
        budget: Budget,
    ) -> tuple[int, Mapping[str, Any]]:
        hidden = [part.partition("!=")[2] for part in query.get("fieldSelector", "").split(",")]
        start, limit = int(query["continue"] or 0), int(query["limit"])
        self.limits.append(limit)
        left = [
            (place, item)
            for place, item in enumerate(self.items)
            if place >= start and item["metadata"]["namespace"] not in hidden
        ]
        page = [{"metadata": item["metadata"]} if only else item for _, item in left[:limit]]
        if only is Part.NAME:
            page = [{"cells": [item["metadata"]["name"], 0]} for item in page]
        content = json.dumps(page)
        self.bytes += min(len(content), budget.limits.bytes)
        if len(content) > budget.limits.bytes:
            raise Unreadable(f"{path} answers with more than {budget.limits.bytes} bytes")
        budget.bytes += len(content)
        token = {"continue": str(left[limit - 1][0] + 1)} if len(left) > limit else {}
        return 200, {"rows" if only is Part.NAME else "items": page, "metadata": token}


def names(
    server: ApiServer, skipped: list[str], namespace: str = "", *, only: Part | None = None
) -> list[str]:
    async def story() -> list[str]:
        client = cast("KubernetesClient", server)
        items = rollout_objects(client, "ConfigMap", namespace, Deadline(9), skipped.append, only=only)
        return [f"{item['metadata']['namespace']}/{item['metadata']['name']}" async for item in items]

    return asyncio.run(story())


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "_OF_A_PAGE", PAGE)
    monkeypatch.setattr(kubernetes, "_OF_A_NAMESPACE", 8 * PAGE.bytes)
    monkeypatch.setattr(kubernetes, "_LEAST", 50)


def test_page_that_is_too_large_is_halved_and_all_objects_are_listed() -> None:
    items = [config_map("mail", f"x{number}", 6_000) for number in range(9)]
    items += [config_map("shop", f"y{number:02}") for number in range(70)]
    skipped: list[str] = []
    server = ApiServer(items)
    listed = names(server, skipped)
    assert (sorted(listed), skipped) == (sorted({*listed}), [])
    assert len(listed) == len(items)
    assert server.limits[:6] == [50, 25, 12, 6, 3, 1]
    assert max(server.limits[-3:]) > 1, "pages grow again behind the large ones"


def test_object_that_is_too_large_alone_is_named_and_left_out() -> None:
    items = [config_map("mail", "huge", 20_000), config_map("shop", "a"), config_map("shop", "huge", 20_000)]
    skipped: list[str] = []
    assert names(ApiServer(items), skipped) == ["shop/a"]
    assert [line.partition(" is left out: ")[0] for line in skipped] == [
        "ConfigMap mail/huge",
        "ConfigMap shop/huge",
    ]
    assert skipped[0].endswith("answers with more than 10000 bytes")
    skipped.clear()
    assert len(names(ApiServer(items), skipped, only=Part.METADATA)) == 3, "its metadata is small"
    assert skipped == []


@pytest.mark.parametrize("only", [None, Part.METADATA])
def test_object_whose_metadata_cannot_be_read_either_is_left_out_by_its_name(only: Part | None) -> None:
    huge = config_map("mail", "huge")
    huge["metadata"]["annotations"]["a"] = "x" * 20_000
    skipped: list[str] = []
    assert names(ApiServer([huge, config_map("shop", "a")]), skipped, only=only) == ["shop/a"]
    [line] = skipped
    assert line.startswith("ConfigMap huge is left out: ")


def test_list_of_which_nothing_can_be_read_is_an_error_and_no_empty_list() -> None:
    with pytest.raises(StateUnavailable, match="answers with more than 10000 bytes"):
        names(ApiServer([config_map("mail", "x" * 20_000)]), [])


@pytest.mark.parametrize("number", [60, 3_000])
def test_namespace_with_too_much_is_named_and_costs_the_others_no_more_than_its_limit(number: int) -> None:
    items = [config_map("a", "first")]
    items += [config_map("mail", f"x{place:05}", 90_000 // number * 5) for place in range(number)]
    items += [config_map("shop", f"y{place:02}") for place in range(70)]
    skipped: list[str] = []
    server = ApiServer(items)
    listed = names(server, skipped)
    assert {"a/first", *(f"shop/y{place:02}" for place in range(70))} <= {*listed}
    assert 0 < len([name for name in listed if name.startswith("mail/")]) < number
    [line] = skipped
    assert line.startswith("namespace mail: its ConfigMaps with the label twgen.io/rollout have more than ")
    assert server.bytes < 20 * PAGE.bytes, "the rest of it is not even asked for"


def test_namespace_that_is_asked_for_alone_ends_at_its_limit() -> None:
    items = [config_map("mail", f"x{place:05}", 6_000) for place in range(60)]
    skipped: list[str] = []
    assert 0 < len(names(ApiServer(items), skipped, "mail")) < 60
    assert len(skipped) == 1
