"""Whether the target can take traffic, and the obstacle if it cannot."""

from collections.abc import Sequence
from datetime import timedelta
from operator import itemgetter

from twgen.model.plan import Phase
from twgen.model.policy import POLLERS_ARE_LISTED
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import TaskQueue, TaskQueueType
from twgen.model.values import dataclass
from twgen.model.world import LiveDeployment, WorkerWorld
from twgen.planning.sentences import how_to_resume


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the target cannot take traffic."""

    because: str
    is_known: bool = True
    """False: it is unknown whether it serves."""
    has_pods: bool = True
    """False: a gate would only run into its timeout, or on pods that are about to end."""
    phase: Phase = Phase.WAITING
    """The phase of a rollout that it stops; Blocked: waiting does not help."""
    older_pods_serve: bool = False
    """Pods of an older template serve its traffic."""


def obstacle(
    spec: WorkerSpec, world: WorkerWorld, live: LiveDeployment | None, task_queues: tuple[TaskQueue, ...]
) -> Obstacle | None:
    """The obstacle of the target, by its Deployment and task queues; None: it can take traffic."""
    if spec.says_zero:
        because = "its spec says zero replicas: no worker can take traffic"
        return Obstacle(because, has_pods=False, phase=Phase.BLOCKED)
    workflow = [queue for queue in task_queues if queue.type is TaskQueueType.WORKFLOW]
    if world.deployments is None:
        return _without_cluster(workflow or task_queues)
    if not live:
        return Obstacle("it has no Deployment yet", has_pods=False)
    if of_deployment := _of_deployment(live, spec.namespace, world.pod_problems.get(spec.build_id)):
        return of_deployment
    if silent := [queue for queue in workflow if queue.pollers is False]:
        return Obstacle(f"none of its workers polls task queue {silent[0].name}{_unversioned_poller(silent)}")
    return None


def silence(task_queues: Sequence[TaskQueue]) -> tuple[str, timedelta]:
    """The workflow task queue that was not polled for the longest time, and the least length of that time."""
    silent = [("", timedelta())]
    for queue in task_queues:
        if queue.type is not TaskQueueType.WORKFLOW or queue.pollers is None:
            continue
        length = timedelta(seconds=queue.silent_seconds or 0)
        # a missing poller proves only that it was silent for longer than pollers are listed
        silent.append((queue.name, length if queue.pollers else max(length, POLLERS_ARE_LISTED)))
    return max(silent, key=itemgetter(1))


def _of_deployment(live: LiveDeployment, namespace: str, pod_problem: str | None) -> Obstacle | None:
    newest_pod = f", and its newest Pod {pod_problem}" if pod_problem else ""
    if live.terminating:
        because = "its Deployment is being deleted, and will then be created again"
        return Obstacle(because, has_pods=False)
    if live.replicas == 0:
        return Obstacle("its Deployment has zero replicas", has_pods=False)
    if live.paused:
        resume = how_to_resume(live.name, namespace)
        because = f"its Deployment is paused by hand: to continue, run `{resume}`"
        return Obstacle(because, has_pods=False, phase=Phase.BLOCKED)
    if live.stalled:
        because = f"its Deployment makes no progress ({live.stalled}){newest_pod}"
        return Obstacle(because, has_pods=False, phase=Phase.BLOCKED)
    if not live.serving:
        return Obstacle(f"its Deployment is not available yet{newest_pod}")
    # the older pods may run other code than the gate tested, for example under a custom build ID
    because = f"its pods are being replaced, and no new pod is available yet{newest_pod}"
    return Obstacle(because, has_pods=False, older_pods_serve=True) if live.replacing else None


def _without_cluster(queues: Sequence[TaskQueue]) -> Obstacle | None:
    # without a cluster, only a poller proves that a worker runs
    if not queues or any(queue.pollers is None for queue in queues):
        unread = "pollers" if queues else "task queues"
        because = f"neither the cluster nor its {unread} were read, so it is unknown whether it serves"
        return Obstacle(because, is_known=False)
    if silent := [queue for queue in queues if not queue.pollers]:
        because = "the cluster was not read, and Temporal lists no poller of it on task queue"
        return Obstacle(f"{because} {silent[0].name}{_unversioned_poller(silent)}")
    return None


def _unversioned_poller(silent: Sequence[TaskQueue]) -> str:
    """The end of a sentence if a worker without a version polls the first of these task queues."""
    if not silent[0].unversioned_pollers:
        return ""
    return ", but a worker without a version does: does the worker turn versioning on in its SDK?"
