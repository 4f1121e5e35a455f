"""What may go wrong around an Argo CD whose plugin is twgen, and what becomes of the workers."""

from collections.abc import Sequence

import psutil
import pytest

from testing.faults import Trouble, forwarding
from testing.kubernetes.api import Object
from testing.processes import eventually
from tests.servers.gitops import SOON, Story, attached, budget_document, is_protected
from tests.servers.live import autoscaler_document, policy_document
from tests.servers.pods import config_map
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server


def uid(document: Object | None) -> str:
    assert document
    return str(document["metadata"]["uid"])


def test_temporal_that_is_away_is_said_in_a_line_and_nothing_is_pruned(gitops: Story) -> None:
    with forwarding(gitops.temporal.address, Trouble()) as way:
        gitops.argo.configure([way.address])
        gitops.commit("v1", steps=(), address=way.address)
        gitops.application.create()
        gitops.stands("Settled", "v1")
        before = set(gitops.application.tracked())
        way.die()
        commit = gitops.commit("v2", steps=(), address=way.address)
        gitops.application.refresh("hard")
        [error] = gitops.application.errors()
        assert f"Temporal at {way.address}" in error
        assert error.count("\n") <= 1
        assert gitops.deployment("v2") is None
        for _ in range(3):  # as often as it takes until Argo CD keeps the error
            gitops.application.refresh("hard")
        assert uid(gitops.deployment("v1"))
        way.revive()
        gitops.application.refresh("hard")
        gitops.application.synced(commit)
        assert before <= set(gitops.application.tracked()) | {("Job", name) for _, name in before}
        gitops.stands("Settled", "v2")


def test_version_that_a_render_lost_stays_with_all_that_is_attached_to_it(gitops: Story) -> None:
    more = (autoscaler_document("greeter"), budget_document("greeter"))
    lost = config_map(gitops.namespace, "unprotected", {"what": "has no work"})
    gitops.commit("v1", *more, lost, steps=(25,))
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.application.refresh("hard")
    eventually(lambda: all(attached(gitops, "v1").values()), SOON)
    kept = uid(gitops.deployment("v1"))

    # the output of a plugin that has forgotten everything but one object, with pruning on
    rest = config_map(gitops.namespace, "rest", {"what": "is left"})
    folder = gitops.argo.repository.clone / gitops.namespace
    (folder / "specs.yaml").write_text(write_documents([rest]))
    commit = gitops.argo.repository.commit("Everything else is lost")
    gitops.application.change({"spec": {"source": {"plugin": None}}})
    gitops.application.synced(commit)
    assert gitops.cluster.api.find(f"/api/v1/namespaces/{gitops.namespace}/configmaps/unprotected") is None
    assert uid(gitops.deployment("v1")) == kept
    assert set(attached(gitops, "v1")) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}
    assert gitops.share("v1") == 100


def test_versioned_deployment_that_is_deleted_by_hand_comes_back_with_what_is_attached(gitops: Story) -> None:
    more = (autoscaler_document("greeter"), budget_document("greeter"))
    commit = gitops.commit("v1", *more, steps=(25,))
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.application.refresh("hard")
    gone = uid(gitops.deployment("v1"))
    eventually(lambda: set(attached(gitops, "v1").values()) == {gone}, SOON)
    gitops.cluster.kubectl("delete", "deployment/greeter-v1", "--namespace", gitops.namespace)
    made = eventually(lambda: (found := gitops.deployment("v1")) and uid(found) != gone and uid(found), SOON)
    gitops.application.refresh("hard")
    owners = {"HorizontalPodAutoscaler": made, "PodDisruptionBudget": made}
    eventually(lambda: attached(gitops, "v1") == owners, SOON)
    gitops.application.synced(commit)


def test_plugin_that_is_killed_in_mid_render_changes_nothing(gitops: Story) -> None:
    gitops.commit("v1", steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    before = uid(gitops.deployment("v1"))
    commit = gitops.commit("v2", steps=())
    gitops.application.change({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}})
    for render in eventually(lambda: renders_of(gitops), SOON):
        render.kill()
    [error] = eventually(gitops.application.errors, SOON)
    assert "signal: killed" in error
    assert uid(gitops.deployment("v1")) == before
    gitops.application.refresh("hard")
    gitops.application.synced(commit)


def renders_of(gitops: Story) -> Sequence[psutil.Process]:
    """The processes of the plugin that render."""
    children = psutil.Process(gitops.argo.plugin.pid).children(recursive=True)
    return [child for child in children if "render" in child.cmdline()]


def test_job_that_is_deleted_by_hand_runs_again(gitops: Story) -> None:
    gitops.commit("v1", steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.commit("v2", steps=(25,))
    gitops.application.refresh()
    gitops.reaches("v2", 25)
    [job] = [job for job in gitops.jobs() if job.get("status", {}).get("active")]
    name = job["metadata"]["name"]
    gitops.cluster.kubectl("delete", f"job/{name}", "--namespace", gitops.namespace)

    def again() -> bool:
        found = [other for other in gitops.jobs() if other["metadata"]["name"] == name]
        return bool(found) and uid(found[0]) != uid(job) and found[0].get("status", {}).get("active") == 1

    eventually(again, SOON)
    assert gitops.share("v2") == 25


def test_worker_that_is_removed_from_git_serves_on_until_somebody_retires_it(gitops: Story) -> None:
    gitops.commit("v1", steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    rest = config_map(gitops.namespace, "rest", {"what": "is left"})
    commit = gitops.commit_documents("No worker any more", rest)
    gitops.application.synced(commit)
    kept = gitops.deployment("v1")
    assert kept
    assert (kept["spec"]["replicas"], is_protected(kept)) == (1, True)
    intents = gitops.cluster.api.get(f"/api/v1/namespaces/{gitops.namespace}/configmaps")["items"]
    assert "greeter-rollout" not in [one["metadata"]["name"] for one in intents]
    assert gitops.share("v1") == 100


def test_self_heal_puts_right_what_is_twgens_and_leaves_the_rest(gitops: Story) -> None:
    commit = gitops.commit("v1", steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.application.synced(commit)
    deployment = ("deployment/greeter-v1", "--namespace", gitops.namespace)
    gitops.cluster.kubectl("annotate", *deployment, "example.com/note=mine")
    gitops.cluster.kubectl("scale", *deployment, "--replicas=3")
    eventually(lambda: gitops.replicas("v1") == 1, SOON)
    found = gitops.deployment("v1")
    assert found
    assert found["metadata"]["annotations"]["example.com/note"] == "mine"


def test_application_that_is_deleted_and_restored_finds_its_workers_as_they_were(gitops: Story) -> None:
    policy = policy_document("greeter", onDelete="Orphan")
    commit = gitops.commit("v1", policy, steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    before = uid(gitops.deployment("v1"))
    gitops.application.delete(with_all_it_has=True)
    assert gitops.jobs() == [], "it did delete what is not protected"
    gitops.application.create()
    gitops.application.refresh("hard")
    gitops.application.synced(commit)
    assert uid(gitops.deployment("v1")) == before
    gitops.stands("Settled", "v1")


def test_render_that_is_applied_late_takes_nothing_that_has_work(gitops: Story) -> None:
    quickly = {"sunset": {"scaledownDelay": "1s", "deleteDelay": "1h"}}
    gitops.commit("v1", steps=(), spec=quickly)
    gitops.application.create()
    gitops.stands("Settled", "v1")
    commit = gitops.commit("v2", steps=(), spec=quickly)
    gitops.application.synced(commit)
    gitops.stands("Settled", "v2")

    # a sync window is closed while v1 has drained: its render scales it down
    gitops.application.change({"spec": {"syncPolicy": {"automated": None}}})

    def differs() -> bool:
        gitops.application.refresh("hard")
        return ("Deployment", "greeter-v1") in gitops.application.differing()

    eventually(differs, SOON)
    # the world moves on: a workflow starts on v1
    gitops.worker.start("WaitingWorkflow", gitops.namespace, pinned_to="v1")
    gitops.application.change({"spec": {"syncPolicy": {"automated": {"prune": True, "selfHeal": True}}}})
    eventually(lambda: gitops.replicas("v1") == 0, SOON)
    gitops.application.refresh("hard")
    eventually(lambda: gitops.replicas("v1") == 1, SOON)
    found = gitops.deployment("v1")
    assert found
    assert is_protected(found)
    gitops.worker.finish(gitops.namespace)
