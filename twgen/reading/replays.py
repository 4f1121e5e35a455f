"""Reading how far the replays of versions are."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Any

from twgen.clients.kubernetes import jobs_path, listed
from twgen.cluster.jobs import ending_of, oldest_first
from twgen.errors import StateUnavailable
from twgen.model.histories import ReplayRun, ReplayState
from twgen.model.paths import value_at
from twgen.model.spec import WorkerSpec
from twgen.model.times import parse_time
from twgen.planning.routing.replay import replay_of
from twgen.reading.kubernetes import SharedLists
from twgen.versioning.names import REPLAY_OF, replay_selector

_FORBIDDEN = "its Jobs cannot be read: the account needs the verb list on jobs in this namespace"


async def read_replay(spec: WorkerSpec, shared: SharedLists) -> ReplayRun:
    """How far the replay of a worker's target is; raises StateUnavailable or OutOfTime."""
    path = jobs_path(spec.namespace)
    selected = {"labelSelector": replay_selector(spec.name)}
    status, answer = await shared.client.ask("GET", path, shared.deadline, query=selected)
    if status == HTTPStatus.FORBIDDEN:
        return ReplayRun(ReplayState.MISSING, because=_FORBIDDEN)
    if status != HTTPStatus.OK:
        raise StateUnavailable(f"{path} cannot be read: {answer.get('message') or status}")
    wanted = replay_of(spec)
    jobs = [
        job
        for job in oldest_first(listed(path, answer))
        if value_at(job, "metadata", "annotations", REPLAY_OF) == wanted
        and not value_at(job, "metadata", "deletionTimestamp")
    ]
    return _run(jobs[-1]) if jobs else ReplayRun(ReplayState.MISSING)


def _run(job: Mapping[str, Any]) -> ReplayRun:
    name, ending = job["metadata"]["name"], ending_of(job)
    run = ReplayRun(ReplayState.RUNNING, name, created_at=_time_of(job))
    if not ending:
        is_suspended = value_at(job, "spec", "suspend")
        because = f"Job {name} is suspended"
        return replace(run, state=ReplayState.MISSING, because=because) if is_suspended else run
    if ending.type == "Complete":
        return replace(run, state=ReplayState.PASSED)
    return replace(run, state=ReplayState.FAILED, because=" ".join(ending.why.split()))


def _time_of(job: Mapping[str, Any]) -> datetime | None:
    said = value_at(job, "metadata", "creationTimestamp")
    return parse_time(said) if isinstance(said, str) else None
