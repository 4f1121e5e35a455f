"""What the page about rollbacks lets a person do to workflows that a bad version holds, on real servers."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

from testing.install import TEMPORAL_CLI, installed
from testing.processes import eventually
from tests.servers.live import ENVIRONMENT, policy_document, worker_document, write_specs
from tests.servers.side_by_side import side_by_side
from tests.servers.terminal import SOON, Story, becomes_current, on_both_servers
from tests.servers.workflows import start

PAGE = Path(__file__).parents[2] / "docs" / "rollback.md"
pytestmark = pytest.mark.server


@on_both_servers
def test_reset_starts_workflows_of_a_bad_version_again_on_the_older_one(story: Story) -> None:
    becomes_current(story, "v1")
    becomes_current(story, "v2")
    name = story.worker.name.removeprefix("live/")
    one, *others = names = [f"{name}-{number}" for number in range(3)]
    start(story.worker, {"WaitingWorkflow": names})
    story.describe("v1", steps=())
    assert story.run("rollout").code == 0
    assert {version_of(story, each) for each in names} == {"v2"}, "a rollback does not move them"

    block = re.compile(r"^```\n(temporal workflow reset .*?)^```$", re.MULTILINE | re.DOTALL)
    of_one, of_all, moved = block.findall(PAGE.read_text())
    types(story, of_one.replace("order-17", one))
    eventually(lambda: version_of(story, one) == "v1", SOON)
    assert {version_of(story, each) for each in others} == {"v2"}
    names_of_page = {"order-17": others[0], "shop/payments": story.worker.name, "v3.0.1-5d2a": "v1"}
    for of_page, here in names_of_page.items():
        moved = moved.replace(of_page, here)
    types(story, moved)
    eventually(lambda: version_of(story, others[0]) == "v1", SOON)
    assert version_of(story, others[1]) == "v2"
    query = of_all.replace("shop/payments:v3.0.0-97f7", f"{story.worker.name}:v2")

    def are_reset() -> bool:
        # a server may list a workflow only a while after its first task
        types(story, query.replace("--type", "-y --type"))
        return {version_of(story, each) for each in names} == {"v1"}

    eventually(are_reset, SOON)


@side_by_side
def test_version_that_was_replaced_long_ago_gets_all_traffic_at_once_by_the_command_of_the_page(
    story: Story,
) -> None:
    becomes_current(story, "v1")
    becomes_current(story, "v2")
    name = story.worker.name.removeprefix("live/")
    short = policy_document(name, rollbackWindow="1s")
    worker = worker_document(name, "v1", steps=(25,), gate="GateWorkflow")
    write_specs(story.folder, story.worker.server.address, worker, short)
    # within the second of its policy a person who promotes would be right to go back without the gate
    eventually(lambda: json.loads(story.run("plan", "-o", "json").stdout)["workers"][0]["gates"], SOON)
    refused = story.run("promote")
    assert "its gate has not passed" in refused.stderr, refused
    [command] = set(re.findall(r"^twgen (promote \..*)$", PAGE.read_text(), re.MULTILINE))
    promoted = story.run(*command.replace(" .", "").split())
    assert (promoted.code, story.shares()) == (0, {"v1": 100, "v2": 0}), promoted


def types(story: Story, command: str) -> str:
    """What a command of the page prints."""
    server = f"--address {story.worker.server.address} --namespace default"
    script = f'temporal() {{ "{installed(TEMPORAL_CLI)}" "$@" {server}; }}\n{command}'
    ended = subprocess.run(
        ["bash", "-ec", script], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended
    return ended.stdout


def version_of(story: Story, workflow_id: str) -> str:
    """The build ID that the newest run of a workflow is pinned to."""
    execution = WorkflowExecution(workflow_id=workflow_id)
    request = DescribeWorkflowExecutionRequest(namespace="default", execution=execution)
    answer = story.worker.server.ask("describe_workflow_execution", request)
    return str(answer.workflow_execution_info.versioning_info.deployment_version.build_id)
