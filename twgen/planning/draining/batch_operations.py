"""The batch operation that ends the workflows of a draining version, and when twgen refuses it."""

from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from twgen.errors import NegativeAnswer
from twgen.model.draining import Batch, BatchAction, DrainingAction
from twgen.model.times import format_time
from twgen.planning.interventions import refuse_other_manager
from twgen.planning.routing.replay import why_not_moved
from twgen.planning.routing.target import Target
from twgen.planning.version_status import HAD_TRAFFIC, UNREGISTERED, status_of
from twgen.planning.visibility import pinned_to, quoted_text


def batch_of(
    target: Target,
    build_id: str,
    action: DrainingAction,
    job_id: str = "",
    started_after: datetime | None = None,
) -> Batch:
    """The batch operation that applies an action to all workflows pinned to a version, with its own ID.

    Raises NegativeAnswer for a version that does not drain, and OwnedBySomebodyElse if the worker has
    another manager.
    """
    spec = target.spec
    refuse_other_manager(target)
    _refuse_unless_draining(target, build_id)
    if action.action is BatchAction.MOVE:
        action = replace(action, to_build_id=_destination(target, build_id, action.to_build_id))
    if action.needs_replay and (why := why_not_moved(target, action.to_build_id)):
        raise NegativeAnswer(
            f"{spec.worker_deployment}: these workflows were not replayed on {action.to_build_id}, and any"
            f" that cannot be replayed there get stuck: {why}; to move them anyway, use --without-replay"
        )
    query = pinned_to(spec.worker_deployment, build_id)
    if action.workflow_types:
        query = f"{query} AND WorkflowType IN ({', '.join(map(quoted_text, action.workflow_types))})"
    # even without an age: the server may begin late, when the version is current again
    started_before = target.now - (action.older_than or timedelta())
    query = f"{query} AND StartTime <= '{format_time(started_before)}'"
    if started_after:
        query = f"{query} AND StartTime > '{format_time(started_after)}'"
    own_id = f"twgen-{spec.worker_deployment}:{build_id}-{action.action.lower()}-{digest(action.id_text)}"
    return Batch(job_id or own_id, action, query)


def digest(text: str) -> str:
    """Eight hex digits, the same for the same text."""
    return sha256(text.encode()).hexdigest()[:8]


def in_words(action: DrainingAction, workflows: str) -> str:
    """An action on workflows, as an order: `move 2 workflows of v1 to v2`."""
    match action.action:
        case BatchAction.MOVE:
            return f"move {workflows} to {action.to_build_id or 'the current version'}"
        case BatchAction.SIGNAL:
            # a status document does not have the name
            signal = f"signal {action.signal_name}" if action.signal_name else "a signal"
            return f"send {signal} to {workflows}"
        case BatchAction.CANCEL:
            return f"cancel {workflows}"
        case BatchAction.TERMINATE:
            return f"terminate {workflows}"


def _refuse_unless_draining(target: Target, build_id: str) -> None:
    name = f"{target.spec.worker_deployment}, version {build_id}"
    rule = "only the workflows of draining versions can be ended"
    if build_id not in target.versions:
        raise NegativeAnswer(f"{name}: Temporal does not know it")
    if build_id == target.build_id and not target.is_retired:
        raise NegativeAnswer(f"{name}: it is the target, but {rule}")
    status = status_of(build_id, target.versions[build_id], target.temporal)
    if status not in HAD_TRAFFIC:
        raise NegativeAnswer(f"{name}: it is {status}, but {rule}")


def _destination(target: Target, build_id: str, requested: str) -> str:
    """The build ID to which workflows move: by default the current version."""
    name, destination = target.spec.worker_deployment, requested or target.current or ""
    if not destination:
        raise NegativeAnswer(f"{name}: there is no current version: choose the destination with --to")
    if destination == build_id:
        raise NegativeAnswer(f"{name}: the workflows are already on {destination}")
    if status_of(destination, target.versions.get(destination), target.temporal) in UNREGISTERED:
        raise NegativeAnswer(
            f"{name}: no worker of {destination} has polled, so the workflows would wait there forever"
        )
    return destination
