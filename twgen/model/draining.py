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
"""The maximum length of a signal's argument. The length is limited, because each intent contains the
argument."""
AGES = (timedelta(hours=1), timedelta(days=1), timedelta(days=7), timedelta(days=30))
"""The upper bounds of the age ranges. An additional range contains all older workflows."""
_WITHOUT_TRAFFIC = choice(
    *(VersionStatus.CREATED, VersionStatus.INACTIVE, VersionStatus.DRAINING, VersionStatus.DRAINED),
    VersionStatus.UNSPECIFIED,
)


@dataclass(frozen=True, slots=True)
class OpenWorkflow:
    """An open workflow in Temporal's visibility store."""

    workflow_type: str
    task_queue: str
    started_at: datetime
    is_paused: bool = False
    has_problems: bool = False
    """Whether the workflow's tasks keep failing. False if the server does not report such problems."""


@dataclass(frozen=True, slots=True)
class Described:
    """The problems of a version's oldest workflows, which twgen inspected one by one."""

    number: int
    failing: int
    """The number of these workflows whose workflow tasks keep failing."""
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
    """The number of open workflows, as counted by the server. None if the workflows were not counted."""
    listed: tuple[OpenWorkflow, ...] = ()
    """All open workflows, or only the newest."""
    oldest_at: datetime | None = None
    """When the oldest open workflow started. None if no workflow is open, or if the oldest was not found."""
    described: Described = Described(0, 0, 0)
    ended: tuple[EndedWorkflow, ...] = ()
    """The workflows that closed most recently, within the report's time window."""
    older_than: tuple[int, ...] = ()
    """The number of open workflows that are older than each age in AGES. Empty if all workflows are
    listed."""

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
    """The number of workflows in the group."""


class AgeRange(NamedTuple):
    """The workflows in one age range."""

    below: Annotated[timedelta | None, FieldName("belowSeconds"), WHOLE_SECONDS]
    """The upper bound of the age range, in seconds. The range begins at the upper bound of the previous
    range. Null if there is no upper bound."""
    number: Annotated[int, FieldName("workflows")]
    """The number of workflows in the range."""


@dataclass(frozen=True, slots=True)
class VersionInUse:
    """A version that is not the target, the current version or the ramping version."""

    build_id: str
    """The build ID of the version."""
    status: Annotated[VersionStatus, _WITHOUT_TRAFFIC]
    """The version's status in Temporal, corrected for the routing and the drainage status."""
    number: Annotated[int | None, FieldName("workflows")]
    """The number of open workflows that are pinned to the version. Null if the server did not count them."""
    groups: tuple[WorkflowGroup, ...]
    """The open workflows by type and task queue. The largest group comes first."""
    grouped: int
    """The number of workflows in the groups. If the groups do not contain all workflows, they contain only
    the newest."""
    oldest: Annotated[timedelta | None, FieldName("oldestSeconds"), WHOLE_SECONDS]
    """The age of the oldest workflow. Null if no workflow is open, or if twgen did not find the oldest."""
    ages: Annotated[tuple[AgeRange, ...] | None, Each(least=len(AGES) + 1, most=len(AGES) + 1)]
    """The workflows by age range, youngest first. Null if a snapshot does not list the workflows."""
    failing: int
    """The number of workflows whose workflow tasks keep failing."""
    paused: int
    """The number of paused workflows."""
    waiting_for_child: int
    """The number of inspected workflows that are waiting for a child workflow."""
    looked_at: int
    """The number of oldest workflows that twgen inspected one by one."""
    replicas: int | None
    """The replicas of the version's Deployment. Null if there is no Deployment, or if the number is
    unknown."""
    cpu: float | None
    """The total CPU request of the version's pods, in cores. Null if unknown."""
    memory: Annotated[int | None, FieldName("memoryBytes"), printed({"type": "integer"})]
    """The total memory request of the version's pods, in bytes. Null if unknown."""
    ends_within: Annotated[
        tuple[timedelta, timedelta] | None,
        FieldName("drainedWithinSeconds"),
        listing(WHOLE_SECONDS, least=2, most=2),
    ]
    """The shortest and the longest estimated time until the version is drained, in seconds. The estimate
    assumes that open workflows last as long as workflows that ended recently. Null if unknown."""
    unknown_because: str = ""
    """Why there is no estimate. Empty if there is an estimate, or if no workflow is open."""


@dataclass(frozen=True, slots=True)
class WorkerInUse:
    """One worker."""

    worker: str
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    temporal_namespace: str
    """The Temporal namespace of the worker."""
    versions: tuple[VersionInUse, ...]
    """The versions that workflows keep running. The version with the most workflows comes first."""


@dataclass(frozen=True, slots=True)
class DrainReport:
    """The workflows that keep old versions running."""

    now: datetime
    """The time of the report."""
    window: Annotated[timedelta, FieldName("windowSeconds"), WHOLE_SECONDS]
    """The time window of the estimate, in seconds. The estimate uses workflows that ended in this window."""
    workers: tuple[WorkerInUse, ...]
    """The workers, sorted by name."""
    unread: tuple[str, ...] = ()
    """The reasons why workers or versions are missing from the report. If any are missing, the exit code is
    3."""


class BatchAction(StrEnum):
    """An action on the workflows of a draining version. The names are Temporal's."""

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
    """`Signal` sends a signal. `Cancel` requests cancellation. `Move` pins the workflows to the current
    version. `Terminate` terminates the workflows."""
    workflow_types: Annotated[
        tuple[Annotated[str, WORKFLOW_TYPE], ...], Each(noun="type", least=1, most=MOST_TYPES, is_set=True)
    ] = ()
    """The workflow types that the action applies to. If absent, the action applies to all types."""
    older_than: Annotated[timedelta | None, FieldRule.INTERNAL] = None
    to_build_id: Annotated[str, FieldRule.INTERNAL] = ""
    """The build ID to move the workflows to. Empty means the current version."""
    signal_name: Annotated[str, LINE] = ""
    """The name of the signal. Signal requires it."""
    signal_input: Annotated[bytes | None, _AS_JSON] = None
    """The argument of the signal. If absent, the signal has no argument."""
    without_replay: bool = False
    """Allows `Move` without a replay. Without a replay, the current version might be unable to continue the
    workflows."""

    @property
    def id_text(self) -> str:
        """The text from which the ID of the action's batch operation is derived.

        twgen finds a batch operation by this ID. Therefore, the text must never change, even if names in the
        code change.
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
    """An entry in a policy's `draining` list: an action on the workflows of a draining version."""

    after: Annotated[timedelta, duration(timedelta(seconds=1)), Example("24h")]
    """How long the version must have been draining. This time must not be shorter than in the previous
    entry."""
    what: Annotated[DrainingAction, FieldRule.INLINE]
    allow_termination: bool = field(default=False, compare=False)
    """Must be true for `Cancel` and `Terminate`, so that a typing error cannot end workflows."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """The next run of an action, for the workflows that started after the last run."""

    at: datetime
    """The earliest time of the run."""
    job_id: str
    started_after: datetime


@dataclass(frozen=True, slots=True)
class ScheduledAction:
    """An entry in the policy's `draining` list that is scheduled for one draining version."""

    build_id: str
    """The build ID of the version."""
    what: DrainingAction
    demand: str
    """A text that identifies the policy entry."""
    job_id: str
    """The job ID of the batch operation. If the version drains a second time, the job ID is different."""
    since: datetime
    """When the version began to drain."""
    at: datetime
    """When the action began, or the earliest time when the action can begin."""
    is_begun: Annotated[bool, FieldName("begun")] = False
    """Whether the action has begun. An action begins once each time the version drains."""
    is_announced: bool = False
    """Whether the version's metadata contains the job ID, but no record that the action has begun."""
    workflows: int | None = None
    """The number of workflows that the action applied to when it began. Null before that, or if unknown."""
    repeats: int = 0
    """How often the action ran again, for workflows that started later."""
    repeat: Repeat | None = None
    """The next run of the action, or None if the action does not run again."""
    is_next: bool = False
    """Whether this is the version's first entry that has not begun."""
    held_by: str = ""
    """Why the action cannot begin although it is due. Empty if the action can begin."""

    @property
    def action(self) -> BatchAction:
        """The action on the workflows."""
        return self.what.action

    @property
    def workflow_types(self) -> tuple[str, ...]:
        """The workflow types that the action applies to. Empty means all types."""
        return self.what.workflow_types


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch operation in Temporal. It applies to all workflows that match its query at the start."""

    job_id: str
    """The job ID. An entry always has the same job ID, so that no batch operation starts twice."""
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
