"""The replay of workflow histories on a new version: its settings, its sample and its state."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, NamedTuple

from twgen.model.record_shapes import Each, Hint, Mark, Name, Named
from twgen.model.shapes import duration, whole_number
from twgen.model.values import dataclass


class Recorded(NamedTuple):
    """A run of a workflow whose history a server keeps."""

    workflow_type: str
    workflow_id: str
    run_id: str
    is_open: bool
    build_id: str = ""
    """The version that it is pinned to while it is open; empty: to none."""


class Sample(NamedTuple):
    """How much is taken to be replayed."""

    of_each_type: Annotated[int, Named("sample"), whole_number(1, 10_000)] = 50
    """How many histories of each workflow type, open workflows first."""
    most_bytes: Annotated[int, Named("maxBytes")] = 64 * 2**20
    """The total size of the histories."""


class ReplayBefore(StrEnum):
    """What waits for a replay."""

    RAMP = "BeforeRamp"
    MOVE = "BeforeMove"
    BOTH = "Both"


@dataclass(frozen=True, slots=True)
class Replay:
    """How a version replays histories before it takes traffic, or workflows of older versions."""

    command: Annotated[
        tuple[Name, ...],
        Each(least=1),
        Hint("a program in the worker's image that replays histories"),
    ]
    """The command to run in the worker's image. /histories in it is the folder with the histories. It must
    exit with 0 if all were replayed, and with 1 if one was not."""
    sample: Annotated[Sample, Mark.INLINE] = Sample()
    before: Annotated[ReplayBefore, Named("when")] = ReplayBefore.RAMP
    """What waits for the replay. BeforeRamp: the first share of traffic. BeforeMove: the Move action of
    `draining`. Both: both."""
    within: Annotated[timedelta, duration(timedelta(seconds=10), timedelta(hours=24))] = timedelta(hours=1)
    """The time limit, from 10s to 24h. If it takes longer, the replay has failed."""
    in_memory: bool = False
    """Keeps the histories in the memory of the Pod instead of on the disk of its node. They count towards the
    Pod's memory."""

    @property
    def upgrading_only(self) -> bool:
        """Workflows that are pinned to an older version never run on this one, so they are not replayed."""
        return self.before is ReplayBefore.RAMP


class ReplayState(StrEnum):
    """The state of the replay of a version."""

    MISSING = "Missing"
    RUNNING = "Running"
    PASSED = "Passed"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """The replay of the target, by its Job."""

    state: ReplayState
    """The status."""
    job: str = ""
    """The name of its Job. Empty: there is no Job."""
    because: str = ""
    """Why it failed, or why its state is not known."""
    created_at: datetime | None = None
    """When its Job was created. Later histories were not replayed."""
