"""Whether the target can take traffic, and what keeps it from that."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twgen.model.world import LiveDeployment, TaskQueueType

if TYPE_CHECKING:
    from twgen.planning.routing.target import Target


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the target cannot take traffic."""

    because: str
    is_known: bool = True
    """No: nothing was read that tells whether it serves."""
    has_pods: bool = True
    """No: a gate would only run into its timeout."""
    needs_a_person: bool = False
    """Waiting alone does not help."""


def obstacle(target: "Target") -> Obstacle | None:
    """What keeps the target from taking traffic; None: nothing."""
    if target.spec.replicas == 0 and not target.spec.replicas_are_external:
        return Obstacle("its spec says zero replicas: no worker can take traffic", has_pods=False)
    if target.world.deployments is None:
        return _without_cluster(target)
    if not target.deployment:
        return Obstacle("it has no Deployment yet", has_pods=False)
    found = _in_cluster(target, target.deployment)
    if found:
        return found
    silent = [
        queue.name
        for queue in target.task_queues
        if queue.type is TaskQueueType.WORKFLOW and queue.pollers is False
    ]
    return Obstacle(f"no worker of it polls task queue {silent[0]}") if silent else None


def _in_cluster(target: "Target", live: LiveDeployment) -> Obstacle | None:
    pods = target.world.pod_problems.get(target.build_id)
    told = f", and its newest Pod {pods}" if pods else ""
    if live.terminating:
        because = "its Deployment is being deleted: it is created again when it is gone"
        return Obstacle(because, has_pods=False)
    if live.replicas == 0:
        return Obstacle("its Deployment is at zero replicas", has_pods=False)
    if live.paused:
        because = f"its Deployment is paused by hand: `kubectl rollout resume deployment/{live.name}` goes on"
        return Obstacle(because, has_pods=False, needs_a_person=True)
    if live.stalled:
        because = f"its Deployment does not get on ({live.stalled}){told}"
        return Obstacle(because, has_pods=False, needs_a_person=True)
    if not live.serving:
        return Obstacle(f"its Deployment is not available yet{told}")
    return None


def _without_cluster(target: "Target") -> Obstacle | None:
    # without a cluster only a poller proves that a worker is there
    workflow = [queue for queue in target.task_queues if queue.type is TaskQueueType.WORKFLOW]
    queues = workflow or list(target.task_queues)
    if not queues:
        because = "the cluster was not read and no task queue of it is known: nothing tells whether it serves"
        return Obstacle(because, is_known=False)
    if any(queue.pollers is None for queue in queues):
        because = "the cluster was not read and its pollers were not: nothing tells whether it serves"
        return Obstacle(because, is_known=False)
    silent = [queue.name for queue in queues if not queue.pollers]
    if silent:
        because = f"the cluster was not read and no worker of it is seen polling {silent[0]}"
        return Obstacle(because)
    return None
