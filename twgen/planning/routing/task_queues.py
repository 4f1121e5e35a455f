"""Which task queues the target does not poll yet, and the time that it has for that."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from twgen.model.temporal import TaskQueue, TaskQueueType
from twgen.planning.routing.target import Target
from twgen.planning.sentences import listed

_QUEUE_LIMIT = timedelta(minutes=5)
"""The time for a new version to poll every task queue of the current one, or one for its gate."""

_FIRST_POLLS = timedelta(minutes=1)
"""The time from the first poll of a worker to its first poll for workflows; it may never poll for these."""


def missing_queues(target: Target) -> tuple[TaskQueue, ...]:
    """The task queues that the current version polls and the target does not, as far as Temporal reports."""
    current = target.versions.get(target.current or "")
    if not current or not target.version or target.version.task_queues is None:
        return ()
    polled = {(queue.name, queue.type) for queue in target.task_queues}
    return tuple(queue for queue in current.own_task_queues if (queue.name, queue.type) not in polled)


def missing_queue(target: Target) -> str:
    """The first missing task queue that holds up the target; empty: none does.

    A queue without tasks does so only until the target has had time to poll it: Temporal's own rule looks
    at tasks only. https://github.com/temporalio/temporal/blob/main/service/worker/workerdeployment/client.go
    """
    for queue in missing_queues(target):
        if not _is_ignored(queue, target) and (queue.has_tasks is not False or polls_until(target)):
            return _named(queue)
    return ""


def queue_warnings(target: Target) -> Iterator[str]:
    """The warning about task queues that the target does not poll and that do not hold up its rollout.

    A queue that is used once a day has no tasks in between, and then no worker would poll it any more.
    """
    idle = [_named(queue) for queue in missing_queues(target) if not _is_ignored(queue, target)]
    if idle and not (target.is_current or target.is_aborted or target.is_foreign or missing_queue(target)):
        yield (
            f"{target.build_id} does not poll {listed(idle)}, but {target.current} does: no task waits there"
            " and none arrived recently, so the rollout continues. Deploy a worker that polls the queues"
            " still in use, and add the others to spec.ignoreMissingTaskQueues of a RolloutPolicy"
        )


def ignores_missing_queues(target: Target) -> bool:
    """The policy ignores a missing task queue that may have tasks: by its own rule, Temporal would refuse."""
    busy = (queue for queue in missing_queues(target) if queue.has_tasks is not False)
    return any(_is_ignored(queue, target) for queue in busy)


def polls_until(target: Target) -> datetime | None:
    """The end of the time in which a new version may begin to poll a task queue; None: it has passed."""
    created = target.version.created_at if target.version else None
    return created + _QUEUE_LIMIT if created and target.now < created + _QUEUE_LIMIT else None


def first_polls_end(target: Target) -> datetime | None:
    """The end of the time that a worker has for its first poll for workflows; None: unknown."""
    created = target.version.created_at if target.version else None
    return created + _FIRST_POLLS if created else None


def may_poll_more(target: Target) -> bool:
    """So far it polls only for activities: other workers may yet poll for its workflows."""
    ends = first_polls_end(target)
    return not target.workflow_task_queues and ends is not None and target.now < ends


def has_no_unversioned_pollers(target: Target) -> bool:
    """No unversioned worker would share its new workflows, on any workflow task queue.

    For a target that runs only activities, its activity task queues decide. An unread queue counts as shared.
    """
    # the controller needs only one free task queue of any type; but a new activity queue says nothing about
    # the workflows, and all of them would move at once
    workflow = [queue for queue in target.task_queues if queue.type is TaskQueueType.WORKFLOW]
    return all(queue.unversioned_pollers is False for queue in workflow or target.task_queues)


def _is_ignored(queue: TaskQueue, target: Target) -> bool:
    ignored = target.spec.policy.ignore_missing_task_queues
    # the name itself may contain characters that have a meaning in a pattern
    return queue.name in ignored or any(fnmatchcase(queue.name, pattern) for pattern in ignored)


def _named(queue: TaskQueue) -> str:
    return f"{queue.type.lower()} task queue {queue.name}"
