"""Jobs that end before their rollout is settled: whoever looks reads that nobody works on it."""

import json
import os
import signal

import pytest

from testing.processes import eventually
from tests.servers.pods import condition
from tests.servers.rollouts import SOON, Story, settled
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server


@side_by_side
def test_status_says_that_nobody_works_on_a_rollout_whose_job_is_deleted_late_or_killed(story: Story) -> None:
    settled(story)
    story.describe("v2", steps=(25,))
    ramping(story)
    place = ("--namespace", story.namespace)
    story.cluster.kubectl("delete", "job", name_of_its_job(story), *place)
    assert story.status()["reason"] == "RampPaused", "after SIGTERM nothing is written"
    assert "it has no Job" in told(story)

    ramping(story)
    limit = json.dumps({"spec": {"activeDeadlineSeconds": 1}})
    story.cluster.kubectl("patch", "job", name_of_its_job(story), *place, "--patch", limit)
    eventually(lambda: condition(story.newest_job(), "Failed") == "True", SOON)
    assert f"Job {name_of_its_job(story)} has ended as Failed (DeadlineExceeded" in told(story)
    story.cluster.kubectl("delete", "job", name_of_its_job(story), *place)

    ramping(story)
    last = json.dumps({"spec": {"backoffLimit": 0}})
    story.cluster.kubectl("patch", "job", name_of_its_job(story), *place, "--patch", last)
    os.kill(story.node.process(story.running_pod()), signal.SIGKILL)
    eventually(lambda: condition(story.newest_job(), "Failed") == "True", SOON)
    assert story.status()["reason"] == "RampPaused", "what is killed tells nothing"
    line = told(story)
    assert "Blocked for " in line
    assert (
        f"RolloutEnded: its traffic is not moving: Job {name_of_its_job(story)} has ended as Failed (Ba"
        in line
    )
    assert story.share("v2") == 25

    story.cluster.kubectl("delete", "job", name_of_its_job(story), *place)
    assert "it has no Job" in told(story)
    ramping(story)


def ramping(story: Story) -> None:
    """A Job works on the ramp of v2, and says so."""
    story.apply()
    eventually(lambda: "it stays at 25%" in story.log(), SOON)
    eventually(lambda: story.status()["reason"] == "RampPaused", SOON)
    assert story.share("v2") == 25
    assert "RampPaused" in told(story)
    followed = ("status", "--from-cluster", "-n", story.namespace, "-w", "--within", "1s")
    late = story.run(*followed, is_of_specs=False)
    assert late.code == 4
    assert late.stderr.startswith(
        f"twgen: not settled within 1s: {story.namespace}/greeter is Waiting, because"
    )
    assert "RampPaused" in late.stdout


def told(story: Story) -> str:
    """The line of its rollout that people read."""
    shown = story.run("status", "--from-cluster", "-n", story.namespace, is_of_specs=False)
    assert (shown.code, shown.stderr) == (0, "")
    return shown.stdout.splitlines()[0]


def name_of_its_job(story: Story) -> str:
    return str(story.newest_job()["metadata"]["name"])


@side_by_side
def test_intent_that_is_deleted_and_made_again_has_its_rollout_as_soon_as_tick_looks(story: Story) -> None:
    settled(story)
    story.describe("v2", steps=(25,))
    ramping(story)
    intent = f"/api/v1/namespaces/{story.namespace}/configmaps/greeter-rollout"
    story.cluster.api.delete(intent)
    story.job("Complete")  # nothing is left for it to do
    eventually(lambda: not story.status(), SOON)  # it went with its owner
    made = [item for item in story.manifests() if item["kind"] == "ConfigMap"]
    story.cluster.apply(made)  # the Job of the same name is there, so that Argo CD makes none either
    name = name_of_its_job(story)
    line = told(story)
    assert "Waiting for " in line
    assert f"RolloutNotBegun: the rollout of v2 has not begun: Job {name} ran for an earlier rollout" in line
    assert "current" not in line, "nobody has read Temporal"

    place = ("-n", story.namespace, "--argocd-namespace", story.namespace)
    found = story.run("doctor", *place, "-o", "json", is_of_specs=False).stdout
    assert f"Job {name} ran for an earlier intent" in found, found

    ended = story.run("tick", "-n", story.namespace, is_of_specs=False)
    deleted = f"{story.namespace}/greeter: deleted Job {name}, which has ended"
    assert (ended.code, ended.stdout.startswith(deleted)) == (0, True), ended
    eventually(lambda: not story.jobs(), SOON)
    assert "it has no Job yet" in told(story)
    ramping(story)
    owner = story.cluster.api.get(intent)["metadata"]["uid"]
    status = story.cluster.api.get(f"{intent}-status")
    assert [item["uid"] for item in status["metadata"]["ownerReferences"]] == [owner]
