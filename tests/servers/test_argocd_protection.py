"""What keeps versions that have work: renders that are applied late, and an Application that is deleted."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import pytest

from testing.argocd.argocd import NAMESPACE
from testing.processes import eventually
from tests.servers.gitops import (
    AT_ONCE,
    RESTS,
    SOON,
    ApplicationStory,
    attached,
    attached_objects,
    budget_document,
    is_protected,
    uid,
)
from tests.servers.live import autoscaler_document, policy_document, run
from tests.servers.pods import config_map
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server

PROJECT = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/appprojects/default"
ONE_WINDOW = Lock()
"""The project has one list of them."""


@contextmanager
def closed_sync_window(story: ApplicationStory) -> Iterator[None]:
    """No sync of the Application begins meanwhile; Argo CD sees at the next look that it is open again."""
    window = {
        "kind": "deny",
        "schedule": "* * * * *",
        "duration": "1h",
        "applications": [story.application.name],
    }
    with ONE_WINDOW:
        story.cluster.api.patch(PROJECT, {"spec": {"syncWindows": [window]}})
        try:
            yield
        finally:
            story.cluster.api.patch(PROJECT, {"spec": {"syncWindows": None}})


@side_by_side
def test_render_that_a_sync_window_held_back_moves_no_traffic_back_and_takes_nothing(
    story: ApplicationStory,
) -> None:
    story.commit("v1", steps=(), spec=AT_ONCE)
    story.application.create()
    story.stands("Settled", "v1")
    story.commit("v2", steps=(25,), spec=AT_ONCE)
    story.application.refresh()
    story.reaches("v2", 25)
    late = config_map(story.namespace, "late", {"rendered": "while v1 was current"})
    with closed_sync_window(story):
        commit = story.commit("v2", late, steps=(25,), spec=AT_ONCE)
        story.application.refresh()
        eventually(lambda: ("ConfigMap", "late") in story.application.differing(), SOON)
        # the world moves on: v2 becomes current, v1 drains
        promoted = story.run("promote")
        assert promoted.code == 0, promoted.stderr
        story.stands("Settled", "v2")
        assert not story.cluster.api.find(f"/api/v1/namespaces/{story.namespace}/configmaps/late")
    story.application.synced(commit)
    kept = story.deployment("v1")
    assert kept
    assert (kept["spec"]["replicas"], is_protected(kept)) == (1, True)
    assert (story.share("v2"), story.replicas("v2")) == (100, 1)

    def gone() -> bool:
        story.application.refresh("hard")
        return story.deployment("v1") is None

    eventually(gone, SOON)
    assert (story.share("v2"), story.replicas("v2")) == (100, 1)


@side_by_side
def test_version_that_a_late_prune_took_comes_back_from_git_when_it_has_work_again(
    story: ApplicationStory,
) -> None:
    story.commit("v1", steps=(), spec=RESTS)
    story.application.create()
    story.stands("Settled", "v1")
    story.commit("v2", steps=(), spec=RESTS)
    story.application.refresh()
    story.stands("Settled", "v2")
    story.worker.drains("v1")

    def rests() -> bool:
        story.application.refresh("hard")
        return story.replicas("v1") == 0

    eventually(rests, SOON)
    with closed_sync_window(story):
        story.commit("v2", steps=(), spec=AT_ONCE)
        story.application.refresh()
        eventually(lambda: ("Deployment", "greeter-v1") in story.application.differing(), SOON)
        story.worker.start("WaitingWorkflow", story.namespace, pinned_to="v1")
        assert story.replicas("v1") == 0
    story.application.refresh()
    eventually(lambda: story.deployment("v1") is None, SOON)

    def revived() -> bool:
        story.application.refresh("hard")
        found = story.deployment("v1")
        return bool(found) and found["spec"]["replicas"] == 1 and is_protected(found)

    eventually(revived, SOON)
    story.worker.finish(story.namespace)
    story.worker.drains("v1")
    eventually(lambda: rests() or story.deployment("v1") is None, SOON)


@side_by_side
def test_autoscaler_leaves_a_draining_version_whose_pods_stay_and_are_patched(
    story: ApplicationStory,
) -> None:
    scaler = autoscaler_document("greeter")
    scaler["metadata"]["annotations"] = {"twgen.io/when": "Target,Current,Ramping"}
    commit = story.commit("v1", scaler, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    story.application.synced(commit)
    assert set(attached(story, "v1")) == {"HorizontalPodAutoscaler"}
    story.worker.start("WaitingWorkflow", story.namespace)
    story.commit("v2", scaler, steps=())
    story.application.refresh()
    story.stands("Settled", "v2")

    def left() -> bool:
        story.application.refresh("hard")
        return not attached(story, "v1")

    eventually(left, SOON)
    kept = story.deployment("v1")
    assert kept
    assert (kept["spec"]["replicas"], is_protected(kept)) == (1, True)
    assert set(attached(story, "v2")) == {"HorizontalPodAutoscaler"}
    patch = {"buildID": "v1", "containers": [{"name": "worker", "image": "example.com/worker:v1-mended"}]}
    policy = policy_document("greeter", drainingReplicas=2, patches=[patch])
    story.application.synced(story.commit("v2", scaler, policy, steps=()))
    patched = story.deployment("v1")
    assert patched
    assert uid(patched) == uid(kept)
    [container] = patched["spec"]["template"]["spec"]["containers"]
    assert (container["image"], patched["spec"]["replicas"]) == ("example.com/worker:v1-mended", 2)


@side_by_side
def test_application_that_is_deleted_waits_for_a_person_while_its_versions_may_have_work(
    story: ApplicationStory,
) -> None:
    more = (autoscaler_document("greeter"), budget_document("greeter"))
    commit = story.commit("v1", *more, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    story.application.synced(commit)
    before = uid(story.deployment("v1"))
    story.application.begin_to_delete(with_all_it_has=True)
    eventually(story.application.waits_for_a_person, SOON)
    assert (uid(story.deployment("v1")), story.replicas("v1")) == (before, 1)
    assert set(attached(story, "v1")) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}
    assert story.share("v1") == 100
    story.application.approve_deletion()
    story.application.goes()
    assert story.deployment("v1") is None
    assert attached(story, "v1") == {}


@pytest.mark.parametrize("owners", ["Render", "None"])
@side_by_side
def test_application_that_is_deleted_orphans_its_versions_with_all_that_is_attached(
    story: ApplicationStory, owners: str
) -> None:
    more = (autoscaler_document("greeter"), budget_document("greeter"))
    policy = policy_document("greeter", onDelete="Orphan", ownerReferences=owners)
    commit = story.commit("v1", policy, *more, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    story.application.synced(commit)
    before, beside = uid(story.deployment("v1")), set(map(uid, attached_objects(story, "v1")))
    story.application.delete(with_all_it_has=True)
    assert story.jobs() == [], "it did delete what is not protected"
    assert (uid(story.deployment("v1")), set(map(uid, attached_objects(story, "v1")))) == (before, beside)
    assert len(beside) == len(more)
    options = ("-n", story.namespace, "--kubeconfig", str(story.cluster.kubeconfig))
    seen = run(story.argo.folder, "status", "--from-cluster", options=options, takes_paths=False)
    assert f"{story.worker.name}: greeter-v1 is no longer rendered" in seen.stdout, seen
    story.application.create()
    story.application.refresh("hard")
    story.application.synced(commit)
    assert (uid(story.deployment("v1")), set(map(uid, attached_objects(story, "v1")))) == (before, beside)
    story.stands("Settled", "v1")


@side_by_side
def test_application_that_is_deleted_with_all_it_has_starts_anew_when_it_is_restored(
    story: ApplicationStory,
) -> None:
    more = (autoscaler_document("greeter"), budget_document("greeter"))
    commit = story.commit("v1", policy_document("greeter", onDelete="Delete"), *more, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    story.application.synced(commit)
    before = uid(story.deployment("v1"))
    story.application.delete(with_all_it_has=True)
    eventually(lambda: story.deployment("v1") is None and not attached(story, "v1"), SOON)
    eventually(lambda: not story.cluster.list("pods", story.namespace), SOON)
    story.application.create()
    story.application.refresh("hard")
    story.stands("Settled", "v1")
    assert uid(story.deployment("v1")) != before
    assert story.share("v1") == 100
