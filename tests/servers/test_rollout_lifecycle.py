"""The life of versions from one rollout to the next, carried out by Jobs beside real workers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

from testing.kubernetes.api import Object
from testing.processes import eventually
from tests.servers.live import attached_document, policy_document, share_of, temporal_trigger
from tests.servers.rollouts import SOON, Story
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server

SHORT = {"sunset": {"scaledownDelay": "1s", "deleteDelay": "2s"}}
COMPLETED = 2
WATCH = "shop.example.com/QueueWatch"
WATCHES = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queuewatches.shop.example.com}
spec:
  group: shop.example.com
  names: {kind: QueueWatch, listKind: QueueWatchList, plural: queuewatches, singular: queuewatch}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


@side_by_side
def test_version_drains_under_a_pinned_workflow_frees_its_place_comes_back_for_a_pinned_start_and_goes(
    story: Story,
) -> None:
    limit = policy_document("greeter", maxVersions=2)
    for build_id in ("v1", "v2"):
        story.describe(build_id, limit, steps=(), spec=SHORT)
        story.sync()
        story.stands("Settled", build_id)
        if build_id == "v1":
            story.worker.start("WaitingWorkflow", first := f"{story.namespace}-first")
    story.describe("v3", limit, steps=(), spec=SHORT)
    story.sync()
    blocked = story.stands("Blocked", "v3")
    assert blocked["reason"] == "VersionCapReached"
    assert blocked["message"] == "2 versions still exist and maxVersions is 2: v3 waits until one is removed"
    assert story.replicas() == {"v1": 1, "v2": 1}, "v1 drains, and keeps its pods"

    story.worker.finish(first)
    assert ended_on(story, first) == "v1"
    story.worker.drains("v1")
    eventually(lambda: synced(story)["v1"] == 0, SOON)
    story.worker.start("WaitingWorkflow", second := f"{story.namespace}-second", pinned_to="v1")
    eventually(lambda: planned_action(story, "v1") == "Keep", SOON)
    assert synced(story)["v1"] == 1
    story.worker.finish(second)
    assert ended_on(story, second) == "v1"

    eventually(lambda: "v3" in synced(story), SOON)
    story.stands("Settled", "v3")
    eventually(lambda: synced(story) == {"v3": 1}, SOON)
    assert story.share("v3") == 100


@side_by_side
def test_template_that_changes_under_its_own_build_id_rolls_the_pods_and_moves_no_traffic(
    story: Story,
) -> None:
    story.describe("v1", steps=(25,))
    story.apply()
    story.stands("Settled", "v1")
    story.job("Complete")
    before, [pod], [job] = story.described(), workers(story), story.jobs()
    story.describe("v1", steps=(25,), variables=[{"name": "GREETING", "value": "Welcome"}])
    story.apply()
    eventually(lambda: story.job("Complete")["metadata"]["uid"] != job["metadata"]["uid"], SOON)

    def replaced() -> bool:
        [rolled] = workers(story)
        return rolled["metadata"]["uid"] != pod["metadata"]["uid"]

    eventually(replaced, SOON)
    after = story.described()
    assert after.routing_config == before.routing_config
    assert [version.deployment_version.build_id for version in after.version_summaries] == ["v1"]
    assert story.status()["reason"] == "Settled"


@side_by_side
def test_every_version_has_its_own_object_of_each_kind_until_its_template_goes_from_git(story: Story) -> None:
    story.cluster.define("keda")
    story.cluster.define_kinds(text=WATCHES)
    triggers = [temporal_trigger("greetings")]
    keda = attached_document(
        "greeter", "keda", "keda.sh/v1alpha1", "ScaledObject", scaleTargetRef={}, triggers=triggers
    )
    budget = attached_document(
        "greeter", "pdb", "policy/v1", "PodDisruptionBudget", maxUnavailable=1, selector={"matchLabels": {}}
    )
    watch = attached_document(
        "greeter", "watch", "shop.example.com/v1", "QueueWatch", build="{{ .BuildID }}", of="greetings"
    )
    for build_id in ("v1", "v2"):
        story.describe(build_id, keda, budget, watch, steps=())
        for _ in range(2):  # a Deployment has no UID before the first
            story.apply(WATCH)
        story.stands("Settled", build_id)
    made = attached(story)
    uids = {item["metadata"]["uid"] for item in story.listed("/apis/apps/v1", "deployments")}
    assert sorted(item["kind"] for item in made) == sorted(
        2 * ["PodDisruptionBudget", "QueueWatch", "ScaledObject"]
    )
    owners = [owner["uid"] for item in made for owner in item["metadata"]["ownerReferences"]]
    assert sorted(owners) == sorted(3 * list(uids))
    assert {item["spec"]["build"] for item in made if item["kind"] == "QueueWatch"} == {"v1", "v2"}

    def is_quiet() -> bool:
        before = versions(story)
        story.apply(WATCH)
        return versions(story) == before

    eventually(is_quiet, SOON)
    story.describe("v2", keda, budget, steps=())
    story.apply(WATCH)
    eventually(lambda: "QueueWatch" not in {item["kind"] for item in attached(story)}, SOON)
    assert len(attached(story)) == 4
    assert story.share("v2") == 100


@side_by_side
def test_target_that_polls_and_is_not_ready_gets_no_traffic_before_it_is(story: Story) -> None:
    story.describe("v1", steps=())
    story.apply()
    story.stands("Settled", "v1")
    story.describe("v2", steps=(), container={"readinessProbe": {"exec": {"command": ["false"]}}})
    story.apply()
    eventually(lambda: story.status().get("reason") == "NotServing", SOON)
    summaries = story.described().version_summaries
    assert "v2" in {version.deployment_version.build_id for version in summaries}, "it polls"
    assert "its Deployment is not available yet" in story.status()["message"]
    assert (story.share("v2"), story.share("v1")) == (0, 100)
    story.describe("v2", steps=())
    story.apply()
    story.stands("Settled", "v2")


@side_by_side
def test_jobs_of_one_intent_under_two_images_make_every_step_once_and_cut_no_pause_short(
    story: Story,
) -> None:
    story.describe("v1", steps=())
    story.apply()
    story.stands("Settled", "v1")
    story.describe("v2", steps=(25, 50))
    specs = story.folder / "specs.yaml"
    specs.write_text(specs.read_text().replace("10m", "30s"))
    story.apply()
    story.cluster.apply(story.manifests(image="registry.example.com/twgen:another"))
    seen: dict[tuple[float, float], None] = {}

    def is_done() -> bool:
        routing = story.described().routing_config
        share, ramp = share_of("v2", routing), routing.ramping_version_percentage_changed_time
        changed = routing.current_version_changed_time if share == 100 else ramp
        if share:
            seen[share, changed.ToMilliseconds() / 1000] = None
        return share == 100

    eventually(is_done, 2 * SOON)
    assert [share for share, _ in seen] == [25, 50, 100], "it never goes back"
    assert all(later - earlier >= 30 for (_, earlier), (_, later) in pairwise(seen))
    assert story.job("Complete")
    eventually(lambda: len(story.jobs()) == 1, SOON)


@side_by_side
def test_oldest_temporal_is_rolled_out_to_by_a_job_from_the_first_version_to_a_rollback(
    story: Story,
) -> None:
    story = replace(story, temporal=story.oldest_temporal)
    story.describe("v1", gate="GateWorkflow")
    story.apply()
    story.stands("Settled", "v1")
    story.describe("v2", gate="GateWorkflow")
    specs = story.folder / "specs.yaml"
    specs.write_text(specs.read_text().replace("10m", "30s"))
    story.apply()
    eventually(lambda: story.share("v2") == 25, SOON)
    story.stands("Settled", "v2")
    assert story.job("Complete")
    story.describe("v1", gate="GateWorkflow")
    story.apply()
    story.stands("Settled", "v1")
    assert (story.share("v1"), story.share("v2")) == (100, 0)


def ended_on(story: Story, workflow_id: str) -> str:
    """The version on which a workflow completed."""
    execution = WorkflowExecution(workflow_id=workflow_id)
    request = DescribeWorkflowExecutionRequest(namespace="default", execution=execution)

    def ended() -> str:
        info = story.temporal.ask("describe_workflow_execution", request).workflow_execution_info
        assert info.status == COMPLETED
        return str(info.versioning_info.deployment_version.build_id)

    return eventually(ended, SOON)


def synced(story: Story) -> dict[str, int]:
    """The replicas of every version after one more sync."""
    story.sync()
    return story.replicas()


def planned_action(story: Story, build_id: str) -> str:
    """What a render would now make of a version that has no pods."""
    ended = story.run("plan", "-o", "json")
    assert ended.code == 0, ended.stderr
    [worker] = json.loads(ended.stdout)["workers"]
    [version] = [version for version in worker["versions"] if version["buildID"] == build_id]
    return str(version["action"])


def workers(story: Story) -> Sequence[Object]:
    """The Pods of its versions that are not on their way out."""
    found = story.pods("temporal.io/deployment-name=greeter")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def attached(story: Story) -> list[Object]:
    kinds = (
        ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        ("keda.sh/v1alpha1", "scaledobjects", "ScaledObject"),
        ("shop.example.com/v1", "queuewatches", "QueueWatch"),
    )
    return [
        {**item, "kind": kind}
        for group, plural, kind in kinds
        for item in story.listed(f"/apis/{group}", plural)
    ]


def versions(story: Story) -> dict[str, str]:
    """The resource version of every object that a render names."""
    live = [*attached(story), *story.listed("/api/v1", "configmaps"), *story.jobs()]
    return {
        f"{item.get('kind')} {item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in live
    }
