"""What holds versions that are no longer current: the workflows that are pinned to them."""

from datetime import datetime, timedelta
from enum import StrEnum

from twgen.model.temporal import VersionStatus
from twgen.model.values import dataclass

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
class HeldVersion:
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
class HeldWorker:
    """A worker's versions that are held, those of most workflows first."""

    worker: str
    temporal_namespace: str
    versions: tuple[HeldVersion, ...]


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What holds versions at one moment."""

    now: datetime
    window: timedelta
    """The time back from now whose closed workflows tell how long they last."""
    workers: tuple[HeldWorker, ...]
    unread: tuple[str, ...] = ()
    """Why other workers, or versions of them, are not told of."""


class Ending(StrEnum):
    """What ends the workflows of a version that drains, in Temporal's words, or moves them."""

    MOVE = "Move"
    SIGNAL = "Signal"
    CANCEL = "Cancel"
    TERMINATE = "Terminate"


@dataclass(frozen=True, slots=True)
class WhatEnds:
    """Which workflows of a version are to be ended, and how."""

    ending: Ending
    workflow_types: tuple[str, ...] = ()
    """Empty: those of every type."""
    older_than: timedelta | None = None
    to_build_id: str = ""
    """Of a move; empty: to the current version."""
    signal_name: str = ""
    signal_input: bytes | None = None
    """As JSON; None: without."""
    without_replay: bool = False
    """Of a move: though nothing has replayed them there."""

    @property
    def needs_replay(self) -> bool:
        """It is done only once the replay of where the workflows move to has passed."""
        return self.ending is Ending.MOVE and not self.without_replay


@dataclass(frozen=True, slots=True)
class DrainingEntry:
    """What a policy does to the workflows of a version that drains, once to each."""

    after: timedelta
    """Since it began to drain."""
    what: WhatEnds


@dataclass(frozen=True, slots=True)
class Repeat:
    """The next turn of an entry that was begun, for the workflows that have started since."""

    at: datetime
    """From when on it may be begun."""
    job_id: str
    started_after: datetime


@dataclass(frozen=True, slots=True)
class ScheduledEnding:
    """An entry of a policy for one version that drains, and when its turn is."""

    build_id: str
    what: WhatEnds
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
    what: WhatEnds
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
