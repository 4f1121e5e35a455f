"""What is attached to a version, by a real Argo CD: beside a hook, with owners, while templates change."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from threading import Event, Thread
from time import monotonic
from typing import TypeVar

import pytest

from testing.processes import eventually
from tests.servers.gitops import (
    SOON,
    ApplicationStory,
    attached,
    budget_document,
    uid,
)
from tests.servers.live import (
    Document,
    attached_document,
    autoscaler_document,
    policy_document,
    temporal_trigger,
)
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server

Seen = TypeVar("Seen")
KINDS = ("horizontalpodautoscalers", "scaledobjects", "poddisruptionbudgets")
A_MOMENT = 10.0
"""Seconds that two calls take on a busy machine; the next look of a rollout, or of Argo CD, comes later."""


def unmeasured(name: str = "scale") -> Document:
    """An autoscaler whose series does not exist yet, of which Argo CD 3.6 says Degraded."""
    scaler = autoscaler_document("greeter", name)
    metric = {"name": "backlog", "selector": {"matchLabels": {}}}
    external = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "10"}}
    scaler["spec"]["template"]["spec"]["metrics"] = [{"type": "External", "external": external}]
    return scaler


def names(story: ApplicationStory, build_id: str = "v1") -> dict[str, list[str]]:
    """What is attached to a version by now, each kind by its templates."""
    return {
        kind: [
            item["metadata"]["name"].split("-")[1]
            for item in story.cluster.list(kind, story.namespace, f"temporal.io/build-id={build_id}")
        ]
        for kind in KINDS
    }


@contextmanager
def watched(look: Callable[[], Seen]) -> Iterator[list[tuple[float, Seen]]]:
    """What is seen meanwhile, several times a second, each with the time."""
    seen, is_over = list[tuple[float, Seen]](), Event()

    def watch() -> None:
        while not is_over.wait(0.1):
            seen.append((monotonic(), look()))

    watching = Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        is_over.set()
        watching.join()


def longest_without(seen: list[tuple[float, Mapping[str, list[str]]]], *kinds: str) -> float:
    """For how many seconds none of these kinds was there."""
    longest, since = 0.0, None
    for at, found in seen:
        if any(found[kind] for kind in kinds):
            since = None
        else:
            since = at if since is None else since
            longest = max(longest, at - since)
    return longest


def checked(seen: list[tuple[float, Mapping[str, list[str]]]]) -> None:
    """There were never two that do the same, and never none for longer than a moment."""
    for _, found in seen:
        assert len(found["horizontalpodautoscalers"]) + len(found["scaledobjects"]) <= 1, found
        assert len(found["poddisruptionbudgets"]) <= 1, found
    assert longest_without(seen, "horizontalpodautoscalers", "scaledobjects") < A_MOMENT
    assert longest_without(seen, "poddisruptionbudgets") < A_MOMENT


@side_by_side
def test_hook_waits_for_no_metrics_of_an_autoscaler_which_is_owned_soon(
    story: ApplicationStory,
) -> None:
    more = (policy_document("greeter", driver="Hook"), unmeasured(), budget_document("greeter"))
    commit = story.commit("v1", *more, steps=())
    story.application.create()
    eventually(lambda: story.deployment("v1"), SOON)
    owner = uid(story.deployment("v1"))
    owned = {"HorizontalPodAutoscaler": owner, "PodDisruptionBudget": owner}
    eventually(lambda: attached(story, "v1") == owned, SOON)
    story.stands("Settled", "v1")

    def phases() -> str:
        [job] = story.jobs()  # its second phase creates it anew
        return str(job["metadata"]["annotations"]["argocd.argoproj.io/hook"])

    assert eventually(phases, SOON) == "Sync,PostSync"
    story.application.synced(commit)
    commit = story.commit("v2", *more, steps=())
    story.application.refresh()
    story.stands("Settled", "v2")
    story.application.synced(commit)
    eventually(lambda: story.application.get()["status"]["health"]["status"] == "Healthy", SOON)

    def are_owned() -> bool:
        owners = {build_id: uid(story.deployment(build_id)) for build_id in ("v1", "v2")}
        return all(attached(story, name) == dict.fromkeys(owned, owner) for name, owner in owners.items())

    eventually(are_owned, SOON)


@pytest.mark.parametrize("driver", ["Hook", "Job"])
@side_by_side
def test_renamed_autoscaler_and_budget_take_the_place_of_the_old_ones_at_once(
    story: ApplicationStory, driver: str
) -> None:
    policy = policy_document("greeter", driver=driver)
    story.commit("v1", policy, autoscaler_document("greeter"), budget_document("greeter"), steps=())
    story.application.create()
    story.stands("Settled", "v1")
    owner = uid(story.deployment("v1"))
    owned = {"HorizontalPodAutoscaler": owner, "PodDisruptionBudget": owner}
    eventually(lambda: attached(story, "v1") == owned, SOON)
    budget = budget_document("greeter")
    budget["metadata"]["name"] = "other"
    renamed = (policy, autoscaler_document("greeter", "renamed"), budget)
    expected = {
        "horizontalpodautoscalers": ["renamed"],
        "scaledobjects": [],
        "poddisruptionbudgets": ["other"],
    }
    with watched(lambda: names(story)) as seen:
        commit = story.commit("v1", *renamed, steps=())
        story.application.refresh()

        def has_the_new_ones() -> bool:
            story.sync_what_was_healed()
            return names(story) == expected

        eventually(has_the_new_ones, SOON)
        eventually(lambda: attached(story, "v1") == owned, SOON)
        is_rendered_with(story, "renamed", "other")
        story.application.synced(commit)
    checked(seen)
    assert names(story) == expected
    assert attached(story, "v1") == owned
    assert story.application.differing_anew() == []


@pytest.mark.parametrize("driver", ["Hook", "Job"])
@side_by_side
def test_no_decision_of_an_autoscaler_that_is_added_to_a_running_version_is_undone(
    story: ApplicationStory, driver: str
) -> None:
    policy = policy_document("greeter", driver=driver)
    story.commit("v1", policy, steps=(), spec={"replicas": 2})
    story.application.create()
    story.stands("Settled", "v1")
    scaler = unmeasured()
    scaler["spec"]["template"]["spec"]["minReplicas"] = 3

    def is_held_by_the_rollout() -> bool:
        story.sync_what_was_healed()
        found = story.deployment("v1")
        managers = found["metadata"]["managedFields"] if found else []
        return any(
            item["manager"] == "twgen" and "f:replicas" in item["fieldsV1"].get("f:spec", {})
            for item in managers
        )

    def is_there() -> bool:
        # as tick does, and then a person, where only a hook applies it
        story.application.refresh("hard")
        if driver == "Hook" and not story.active_jobs() and "operation" not in story.application.find():
            story.application.sync()
        return bool(names(story)["horizontalpodautoscalers"])

    with watched(lambda: story.replicas("v1")) as seen:
        story.commit("v1", policy, scaler, steps=())
        story.application.refresh()
        eventually(is_held_by_the_rollout, SOON)
        assert not names(story)["horizontalpodautoscalers"], "Argo CD still sets the replicas"
        eventually(is_there, SOON)
        eventually(lambda: story.replicas("v1") == 3, SOON)
        # the controller of autoscalers looks every 15 s, and Argo CD heals within a second
        since = monotonic()
        eventually(lambda: monotonic() - since > 35, SOON)
    assert [replicas for replicas, _ in groupby(number for _, number in seen)] == [2, 3]


@side_by_side
def test_autoscaler_whose_kind_is_changed_back_before_the_next_render_is_the_only_one(
    story: ApplicationStory,
) -> None:
    story.commit("v1", autoscaler_document("greeter"), steps=())
    story.application.create()
    story.stands("Settled", "v1")
    eventually(lambda: all(attached(story, "v1").values()), SOON)
    keda = attached_document(
        "greeter",
        "scale",
        "keda.sh/v1alpha1",
        "ScaledObject",
        scaleTargetRef={},
        minReplicaCount=1,
        triggers=[temporal_trigger("t")],
    )
    story.commit("v1", keda, steps=())
    story.application.refresh()
    eventually(lambda: names(story)["scaledobjects"] == ["scale"], SOON)
    autoscaler = autoscaler_document("greeter")
    autoscaler["spec"]["template"]["spec"]["maxReplicas"] = 4  # another intent than the first one
    story.commit("v1", autoscaler, steps=())
    story.application.refresh()

    def is_changed_back() -> bool:
        found = names(story)
        return found["horizontalpodautoscalers"] == ["scale"] and not found["scaledobjects"]

    eventually(is_changed_back, SOON)
    is_rendered_with(story, "scale")
    assert is_changed_back()
    [by_hand] = story.cluster.list("horizontalpodautoscalers", story.namespace)
    manifest = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": by_hand["spec"]}
    story.cluster.apply([manifest | {"metadata": {"name": "by-hand", "namespace": story.namespace}}])
    for command in ("plan", "status", "doctor"):
        assert "scale the same Deployment" in " ".join(story.run(command, ".").stdout.split())
    assert story.cluster.get("horizontalpodautoscaler", "by-hand", story.namespace), "it is a person's"


@side_by_side
def test_autoscaler_of_another_kind_takes_its_place_and_at_last_the_spec_has_the_replicas(
    story: ApplicationStory,
) -> None:
    story.commit("v1", autoscaler_document("greeter"), budget_document("greeter"), steps=())
    story.application.create()
    story.stands("Settled", "v1")
    eventually(lambda: all(attached(story, "v1").values()), SOON)
    keda = attached_document(
        "greeter",
        "scale",
        "keda.sh/v1alpha1",
        "ScaledObject",
        scaleTargetRef={},
        minReplicaCount=1,
        triggers=[temporal_trigger("t")],
    )
    with watched(lambda: names(story)) as seen:
        story.commit("v1", keda, budget_document("greeter"), steps=())
        story.application.refresh()
        eventually(lambda: names(story)["scaledobjects"] == ["scale"], SOON)
        is_rendered_with(story, "budget", "scale")
    checked(seen)
    assert story.deployment("v1")["spec"]["replicas"] == 1  # type: ignore[index]
    story.commit("v1", budget_document("greeter"), steps=(), spec={"replicas": 2})
    story.application.refresh()
    eventually(lambda: not names(story)["scaledobjects"], SOON)
    is_rendered_with(story, "budget")
    eventually(lambda: story.replicas("v1") == 2, SOON)


def is_rendered_with(story: ApplicationStory, *templates: str) -> None:
    """Wait until the Deployment names copies of these: as tick does, a render is asked for anew."""

    def applied() -> bool:
        story.application.refresh("hard")
        found = story.deployment("v1")
        told = found["metadata"]["annotations"].get("twgen.io/attached", "") if found else ""
        return sorted(item.split("-")[1] for item in told.split(",")) == sorted(templates)

    eventually(applied, SOON)
