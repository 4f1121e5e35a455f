"""Read `replay` of a RolloutPolicy: the histories to replay before a version takes traffic or workflows."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from twgen.model.histories import Replay
from twgen.model.paths import Path
from twgen.model.problem import Problem
from twgen.model.shapes import TEXT, Findings, Shape, unchanged
from twgen.model.spec import WorkerSpec
from twgen.specs.declared import spec_shape
from twgen.versioning.quantities import quantity_nanos

BYTES = "^[1-9][0-9]{0,9}(k|M|G|Ki|Mi|Gi)?$(?!\\n)"
"""A whole number of bytes, with the common suffixes of a quantity."""
_MOST_BYTES = 10 * 2**30
"""The largest folder that every node has room for."""


def _read_bytes(value: Any, path: Path, findings: Findings) -> int | None:
    text = TEXT.read(value, path, findings)
    if text is None:
        return None
    if not re.search(BYTES, text):
        findings.problem(path, "is not a number of bytes such as 64Mi")
        return None
    number = quantity_nanos(text) // 10**9
    if number > _MOST_BYTES:
        findings.problem(path, "is more than 10Gi")
    return number


REPLAY = spec_shape(Replay, fields={"most_bytes": Shape(_read_bytes, unchanged, {})})


def replays_without_image(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A warning for each policy whose replay no Job runs, because rollout.image is not set."""
    for policy in {id(worker.policy.document): worker.policy for worker in workers}.values():
        if policy.replay:
            remedy = (
                "set rollout.image in the operator's configuration, or the rollouts that need it will wait"
            )
            yield Problem.at(policy.document, "spec.replay", f"no Job runs it: {remedy}")
