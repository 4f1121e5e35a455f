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
"""The most characters of a signal's argument. It is limited, because each intent contains it."""
AGES = (timedelta(hours=1), timedelta(days=1), timedelta(days=7), timedelta(days=30))
"""The upper ends of the ranges of ages. One more range has all older workflows."""
_WITHOUT_TRAFFIC = choice(
    *(VersionStatus.CREATED, VersionStatus.INACTIVE, VersionStatus.DRAINING, VersionStatus.DRAINED),
    VersionStatus.UNSPECIFIED,
)


@dataclass(frozen=True, slots=True)
class OpenWorkflow:
    """An open workflow that Temporal's visibility lists."""

    workflow_type: str
    task_queue: str
    started_at: datetime
    is_paused: bool = False
    has_problems: bool = False
    """Whether its workflow tasks keep failing. False also if the server does not report this."""


@dataclass(frozen=True, slots=True)
class Described:
    """The problems of a version's oldest workflows, which twgen described one by one."""

    number: int
    failing: int
    """How many of these workflows have workflow tasks that keep failing."""
    waiting_for_child: int


@dataclass(frozen=True, slots=True)
class EndedWorkflow:
    """A workflow that closed recently."""

    workflow_type: str
    lasted: timedelta


@dataclass(frozen=True, slots=True)
class PinnedWorkflows:
    """The open workflows that are pinned to a version, and the pinned workflows that ended recently."""

    number: int | None
    """The server's count of the open workflows. None if they were not counted."""
    listed: tuple[OpenWorkflow, ...] = ()
    """The newest open workflows, or all of them."""
    oldest_at: datetime | None = None
    """When the oldest open workflow started. None if there is none, or if it was not found."""
    described: Described = Described(0, 0, 0)
    ended: tuple[EndedWorkflow, ...] = ()
    """The newest workflows that closed within the window."""
    older_than: tuple[int, ...] = ()
    """For each of AGES: how many open workflows are older. Empty if all are listed."""

    @property
    def are_listed(self) -> bool:
        """Whether all open workflows are listed."""
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
    """The upper end of the range, in seconds. The range begins at the end of the range before it. Null if
    there is no upper end."""
    number: Annotated[int, FieldName("workflows")]
    """How many workflows there are."""


@dataclass(frozen=True, slots=True)
class VersionInUse:
    """A version that is neither target, current nor ramping."""

    build_id: str
    """The build ID of the version."""
    status: Annotated[VersionStatus, _WITHOUT_TRAFFIC]
    """The status in Temporal, corrected by the routing and the drainage."""
    number: Annotated[int | None, FieldName("workflows")]
    """The number of open workflows that are pinned to it, as the server counts them. Null if not counted."""
    groups: tuple[WorkflowGroup, ...]
    """The open workflows by type and task queue. The largest group comes first."""
    grouped: int
    """How many workflows the groups contain. If these are not all workflows, they are the newest."""
    oldest: Annotated[timedelta | None, FieldName("oldestSeconds"), WHOLE_SECONDS]
    """The age of the oldest workflow. Null if there is no workflow, or if twgen did not find the oldest."""
    ages: Annotated[tuple[AgeRange, ...] | None, Each(least=len(AGES) + 1, most=len(AGES) + 1)]
    """The workflows by age, youngest first. Null if a snapshot has no list of them."""
    failing: int
    """How many workflows have workflow tasks that keep failing."""
    paused: int
    """How many workflows are paused."""
    waiting_for_child: int
    """How many of the inspected workflows wait for a child workflow."""
    looked_at: int
    """How many of the oldest workflows twgen inspected one by one."""
    replicas: int | None
    """The replicas of its Deployment. Null if it has no Deployment, or if the number is unknown."""
    cpu: float | None
    """The CPU cores that its pods request in total. Null if unknown."""
    memory: Annotated[int | None, FieldName("memoryBytes"), printed({"type": "integer"})]
    """The bytes of memory that its pods request in total. Null if unknown."""
    ends_within: Annotated[
        tuple[timedelta, timedelta] | None,
        FieldName("drainedWithinSeconds"),
        listing(WHOLE_SECONDS, least=2, most=2),
    ]
    """The shortest and the longest estimated time until it is drained, in seconds. The estimate assumes that
    its workflows last as long as workflows that ended recently. Null if unknown."""
    unknown_because: str = ""
    """Why the estimate is missing. Empty if it is not missing, or if no workflow is open."""


@dataclass(frozen=True, slots=True)
class WorkerInUse:
    """One worker."""

    worker: str
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    temporal_namespace: str
    """The Temporal namespace of the worker."""
    versions: tuple[VersionInUse, ...]
    """The versions that workflows keep running. The version with most workflows comes first."""


@dataclass(frozen=True, slots=True)
class DrainReport:
    """The workflows that keep versions running which are no longer current."""

    now: datetime
    """The time of the report."""
    window: Annotated[timedelta, FieldName("windowSeconds"), WHOLE_SECONDS]
    """The estimate uses workflows that ended within this many seconds."""
    workers: tuple[WorkerInUse, ...]
    """The workers, sorted by name."""
    unread: tuple[str, ...] = ()
    """The reasons why other workers or versions are missing from the report. The exit code is then 3."""


class BatchAction(StrEnum):
    """An action that ends or moves the workflows of a draining version. Its names are Temporal's."""

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
    """An action on a version's workflows, and the workflows that it applies to."""

    action: BatchAction
    """Signal: send a signal. Cancel: request cancellation. Move: pin the workflows to the current version.
    Terminate: end them."""
    workflow_types: Annotated[
        tuple[Annotated[str, WORKFLOW_TYPE], ...], Each(noun="type", least=1, most=MOST_TYPES, is_set=True)
    ] = ()
    """The workflow types that get the action. If absent, all types get it."""
    older_than: Annotated[timedelta | None, FieldRule.INTERNAL] = None
    to_build_id: Annotated[str, FieldRule.INTERNAL] = ""
    """The build ID to move the workflows to. Empty means the current version."""
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

        twgen finds a batch operation by its ID. So this text must never change, even if names in the code do.
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
        """Whether the action must wait until the workflows' new version has passed its replay."""
        return self.action is BatchAction.MOVE and not self.without_replay


@dataclass(frozen=True, slots=True)
class DrainingEntry:
    """An entry of a policy's `draining`: an action that each workflow of a draining version gets once."""

    after: Annotated[timedelta, duration(timedelta(seconds=1)), Example("24h")]
    """How long the version must have been draining. The time must not be shorter than in the entry above."""
    what: Annotated[DrainingAction, FieldRule.INLINE]
    allow_termination: bool = field(default=False, compare=False)
    """Must be true for Cancel and Terminate, so that a typing error ends no workflows."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """The next run of an entry that has begun. It is for workflows that started after the last run."""

    at: datetime
    """The earliest time of the run."""
    job_id: str
    started_after: datetime


@dataclass(frozen=True, slots=True)
class ScheduledAction:
    """An entry of the policy's `draining` for one draining version, with the time when it is due."""

    build_id: str
    """The build ID of the version."""
    what: DrainingAction
    demand: str
    """A text that identifies the entry."""
    job_id: str
    """The job ID of its batch operation. If the version drains a second time, the ID differs."""
    since: datetime
    """When the version began to drain."""
    at: datetime
    """When it began, or the earliest time when it may begin."""
    is_begun: Annotated[bool, FieldName("begun")] = False
    """Whether it has begun. It begins once while the version drains."""
    is_announced: bool = False
    """Whether the version's metadata contains its job ID, but not that it has begun."""
    workflows: int | None = None
    """How many workflows it applied to when it began. Null if it has not begun, or if this is unknown."""
    repeats: int = 0
    """How often it began again, for workflows that started later."""
    repeat: Repeat | None = None
    """Its next run, or None if it does not run again."""
    is_next: bool = False
    """Whether it is the first entry that has not begun."""
    held_by: str = ""
    """Why it cannot begin although it is due. Empty if it can begin."""

    @property
    def action(self) -> BatchAction:
        """The action on the workflows."""
        return self.what.action

    @property
    def workflow_types(self) -> tuple[str, ...]:
        """The workflow types that it applies to. Empty means all types."""
        return self.what.workflow_types


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch operation on a server. It applies to all workflows that its query finds at the start."""

    job_id: str
    """The job ID. The same entry always has the same ID, so that no operation starts twice."""
    what: DrainingAction
    query: str


@dataclass(frozen=True, slots=True)
class BatchState:
    """The progress of a batch operation."""

    is_running: bool
    has_failed: bool
    total: int
    done: int
    """The number of workflows on which the action succeeded."""
    failed: int
    """The number of workflows on which the action failed."""
    started_at: datetime | None
