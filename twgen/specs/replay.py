"""Reading what a RolloutPolicy has replayed before a version takes traffic or workflows."""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta

from twgen.model.histories import Replay, ReplayBefore, Sample
from twgen.model.problem import Problem
from twgen.model.spec import WorkerSpec
from twgen.specs.fields import Fields
from twgen.specs.limits import BYTES
from twgen.versioning.quantities import quantity_nanos

MOST_OF_A_TYPE = 10_000
MOST_BYTES = 10 * 2**30
"""Of a folder that every node has."""
_SAMPLE = 50
_BYTES = "64Mi"
_NANO = 10**9
_WITHIN, _SHORTEST, _LONGEST = timedelta(hours=1), timedelta(seconds=10), timedelta(hours=24)


def replays_without_image(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A warning for each policy whose replay no Job runs: nobody named the image of rollouts."""
    for policy in {id(worker.policy.document): worker.policy for worker in workers}.values():
        if policy.replay:
            remedy = (
                "set rollout.image in the operator's configuration, or the rollouts that need it will wait"
            )
            yield Problem.at(policy.document, "spec.replay", f"no Job runs it: {remedy}")


def parse_replay(spec: Fields) -> Replay | None:
    """What the policy's `spec` has replayed; None: nothing."""
    if not spec.has("replay"):
        return None
    fields = spec.mapping("replay")
    command = fields.texts("command")
    if fields.raw("command") in (None, []):
        fields.problem("command", "is required: a program in the worker's image that replays histories")
    elif not all(command):
        fields.problem("command", "contains an empty word")
    sample = fields.integer("sample", _SAMPLE, least=1) or _SAMPLE
    if sample > MOST_OF_A_TYPE:
        fields.problem("sample", f"{sample} is too many: at most {MOST_OF_A_TYPE} of each type are allowed")
    before = fields.choice("when", ReplayBefore, ReplayBefore.RAMP)
    within = fields.duration("within", _WITHIN, least=_SHORTEST)
    if within > _LONGEST:
        fields.problem("within", "is longer than 24h")
    replay = Replay(command, Sample(sample, _bytes(fields)), before, within, fields.boolean("inMemory"))
    fields.close()
    return replay


def _bytes(fields: Fields) -> int:
    text = fields.text("maxBytes", _BYTES)
    if not re.search(BYTES, text):
        fields.problem("maxBytes", "is not a number of bytes such as 64Mi")
        return 1
    number = quantity_nanos(text) // _NANO
    if number > MOST_BYTES:
        fields.problem("maxBytes", "is more than 10Gi")
    return number
