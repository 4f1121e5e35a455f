"""Histories of workflows that a new version has to replay, or may have to."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

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

    of_each_type: int
    """Histories of each workflow type; more where more versions than that hold open ones."""
    most_bytes: int
    """Of all of them together, as they are written."""


class ReplayBefore(StrEnum):
    """What waits for a replay."""

    RAMP = "BeforeRamp"
    MOVE = "BeforeMove"
    BOTH = "Both"


@dataclass(frozen=True, slots=True)
class Replay:
    """How a version replays histories before it takes traffic, or workflows of older versions."""

    command: tuple[str, ...]
    """Of the worker's own image; it ends with 0 where all were replayed, and with 1 where one was not."""
    sample: Sample
    before: ReplayBefore = ReplayBefore.RAMP
    within: timedelta = timedelta(hours=1)
    """One that takes longer has failed."""
    in_memory: bool = False
    """The histories are kept in the memory of the Pod, and not on the disk of its node."""

    @property
    def upgrading_only(self) -> bool:
        """What is pinned to an older version never runs on this one, and is not replayed."""
        return self.before is ReplayBefore.RAMP


class ReplayState(StrEnum):
    """How far the replay of a version is."""

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
