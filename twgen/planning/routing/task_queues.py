"""Which task queues the target does not poll yet, and how long it may take to."""

from datetime import datetime, timedelta

from twgen.planning.routing.target import Target

_QUEUE_LIMIT = timedelta(minutes=5)
"""How long a new version may take to poll every task queue of the current one, or one for its gate."""

_FIRST_POLLS = timedelta(minutes=1)
"""How long a worker may take from its first poll to one for workflows; it may have none."""


def missing_queue(t: Target) -> str:
    """A task queue that the current version polls and the target does not; empty: none is known."""
    current = t.versions.get(t.current or "")
    if not current or current.task_queues is None or not t.version or t.version.task_queues is None:
        return ""
    polled = {(queue.name, queue.type) for queue in t.task_queues}
    missing = [queue for queue in current.task_queues if (queue.name, queue.type) not in polled]
    return f"{missing[0].type.lower()} task queue {missing[0].name}" if missing else ""


def polls_until(t: Target) -> datetime | None:
    """Until when a new version may still begin to poll a task queue; None: it had its time."""
    created = t.version.created_at if t.version else None
    return created + _QUEUE_LIMIT if created and t.now < created + _QUEUE_LIMIT else None


def first_polls_end(t: Target) -> datetime | None:
    """When a worker has had the time for its first poll for workflows; None: nobody knows."""
    created = t.version.created_at if t.version else None
    return created + _FIRST_POLLS if created else None


def may_poll_more(t: Target) -> bool:
    """It polls for activities so far: whether others poll for its workflows is not known yet."""
    ends = first_polls_end(t)
    return not t.workflow_task_queues and ends is not None and t.now < ends
