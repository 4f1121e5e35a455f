"""Explains why no worker of the target has polled yet, and which task queues the target does not poll."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from twgen.model.plan import Phase
from twgen.model.policy import MOST_VERSIONS
from twgen.model.temporal import TaskQueue, TaskQueueType, VersionStatus
from twgen.planning.routing.target import Target
from twgen.planning.sentences import listed
from twgen.versioning.injection import DEPLOYMENT, build_id_variable

MOST_COUNTED = 1000
"""Worker Deployments are counted up to this number, even if there are more."""
DEFAULT_LIMIT = 100
"""The default of `matching.maxDeployments`. At this limit, a server rejects polls of new workers.

Server 1.29.1 reports the rejection only in its log, and 1.32.0 also reports it to the worker.
https://github.com/temporalio/temporal/blob/v1.32.0/service/worker/workerdeployment/client.go
"""
_NO_LETTER = re.compile(r"[^a-z0-9]+")
_LATELY = timedelta(hours=1)
_JUST_NOW = timedelta(minutes=10)
_MOST_NAMED = 3
_QUEUE_LIMIT = timedelta(minutes=5)
"""How long a new version can take to poll the current version's task queues, or any task queue for its gate.
"""

_FIRST_POLLS = timedelta(minutes=1)
"""How long after its first poll a worker can take to poll for workflows. Activity workers never poll for
workflows."""


def why_unregistered(target: Target) -> tuple[str, Phase]:
    """Why Temporal does not know the target, and the phase. The phase is Blocked if a person must act."""
    obstacle, others = target.obstacle, len(target.temporal.versions)
    if target.ramp and not target.version:
        why = "it is ramping, but Temporal does not list it, so it is unknown whether its workers poll"
        return why, Phase.WAITING
    state = "Temporal lists it only as Created" if target.version else "Temporal does not know it yet"
    if not target.version and others >= MOST_VERSIONS:
        return (
            f"{state}, but knows {others} other versions. At its limit (by default {MOST_VERSIONS}) it"
            " rejects polls of a new version until another one is deleted: `twgen forget` deletes old ones"
        ), Phase.WAITING
    if target.deployment and obstacle:
        return f"{state}, because {obstacle.because}", obstacle.phase
    if not target.deployment and target.world.deployments is not None:
        return "it has no Deployment yet: apply the output of `twgen render`", Phase.WAITING
    poller = polls_instead(target)
    if not target.deployment:
        return f"{state}: none of its workers has polled{poller and f'; {poller}'}", Phase.WAITING
    problem = target.world.pod_problems.get(target.build_id)
    available = f"and its newest Pod {problem}" if problem else "although its Deployment is available"
    why = f"{state}: none of its workers has polled, {available}"
    number = 0 if target.world.temporal else target.world.worker_deployments or 0
    if number >= DEFAULT_LIMIT:
        many = f"{number}{' or more' if number >= MOST_COUNTED else ''}"
        why = (
            f"{state}, {available}: its Temporal namespace has {many} Worker Deployments. At its limit (by"
            f" default {DEFAULT_LIMIT}) a server rejects polls of new workers: delete unused Worker"
            " Deployments (`temporal worker deployment delete`), or raise the limit"
            " (`matching.maxDeployments`). If the limit is higher"
        )
    elif poller:
        return f"{why}; {poller}", Phase.WAITING
    return (
        f"{why}: does the worker turn versioning on in its SDK, with {_needed_variables(target)}, and does it"
        " connect to TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE?"
    ), Phase.WAITING


def polls_instead(target: Target) -> str:
    """A sentence about pollers that might be the target's worker under a wrong name, or empty.

    The sentence is for a target that has not polled although its pods are, or might be, available.
    """
    # if the cluster was not read, it is unknown which versions were deployed
    max_age = _LATELY if target.world.deployments is not None else _JUST_NOW
    created = target.deployments.keys() | target.world.ledger.keys() | {target.build_id}
    strangers = [
        version.build_id
        for version in target.temporal.versions
        if version.build_id not in created
        and version.status is VersionStatus.INACTIVE
        and version.created_at is not None
        and target.now - version.created_at < max_age
    ]
    if strangers:
        # twgen did not create these recent versions, so their build IDs may be typos
        polls = f"{listed(strangers)} {'has' if len(strangers) == 1 else 'have'} polled instead"
        variable = build_id_variable(target.spec.policy.environment)
        return f"{polls}: does the worker take its build ID, {target.build_id}, from {variable}?"
    own_name = target.spec.worker_deployment
    takes_name = f"does the worker take its deployment name, {own_name}, from {DEPLOYMENT}?"
    polling = [worker for worker in target.world.other_workers if worker.task_queue]
    if polling:
        worker = next((worker for worker in polling if worker.name), polling[0])
        polls = f"polls its task queue {worker.task_queue}"
        if worker.name:
            return f"Worker Deployment {worker.name} (build ID {worker.build_id}) {polls}: {takes_name}"
        versioning = f"does the worker turn versioning on in its SDK, with {_needed_variables(target)}?"
        return f"a worker without a version {polls}: {versioning}"
    if names := [worker.name for worker in target.world.other_workers if worker.name]:
        return f"Temporal has Worker Deployment {listed(names, _MOST_NAMED)}: {takes_name}"
    return ""


def _needed_variables(target: Target) -> str:
    variable = build_id_variable(target.spec.policy.environment)
    return f"the deployment name from {DEPLOYMENT} and the build ID from {variable}"


def may_be_called(name: str, worker: str) -> bool:
    """Whether the name of a Worker Deployment looks like a misspelling of the worker's name.

    A name with a slash belongs to another worker, unless only case or punctuation differs.
    """
    names = (name, worker, worker.partition("/")[2])
    plain, whole, short = (_NO_LETTER.sub("", text.casefold()) for text in names)
    if "/" in name:
        return plain == whole and name != worker
    return bool(plain) and (short in plain or plain in short)


def missing_queues(target: Target) -> tuple[TaskQueue, ...]:
    """The task queues that, according to Temporal, the current version polls but the target does not."""
    current = target.versions.get(target.current or "")
    if not current or not target.version or target.version.task_queues is None:
        return ()
    polled = {(queue.name, queue.type) for queue in target.task_queues}
    return tuple(queue for queue in current.own_task_queues if (queue.name, queue.type) not in polled)


def missing_queue(target: Target) -> str:
    """The first missing task queue that delays the rollout, or empty if no task queue does.

    A task queue without tasks delays the rollout only until the target has had time to poll. Temporal's own
    rule considers only tasks:
    https://github.com/temporalio/temporal/blob/main/service/worker/workerdeployment/client.go
    """
    for queue in missing_queues(target):
        if not _is_ignored(queue, target) and (queue.has_tasks is not False or polls_until(target)):
            return _named(queue)
    return ""


def queue_warnings(target: Target) -> Iterator[str]:
    """A warning about task queues that the target does not poll, if they do not delay the rollout.

    A task queue that is used once a day is usually empty. After the rollout, no worker would poll the task
    queue.
    """
    idle = [_named(queue) for queue in missing_queues(target) if not _is_ignored(queue, target)]
    if idle and not (target.is_current or target.is_aborted or target.is_foreign or missing_queue(target)):
        yield (
            f"{target.build_id} does not poll {listed(idle)}, but {target.current} does: no task waits there"
            " and none arrived recently, so the rollout continues. Deploy a worker that polls the queues that"
            " are still in use, and add the others to spec.ignoreMissingTaskQueues of a RolloutPolicy"
        )


def ignores_missing_queues(target: Target) -> bool:
    """Whether the policy ignores a missing task queue with possible tasks, so Temporal must ignore it too."""
    busy = (queue for queue in missing_queues(target) if queue.has_tasks is not False)
    return any(_is_ignored(queue, target) for queue in busy)


def polls_until(target: Target) -> datetime | None:
    """The time until which a new version can begin to poll its task queues, or None if this time is over."""
    created = target.version.created_at if target.version else None
    return created + _QUEUE_LIMIT if created and target.now < created + _QUEUE_LIMIT else None


def first_polls_end(target: Target) -> datetime | None:
    """The time until which to wait for the target's first workflow poll, or None if there is no wait."""
    created = target.version.created_at if target.version else None
    ends = created + _FIRST_POLLS if created else None
    return ends if ends and not target.workflow_task_queues and target.now < ends else None


def has_no_unversioned_pollers(target: Target) -> bool:
    """Whether no unversioned worker polls any of the target's workflow task queues.

    If the target runs only activities, its activity task queues count instead. A task queue that was not read
    counts as polled.
    """
    # for the controller, one task queue without such pollers is enough. But a new activity task queue
    # proves nothing about the workflows, which would all move at once
    workflow = [queue for queue in target.task_queues if queue.type is TaskQueueType.WORKFLOW]
    return all(queue.unversioned_pollers is False for queue in workflow or target.task_queues)


def _is_ignored(queue: TaskQueue, target: Target) -> bool:
    ignored = target.spec.policy.ignore_missing_task_queues
    # the name itself may contain characters that are special in a pattern
    return queue.name in ignored or any(fnmatchcase(queue.name, pattern) for pattern in ignored)


def _named(queue: TaskQueue) -> str:
    return f"{queue.type.lower()} task queue {queue.name}"
