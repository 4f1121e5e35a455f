"""Rollouts that `twgen tick` carries out, in place of Jobs."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testing.processes import eventually
from tests.servers.rollouts import SOON, Story, describe_ramp, settled
from tests.servers.side_by_side import side_by_side
from tests.servers.ticks import tick_account, ticking

pytestmark = pytest.mark.server

BY_JOB = {"rollout": {"image": "registry.example.com/twgen:testing"}}
BY_TICK = {
    "rollout": {"driver": "Tick", "image": "registry.example.com/twgen:testing"},
    "tick": {"rollouts": True},
}
"""What an operator says, with the same image for replays."""


@contextmanager
def tick_of(story: Story) -> Iterator[None]:
    """A tick that carries out the rollouts of the story's namespace, with the rights that the docs name."""
    folder = story.folder.parent
    with (
        tick_account(story.cluster, story.namespace, folder, "tick", ["statuses", "rollouts"]) as kubeconfig,
        ticking(kubeconfig, story.namespace, folder, BY_TICK),
    ):
        try:
            yield
        except BaseException as error:
            error.add_note((folder / "tick.log").read_text())
            raise


@side_by_side
def test_rollout_moves_from_a_job_to_tick_and_back_in_the_middle_of_its_ramp(story: Story) -> None:
    story.operator.update(BY_JOB)
    settled(story)
    describe_ramp(story, "v2")
    story.apply()
    eventually(lambda: story.share("v2") == 25, SOON)
    with tick_of(story):
        story.operator.update(BY_TICK)
        story.apply()
        story.stands("Settled", "v2")
        assert story.share("v2") == 100
        assert story.jobs() == [], "tick has deleted the Job of the earlier rollout"

        describe_ramp(story, "v3")
        story.apply()
        eventually(lambda: story.share("v3") == 25, SOON)
        story.operator.update(BY_JOB | {"tick": {"rollouts": False}})
        story.apply()
        story.stands("Settled", "v3")
        assert story.share("v3") == 100
        assert len(story.jobs()) == 1
