"""What holds versions that are no longer current: the workflows that are pinned to them."""

import json
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from twgen.model.analysis import MOST_TYPES
from twgen.model.forms import LINE, WORKFLOW_TYPE
from twgen.model.paths import Path
from twgen.model.record_shapes import Each, Example, Mark
from twgen.model.shapes import Findings, Shape, duration, unchanged
from twgen.model.temporal import VersionStatus
from twgen.model.values import dataclass

LONGEST_INPUT = 10_000
"""Characters of the argument of a signal: it is part of every intent."""
AGES = (timedelta(hours=1), timedelta(days=1), timedelta(days=7), timedelta(days=30))
"""Between the classes of age: the last one is of all that are older."""


@dataclass(frozen=True, slots=True)
class OpenWorkflow:
    """A workflow that has not closed, as visibility lists it."""

    workflow_type: str
    task_queue: str
    started_at: datetime
    is_paused: bool = False
    has_problems: bool = False
    """Its workflow tasks keep failing, as far as the server lists that."""


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What the oldest workflows of a version wait for, of which so many were asked one by one."""

    number: int
    failing: int
    """Their workflow tasks keep failing."""
    waiting_for_child: int


@dataclass(frozen=True, slots=True)
class EndedWorkflow:
    """A workflow that closed lately."""

    workflow_type: str
    lasted: timedelta


@dataclass(frozen=True, slots=True)
class PinnedWorkflows:
    """The open workflows that are pinned to a version, and how others of it ended lately."""

    number: int
    """As many as the server counts."""
    listed: tuple[OpenWorkflow, ...] = ()
    """The newest of them; all, where they are as many."""
    oldest_at: datetime | None = None
    """When the oldest of all started; None: there is none, or it was not found."""
    looked_at: LookedAt = LookedAt(0, 0, 0)
    ended: tuple[EndedWorkflow, ...] = ()
    """The newest of those that closed within the window."""
    older_than: tuple[int, ...] = ()
    """How many are older than each of AGES, where not all are listed."""

    @property
    def are_listed(self) -> bool:
        """All of them are."""
        return len(self.listed) == self.number


@dataclass(frozen=True, slots=True)
class WorkflowGroup:
    """Workflows of one type on one task queue."""

    workflow_type: str
    task_queue: str
    number: int


@dataclass(frozen=True, slots=True)
class VersionInUse:
    """A version that is not current, what holds it, and what it costs."""

    build_id: str
    status: VersionStatus
    number: int
    """Open workflows that are pinned to it."""
    groups: tuple[WorkflowGroup, ...]
    """Most first."""
    grouped: int
    """So many of the workflows are in the groups: fewer than all in a sample of the newest."""
    oldest: timedelta | None
    """The age of the oldest; None: there is none, or nobody knows."""
    ages: tuple[int, ...]
    """How many are of each class of age, the youngest class first."""
    failing: int
    paused: int
    waiting_for_child: int
    looked_at: int
    """Of so many, the oldest, it was asked whether they fail or wait for a child."""
    replicas: int | None
    """None: it has no Deployment, or nobody knows."""
    cpu: float | None
    """Cores that its pods request together; None: nobody knows."""
    memory: int | None
    """Bytes, likewise."""
    ends_within: tuple[timedelta, timedelta] | None
    """In which time it is drained, if its workflows last as those that ended lately; None: not known."""
    unknown_because: str = ""
    """Why it is not known."""


@dataclass(frozen=True, slots=True)
class WorkerInUse:
    """A worker's versions that are held, those of most workflows first."""

    worker: str
    temporal_namespace: str
    versions: tuple[VersionInUse, ...]


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What holds versions at one moment."""

    now: datetime
    window: timedelta
    """The time back from now whose closed workflows tell how long they last."""
    workers: tuple[WorkerInUse, ...]
    unread: tuple[str, ...] = ()
    """Why other workers, or versions of them, are not told of."""


class BatchAction(StrEnum):
    """What ends the workflows of a version that drains, in Temporal's words, or moves them."""

    MOVE = "Move"
    SIGNAL = "Signal"
    CANCEL = "Cancel"
    TERMINATE = "Terminate"


def _read_as_json(value: Any, path: Path, findings: Findings) -> bytes:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    if len(text) > LONGEST_INPUT:
        findings.problem(path, f"is longer than {LONGEST_INPUT} characters")
    return text.encode()


_AS_JSON = Shape(_read_as_json, unchanged, {})


@dataclass(frozen=True, slots=True)
class DrainingAction:
    """Which workflows of a version are to be ended, and how."""

    action: BatchAction
    """Signal: send a signal. Cancel: request cancellation. Move: pin the workflows to the current version.
    Terminate: end them."""
    workflow_types: Annotated[
        tuple[Annotated[str, WORKFLOW_TYPE], ...], Each(noun="type", least=1, most=MOST_TYPES, is_set=True)
    ] = ()
    """The workflow types that it applies to. If absent, it applies to all."""
    older_than: Annotated[timedelta | None, Mark.INTERNAL] = None
    to_build_id: Annotated[str, Mark.INTERNAL] = ""
    """Of a move; empty: to the current version."""
    signal_name: Annotated[str, LINE] = ""
    """The name of the signal. Signal requires it."""
    signal_input: Annotated[bytes | None, _AS_JSON] = None
    """The argument of the signal. If absent, the signal has none."""
    without_replay: bool = False
    """Allows Move without a replay. Nothing then proves that the current version can continue the
    workflows."""

    @property
    def id_text(self) -> str:
        """What the ID of a batch operation for it is made of.

        By its ID, Temporal tells whether it was begun: whatever the names in this program, the text stays.
        """
        action = f"<Ending.{self.action.name}: {self.action.value!r}>"
        return (
            f"(WhatEnds(ending={action}, workflow_types={self.workflow_types!r},"
            f" older_than={self.older_than!r}, to_build_id={self.to_build_id!r},"
            f" signal_name={self.signal_name!r}, signal_input={self.signal_input!r},"
            f" without_replay={self.without_replay!r}),)"
        )

    @property
    def needs_replay(self) -> bool:
        """It is done only once the replay of where the workflows move to has passed."""
        return self.action is BatchAction.MOVE and not self.without_replay


@dataclass(frozen=True, slots=True)
class DrainingEntry:
    """What a policy does to the workflows of a version that drains, once to each."""

    after: Annotated[timedelta, duration(timedelta(seconds=1)), Example("24h")]
    """How long after the version began to drain. It must not be shorter than in the entry above."""
    what: Annotated[DrainingAction, Mark.INLINE]
    allow_termination: bool = field(default=False, compare=False)
    """Must be true for Cancel and Terminate, so that a typo ends no workflows."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """The next turn of an entry that was begun, for the workflows that have started since."""

    at: datetime
    """From when on it may be begun."""
    job_id: str
    started_after: datetime


@dataclass(frozen=True, slots=True)
class ScheduledAction:
    """An entry of a policy for one version that drains, and when its turn is."""

    build_id: str
    what: DrainingAction
    demand: str
    """What tells it from the other entries."""
    job_id: str
    """Of the batch operation that does it while the version drains as it does now."""
    since: datetime
    """Since when the version drains."""
    at: datetime
    """From when on it may be begun, or when it was."""
    is_begun: bool = False
    """It was begun, as far as that was read, and is not begun again."""
    is_announced: bool = False
    """A mark says its job ID, but not that it was begun."""
    workflows: int | None = None
    """So many were meant when it was begun."""
    repeats: int = 0
    """How often it was begun again, for workflows that had started since."""
    repeat: Repeat | None = None
    """When it is begun again; None: not any more."""
    is_next: bool = False
    """It is the first that was not begun."""
    held_by: str = ""
    """Why it cannot be begun, whatever the time; empty: it can be."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch operation of a server, on all workflows that a query finds when it begins."""

    job_id: str
    """The same for the same demand, so that what was begun is not begun again."""
    what: DrainingAction
    query: str


@dataclass(frozen=True, slots=True)
class BatchState:
    """How far a batch operation is."""

    is_running: bool
    has_failed: bool
    total: int
    done: int
    """Workflows that it has done something to."""
    failed: int
    """Workflows that it could do nothing to."""
    started_at: datetime | None
