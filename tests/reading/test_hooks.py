"""Whether Argo CD has skipped a hook, by what it says of an application."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from tests.planning.situations import NOW, SPEC
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable
from twgen.reading.hooks import SkippedHooks, applications_called
from twgen.records.intent import Intent, intent_of

INTENT = replace(intent_of(SPEC, "twgen/me"), has_hook=True, application="pay")
LONG_AGO = NOW - timedelta(minutes=1)
LISTED = {"kind": "ConfigMap", "namespace": "shop", "name": "payments-rollout", "status": "Synced"}


def application(
    phase: str = "Succeeded", *, only: Any = ("a",), resources: Any = (LISTED,), **more: Any
) -> Mapping[str, Any]:
    operation = {"phase": phase, "operation": {"sync": {"resources": only}}}
    metadata = {"name": "pay", "namespace": "argocd"}
    status = {"resources": [*resources], "operationState": operation}
    return {"kind": "Application", "metadata": metadata, "status": status, **more}


def is_skipped(found: Mapping[str, Any], intent: Intent = INTENT, changed: datetime = LONG_AGO) -> bool:
    async def read(name: str) -> list[Mapping[str, Any]]:
        assert name == "pay"
        return [found]

    return asyncio.run(SkippedHooks(read, lambda: NOW).has(intent, changed))


def test_hook_is_skipped_a_minute_after_a_sync_of_some_resources_that_succeeded() -> None:
    assert is_skipped(application())
    assert not is_skipped(application(), changed=LONG_AGO + timedelta(seconds=1)), (
        "a sync may be about to run"
    )


@pytest.mark.parametrize(
    "found",
    [
        application(only=()),
        application(only=None),
        application("Running"),
        application("Failed"),
        application(operation={"sync": {}}),
        application(resources=()),
        application(resources=[{**LISTED, "requiresPruning": True}]),
        application(resources=[{**LISTED, "namespace": "other"}]),
        {"metadata": {}, "status": {"resources": [LISTED]}},
        {"metadata": {}},
    ],
    ids=[
        *("a whole sync", "no list", "it runs", "it failed", "another one begins", "it renders nothing"),
        *("no longer its own", "of another namespace", "never synced", "no status"),
    ],
)
def test_hook_counts_as_skipped_only_if_all_says_so(found: Mapping[str, Any]) -> None:
    assert not is_skipped(found)


def test_intent_without_an_application_asks_nobody() -> None:
    assert not is_skipped({}, replace(INTENT, application=""))


def test_application_is_asked_for_once_and_one_that_cannot_be_read_has_skipped_nothing() -> None:
    asked: list[str] = []

    async def read(name: str) -> list[Mapping[str, Any]]:
        asked.append(name)
        raise StateUnavailable("Argo CD does not permit it")

    hooks = SkippedHooks(read, lambda: NOW)
    assert [asyncio.run(hooks.has(INTENT, LONG_AGO)) for _ in range(2)] == [False, False]
    assert asked == ["pay"]


class Cluster:
    """An API server that permits applications of one namespace, or of all."""

    def __init__(self, *, everywhere: bool) -> None:
        self.everywhere = everywhere
        self.asked: list[tuple[str, Any]] = []

    async def ask(self, _: str, path: str, __: Deadline, query: Any = None) -> tuple[int, Mapping[str, Any]]:
        self.asked.append((path.removeprefix("/apis/argoproj.io/v1alpha1/"), query))
        if path.endswith("applications"):
            return (200, {"items": [application()]}) if self.everywhere else (403, {"message": "no"})
        return 200, application()


@pytest.mark.parametrize(
    ("tracked", "everywhere", "paths"),
    [
        ("pay", True, ["applications"]),
        ("pay", False, ["applications", "namespaces/argocd/applications/pay"]),
        ("teams_pay", True, ["namespaces/teams/applications/pay"]),
    ],
)
def test_application_of_a_cluster_is_found_by_the_name_that_its_objects_have(
    tracked: str, *, everywhere: bool, paths: list[str]
) -> None:
    cluster = Cluster(everywhere=everywhere)
    found = asyncio.run(applications_called(cast("KubernetesClient", cluster), Deadline(5), tracked))
    assert found == [application()]
    assert [path for path, _ in cluster.asked] == paths
    if paths[0] == "applications":
        assert cluster.asked[0][1] == {"fieldSelector": "metadata.name=pay"}
