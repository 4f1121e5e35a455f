"""Whether the target can take traffic."""

from twgen.model.world import TaskQueueType
from twgen.planning.target import Target


def not_serving(target: Target) -> str:
    """Why the target cannot take traffic, empty when it can."""
    if target.spec.replicas == 0 and not target.spec.replicas_are_external:
        return "its spec says zero replicas: no worker can take traffic"
    if target.world.deployments is None:
        return _silent_queues(target)
    if not target.live:
        return "it has no Deployment yet"
    if not target.live.serving:
        return "its Deployment is not available yet"
    silent = [
        queue.name
        for queue in target.task_queues
        if queue.type is TaskQueueType.WORKFLOW and queue.pollers is False
    ]
    return f"no worker of it polls task queue {silent[0]}" if silent else ""


def _silent_queues(target: Target) -> str:
    # without a cluster only a poller proves that a worker is there
    workflow = [queue for queue in target.task_queues if queue.type is TaskQueueType.WORKFLOW]
    asked = workflow or list(target.task_queues)
    if not asked:
        return "the cluster was not read and no task queue of it is known"
    silent = [queue.name for queue in asked if not queue.pollers]
    return f"the cluster was not read and no worker of it is seen polling {silent[0]}" if silent else ""
