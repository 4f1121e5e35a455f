"""Workers in Git, rolled out by a real Argo CD whose plugin is twgen."""

import pytest

from testing.argocd.application import Application
from testing.processes import eventually
from tests.servers.gitops import SOON, Story, attached, budget_document, is_protected
from tests.servers.live import Document, autoscaler_document, policy_document
from tests.servers.pods import condition, config_map

pytestmark = pytest.mark.server

GATED_RAMP: Document = {
    "strategy": "Progressive",
    "steps": [
        {"rampPercentage": 25, "pauseDuration": "30s"},
        {"rampPercentage": 50, "pauseDuration": "30s"},
    ],
    "gate": {"workflowType": "GateWorkflow"},
}
V2 = "temporal.io/build-id=v2"
AT_ONCE: Document = {"sunset": {"scaledownDelay": "1s", "deleteDelay": "1s"}}


def test_first_sync_from_nothing_ends_with_the_version_current(gitops: Story) -> None:
    commit = gitops.commit("v1", steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    assert gitops.share("v1") == 100
    found = gitops.application.synced(commit)
    assert found["status"]["health"]["status"] == "Healthy"


def test_version_with_running_workflows_stays_until_they_are_done_and_goes_in_two_syncs(
    gitops: Story,
) -> None:
    more = (autoscaler_document("greeter"), budget_document("greeter"))
    gitops.commit("v1", *more, steps=(), spec=AT_ONCE)
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.worker.start("WaitingWorkflow", gitops.namespace)
    commit = gitops.commit("v2", *more, steps=(), spec=AT_ONCE)
    gitops.application.synced(commit)
    gitops.stands("Settled", "v2")

    gitops.application.refresh("hard")
    old = gitops.deployment("v1")
    assert old
    assert (old["spec"]["replicas"], is_protected(old)) == (1, True), "a workflow is open on it"
    assert set(attached(gitops, "v1")) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}

    gitops.worker.finish(gitops.namespace)

    def at_zero() -> bool:
        gitops.application.refresh("hard")
        found = gitops.deployment("v1")
        return bool(found) and found["spec"]["replicas"] == 0 and not is_protected(found)

    eventually(at_zero, SOON)
    assert set(attached(gitops, "v1")) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}

    def gone() -> bool:
        gitops.application.refresh("hard")
        return gitops.deployment("v1") is None and not attached(gitops, "v1")

    eventually(gone, SOON)
    gitops.application.synced(commit)


def test_gated_ramp_goes_to_its_end_while_an_unrelated_commit_goes_live_at_once(gitops: Story) -> None:
    gitops.commit("v1", steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.commit("v2", spec={"rollout": GATED_RAMP})
    gitops.application.refresh()
    gitops.reaches("v2", 25)

    unrelated = config_map(gitops.namespace, "unrelated", {"made": "in mid-ramp"})
    commit = gitops.commit("v2", unrelated, spec={"rollout": GATED_RAMP})
    gitops.application.synced(commit)
    assert gitops.cluster.get("configmap", "unrelated", gitops.namespace)["data"] == unrelated["data"]
    assert 0 < gitops.share("v2") < 100, "the ramp is still under way"
    [job] = [job for job in gitops.jobs() if job.get("status", {}).get("active")]
    gitops.stands("Settled", "v2")
    assert job["metadata"]["uid"] in [other["metadata"]["uid"] for other in gitops.jobs()], "the same went on"


def test_revert_in_mid_ramp_takes_effect_within_one_sync(gitops: Story) -> None:
    gitops.commit("v1", steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.commit("v2", steps=(25,))
    gitops.application.refresh()
    gitops.reaches("v2", 25)
    gitops.application.synced(gitops.argo.repository.revert())
    gitops.reaches("v1", 100)
    assert gitops.share("v2") == 0
    gitops.stands("Settled", "v1")


def test_second_sync_finds_no_difference_whoever_computes_it(gitops: Story) -> None:
    more = (autoscaler_document("greeter"), budget_document("greeter"))
    commit = gitops.commit("v1", *more, steps=(25,))
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.application.refresh("hard")
    # what is attached gets its owner by the second render: before the first, the Deployment had no UID
    before = gitops.application.synced(commit)["status"]["operationState"]["startedAt"]
    for side in ("false", "true"):
        how = {"argocd.argoproj.io/compare-options": f"ServerSideDiff={side}"}
        gitops.application.change({"metadata": {"annotations": how}})
        gitops.application.refresh("hard")
        assert gitops.application.differing() == []
    assert gitops.application.synced(commit)["status"]["operationState"]["startedAt"] == before


def test_two_applications_keep_a_worker_each_in_one_namespace(gitops: Story) -> None:
    other = Story(
        gitops.argo,
        gitops.node,
        gitops.temporal,
        Application(gitops.argo, f"{gitops.namespace}-more", gitops.namespace),
        "biller",
    )
    commits = {}
    for story in (gitops, other):
        commits[story.worker_name] = story.commit("v1", steps=())
        story.application.create()
    for story in (gitops, other):
        story.stands("Settled", "v1")
    head = commits["biller"]
    for story in (gitops, other):
        story.application.refresh("hard")
        story.application.synced(head)
    started = {
        story.worker_name: story.application.get()["status"]["operationState"]["startedAt"]
        for story in (gitops, other)
    }
    for story in (gitops, other):
        story.application.refresh("hard")
        assert story.application.differing() == [], "neither takes what the other has"
        found = story.application.get()["status"]["operationState"]["startedAt"]
        assert found == started[story.worker_name]
    other.application.delete()


@pytest.mark.parametrize("driver", ["Hook", "Job"])
def test_new_autoscaler_without_metrics_does_not_hold_up_a_rollout(gitops: Story, driver: str) -> None:
    scaler = autoscaler_document("greeter")
    usage = {"type": "Utilization", "averageUtilization": 50}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": usage}}
    scaler["spec"]["template"]["spec"]["metrics"] = [metric]
    policy = policy_document("greeter", driver=driver)
    gitops.commit("v1", policy, steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.commit("v2", policy, scaler, steps=())
    gitops.application.refresh()
    gitops.stands("Settled", "v2")


@pytest.mark.parametrize("driver", ["Hook", "Job"])
def test_rollback_goes_past_a_version_whose_pods_crash(gitops: Story, driver: str) -> None:
    policy = policy_document("greeter", driver=driver)
    gitops.commit("v1", policy, steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    broken = gitops.argo.folder / f"{gitops.namespace}-is-broken"
    gitops.application.synced(gitops.commit("v2", policy, steps=(), unless=broken))
    gitops.stands("Settled", "v2")
    broken.touch()
    gitops.cluster.kubectl("delete", "pods", "--namespace", gitops.namespace, "--selector", V2)
    eventually(lambda: condition(gitops.deployment("v2") or {}, "Available") == "False", SOON)

    gitops.argo.repository.revert()
    gitops.application.refresh()
    gitops.reaches("v1", 100)
    gitops.stands("Settled", "v1")


@pytest.mark.parametrize("driver", ["Hook", "Job"])
def test_revert_of_a_version_that_never_starts_is_applied_by_a_retry_that_refreshes(
    gitops: Story, driver: str
) -> None:
    policy = policy_document("greeter", driver=driver)
    quickly = {"progressDeadlineSeconds": 5}
    gitops.commit("v1", policy, steps=(), spec=quickly)
    gitops.application.create(retry={"limit": 3, "refresh": True})
    gitops.stands("Settled", "v1")
    gitops.commit("v2", policy, steps=(), spec=quickly, unless=gitops.argo.folder)
    gitops.application.refresh()
    eventually(lambda: condition(gitops.deployment("v2") or {}, "Available") == "False", SOON)

    commit = gitops.argo.repository.revert()
    gitops.application.refresh()
    gitops.stands("Settled", "v1")
    assert gitops.application.get()["status"]["sync"]["revision"] == commit
    assert gitops.share("v1") == 100
