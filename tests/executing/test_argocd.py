"""Refreshes of many applications, over HTTP."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.executing.argocd import Served, serving, tracked
from tests.strategies import NOW
from twgen.clients.argocd import ArgoCD
from twgen.executing.refreshes import Refreshes
from twgen.model.times import format_time
from twgen.planning.refresh import Rendered
from twgen.reporting.bugs import Bug
from twgen.versioning.names import PLAN_HASH, REFRESH, rollout_labels

RUNNING = {"status": {"operationState": {"phase": "Running"}}}
FAILED = {
    "status": {"conditions": [{"type": "ComparisonError", "message": "`twgen render` failed:\nno Temporal"}]}
}


def rendered(name: str, *, is_old: bool = True) -> list[Rendered]:
    return [Rendered(f"shop/{name}", name, "then" if is_old else "now", frozenset({"now"}))]


def an_intent(worker: str, plan_hash: str) -> dict[str, Any]:
    labels, annotations = rollout_labels(worker), {PLAN_HASH: plan_hash}
    metadata = {
        "name": f"{worker}-rollout",
        "namespace": "shop",
        "labels": labels,
        "annotations": annotations,
    }
    return {"kind": "ConfigMap", "metadata": metadata}


def test_what_is_old_is_refreshed_once_four_at_a_time_and_a_sync_is_left_alone() -> None:
    names = [f"app-{number}" for number in range(9)]
    said: list[str] = []
    with serving(Served({name: {} for name in names} | {"app-3": RUNNING}, takes=0.02)) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, said.append)
        workers = {name: rendered(name, is_old=name != "app-5") for name in names}
        assert asyncio.run(refreshes.ask(workers, NOW, NOW)) == []
        wanted = {name for name in names if name not in {"app-3", "app-5"}}
        assert {path.rpartition("/")[2] for path in served.refreshed} == {
            f"{name}?refresh=hard" for name in wanted
        }
        assert 1 < served.most_at_once <= 4
        assert len(said) == len(wanted)
        asyncio.run(refreshes.ask(workers, NOW + timedelta(minutes=9), NOW + timedelta(minutes=9)))
        assert len(served.refreshed) == len(wanted)
        asyncio.run(refreshes.ask(workers, NOW + timedelta(minutes=10), NOW + timedelta(minutes=10)))
        assert len(served.refreshed) == 2 * len(wanted)


def test_no_more_than_twenty_applications_are_refreshed_in_a_minute_and_each_has_its_turn() -> None:
    names = [f"app-{number:02}" for number in range(30)]
    said: list[str] = []
    with serving(Served({name: {} for name in names})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, said.append)
        workers = {name: rendered(name) for name in names}
        numbers = []
        for seconds in (0, 30, 60, 90):
            now = NOW + timedelta(seconds=seconds)
            assert asyncio.run(refreshes.ask(workers, now, now)) == []
            numbers.append(len(served.refreshed))
        assert numbers == [20, 20, 30, 30]
        assert len({*served.refreshed}) == 30
    limit = "at most 20 applications are refreshed per minute: 10 more must wait for the next check"
    assert said.count(limit) == 2


def test_bug_about_one_application_is_a_failure_and_stops_no_other() -> None:
    with serving(Served({"mail": {}, "pay": {}})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, print)
        broken: Any = [rendered("mail")[0]._replace(wanted=None)]
        [told] = asyncio.run(refreshes.ask({"mail": broken, "pay": rendered("pay")}, NOW, NOW))
        assert served.refreshed == ["/api/v1/applications/pay?refresh=hard"]
    assert isinstance(told, Bug)
    assert told.startswith("application mail: a bug (TypeError at twgen/planning/refresh.py:")


def test_project_of_a_worker_is_that_of_the_application_that_renders_its_intent() -> None:
    applications: dict[str, Any] = {
        "pay": {"spec": {"project": "shop"}},
        "mail": {"spec": {"project": "mail"}},
    }
    with serving(Served(applications)) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, print)
        forged = rendered("evil")
        asyncio.run(refreshes.ask({"pay": rendered("pay") + forged, "mail": rendered("mail")}, NOW, NOW))
    assert refreshes.projects == {"shop/pay": "shop", "shop/mail": "mail", "shop/evil": ""}


def test_error_of_a_render_that_argocd_keeps_is_refreshed_away() -> None:
    said: list[str] = []
    with serving(Served({"pay": FAILED})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, said.append)
        asyncio.run(refreshes.ask({"pay": rendered("pay", is_old=False)}, NOW, NOW))
    assert said == ["pay: refreshed, because its last render failed: `twgen render` failed: no Temporal"]


def test_render_that_takes_longer_than_one_waits_for_it_is_no_failure() -> None:
    said: list[str] = []
    with serving(Served({"pay": {}}, rendering_takes=3)) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 1, said.append)
        assert asyncio.run(refreshes.ask({"pay": rendered("pay")}, NOW, NOW)) == []
        assert len(served.refreshed) == len(said) == 1


def test_render_that_is_right_and_waits_for_a_person_is_left_alone() -> None:
    other = {"kind": "ConfigMap", "metadata": {"name": "settings"}}
    with serving(Served({"pay": {}}, rendered={"pay": [other, an_intent("pay", "now")]})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, print)
        assert asyncio.run(refreshes.ask({"pay": rendered("pay")}, NOW, NOW)) == []
        assert served.refreshed == []
        # time has made it another one again
        served.rendered = {"pay": [an_intent("pay", "before")]}
        assert asyncio.run(refreshes.ask({"pay": rendered("pay")}, NOW, NOW)) == []
        assert served.refreshed == ["/api/v1/applications/pay?refresh=hard"]


@pytest.mark.parametrize(
    ("application", "refreshed"),
    [
        ({"status": {"sync": {"status": "OutOfSync"}}}, 1),
        ({}, 1),
        ({"status": {"sync": {"status": "Synced"}}}, 0),
        (RUNNING, 0),
    ],
)
def test_render_that_waits_for_a_person_is_refreshed_once_the_world_turns_back(
    application: Any, refreshed: int
) -> None:
    with serving(Served({"pay": application}, rendered={"pay": [an_intent("pay", "then")]})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, print)
        assert asyncio.run(refreshes.ask({"pay": rendered("pay", is_old=False)}, NOW, NOW)) == []
        assert len(served.refreshed) == refreshed


def test_refresh_that_argocd_refuses_is_asked_for_again_and_was_not_in_vain() -> None:
    with serving(Served({"pay": {}}, refused="refresh=hard")) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, print)
        for minutes in (0, 5, 10, 20):
            failures = asyncio.run(
                refreshes.ask(
                    {"pay": rendered("pay")},
                    NOW + timedelta(minutes=minutes),
                    NOW + timedelta(minutes=minutes),
                )
            )
            assert len(failures) == (minutes != 5)
        assert (len(served.refreshed), refreshes.made) == (3, 0)
        served.refused = "managed-resources"
        later = NOW + timedelta(minutes=30)
        [told] = asyncio.run(refreshes.ask({"pay": rendered("pay")}, later, later))
        assert "failed: the next check tries again" in told


@pytest.mark.parametrize("status", [{"conditions": 1}, {"conditions": ["?"], "operationState": []}])
def test_application_that_reads_like_no_other_is_refreshed_all_the_same(status: Any) -> None:
    with serving(Served({"pay": {"status": status}})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, print)
        assert asyncio.run(refreshes.ask({"pay": rendered("pay")}, NOW, NOW)) == []
        assert len(served.refreshed) == 1


OUT_OF_SYNC = {"status": "OutOfSync"}
UNKNOWN = {"status": "Unknown", "requiresPruning": True}


@pytest.mark.parametrize(
    "found",
    [tracked("pay"), tracked("pay", **OUT_OF_SYNC), tracked("pay", **UNKNOWN)],
    ids=["applied", "not applied yet", "of a render that failed"],
)
def test_application_is_refreshed_for_an_intent_that_argocd_renders(found: Mapping[str, Any]) -> None:
    with serving(Served({"pay": {}}, {"pay": [tracked("mail"), found]})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, print)
        assert asyncio.run(refreshes.ask({"pay": rendered("pay")}, NOW, NOW)) == []
        assert len(served.refreshed) == 1


@pytest.mark.parametrize("application", [{}, FAILED], ids=["rendered", "failed"])
@pytest.mark.parametrize(
    "found",
    [
        [],
        [tracked("pay", "elsewhere")],
        [tracked("pay", kind="Deployment")],
        [tracked("pay", group="example.com")],
        [tracked("pay", status=None)],
        ["?"],
        "?",
    ],
    ids=["none", "of a namespace", "of a kind", "of a group", "with a copied annotation", "text", "no list"],
)
def test_intent_that_names_an_application_of_others_is_told_and_refreshes_nothing(
    found: Any, application: Mapping[str, Any]
) -> None:
    said: list[str] = []
    with serving(Served({"pay": application, "mail": {}}, {"pay": found})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, said.append)
        for _ in range(2):
            [told] = asyncio.run(refreshes.ask({name: rendered(name) for name in ("pay", "mail")}, NOW, NOW))
            assert told.startswith(
                "ConfigMap shop/pay-rollout names application pay, but Argo CD does not list it"
            )
        assert served.refreshed == ["/api/v1/applications/mail?refresh=hard"]
    assert (len(said), refreshes.made) == (1, 1)


def test_forged_intent_does_not_keep_an_application_from_being_refreshed_for_its_own() -> None:
    said: list[str] = []
    with serving(Served({"pay": {}})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, said.append)
        [told] = asyncio.run(refreshes.ask({"pay": rendered("pay") + rendered("evil")}, NOW, NOW))
    assert "ConfigMap shop/evil-rollout" in told
    assert said == ["pay: refreshed, because a new render of shop/pay would differ"]


def test_worker_that_went_from_git_and_is_not_pruned_is_told_once_and_refreshes_nothing() -> None:
    said: list[str] = []
    left = tracked("pay", **OUT_OF_SYNC, requiresPruning=True)
    with serving(Served({"pay": {}}, {"pay": [left]})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, said.append)
        for _ in range(2):
            assert asyncio.run(refreshes.ask({"pay": rendered("pay")}, NOW, NOW)) == []
        assert served.refreshed == []
    assert said == ["pay: not refreshed for shop/pay, which it no longer renders"]


@pytest.mark.parametrize(("minutes", "is_stuck"), [(9, False), (30, True)])
def test_application_that_argocd_does_not_look_at_is_a_failure_and_is_not_asked_for_again(
    minutes: int, *, is_stuck: bool
) -> None:
    asked = format_time(NOW - timedelta(minutes=minutes))
    fields = {"f:metadata": {"f:annotations": {f"f:{REFRESH}": {}}}}
    entry = {"manager": "argocd-server", "time": asked, "fieldsV1": fields}
    metadata = {"name": "pay", "annotations": {REFRESH: "hard"}, "managedFields": [entry]}
    with serving(Served({"pay": {"metadata": metadata}})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, lambda _: None)
        failures = asyncio.run(refreshes.ask({"pay": rendered("pay")}, NOW, NOW))
    told = "pay: Argo CD was asked 30m ago to refresh it, but has not done so: restart its repo-server"
    assert [failure.partition(", which")[0] for failure in failures] == [told] * is_stuck
    assert len(served.refreshed) == (not is_stuck)


def test_application_that_cannot_be_asked_stops_no_other() -> None:
    with serving(Served({"pay": {}})) as served:
        refreshes = Refreshes(ArgoCD(served.address, served.token), 5, lambda _: None)
        failures = asyncio.run(refreshes.ask({name: rendered(name) for name in ("gone", "pay")}, NOW, NOW))
        assert served.refreshed == ["/api/v1/applications/pay?refresh=hard"]
    assert [failure for failure in failures if "application gone" in failure] == failures
    assert len(failures) == 1
