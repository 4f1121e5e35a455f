"""Jobs beside somebody else who manages the worker: who waits says for whom, and changes nothing."""

import pytest

from testing.kubernetes.control_plane import kubernetes_cluster
from testing.local_node.node import local_node
from testing.processes import eventually
from tests.servers.rollouts import IDENTITY, SOON, Story, gates_of, outlast, settled
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server

OTHER = "twgen/testing/other"
LOOK = 30.0
"""Seconds from one look of a Job that waits to the next."""


def managed(story: Story) -> tuple[str, str, str]:
    """Whose the worker is, who changed it last, and its traffic."""
    found = story.described()
    return found.manager_identity, found.last_modifier_identity, str(found.routing_config)


@side_by_side
def test_two_jobs_of_different_managers_never_alternate_and_each_goes_on_when_released(story: Story) -> None:
    """They are in two clusters, where the worker has the same name."""
    settled(story)
    home = story.cluster.folder / f"{story.namespace}-elsewhere"
    (specs := home / "specs").mkdir(parents=True)
    with kubernetes_cluster(home) as cluster, local_node(cluster) as node:
        cluster.create_namespace(story.namespace)
        other = Story(cluster, node, story.temporal, story.oldest_temporal, story.namespace, specs, OTHER)
        try:
            alternate(story, other)
        except BaseException as error:
            error.add_note(other.account())
            raise
        finally:
            cluster.clear(story.namespace)


def alternate(story: Story, other: Story) -> None:
    before = managed(story)
    other.describe("v2", steps=(50,))
    other.apply()
    assert_waits_for(other, "v2", IDENTITY)
    assert managed(story) == before
    story.describe("v3", steps=(25,))
    story.apply()
    eventually(lambda: story.share("v3") == 25, SOON)
    outlast(LOOK)
    assert story.share("v3") == 25, "the other one saw it, and leaves it alone"

    # the first one has nothing to change while its ramp pauses
    story.worker.set_manager("")
    eventually(lambda: story.share("v2") == 50, SOON)
    assert_waits_for(story, "v3", OTHER)
    outlast(LOOK)
    assert managed(story)[:2] == (OTHER, OTHER)
    assert (story.share("v2"), story.share("v3")) == (50, 0)

    other.describe("v2", steps=())
    other.apply()
    other.stands("Settled", "v2")
    assert_waits_for(story, "v3", OTHER)
    story.worker.set_manager("")
    eventually(lambda: story.share("v3") == 25, SOON)
    assert managed(story)[:2] == (IDENTITY, IDENTITY)
    assert (story.replicas(), other.replicas()) == ({"v1": 1, "v3": 1}, {"v2": 1})


def assert_waits_for(story: Story, target: str, manager: str) -> None:
    status = story.stands("Blocked", target)
    assert status["reason"] == "ForeignManager"
    assert f"its manager is {manager}" in status["message"]


@side_by_side
def test_manual_strategy_under_another_manager_starts_no_gate_and_goes_on_when_released(story: Story) -> None:
    settled(story)
    story.worker.set_manager("somebody/else")
    before = managed(story)
    manual = {"strategy": "Manual", "gate": {"workflowType": "GateWorkflow"}}
    story.describe("v2", spec={"rollout": manual})
    story.apply()
    assert_waits_for(story, "v2", "somebody/else")
    outlast(LOOK)
    assert managed(story) == before
    assert gates_of(story, "v2") == 0
    story.worker.set_manager("")
    story.stands("Waiting", "v2")
    eventually(lambda: gates_of(story, "v2") == 1, SOON)
    eventually(lambda: (told := story.status())["reason"] == "Manual" and "twgen promote" in told["message"])
    assert (story.share("v1"), story.share("v2")) == (100, 0), "a person decides"
