"""The open workflows and pods of versions without traffic, and an estimate of when the workflows end."""

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import attrgetter

from twgen.model.draining import AGES, AgeRange, PinnedWorkflows, VersionInUse, WorkerInUse, WorkflowGroup
from twgen.model.plan import VersionPlan, WorkerVersions
from twgen.model.temporal import VersionStatus
from twgen.model.world import LiveDeployment, WorkerWorld
from twgen.planning.sentences import listed
from twgen.planning.version_status import HAD_TRAFFIC, IN_ROUTING
from twgen.versioning.quantities import quantity_nanos

_NANO = 10**9
_LEAST_ENDED = 5
"""An estimate for an open workflow needs this many recently ended workflows that ran for longer than its age.
"""


def versions_without_traffic(worker: WorkerVersions) -> tuple[VersionPlan, ...]:
    """The versions in Temporal that get no traffic. The target is included only if it had traffic before."""
    return tuple(
        version
        for version in worker.versions
        if version.status in HAD_TRAFFIC
        or (
            version.build_id != worker.spec.build_id
            and version.status not in IN_ROUTING | {VersionStatus.NOT_REGISTERED}
        )
    )


def worker_in_use(
    worker: WorkerVersions, pinned: Mapping[str, PinnedWorkflows], now: datetime
) -> WorkerInUse:
    """The old versions of a worker that have open workflows or pods, or are still draining."""
    idle = versions_without_traffic(worker)
    versions = (
        _version_in_use(version, pinned.get(version.build_id, PinnedWorkflows(None)), now) for version in idle
    )
    in_use = (
        item for item in versions if item.number or item.replicas or item.status is VersionStatus.DRAINING
    )
    most_first = sorted(in_use, key=lambda version: (-(version.number or 0), version.build_id))
    return WorkerInUse(worker.spec.worker_deployment, worker.spec.temporal_namespace, tuple(most_first))


def counted_workflows(world: WorkerWorld) -> dict[str, PinnedWorkflows]:
    """The open workflows of each version in a snapshot, which contains only the number of workflows."""
    versions = world.temporal.versions if world.temporal else ()
    return {version.build_id: PinnedWorkflows(version.open_workflows) for version in versions}


def _version_in_use(version: VersionPlan, pinned: PinnedWorkflows, now: datetime) -> VersionInUse:
    groups = Counter((workflow.workflow_type, workflow.task_queue) for workflow in pinned.listed)
    cpu, memory = _requested(version.live) if version.live else (None, None)
    ends_within, unknown_because = _ends_within(pinned, now)
    return VersionInUse(
        build_id=version.build_id,
        status=version.status,
        number=pinned.number,
        groups=tuple(
            WorkflowGroup(*group, number)
            for group, number in sorted(groups.items(), key=lambda item: (-item[1], item[0]))
        ),
        grouped=len(pinned.listed),
        # the server's clock may be ahead
        oldest=max(now - pinned.oldest_at, timedelta()) if pinned.oldest_at else None,
        ages=_ages(pinned, now),
        failing=max(pinned.described.failing, sum(workflow.has_problems for workflow in pinned.listed)),
        paused=sum(workflow.is_paused for workflow in pinned.listed),
        waiting_for_child=pinned.described.waiting_for_child,
        looked_at=pinned.described.number,
        replicas=version.live.replicas if version.live else None,
        cpu=cpu,
        memory=memory,
        ends_within=ends_within,
        unknown_because=unknown_because,
    )


def _ages(pinned: PinnedWorkflows, now: datetime) -> tuple[AgeRange, ...] | None:
    if pinned.number is None or (pinned.number and not pinned.listed):
        return None
    listed_ages = [now - workflow.started_at for workflow in pinned.listed]
    older = pinned.older_than or [sum(age > bound for age in listed_ages) for bound in AGES]
    bounds = [pinned.number, *older]
    # each number was counted at a different moment, so the difference may be negative
    numbers = [max(0, younger - elder) for younger, elder in zip(bounds, older, strict=False)]
    return tuple(map(AgeRange, (*AGES, None), (*numbers, bounds[-1])))


def _requested(live: LiveDeployment) -> tuple[float | None, int | None]:
    """The CPU cores and memory bytes that a Deployment's pods request, or None if a quantity is invalid."""
    template = live.patch.template if live.patch else live.recorded.manifest["spec"]["template"]
    pod = template["spec"]
    init_containers = pod.get("initContainers") or ()
    sidecars = [container for container in init_containers if container.get("restartPolicy") == "Always"]
    resources = [container.get("resources") or {} for container in (*pod["containers"], *sidecars)]
    # Kubernetes uses the limit if there is no request
    requests = [{**(item.get("limits") or {}), **(item.get("requests") or {})} for item in resources]
    try:
        cpu, memory = (
            live.replicas * sum(quantity_nanos(request.get(name, 0)) for request in requests)
            for name in ("cpu", "memory")
        )
    except ValueError:
        return None, None
    return cpu / _NANO, memory // _NANO


def _ends_within(pinned: PinnedWorkflows, now: datetime) -> tuple[tuple[timedelta, timedelta] | None, str]:
    """The shortest and the longest likely time until the last open workflow closes, or why it is unknown.

    twgen compares each open workflow with the recently ended workflows of its type that ran for longer than
    its age. The range extends from the median duration to the longest duration of these ended workflows.
    """
    if pinned.number == 0:
        return None, ""
    if not pinned.are_listed:
        return None, "not all of its workflows are listed"
    lasted, ages = defaultdict[str, list[timedelta]](list), defaultdict[str, list[timedelta]](list)
    for ended in sorted(pinned.ended, key=attrgetter("lasted")):
        lasted[ended.workflow_type].append(ended.lasted)
    for workflow in pinned.listed:
        ages[workflow.workflow_type].append(now - workflow.started_at)
    soonest = latest = timedelta()
    unknown = []
    for workflow_type, ages_of_type in sorted(ages.items()):
        lengths = lasted[workflow_type]
        if len(lengths) - bisect(lengths, max(ages_of_type)) < _LEAST_ENDED:
            unknown.append(workflow_type)
            continue
        for age in ages_of_type:
            longer = lengths[bisect(lengths, age) :]
            soonest = max(soonest, longer[len(longer) // 2] - age)
            latest = max(latest, longer[-1] - age)
    if unknown:
        return None, f"too few workflows of type {listed(unknown)} that ran this long have ended recently"
    return (soonest, latest), ""
