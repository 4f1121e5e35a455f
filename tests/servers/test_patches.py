"""A live version is patched beside real workers: none of its workflows fails, and none moves."""

import json
from collections.abc import Sequence

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

from testing.kubernetes.api import Object
from testing.processes import eventually
from tests.servers.live import Document, policy_document, run
from tests.servers.rollouts import SOON, Story
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server

COMPLETED, RUNNING = 2, 1
PATCHED_IMAGE = "example.com/worker:v1-without-the-hole"


@side_by_side
def test_draining_version_is_patched_and_goes_back_under_its_open_workflows(story: Story) -> None:
    patch_and_go_back(story)


@side_by_side
def test_draining_version_with_a_ledger_is_patched_and_goes_back_under_its_open_workflows(
    story: Story,
) -> None:
    story.describe("v1", steps=())
    locked = run(story.folder, "lock", options=())
    assert locked.code == 0, locked.stderr
    patch_and_go_back(story)


def patch_and_go_back(story: Story) -> None:
    names = [f"{story.namespace}-{number}" for number in range(3)]
    for build_id in ("v1", "v2"):
        story.describe(build_id, steps=())
        story.sync()
        story.stands("Settled", build_id)
        for name in names if build_id == "v1" else ():
            story.worker.start("WaitingWorkflow", name)
    eventually(lambda: [on(story, name) for name in names] == 3 * ["v1"], SOON)
    before, [pod] = story.described().routing_config, pods_of(story, "v1")
    eventually(lambda: planned(story)["status"] == "Draining", SOON)

    container = {"name": "worker", "image": PATCHED_IMAGE, "env": [{"name": "LEVEL", "value": "debug"}]}
    story.describe("v2", policy(container), steps=())
    told = planned(story)
    assert (told["action"], told["reason"]) == ("Update", "Patched")
    story.sync()
    patched = replaced(story, pod)
    assert of_worker(patched) == (PATCHED_IMAGE, "debug")
    is_quiet(story)
    story.worker.finish(names[0])
    assert ended_on(story, names[0]) == "v1"

    live = f"deployment/{pod['metadata']['labels']['temporal.io/deployment-name']}-v1"
    story.cluster.kubectl("set", "image", live, "worker=example.com/worker:by-hand", "-n", story.namespace)
    by_hand = replaced(story, patched)
    told = planned(story)
    assert (told["action"], told["reason"]) == ("Update", "EditedByHand")
    assert "patches of a RolloutPolicy" in told["because"]
    story.sync()
    right = replaced(story, by_hand)
    assert of_worker(right) == (PATCHED_IMAGE, "debug")

    story.describe("v2", policy(), steps=())
    assert planned(story)["reason"] == "Patched"
    story.sync()
    back = replaced(story, right)
    assert of_worker(back) == of_worker(pod)
    is_quiet(story)
    assert "twgen.io/patched" not in deployment(story, "v1")["metadata"]["annotations"]
    for name in names[1:]:
        story.worker.finish(name)
        assert ended_on(story, name) == "v1"
    assert story.described().routing_config == before
    assert len(pods_of(story, "v2")) == 1


def policy(*containers: Document) -> Document:
    patches = [{"buildID": "v1", "containers": list(containers)}] if containers else []
    return policy_document("greeter", patches=patches)


def planned(story: Story) -> Document:
    """What a plan makes of v1."""
    ended = story.run("plan", "-o", "json")
    assert ended.code == 0, ended.stderr
    [worker] = json.loads(ended.stdout)["workers"]
    [version] = [version for version in worker["versions"] if version["buildID"] == "v1"]
    told: Document = version
    return told


def is_quiet(story: Story) -> None:
    """Another plan keeps v1 as it is, and another sync changes nothing of its Deployment."""
    assert planned(story)["action"] == "Keep"
    generation = deployment(story, "v1")["metadata"]["generation"]
    story.sync()
    assert deployment(story, "v1")["metadata"]["generation"] == generation


def deployment(story: Story, build_id: str) -> Object:
    [found] = story.listed("/apis/apps/v1", "deployments", f"temporal.io/build-id={build_id}")
    return found


def pods_of(story: Story, build_id: str) -> Sequence[Object]:
    """The Pods of a version that are not on their way out."""
    found = story.pods(f"temporal.io/build-id={build_id}")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def replaced(story: Story, pod: Object) -> Object:
    """The Pod that has taken the place of one of v1, once that is gone."""

    def newest() -> Object:
        found, *older = pods_of(story, "v1")
        assert not older
        assert found["metadata"]["uid"] != pod["metadata"]["uid"]
        status = deployment(story, "v1")["status"]
        assert status.get("availableReplicas") == status.get("updatedReplicas") == 1
        return found

    return eventually(newest, SOON)


def of_worker(pod: Object) -> tuple[str, str]:
    """The image and the variable LEVEL of a Pod."""
    [container] = pod["spec"]["containers"]
    values = {item["name"]: item.get("value", "") for item in container["env"]}
    return container["image"], values.get("LEVEL", "")


def ended_on(story: Story, workflow_id: str) -> str:
    """The version on which a workflow completed."""
    return eventually(lambda: on(story, workflow_id, COMPLETED), SOON)


def on(story: Story, workflow_id: str, status: int = RUNNING) -> str:
    """The version that a workflow of this status is on."""
    execution = WorkflowExecution(workflow_id=workflow_id)
    request = DescribeWorkflowExecutionRequest(namespace="default", execution=execution)
    info = story.temporal.ask("describe_workflow_execution", request).workflow_execution_info
    assert info.status == status
    return str(info.versioning_info.deployment_version.build_id)
