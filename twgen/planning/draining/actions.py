"""The actions on workflows of draining versions: when each action is due, and its batch operation."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from twgen.errors import NegativeAnswer
from twgen.model.draining import Batch, BatchAction, DrainingAction, Repeat, ScheduledAction
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import Version, VersionStatus, WorkerDeployment
from twgen.model.times import FOREVER, format_time, later, parse_time
from twgen.planning.interventions import refuse_other_manager
from twgen.planning.ownership import managed_by
from twgen.planning.routing.gates import why_not_moved
from twgen.planning.routing.target import Target
from twgen.planning.version_status import HAD_TRAFFIC, UNREGISTERED, is_retired, status_of
from twgen.versioning.names import MarkKey

_SAME_TIME = timedelta(minutes=1)
"""A server's next response may report the same moment a few milliseconds earlier or later."""
_REPEATED = {BatchAction.CANCEL, BatchAction.TERMINATE}
"""The actions that are repeated. A workflow is signaled only once, even if it continues as new. A move is not
repeated, because it needs a new replay."""
REPEATED_AFTER = timedelta(days=1)
"""The time between two runs of a policy entry."""
MOST_REPEATS = 7
"""The maximum number of repeats of a policy entry, for workflows that started later."""
_LISTED_LATE = timedelta(minutes=1)
"""How late a server may list a new workflow. Until then, the query of a batch operation misses the workflow.
"""


def schedules(
    spec: WorkerSpec, temporal: WorkerDeployment | None, now: datetime
) -> dict[str, tuple[ScheduledAction, ...]]:
    """The policy's actions on the open workflows of each draining version, in order, by build ID."""
    if not spec.policy.draining or not temporal:
        return {}
    by_build_id = {
        version.build_id: tuple(_without_repeated_twice(list(_schedule(spec, version, now))))
        for version in temporal.versions
        if status_of(version.build_id, version, temporal) is VersionStatus.DRAINING
        and (version.build_id != spec.build_id or is_retired(version, temporal))
    }
    return {build_id: schedule for build_id, schedule in by_build_id.items() if schedule}


def planned_actions(target: Target) -> tuple[ScheduledAction, ...]:
    """The planned actions on all versions.

    If anything other than time delays an action, `held_by` says why.
    """
    planned, why_none = [], _why_nothing_ends(target)
    for scheduled in chain.from_iterable(schedules(target.spec, target.temporal, target.now).values()):
        held_by = why_none if scheduled.is_next else ""
        if scheduled.what.needs_replay and not scheduled.is_begun:
            held_by = held_by or why_not_moved(target, target.current or "")
        planned.append(replace(scheduled, held_by=held_by))
    return tuple(planned)


def settled_until(target: Target) -> dict[str, datetime]:
    """The time of the next repeat of each started entry, by job ID."""
    return {
        scheduled.job_id: scheduled.repeat.at if scheduled.repeat else FOREVER
        for schedule in schedules(target.spec, target.temporal, target.now).values()
        for scheduled in schedule
        if scheduled.is_begun
    }


def old_enough(spec: WorkerSpec, temporal: WorkerDeployment | None, now: datetime) -> frozenset[str]:
    """The job IDs of all entries whose `after` has passed, whether they were started or not."""
    return frozenset(
        scheduled.job_id
        for schedule in schedules(spec, temporal, now).values()
        for scheduled, entry in zip(schedule, spec.policy.draining, strict=True)
        if later(scheduled.since, entry.after) <= now
    )


def may_end_workflows(target: Target) -> bool:
    """Whether twgen may end workflows: it manages the worker, no version ramps, and nothing is paused."""
    return target.is_ours and not _why_nothing_ends(target)


def _why_nothing_ends(target: Target) -> str:
    """Why `twgen tick` must not end workflows now, or empty if no reason is known."""
    manager, rollout = target.temporal.manager_identity, target.world.rollout
    # without an identity in the policy, the caller may be a person, whose identity is not tick's
    if not manager or (target.spec.policy.identity and manager != target.identity):
        return managed_by(manager)
    if target.temporal.routing.ramping:
        return "a version ramps"
    if rollout.is_paused:
        return "its intent has the annotation twgen.io/paused"
    if target.is_paused and not target.is_retired:
        return "its rollout is paused"
    return "an earlier rollout has not ended" if rollout.is_superseded or rollout.older_pods else ""


def due_actions(target: Target) -> tuple[ScheduledAction, ...]:
    """The actions to start now, at most one for each version whose metadata was read.

    An entry that was started earlier can be due again, for workflows that have started since then.
    """
    if not may_end_workflows(target):
        return ()
    read = {version.build_id for version in target.temporal.versions if version.metadata is not None}
    due: dict[str, ScheduledAction] = {}
    for scheduled in sorted(planned_actions(target), key=attrgetter("is_begun")):
        if scheduled.build_id in read and is_due(scheduled, target.now):
            due.setdefault(scheduled.build_id, scheduled)
    return tuple(due.values())


def is_due(scheduled: ScheduledAction, now: datetime) -> bool:
    """Whether it is time to start or to repeat this entry."""
    if scheduled.is_begun:
        return scheduled.repeat is not None and scheduled.repeat.at <= now
    return scheduled.is_next and scheduled.at <= now and not scheduled.held_by


def scheduled_as(target: Target, build_id: str, action: DrainingAction) -> ScheduledAction | None:
    """The version's next entry if its action is the action that a person requests, otherwise None."""
    if action.older_than or action.to_build_id:
        return None
    schedule = schedules(target.spec, target.temporal, target.now).get(build_id, ())
    scheduled = next((scheduled for scheduled in schedule if scheduled.is_next), None)
    return scheduled if scheduled and _demand(scheduled.what) == _demand(action) else None


def announced_mark(version: Version, scheduled: ScheduledAction) -> dict[str, Any]:
    """The metadata to write before an entry is started. If twgen is killed, its next run finds the job ID."""
    return _marked(version, scheduled, {})


def begun_mark(version: Version, scheduled: ScheduledAction, at: datetime, workflows: int) -> dict[str, Any]:
    """The metadata to write after an entry was started. It keeps the version's other entries.

    The run covers the workflows that had started by `at`. A repeat does not change the record of the first
    run. A repeat without workflows is not counted.
    """
    run, before = {"at": format_time(at), "workflows": workflows}, _begun_of(version) or {}
    if not scheduled.repeat:
        return _marked(version, scheduled, run)
    again = {**run, "times": scheduled.repeats + (workflows > 0)}
    repeated = {**before[scheduled.demand], "again": again}
    return {MarkKey.DRAINED_BY.value: {**before, scheduled.demand: repeated}}


def _marked(version: Version, scheduled: ScheduledAction, run: Mapping[str, Any]) -> dict[str, Any]:
    entry = {"since": format_time(scheduled.since), "action": scheduled.action.value, "job": scheduled.job_id}
    return {MarkKey.DRAINED_BY.value: {**(_begun_of(version) or {}), scheduled.demand: {**entry, **run}}}


def _schedule(spec: WorkerSpec, version: Version, now: datetime) -> Iterator[ScheduledAction]:
    """The policy's entries for one version. A late entry delays all later entries by the same time."""
    drainage = version.drainage
    if not drainage or drainage.status is not VersionStatus.DRAINING or not drainage.changed_at:
        return
    since, marks, occurrences = drainage.changed_at, _begun_of(version), Counter[str]()
    if marks is None:
        return
    at, before, is_next = since, timedelta(), True
    for entry in spec.policy.draining:
        action = entry.what
        occurrences[_demand(action)] += 1
        demand = _demand(action, occurrences[_demand(action)])
        prefix = f"twgen-{spec.worker_deployment}:{version.build_id}-{demand}-"
        begun = _begun(marks.get(demand), since, now)
        # the server's next response may round the same time to another minute, so a recorded job ID is kept
        job_id = begun.job_id if begun.job_id.startswith(prefix) else f"{prefix}{since:%Y-%m-%dT%H:%MZ}"
        at = begun.at or max(later(since, entry.after), later(at, entry.after - before))
        is_turn = is_next and not begun.at
        yield ScheduledAction(
            build_id=version.build_id,
            what=action,
            demand=demand,
            job_id=job_id,
            since=since,
            at=at,
            is_begun=begun.at is not None,
            is_announced=job_id == begun.job_id,
            workflows=begun.workflows,
            repeats=begun.repeats,
            repeat=_repeat(action, job_id, begun),
            is_next=is_turn,
        )
        # a late entry starts now at the earliest, and delays the following entries
        at, before, is_next = max(at, now) if is_turn else at, entry.after, is_next and not is_turn


def _without_repeated_twice(schedule: Sequence[ScheduledAction]) -> Iterator[ScheduledAction]:
    """Drop the repeats of an entry if a later entry is repeated for the same workflows."""
    for number, scheduled in enumerate(schedule, 1):
        types = set(scheduled.what.workflow_types)
        is_covered = any(
            entry.is_begun
            and entry.what.action in _REPEATED
            and (not entry.what.workflow_types or (types and types.issubset(entry.what.workflow_types)))
            for entry in schedule[number:]
        )
        yield replace(scheduled, repeat=None) if is_covered else scheduled


def _demand(action: DrainingAction, number: int = 1) -> str:
    """The key of an entry, which depends on the action and the workflows but not on the policy's notation.

    The version's metadata contains the keys of the started entries. If an entry's key changed, twgen would
    start the entry again.
    """
    demand = (sorted(action.workflow_types), action.signal_name, action.signal_input, number)
    return f"{action.action}-{digest(repr(demand))}"


def _begun_of(version: Version) -> Mapping[str, Any] | None:
    """The records of the started entries, by key, or None if another client wrote an invalid value."""
    marks = (version.metadata or {}).get(MarkKey.DRAINED_BY)
    return {} if marks is None else marks if isinstance(marks, Mapping) else None


class _Begun(NamedTuple):
    """The state of an entry, according to its record in the version's metadata."""

    at: datetime | None = None
    """When the entry was started, or None if it has not been started since the version last began to drain.
    """
    workflows: int | None = None
    job_id: str = ""
    repeats: int = 0
    looked_at: datetime | None = None
    """The newest run covered all workflows that had started by this time. None if unknown."""


def _begun(mark: Any, since: datetime, now: datetime) -> _Begun:
    """The state of an entry.

    An entry with an invalid record counts as started now, so that it is not run twice.
    """
    if mark is None:
        return _Begun()
    try:
        marked_since, job_id, at = parse_time(str(mark["since"])), str(mark["job"]), mark.get("at")
        if abs(marked_since - since) > _SAME_TIME:
            return _Begun()
        if at is None:
            return _Begun(job_id=job_id)
        workflows = mark.get("workflows")
        begun = _Begun(parse_time(str(at)), workflows if isinstance(workflows, int) else None, job_id)
    except (ValueError, TypeError, KeyError, AttributeError):
        return _Begun(now)
    again = mark.get("again", {"at": at, "times": 0})
    try:
        return begun._replace(repeats=int(again["times"]), looked_at=parse_time(str(again["at"])))
    except (ValueError, TypeError, KeyError):
        return begun


def _repeat(action: DrainingAction, job_id: str, begun: _Begun) -> Repeat | None:
    """The next repeat of an entry, for workflows that started later, such as children."""
    if action.action not in _REPEATED or not begun.looked_at or begun.repeats >= MOST_REPEATS:
        return None
    return Repeat(
        at=later(begun.looked_at, REPEATED_AFTER),
        job_id=f"{job_id}-again-{begun.repeats + 1}",
        started_after=begun.looked_at - _LISTED_LATE,
    )


def batch_of(
    target: Target,
    build_id: str,
    action: DrainingAction,
    job_id: str = "",
    started_after: datetime | None = None,
) -> Batch:
    """The batch operation that applies an action to all workflows pinned to a version.

    Raises NegativeAnswer if the version is not draining, and OwnedBySomebodyElse if the worker has another
    manager.
    """
    spec, version = target.spec, target.versions.get(build_id)
    refuse_other_manager(target)
    name = f"{spec.worker_deployment}, version {build_id}"
    rule = "only the workflows of draining versions can be ended"
    if not version:
        raise NegativeAnswer(f"{name}: Temporal does not know it")
    if build_id == target.build_id and not target.is_retired:
        raise NegativeAnswer(f"{name}: it is the target, but {rule}")
    if (status := status_of(build_id, version, target.temporal)) not in HAD_TRAFFIC:
        raise NegativeAnswer(f"{name}: it is {status}, but {rule}")
    if action.action is BatchAction.MOVE:
        action = replace(action, to_build_id=_destination(target, build_id, action.to_build_id))
    if action.needs_replay and (why := why_not_moved(target, action.to_build_id)):
        raise NegativeAnswer(
            f"{spec.worker_deployment}: these workflows were not replayed on {action.to_build_id}: {why}."
            " Workflows that cannot be replayed there get stuck. To move them anyway, use --without-replay"
        )
    query = pinned_to(spec.worker_deployment, build_id)
    if action.workflow_types:
        query = f"{query} AND WorkflowType IN ({', '.join(map(quoted_text, action.workflow_types))})"
    # needed even without an age: until the server starts the operation, the version may be current again
    started_before = target.now - (action.older_than or timedelta())
    query = f"{query} AND StartTime <= '{format_time(started_before)}'"
    if started_after:
        query = f"{query} AND StartTime > '{format_time(started_after)}'"
    own_id = f"twgen-{spec.worker_deployment}:{build_id}-{action.action.lower()}-{digest(action.id_text)}"
    return Batch(job_id or own_id, action, query)


def digest(text: str) -> str:
    """The first eight hex digits of the text's SHA-256."""
    return sha256(text.encode()).hexdigest()[:8]


def in_words(action: DrainingAction, workflows: str) -> str:
    """An action on workflows in the imperative, such as `move 2 workflows of v1 to v2`."""
    match action.action:
        case BatchAction.MOVE:
            return f"move {workflows} to {action.to_build_id or 'the current version'}"
        case BatchAction.SIGNAL:
            # a status document does not contain the name of the signal
            signal = f"signal {action.signal_name}" if action.signal_name else "a signal"
            return f"send {signal} to {workflows}"
        case BatchAction.CANCEL:
            return f"cancel {workflows}"
        case BatchAction.TERMINATE:
            return f"terminate {workflows}"


def _destination(target: Target, build_id: str, requested: str) -> str:
    """The build ID to move workflows to. The default is the current version."""
    name, destination = target.spec.worker_deployment, requested or target.current or ""
    if not destination:
        raise NegativeAnswer(f"{name}: there is no current version: choose the destination with --to")
    if destination == build_id:
        raise NegativeAnswer(f"{name}: the workflows are already on {destination}")
    if status_of(destination, target.versions.get(destination), target.temporal) in UNREGISTERED:
        raise NegativeAnswer(
            f"{name}: no worker of {destination} has polled yet, so moved workflows would wait forever"
        )
    return destination


def quoted_text(text: str) -> str:
    """The text as a string literal for a visibility query."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def pinned_to(worker_deployment: str, build_id: str) -> str:
    """The query for the workflows that are pinned to a version, open or closed."""
    version = quoted_text(f"{worker_deployment}:{build_id}")
    return f"TemporalWorkerDeploymentVersion = {version} AND TemporalWorkflowVersioningBehavior = 'Pinned'"


def still_open(query: str) -> str:
    """Limit the query to open workflows, whether running or paused: only they have no close time."""
    return f"{query} AND CloseTime IS NULL"


def of_deployment(worker_deployment: str) -> str:
    """The query for the workflows that run, or ran, on any version of a worker."""
    return f"TemporalWorkerDeployment = {quoted_text(worker_deployment)}"
