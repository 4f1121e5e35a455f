"""The batch operation that ends the workflows of a draining version, and when it is refused."""

from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from twgen.errors import NegativeAnswer
from twgen.model.draining import Batch, BatchAction, DrainingAction
from twgen.model.temporal import VersionStatus
from twgen.model.times import format_time
from twgen.planning.interventions import refuse_other_manager
from twgen.planning.routing.replay import why_not_moved
from twgen.planning.routing.target import Target
from twgen.planning.version_status import status_of
from twgen.planning.visibility import pinned_to, quoted_text

_DRAINS = {VersionStatus.DRAINING, VersionStatus.DRAINED}
_UNREGISTERED = {VersionStatus.NOT_REGISTERED, VersionStatus.CREATED}


def batch_of(
    target: Target,
    build_id: str,
    what: DrainingAction,
    job_id: str = "",
    started_after: datetime | None = None,
) -> Batch:
    """The batch operation that does this to all workflows pinned to a version, with an ID of its own.

    Raises NegativeAnswer for a version that does not drain, and OwnedBySomebodyElse if the worker has
    another manager.
    """
    spec = target.spec
    refuse_other_manager(target)
    _refuse_what_does_not_drain(target, build_id)
    if what.action is BatchAction.MOVE:
        what = replace(what, to_build_id=_destination(target, build_id, what.to_build_id))
    if what.needs_replay and (why := why_not_moved(target, what.to_build_id)):
        raise NegativeAnswer(
            f"{spec.worker_deployment}: these workflows were not replayed on {what.to_build_id}, and any that"
            f" cannot be replayed there get stuck: {why}; to move them anyway, use --without-replay"
        )
    query = pinned_to(spec.worker_deployment, build_id)
    if what.workflow_types:
        query = f"{query} AND WorkflowType IN ({', '.join(map(quoted_text, what.workflow_types))})"
    # also without an age: a server may begin late, when the version is current again
    started_before = target.now - (what.older_than or timedelta())
    query = f"{query} AND StartTime <= '{format_time(started_before)}'"
    if started_after:
        query = f"{query} AND StartTime > '{format_time(started_after)}'"
    own = f"twgen-{spec.worker_deployment}:{build_id}-{what.action.lower()}-{digest(what.id_text)}"
    return Batch(job_id or own, what, query)


def digest(text: str) -> str:
    """Eight hex digits, the same for the same text."""
    return sha256(text.encode()).hexdigest()[:8]


def in_words(what: DrainingAction, whom: str) -> str:
    """What it does to some workflows, as an order: `move 2 workflows of v1 to v2`."""
    match what.action:
        case BatchAction.MOVE:
            return f"move {whom} to {what.to_build_id or 'the current version'}"
        case BatchAction.SIGNAL:
            return f"send signal {what.signal_name} to {whom}"
        case BatchAction.CANCEL:
            return f"cancel {whom}"
        case BatchAction.TERMINATE:
            return f"terminate {whom}"


def _refuse_what_does_not_drain(target: Target, build_id: str) -> None:
    name = f"{target.spec.worker_deployment}, version {build_id}"
    rule = "only the workflows of draining versions can be ended"
    if build_id not in target.versions:
        raise NegativeAnswer(f"{name}: Temporal does not know it")
    if build_id == target.build_id and not target.is_retired:
        raise NegativeAnswer(f"{name}: it is the target, but {rule}")
    status = status_of(build_id, target.versions[build_id], target.temporal)
    if status not in _DRAINS:
        raise NegativeAnswer(f"{name}: it is {status}, but {rule}")


def _destination(target: Target, build_id: str, asked: str) -> str:
    """The build ID to which workflows move: by default the current version."""
    name, to = target.spec.worker_deployment, asked or target.current or ""
    if not to:
        raise NegativeAnswer(f"{name}: there is no current version: choose the destination with --to")
    if to == build_id:
        raise NegativeAnswer(f"{name}: the workflows are already on {to}")
    if status_of(to, target.versions.get(to), target.temporal) in _UNREGISTERED:
        raise NegativeAnswer(
            f"{name}: no worker of {to} has polled, so the workflows would wait there forever"
        )
    return to
