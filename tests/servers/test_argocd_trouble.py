"""What may go wrong around an Argo CD whose plugin is twgen, and what becomes of the workers."""

from collections.abc import Sequence
from contextlib import suppress

import psutil
import pytest

from testing.processes import eventually
from tests.servers.gitops import (
    SOON,
    ApplicationStory,
    attached,
    budget_document,
    uid,
)
from tests.servers.live import autoscaler_document, policy_document
from tests.servers.pods import config_map
from tests.servers.side_by_side import side_by_side
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server


@side_by_side
def test_version_that_a_render_lost_stays_with_all_that_is_attached_to_it(story: ApplicationStory) -> None:
    policy = policy_document("greeter", ownerReferences="None")
    more = (policy, autoscaler_document("greeter"), budget_document("greeter"))
    lost = config_map(story.namespace, "unprotected", {"what": "has no work"})
    story.commit("v1", *more, lost, steps=(25,))
    story.application.create()
    story.stands("Settled", "v1")
    story.application.refresh("hard")
    # nothing but its annotation protects it
    eventually(lambda: set(attached(story, "v1").values()) == {None}, SOON)
    kept = uid(story.deployment("v1"))

    # the output of a plugin that has forgotten everything but one object, with pruning on
    rest = config_map(story.namespace, "rest", {"what": "is left"})
    folder = story.argo.repository.clone / story.namespace
    (folder / "specs.yaml").write_text(write_documents([rest]))
    commit = story.argo.repository.commit("Everything else is lost")
    story.application.change({"spec": {"source": {"plugin": None}}})
    story.application.synced(commit)
    assert story.cluster.api.find(f"/api/v1/namespaces/{story.namespace}/configmaps/unprotected") is None
    assert uid(story.deployment("v1")) == kept
    assert set(attached(story, "v1")) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}
    assert story.share("v1") == 100


@side_by_side
def test_plugin_that_is_killed_in_mid_render_changes_nothing(story: ApplicationStory) -> None:
    story.settled()
    before = uid(story.deployment("v1"))
    commit = story.commit("v2", steps=())

    def is_killed() -> bool:
        # one that has ended before is followed by another
        story.application.begin_to_refresh("hard")
        for render in renders_of(story):
            with suppress(psutil.NoSuchProcess):
                render.kill()
        return "signal: killed" in " ".join(story.application.errors())

    eventually(is_killed, SOON)
    assert uid(story.deployment("v1")) == before
    story.application.refresh("hard")
    story.application.synced(commit)


def renders_of(story: ApplicationStory) -> Sequence[psutil.Process]:
    """The processes of the plugin that render its application."""
    found = []
    for child in psutil.Process(story.argo.plugin.pid).children(recursive=True):
        with suppress(psutil.Error):  # it may have ended
            name = child.environ().get("ARGOCD_APP_NAME")
            if name == story.application.name and "render" in child.cmdline():
                found.append(child)
    return found


@side_by_side
def test_job_that_is_deleted_by_hand_runs_again(story: ApplicationStory) -> None:
    story.settled()
    story.commit("v2", steps=(25,))
    story.application.refresh()
    story.reaches("v2", 25)
    job = story.running_job()
    name = job["metadata"]["name"]
    story.cluster.kubectl("delete", f"job/{name}", "--namespace", story.namespace)

    def again() -> bool:
        found = [other for other in story.jobs() if other["metadata"]["name"] == name]
        return bool(found) and uid(found[0]) != uid(job) and found[0].get("status", {}).get("active") == 1

    eventually(again, SOON)
    assert story.share("v2") == 25


@side_by_side
def test_self_heal_puts_right_what_is_twgens_and_leaves_the_rest(story: ApplicationStory) -> None:
    commit = story.commit("v1", steps=())
    story.application.create()
    story.stands("Settled", "v1")
    story.application.synced(commit)
    deployment = ("deployment/greeter-v1", "--namespace", story.namespace)
    story.cluster.kubectl("annotate", *deployment, "example.com/note=mine")
    story.cluster.kubectl("scale", *deployment, "--replicas=3")
    eventually(lambda: story.replicas("v1") == 1, SOON)
    story.cluster.kubectl("set", "image", *deployment, "worker=example.com/worker:by-hand")

    def is_put_right() -> bool:
        [container] = (story.deployment("v1") or {})["spec"]["template"]["spec"]["containers"]
        return bool(container["image"] == "example.com/worker:v1")

    eventually(is_put_right, SOON)
    found = story.deployment("v1")
    assert found
    assert found["metadata"]["annotations"]["example.com/note"] == "mine"


@side_by_side
def test_worker_that_gets_an_autoscaler_and_loses_it_again_keeps_its_pods_meanwhile(
    story: ApplicationStory,
) -> None:
    seen: list[int | None] = []

    def stays_at(replicas: int) -> bool:
        for _ in range(2):
            story.application.refresh("hard")
            seen.append(story.replicas("v1"))
        return seen[-2:] == [replicas, replicas] and not story.application.differing()

    story.commit("v1", steps=(), spec={"replicas": 3})
    story.application.create()
    story.stands("Settled", "v1")
    story.application.synced(
        story.commit("v1", autoscaler_document("greeter"), steps=(), spec={"replicas": None})
    )
    eventually(lambda: stays_at(3), SOON)
    assert set(seen) == {3}, "a render leaves them out once somebody else holds them too"

    def is_scaled() -> bool:
        deployment = ("deployment/greeter-v1", "--namespace", story.namespace)
        story.cluster.kubectl("scale", *deployment, "--replicas=2")
        return stays_at(2)

    eventually(is_scaled, SOON)
    story.application.synced(story.commit("v1", steps=(), spec={"replicas": 4}))
    eventually(lambda: stays_at(4), SOON)
    assert set(seen) <= {2, 3, 4}


@side_by_side
def test_rollout_whose_sync_somebody_terminates_stands_still_and_goes_on_with_the_next(
    story: ApplicationStory,
) -> None:
    policy = policy_document("greeter", driver="Hook")
    steps = [{"rampPercentage": 25, "pauseDuration": "30s"}]
    ramp = {"rollout": {"strategy": "Progressive", "steps": steps}}
    story.commit("v1", policy, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    story.commit("v2", policy, spec=ramp)
    story.application.refresh()
    story.ramps_to("25")
    story.application.terminate()
    eventually(lambda: story.application.operation()["phase"] == "Failed" and not story.jobs(), SOON)

    story.application.refresh("hard")
    # what Argo CD shows of its last sync; it is an error of the Application only if an object differs
    operation = story.application.operation()
    assert (operation["phase"], operation["message"]) == ("Failed", "Operation terminated")
    assert not story.jobs()
    assert (story.share("v2"), story.replicas("v1"), story.replicas("v2")) == (25, 1, 1)
    story.application.sync()
    story.stands("Settled", "v2")
    assert story.share("v2") == 100
