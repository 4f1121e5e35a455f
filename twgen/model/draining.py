"""The pinned workflows that keep old versions running."""

import json
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from twgen.model.analysis import MOST_TYPES
from twgen.model.forms import LINE, WORKFLOW_TYPE
from twgen.model.paths import Path
from twgen.model.record_shapes import Each, Example, FieldName, FieldRule
from twgen.model.shapes import (
    WHOLE_SECONDS,
    Findings,
    Shape,
    choice,
    duration,
    listing,
    printed,
    whole_number,
)
from twgen.model.temporal import VersionStatus
from twgen.model.values import dataclass

LONGEST_INPUT = 10_000
"""The longest argument of a signal, in characters: each intent contains it."""
AGES = (timedelta(hours=1), timedelta(days=1), timedelta(days=7), timedelta(days=30))
"""The limits between the ranges of ages. One more range has all older workflows."""
_WITHOUT_TRAFFIC = choice(
    *(VersionStatus.CREATED, VersionStatus.INACTIVE, VersionStatus.DRAINING, VersionStatus.DRAINED),
    VersionStatus.UNSPECIFIED,
)


@dataclass(frozen=True, slots=True)
class OpenWorkflow:
    """An open workflow in visibility."""

    workflow_type: str
    task_queue: str
    started_at: datetime
    is_paused: bool = False
    has_problems: bool = False
    """Its workflow tasks keep failing. False also if the server does not report this."""


@dataclass(frozen=True, slots=True)
class Described:
    """The problems of a version's oldest workflows, which were described one by one."""

    number: int
    failing: int
    """The workflows whose tasks keep failing."""
    waiting_for_child: int


@dataclass(frozen=True, slots=True)
class EndedWorkflow:
    """A workflow that closed recently."""

    workflow_type: str
    lasted: timedelta


@dataclass(frozen=True, slots=True)
class PinnedWorkflows:
    """The open workflows that are pinned to a version, and those that ended recently."""

    number: int | None
    """The server's count of the open workflows. None: they were not counted."""
    listed: tuple[OpenWorkflow, ...] = ()
    """The newest open workflows, or all of them."""
    oldest_at: datetime | None = None
    """When the oldest open workflow started. None: there is none, or it was not found."""
    described: Described = Described(0, 0, 0)
    ended: tuple[EndedWorkflow, ...] = ()
    """The newest workflows that closed within the window."""
    older_than: tuple[int, ...] = ()
    """How many open workflows are older than each of AGES, if not all are listed."""

    @property
    def are_listed(self) -> bool:
        """All open workflows are listed."""
        return len(self.listed) == self.number


@dataclass(frozen=True, slots=True)
class WorkflowGroup:
    """Workflows of one type on one task queue."""

    workflow_type: str
    """The workflow type."""
    task_queue: str
    """The task queue."""
    number: Annotated[int, FieldName("workflows"), whole_number(1)]
    """How many workflows there are."""


class AgeRange(NamedTuple):
    """The workflows of one range of ages."""

    below: Annotated[timedelta | None, FieldName("belowSeconds"), WHOLE_SECONDS]
    """The upper end of the range; the range before ends where this one begins. Null: no limit."""
    number: Annotated[int, FieldName("workflows")]
    """How many workflows there are."""


@dataclass(frozen=True, slots=True)
class VersionInUse:
    """A version that is neither target, current nor ramping."""

    build_id: str
    """The build ID of the version."""
    status: Annotated[VersionStatus, _WITHOUT_TRAFFIC]
    """The status in Temporal, checked against routing and drainage."""
    number: Annotated[int | None, FieldName("workflows")]
    """The number of open workflows that are pinned to it, as the server counts them. Null: not counted."""
    groups: tuple[WorkflowGroup, ...]
    """The open workflows by type and task queue. The largest group comes first."""
    grouped: int
    """How many workflows the groups contain. If that is fewer than all, they contain the newest."""
    oldest: Annotated[timedelta | None, FieldName("oldestSeconds"), WHOLE_SECONDS]
    """The age of the oldest workflow. Null: there is no workflow, or twgen did not find the oldest."""
    ages: Annotated[tuple[AgeRange, ...] | None, Each(least=len(AGES) + 1, most=len(AGES) + 1)]
    """The workflows by age, youngest first. Null: a snapshot has no list of them."""
    failing: int
    """How many workflows have workflow tasks that keep failing."""
    paused: int
    """How many workflows are paused."""
    waiting_for_child: int
    """How many of the inspected workflows wait for a child workflow."""
    looked_at: int
    """How many of the oldest workflows were inspected one by one."""
    replicas: int | None
    """The replicas of its Deployment. Null: it has no Deployment, or the number is unknown."""
    cpu: float | None
    """The CPU cores that its pods request in total. Null: unknown."""
    memory: Annotated[int | None, FieldName("memoryBytes"), printed({"type": "integer"})]
    """The bytes of memory that its pods request in total. Null: unknown."""
    ends_within: Annotated[
        tuple[timedelta, timedelta] | None,
        FieldName("drainedWithinSeconds"),
        listing(WHOLE_SECONDS, least=2, most=2),
    ]
    """The shortest and the longest estimated time until it is drained, in seconds, if its workflows last as
    long as the workflows that ended recently. Null: unknown."""
    unknown_because: str = ""
    """Why the estimate is missing. Empty: it is not missing, or no workflow is open."""


@dataclass(frozen=True, slots=True)
class WorkerInUse:
    """One worker."""

    worker: str
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    temporal_namespace: str
    """The Temporal namespace of the worker."""
    versions: tuple[VersionInUse, ...]
    """The versions that workflows hold, those with most workflows first."""


@dataclass(frozen=True, slots=True)
class DrainReport:
    """The workflows that hold versions which are no longer current."""

    now: datetime
    """The time of the report."""
    window: Annotated[timedelta, FieldName("windowSeconds"), WHOLE_SECONDS]
    """The estimate uses workflows that ended within this many seconds."""
    workers: tuple[WorkerInUse, ...]
    """The workers, sorted by name."""
    unread: tuple[str, ...] = ()
    """The reasons why other workers or versions are missing from the report. The exit code is then 3."""


class BatchAction(StrEnum):
    """An action on the workflows of a draining version: ends or moves them, in Temporal's words."""

    MOVE = "Move"
    SIGNAL = "Signal"
    CANCEL = "Cancel"
    TERMINATE = "Terminate"


def _read_as_json(value: Any, path: Path, findings: Findings) -> bytes:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    if len(text) > LONGEST_INPUT:
        findings.problem(path, f"is longer than {LONGEST_INPUT} characters")
    return text.encode()


_AS_JSON = Shape(_read_as_json)


@dataclass(frozen=True, slots=True)
class DrainingAction:
    """The selection of a version's workflows, and the action on them."""

    action: BatchAction
    """Signal: send a signal. Cancel: request cancellation. Move: pin the workflows to the current version.
    Terminate: end them."""
    workflow_types: Annotated[
        tuple[Annotated[str, WORKFLOW_TYPE], ...], Each(noun="type", least=1, most=MOST_TYPES, is_set=True)
    ] = ()
    """The workflow types that get the action. If absent, all types get it."""
    older_than: Annotated[timedelta | None, FieldRule.INTERNAL] = None
    to_build_id: Annotated[str, FieldRule.INTERNAL] = ""
    """The target of a move. Empty: the current version."""
    signal_name: Annotated[str, LINE] = ""
    """The name of the signal. Signal requires it."""
    signal_input: Annotated[bytes | None, _AS_JSON] = None
    """The argument of the signal. If absent, the signal has none."""
    without_replay: bool = False
    """Allows Move without a replay. Nothing then proves that the current version can continue the
    workflows."""

    @property
    def id_text(self) -> str:
        """The text from which the ID of its batch operation is made.

        Temporal finds a batch operation by its ID, so this text must never change, whatever the names here.
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
        """The action must wait until the new version of the workflows has passed its replay."""
        return self.action is BatchAction.MOVE and not self.without_replay


@dataclass(frozen=True, slots=True)
class DrainingEntry:
    """A policy's action on the workflows of a draining version, once on each workflow."""

    after: Annotated[timedelta, duration(timedelta(seconds=1)), Example("24h")]
    """The time after the version began to drain. It must not be shorter than in the entry above."""
    what: Annotated[DrainingAction, FieldRule.INLINE]
    allow_termination: bool = field(default=False, compare=False)
    """Must be true for Cancel and Terminate, so that a typo ends no workflows."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """The next run of an entry that has begun, for workflows that started later."""

    at: datetime
    """The earliest time of the run."""
    job_id: str
    started_after: datetime


@dataclass(frozen=True, slots=True)
class ScheduledAction:
    """An action on the open workflows of a draining version.

    It is an entry of the worker's policy, with the time at which it is due.
    """

    build_id: str
    """The build ID of the version."""
    what: DrainingAction
    demand: str
    """A text that identifies the entry."""
    job_id: str
    """The ID of its batch operation for this draining of the version."""
    since: datetime
    """When the version began to drain."""
    at: datetime
    """When it began, or the earliest time at which it may begin."""
    is_begun: Annotated[bool, FieldName("begun")] = False
    """Whether it has begun. It begins once while the version drains."""
    is_announced: bool = False
    """A mark contains its job ID, but not that it has begun."""
    workflows: int | None = None
    """How many workflows it applied to when it began. Null: it has not begun, or the number is not known."""
    repeats: int = 0
    """How often it began again, for workflows that started later."""
    repeat: Repeat | None = None
    """Its next run. None: it does not run again."""
    is_next: bool = False
    """It is the first entry that has not begun."""
    held_by: str = ""
    """Why it cannot begin, even when its time has come. Empty: it can."""

    @property
    def action(self) -> BatchAction:
        """The action on the workflows."""
        return self.what.action

    @property
    def workflow_types(self) -> tuple[str, ...]:
        """The workflow types that it applies to. Empty: all."""
        return self.what.workflow_types


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch operation on a server, on all workflows that its query finds at the start."""

    job_id: str
    """The ID. It is the same for the same demand, so that no operation begins twice."""
    what: DrainingAction
    query: str


@dataclass(frozen=True, slots=True)
class BatchState:
    """The progress of a batch operation."""

    is_running: bool
    has_failed: bool
    total: int
    done: int
    """Workflows on which the action succeeded."""
    failed: int
    """Workflows on which the action failed."""
    started_at: datetime | None
