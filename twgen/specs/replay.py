"""What a RolloutPolicy has replayed before a version takes traffic or workflows."""

from collections.abc import Iterable, Iterator

from twgen.model.histories import Replay
from twgen.model.problem import Problem
from twgen.model.spec import WorkerSpec
from twgen.specs.declared import spec_shape

REPLAY = spec_shape(Replay)


def replays_without_image(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A warning for each policy whose replay no Job runs: nobody named the image of rollouts."""
    for policy in {id(worker.policy.document): worker.policy for worker in workers}.values():
        if policy.replay:
            remedy = (
                "set rollout.image in the operator's configuration, or the rollouts that need it will wait"
            )
            yield Problem.at(policy.document, "spec.replay", f"no Job runs it: {remedy}")
