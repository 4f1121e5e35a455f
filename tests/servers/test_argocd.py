"""Workers in Git, rolled out by a real Argo CD whose plugin is twgen."""

from collections.abc import Sequence

import pytest

from testing.argocd.application import Application
from testing.kubernetes.api import Object
from testing.processes import eventually
from tests.servers.gitops import (
    AT_ONCE,
    RESTS,
    SOON,
    ApplicationStory,
    attached,
    budget_document,
    is_protected,
    uid,
)
from tests.servers.live import autoscaler_document, policy_document
from tests.servers.pods import condition, config_map
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server

V2 = "temporal.io/build-id=v2"


@side_by_side
def test_version_with_running_workflows_stays_until_they_are_done_and_goes_in_two_syncs(
    story: ApplicationStory,
) -> None:
    more = (autoscaler_document("greeter"), budget_document("greeter"))
    story.commit("v1", *more, steps=(), spec=RESTS)
    story.application.create()
    story.stands("Settled", "v1")
    story.worker.start("WaitingWorkflow", story.namespace)
    commit = story.commit("v2", *more, steps=(), spec=RESTS)
    story.application.synced(commit)
    story.stands("Settled", "v2")

    story.application.refresh("hard")
    old = story.deployment("v1")
    assert old
    assert (old["spec"]["replicas"], is_protected(old)) == (1, True), "a workflow is open on it"
    assert set(attached(story, "v1")) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}

    story.worker.finish(story.namespace)
    story.worker.drains("v1")

    def at_zero() -> bool:
        story.application.refresh("hard")
        found = story.deployment("v1")
        return bool(found) and found["spec"]["replicas"] == 0 and not is_protected(found)

    eventually(at_zero, SOON)
    assert set(attached(story, "v1")) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}

    commit = story.commit("v2", *more, steps=(), spec=AT_ONCE)

    def gone() -> bool:
        story.application.refresh("hard")
        return story.deployment("v1") is None and not attached(story, "v1")

    eventually(gone, SOON)
    story.application.synced(commit)


@side_by_side
def test_gated_ramp_goes_to_its_end_while_an_unrelated_commit_goes_live_at_once(
    story: ApplicationStory,
) -> None:
    story.settled()
    story.commit("v2", gate="GateWorkflow")
    story.application.refresh()
    story.reaches("v2", 25)

    unrelated = config_map(story.namespace, "unrelated", {"made": "in mid-ramp"})
    commit = story.commit("v2", unrelated, gate="GateWorkflow")
    story.application.synced(commit)
    assert story.cluster.get("configmap", "unrelated", story.namespace)["data"] == unrelated["data"]
    assert story.share("v2") == 25, "its pause goes on"
    job = story.running_job()
    promoted = story.run("promote")
    assert promoted.code == 0, promoted
    story.stands("Settled", "v2")
    assert job["metadata"]["uid"] in [other["metadata"]["uid"] for other in story.jobs()], "the same went on"


@pytest.mark.parametrize("driver", ["Auto", "Job"])
@side_by_side
def test_revert_in_mid_ramp_takes_effect_within_one_sync(story: ApplicationStory, driver: str) -> None:
    policy = policy_document("greeter", driver=driver)
    story.commit("v1", policy, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    story.commit("v2", policy, steps=(25,))
    story.application.refresh()
    story.reaches("v2", 25)
    moved_before = {uid(job) for job in story.jobs()}
    commit = story.argo.repository.revert()
    story.application.refresh()
    story.reaches("v1", 100)
    assert story.share("v2") == 0

    def full_syncs() -> Sequence[str]:
        # a part is what Argo CD heals by itself, on a busy machine also between the render and the sync
        ended = story.application.ended_syncs(commit)
        return [message for message in ended if not message.startswith("Partial")]

    first = eventually(full_syncs, SOON)
    assert len(first) == 1, story.application.ended_syncs(commit)
    newest = story.application.get()["status"]["history"][-1]
    assert newest["revision"] == commit

    def of_the_revert() -> Object:
        [found] = story.jobs()
        assert uid(found) not in moved_before
        return found

    job = eventually(of_the_revert, SOON)
    assert newest["deployStartedAt"] <= job["metadata"]["creationTimestamp"] <= newest["deployedAt"]
    story.stands("Settled", "v1")
    assert [uid(left) for left in story.jobs()] == [uid(job)]
    assert full_syncs() == first, "nor does it take another one to settle"


@pytest.mark.parametrize("driver", ["Job"])
@side_by_side
def test_second_sync_finds_no_difference_whoever_computes_it(story: ApplicationStory, driver: str) -> None:
    policy = policy_document("greeter", driver=driver, holdFor="2h")
    more = (policy, autoscaler_document("greeter"), budget_document("greeter"))
    commit = story.commit("v1", *more, steps=(25,))
    story.application.create()
    story.stands("Settled", "v1")
    owner = uid(story.deployment("v1"))
    owned = {"HorizontalPodAutoscaler": owner, "PodDisruptionBudget": owner}
    eventually(lambda: attached(story, "v1") == owned, SOON)
    story.application.refresh("hard")
    before = story.application.synced(commit)["status"]["operationState"]["startedAt"]
    assert story.application.differing_anew() == []
    assert story.application.synced(commit)["status"]["operationState"]["startedAt"] == before


@side_by_side
def test_two_applications_keep_a_worker_each_in_one_namespace(story: ApplicationStory) -> None:
    other = ApplicationStory(
        story.argo,
        story.node,
        story.temporal,
        Application(story.argo, f"{story.namespace}-more", story.namespace),
        "biller",
    )
    commits = {}
    for each in (story, other):
        commits[each.worker_name] = each.commit("v1", steps=())
        each.application.create()
    for each in (story, other):
        each.stands("Settled", "v1")
    head = commits["biller"]
    for each in (story, other):
        each.application.refresh("hard")
        each.application.synced(head)
    started = {
        each.worker_name: each.application.get()["status"]["operationState"]["startedAt"]
        for each in (story, other)
    }
    for each in (story, other):
        each.application.refresh("hard")
        assert each.application.differing() == [], "neither takes what the other has"
        found = each.application.get()["status"]["operationState"]["startedAt"]
        assert found == started[each.worker_name]
    other.application.delete()


@side_by_side
def test_new_autoscaler_without_metrics_does_not_hold_up_a_job(story: ApplicationStory) -> None:
    scaler = autoscaler_document("greeter")
    usage = {"type": "AverageValue", "averageValue": "500m"}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": usage}}
    scaler["spec"]["template"]["spec"]["metrics"] = [metric]
    policy = policy_document("greeter", driver="Job")
    story.commit("v1", policy, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    story.commit("v2", policy, scaler, steps=())
    story.application.refresh()
    story.stands("Settled", "v2")


def has_ended(story: ApplicationStory) -> bool:
    """The sync of the application is over, and all Jobs that it began."""
    return story.application.operation()["phase"] == "Succeeded" and not story.active_jobs()


@pytest.mark.parametrize("driver", ["Hook", "Job"])
@side_by_side
def test_rollback_goes_past_a_version_whose_pods_crash(story: ApplicationStory, driver: str) -> None:
    policy = policy_document("greeter", driver=driver)
    story.commit("v1", policy, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    broken = story.argo.folder / f"{story.namespace}-is-broken"
    story.application.synced(story.commit("v2", policy, steps=(), unless=broken))
    story.stands("Settled", "v2")
    # a hook that still looks when v2 breaks would hold the revert until holdFor is over
    eventually(lambda: has_ended(story), SOON)
    broken.touch()
    story.cluster.kubectl("delete", "pods", "--namespace", story.namespace, "--selector", V2)
    eventually(lambda: condition(story.deployment("v2") or {}, "Available") == "False", SOON)

    story.argo.repository.revert()
    story.application.refresh()
    story.reaches("v1", 100)
    story.stands("Settled", "v1")


@pytest.mark.parametrize("driver", ["Hook", "Job"])
@side_by_side
def test_revert_of_a_version_that_never_starts_is_applied_by_a_retry_that_refreshes(
    story: ApplicationStory, driver: str
) -> None:
    policy = policy_document("greeter", driver=driver)
    quickly = {"progressDeadlineSeconds": 5}
    story.commit("v1", policy, steps=(), spec=quickly)
    story.application.create(retry={"limit": 3, "refresh": True})
    story.stands("Settled", "v1")
    soon_over = policy_document("greeter", driver=driver, holdFor="60s")
    story.commit("v2", soon_over, steps=(), spec=quickly, unless=story.argo.folder)
    story.application.refresh()
    eventually(lambda: condition(story.deployment("v2") or {}, "Available") == "False", SOON)

    commit = story.argo.repository.revert()
    story.application.refresh()
    # a hook holds its sync for a minute first
    story.stands("Settled", "v1", 2 * SOON)
    assert story.application.get()["status"]["sync"]["revision"] == commit
    assert story.share("v1") == 100
