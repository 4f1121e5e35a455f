"""Which task queues the target does not poll yet, and how long it may take to."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from twgen.model.temporal import TaskQueue, TaskQueueType
from twgen.planning.routing.target import Target
from twgen.planning.sentences import listed

_QUEUE_LIMIT = timedelta(minutes=5)
"""How long a new version may take to poll every task queue of the current one, or one for its gate."""

_FIRST_POLLS = timedelta(minutes=1)
"""How long a worker may take from its first poll to one for workflows; it may have none."""


def missing_queues(t: Target) -> tuple[TaskQueue, ...]:
    """The task queues that the current version polls and the target does not, as far as is known."""
    current = t.versions.get(t.current or "")
    if not current or not t.version or t.version.task_queues is None:
        return ()
    polled = {(queue.name, queue.type) for queue in t.task_queues}
    return tuple(queue for queue in current.own_task_queues if (queue.name, queue.type) not in polled)


def missing_queue(t: Target) -> str:
    """The first of these that holds up the target; empty: none does.

    One without tasks does so only until the target has had the time to poll it: Temporal's own rule goes by
    tasks alone. https://github.com/temporalio/temporal/blob/main/service/worker/workerdeployment/client.go
    """
    for queue in missing_queues(t):
        if not _is_ignored(queue, t) and (queue.has_tasks is not False or polls_until(t)):
            return _named(queue)
    return ""


def queue_warnings(t: Target) -> Iterator[str]:
    """The warning about task queues that the target does not poll and that do not hold up its rollout.

    A queue that is used once a day has no tasks in between, and no worker would poll it any more.
    """
    idle = [_named(queue) for queue in missing_queues(t) if not _is_ignored(queue, t)]
    if idle and not (t.is_current or t.is_aborted or t.is_foreign or missing_queue(t)):
        yield (
            f"{t.build_id} does not poll {listed(idle)}, but {t.current} does: no task waits there and none"
            " arrived recently, so the rollout continues. Deploy a worker that polls the queues still in use,"
            " and add the others to spec.ignoreMissingTaskQueues of a RolloutPolicy"
        )


def ignores_missing_queues(t: Target) -> bool:
    """The policy lets the target go without a task queue that may have tasks: Temporal alone would refuse."""
    return any(_is_ignored(queue, t) and queue.has_tasks is not False for queue in missing_queues(t))


def polls_until(t: Target) -> datetime | None:
    """Until when a new version may still begin to poll a task queue; None: it had its time."""
    created = t.version.created_at if t.version else None
    return created + _QUEUE_LIMIT if created and t.now < created + _QUEUE_LIMIT else None


def first_polls_end(t: Target) -> datetime | None:
    """When a worker has had the time for its first poll for workflows; None: unknown."""
    return t.version.created_at + _FIRST_POLLS if t.version and t.version.created_at else None


def may_poll_more(t: Target) -> bool:
    """It polls for activities so far: whether others poll for its workflows is not known yet."""
    ends = first_polls_end(t)
    return not t.workflow_task_queues and ends is not None and t.now < ends


def has_no_unversioned_pollers(t: Target) -> bool:
    """No unversioned worker would share its new workflows, on any workflow task queue.

    For a target that runs only activities, its activity task queues decide. An unread queue counts as shared.
    """
    # the controller needs only one free task queue of any type; but a new activity queue says nothing about
    # the workflows, and all of them would move at once
    workflow = [queue for queue in t.task_queues if queue.type is TaskQueueType.WORKFLOW]
    return all(queue.unversioned_pollers is False for queue in workflow or t.task_queues)


def _is_ignored(queue: TaskQueue, t: Target) -> bool:
    ignored = t.spec.policy.ignore_missing_task_queues
    # a name may hold what a pattern means otherwise
    return queue.name in ignored or any(fnmatchcase(queue.name, pattern) for pattern in ignored)


def _named(queue: TaskQueue) -> str:
    return f"{queue.type.lower()} task queue {queue.name}"
