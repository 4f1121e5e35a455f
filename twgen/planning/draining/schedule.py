"""What a policy does to the workflows of a version that drains: which entry, when, and whether it may."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from twgen.model.draining import ScheduledEnding, WhatEnds
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import Version, VersionStatus, WorkerDeployment
from twgen.model.times import format_time, later, parse_time
from twgen.planning.draining.endings import digest
from twgen.planning.routing.replay import why_not_moved
from twgen.planning.routing.target import Target
from twgen.planning.version_status import status_of
from twgen.versioning.names import DRAINED_BY

_SAME_TIME = timedelta(minutes=1)
"""What a server says of one moment may be another millisecond in the next answer."""


def schedules(
    spec: WorkerSpec, temporal: WorkerDeployment | None, now: datetime
) -> dict[str, tuple[ScheduledEnding, ...]]:
    """What becomes of the open workflows of each version that drains, in order, by build ID."""
    if not spec.policy.draining or not temporal:
        return {}
    found = {
        version.build_id: tuple(_schedule(spec, version, now))
        for version in temporal.versions
        if version.build_id != spec.build_id
        and status_of(version.build_id, version, temporal) is VersionStatus.DRAINING
    }
    return {build_id: schedule for build_id, schedule in found.items() if schedule}


def planned_endings(target: Target) -> tuple[ScheduledEnding, ...]:
    """The schedules of all versions, and of each entry what keeps it from being begun beside the time."""
    of_versions = schedules(target.spec, target.temporal, target.now).values()
    return tuple(
        replace(ending, held_by=why_not_moved(target, target.current or ""))
        if ending.what.needs_replay and not ending.is_begun
        else ending
        for ending in chain.from_iterable(of_versions)
    )


def old_enough(spec: WorkerSpec, temporal: WorkerDeployment | None, now: datetime) -> frozenset[str]:
    """The job IDs of the entries that some version is old enough for, whether they were begun or not."""
    return frozenset(
        ending.job_id
        for schedule in schedules(spec, temporal, now).values()
        for ending, entry in zip(schedule, spec.policy.draining, strict=True)
        if later(ending.since, entry.after) <= now
    )


def may_end_workflows(target: Target) -> bool:
    """Who carries the rollout out manages the worker, which neither ramps nor is paused."""
    temporal = target.temporal
    is_ours = bool(target.identity) and temporal.manager_identity == target.identity
    return is_ours and not temporal.routing.ramping and not target.is_held


def due_endings(target: Target) -> tuple[ScheduledEnding, ...]:
    """What may be begun now, one for each version; of one whose metadata was not read nothing is."""
    if not may_end_workflows(target):
        return ()
    read = {version.build_id for version in target.temporal.versions if version.metadata is not None}
    return tuple(
        ending
        for ending in planned_endings(target)
        if ending.build_id in read and ending.is_next and ending.at <= target.now and not ending.held_by
    )


def scheduled_as(target: Target, build_id: str, what: WhatEnds) -> ScheduledEnding | None:
    """The entry whose turn it is and that does the same as a person asks for; None: there is none."""
    schedule = schedules(target.spec, target.temporal, target.now).get(build_id, ())
    is_whole = not what.older_than and not what.to_build_id
    return next(
        (one for one in schedule if is_whole and one.is_next and _demand(one.what) == _demand(what)), None
    )


def begun_mark(version: Version, ending: ScheduledEnding, now: datetime, workflows: int) -> dict[str, Any]:
    """What a version is marked with once an entry of its policy was begun, beside what it says already."""
    mark = {
        "since": format_time(ending.since),
        "at": format_time(now),
        "action": ending.what.ending.value,
        "workflows": workflows,
        "job": ending.job_id,
    }
    return {DRAINED_BY: {**_begun_of(version), ending.demand: mark}}


def _schedule(spec: WorkerSpec, version: Version, now: datetime) -> Iterator[ScheduledEnding]:
    """The entries of its policy, each as long after the one before as written, however late that was."""
    drainage = version.drainage
    if not drainage or drainage.status is not VersionStatus.DRAINING or not drainage.changed_at:
        return
    if _is_unreadable(version):
        return
    since, marks, seen = drainage.changed_at, _begun_of(version), Counter[str]()
    at, before, is_next = since, timedelta(), True
    for entry in spec.policy.draining:
        what = entry.what
        seen[_demand(what)] += 1
        demand = _demand(what, seen[_demand(what)])
        job_id = f"twgen-{spec.worker_deployment}:{version.build_id}-{demand}-{since:%Y-%m-%dT%H:%MZ}"
        begun_at, workflows = _begun(marks.get(demand), since, now)
        at = begun_at or max(later(since, entry.after), later(at, entry.after - before))
        is_turn = is_next and not begun_at
        yield ScheduledEnding(
            build_id=version.build_id,
            what=what,
            demand=demand,
            job_id=job_id,
            since=since,
            at=at,
            is_begun=begun_at is not None,
            workflows=workflows,
            is_next=is_turn,
        )
        # one that is late is not begun before now, and those after it come as much later
        at, before, is_next = max(at, now) if is_turn else at, entry.after, is_next and not is_turn


def _demand(what: WhatEnds, number: int = 1) -> str:
    """What tells an entry from others: what it does to whom, and not how that is written.

    It is remembered in Temporal: another one for the same would do the same again.
    """
    told = (sorted(what.workflow_types), what.signal_name, what.signal_input, number)
    return f"{what.ending}-{digest(*told)}"


def _begun_of(version: Version) -> Mapping[str, Any]:
    """What the version's metadata says of the entries that were begun, by demand."""
    marks = (version.metadata or {}).get(DRAINED_BY)
    return marks if isinstance(marks, Mapping) else {}


def _is_unreadable(version: Version) -> bool:
    """Somebody wrote something else where twgen writes what was begun: nobody knows what was."""
    marks = (version.metadata or {}).get(DRAINED_BY)
    return marks is not None and not isinstance(marks, Mapping)


def _begun(mark: Any, since: datetime, now: datetime) -> tuple[datetime | None, int | None]:
    """When an entry was begun, and for how many; None: it was not, since the version drains.

    What cannot be read counts as begun right now: nothing is done twice.
    """
    if mark is None:
        return None, None
    try:
        of, at = (parse_time(str(mark[name])) for name in ("since", "at"))
    except (ValueError, TypeError, KeyError):
        return now, None
    if abs(of - since) > _SAME_TIME:
        return None, None
    workflows = mark.get("workflows")
    return at, workflows if isinstance(workflows, int) else None
