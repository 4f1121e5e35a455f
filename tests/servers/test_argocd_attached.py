"""What is attached to a version, by a real Argo CD: beside a hook, with owners, while templates change."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

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
def watched(story: ApplicationStory) -> Iterator[list[tuple[float, Mapping[str, list[str]]]]]:
    """What is attached meanwhile, several times a second, each with the time."""
    seen, is_over = list[tuple[float, Mapping[str, list[str]]]](), Event()

    def watch() -> None:
        while not is_over.wait(0.1):
            seen.append((monotonic(), names(story)))

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
    with watched(story) as seen:
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
    with watched(story) as seen:
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
