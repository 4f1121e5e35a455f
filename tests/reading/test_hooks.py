"""Whether Argo CD has skipped a hook, by what it says of an application."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from tests.planning.situations import NOW, SPEC
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.planning.rollout import not_begun
from twgen.reading.hooks import applications_called, with_skipped_hooks
from twgen.reading.rollouts import RolloutsInCluster
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


def waiting(intent: Intent) -> RolloutStatus:
    return not_begun(None, f"{intent.namespace}/{intent.worker}", intent.target, "no Job", LONG_AGO)


def records(
    *intents: Intent, changed: datetime = LONG_AGO, statuses: Sequence[RolloutStatus] = ()
) -> RolloutsInCluster:
    jobless = {f"{intent.namespace}/{intent.worker}": changed for intent in intents}
    shown = {status.worker: status for status in (*map(waiting, intents), *statuses)}
    return RolloutsInCluster(intents, tuple(statuses), tuple(shown.values()), (), jobless=jobless)


def asked(
    found: RolloutsInCluster, *applications: Mapping[str, Any], now: datetime = NOW
) -> tuple[RolloutsInCluster, list[str]]:
    """What is found if each application that is asked for has one of these documents, or cannot be read."""
    names: list[str] = []

    async def read(name: str, _: Deadline) -> Sequence[Mapping[str, Any]]:
        names.append(name)
        if not applications:
            raise StateUnavailable("Argo CD does not permit it")
        return applications

    return asyncio.run(with_skipped_hooks(found, read, 5, now)), names


def is_skipped(found: Mapping[str, Any], intent: Intent = INTENT, changed: datetime = LONG_AGO) -> bool:
    return bool(asked(records(intent, changed=changed), found)[0].skipped)


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


@pytest.mark.parametrize(
    ("more", "phase", "says"),
    [
        ({}, Phase.BLOCKED, "; run `argocd app sync pay`"),
        (
            {"tick_takes_over": True},
            Phase.WAITING,
            "; `twgen tick` takes over within minutes, or run `argocd",
        ),
    ],
    ids=["nobody takes it over", "tick will"],
)
def test_skipped_hook_is_told_with_the_command_that_runs_it(
    more: dict[str, Any], phase: Phase, says: str
) -> None:
    found, _ = asked(records(replace(INTENT, **more)), application())
    [status] = found.shown
    assert (status.phase, status.reason, status.since) == (phase, "HookSkipped", LONG_AGO)
    message = (
        f"the rollout of {SPEC.build_id} has not begun: Argo CD applied this commit without its hooks{says}"
    )
    assert status.message.startswith(message)


@pytest.mark.parametrize(
    ("phase", "reason", "is_skipped"),
    [
        (Phase.WAITING, "RampPaused", True),
        (Phase.BLOCKED, "RolloutEnded", True),
        (Phase.BLOCKED, "Aborted", False),
        (Phase.SETTLED, "Settled", False),
    ],
)
def test_rollout_that_has_begun_is_taken_over_only_if_it_has_work_and_says_what_it_did(
    phase: Phase, reason: str, *, is_skipped: bool
) -> None:
    begun = replace(waiting(INTENT), phase=phase, reason=reason, intent=INTENT.hash)
    found, _ = asked(records(INTENT, statuses=[begun]), application())
    assert found.skipped == ({"shop/payments"} if is_skipped else set())
    assert found.shown == (begun,)


@pytest.mark.parametrize("name", ["", "../../../../../api/v1/namespaces/prod/services/x?y=_z", "a_b_c", "A"])
def test_nobody_is_asked_for_what_is_no_name_of_an_application(name: str) -> None:
    found, names = asked(records(replace(INTENT, application=name)), application())
    assert (found.skipped, names) == (set(), [])


def test_application_is_asked_for_once_and_one_that_cannot_be_read_has_skipped_nothing() -> None:
    other = replace(INTENT, worker="mail")
    found, names = asked(records(INTENT, other))
    assert (found.skipped, names) == (set(), ["pay"])
    assert found.shown == records(INTENT, other).shown


def test_intent_that_tick_took_over_is_asked_for_no_more() -> None:
    found, names = asked(records(replace(INTENT, taken_over=INTENT.hash)), application())
    assert (found.skipped, names) == (set(), [])


def test_names_that_one_namespace_invents_hold_up_no_other_and_each_has_its_turn() -> None:
    many = [replace(INTENT, worker=f"w{number}", application=f"a{number}") for number in range(600)]
    found = records(*many, replace(INTENT, namespace="mail", application="own"))
    _, names = asked(found, application())
    assert len(names) == 500
    assert names.index("own") < 5
    later = [asked(found, application(), now=NOW + timedelta(minutes=minute))[1] for minute in (100, 200)]
    assert {*names, *later[0], *later[1]} == {"own", *(f"a{number}" for number in range(600))}


def test_application_that_never_answers_leaves_time_for_the_others_and_a_bug_is_told() -> None:
    slow = [replace(INTENT, worker=f"w{number}", application=f"a{number}") for number in range(4)]
    found = records(*slow, replace(INTENT, application="bug", worker="b"), replace(INTENT, worker="payments"))

    async def read(name: str, deadline: Deadline) -> Sequence[Mapping[str, Any]]:
        if name.startswith("a"):
            await deadline.bound("an application", asyncio.sleep(60))
        if name == "bug":
            raise KeyError("secret")
        return [application()]

    told = asyncio.run(with_skipped_hooks(found, read, 1, NOW))
    assert told.skipped == {"shop/payments"}
    [bug] = told.unusable
    assert bug.startswith("application bug: ")


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
    found = asyncio.run(
        applications_called(cast("KubernetesClient", cluster), "argocd", tracked, Deadline(5))
    )
    assert found == [application()]
    assert [path for path, _ in cluster.asked] == paths
    if paths[0] == "applications":
        assert cluster.asked[0][1] == {"fieldSelector": "metadata.name=pay"}
