"""What holds the versions that are not current, what they cost, and when they may be drained."""

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import attrgetter

from twgen.model.draining import AGES, PinnedWorkflows, VersionInUse, WorkerInUse, WorkflowGroup
from twgen.model.plan import VersionPlan, WorkerVersions
from twgen.model.temporal import VersionStatus
from twgen.model.world import LiveDeployment
from twgen.planning.sentences import listed
from twgen.planning.version_status import IN_ROUTING
from twgen.versioning.quantities import quantity_nanos

_NANO = 10**9
_HAD_TRAFFIC = {VersionStatus.DRAINING, VersionStatus.DRAINED}
_LEAST_ENDED = 5
"""This many workflows that ran as long must have ended recently to estimate how long one still takes."""


def may_be_held(worker: WorkerVersions) -> tuple[VersionPlan, ...]:
    """The versions that Temporal knows and that get no traffic; the target only if it had some before."""
    return tuple(
        version
        for version in worker.versions
        if version.status in _HAD_TRAFFIC
        or (
            version.build_id != worker.spec.build_id
            and version.status not in IN_ROUTING | {VersionStatus.NOT_REGISTERED}
        )
    )


def held_worker(worker: WorkerVersions, found: Mapping[str, PinnedWorkflows], now: datetime) -> WorkerInUse:
    """The versions of a worker that open workflows hold, and those that keep pods or drain without any."""
    versions = (_held(version, found[version.build_id], now) for version in may_be_held(worker))
    told = (one for one in versions if one.number or one.replicas or one.status is VersionStatus.DRAINING)
    most_first = sorted(told, key=lambda one: (-one.number, one.build_id))
    return WorkerInUse(worker.spec.worker_deployment, worker.spec.temporal_namespace, tuple(most_first))


def _held(version: VersionPlan, found: PinnedWorkflows, now: datetime) -> VersionInUse:
    groups = Counter((one.workflow_type, one.task_queue) for one in found.listed)
    cpu, memory = _requested(version.live) if version.live else (None, None)
    ends_within, unknown_because = _ends_within(found, now)
    return VersionInUse(
        build_id=version.build_id,
        status=version.status,
        number=found.number,
        groups=tuple(
            WorkflowGroup(*group, number)
            for group, number in sorted(groups.items(), key=lambda item: (-item[1], item[0]))
        ),
        grouped=len(found.listed),
        # the clock of the server may be ahead
        oldest=max(now - found.oldest_at, timedelta()) if found.oldest_at else None,
        ages=_ages(found, now),
        failing=max(found.looked_at.failing, sum(one.has_problems for one in found.listed)),
        paused=sum(one.is_paused for one in found.listed),
        waiting_for_child=found.looked_at.waiting_for_child,
        looked_at=found.looked_at.number,
        replicas=version.live.replicas if version.live else None,
        cpu=cpu,
        memory=memory,
        ends_within=ends_within,
        unknown_because=unknown_because,
    )


def _ages(found: PinnedWorkflows, now: datetime) -> tuple[int, ...]:
    """How many are of each class of age, the youngest first."""
    older = found.older_than or [sum(now - one.started_at > age for one in found.listed) for age in AGES]
    bounds = [found.number, *older]
    # each was counted at a moment of its own
    classes = [max(0, younger - elder) for younger, elder in zip(bounds, older, strict=False)]
    return (*classes, bounds[-1])


def _requested(live: LiveDeployment) -> tuple[float | None, int | None]:
    """The cores and the bytes that all pods of a Deployment request; None: a quantity is none."""
    template = live.patch.template if live.patch else live.recorded.manifest["spec"]["template"]
    pod = template["spec"]
    sidecars = [one for one in pod.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    resources = (container.get("resources") or {} for container in (*pod["containers"], *sidecars))
    # what is limited and not requested is requested as it is limited
    requests = [{**(asked.get("limits") or {}), **(asked.get("requests") or {})} for asked in resources]
    try:
        cpu, memory = (
            live.replicas * sum(quantity_nanos(asked.get(name, 0)) for asked in requests)
            for name in ("cpu", "memory")
        )
    except ValueError:
        return None, None
    return cpu / _NANO, memory // _NANO


def _ends_within(found: PinnedWorkflows, now: datetime) -> tuple[tuple[timedelta, timedelta] | None, str]:
    """The time until the last of them closes, or why it is not known.

    Each open workflow is compared with the recently ended ones of its type that ran longer than it has:
    the range is from their median to the slowest of them.
    """
    if not found.number:
        return None, ""
    if not found.are_listed:
        return None, "not all of its workflows are listed"
    lasted, ages = defaultdict[str, list[timedelta]](list), defaultdict[str, list[timedelta]](list)
    for ended in sorted(found.ended, key=attrgetter("lasted")):
        lasted[ended.workflow_type].append(ended.lasted)
    for one in found.listed:
        ages[one.workflow_type].append(now - one.started_at)
    soonest = latest = timedelta()
    unknown = []
    for workflow_type, own in sorted(ages.items()):
        lengths = lasted[workflow_type]
        if len(lengths) - bisect(lengths, max(own)) < _LEAST_ENDED:
            unknown.append(workflow_type)
            continue
        for age in own:
            longer = lengths[bisect(lengths, age) :]
            soonest = max(soonest, longer[len(longer) // 2] - age)
            latest = max(latest, longer[-1] - age)
    if unknown:
        return None, f"too few workflows of type {listed(unknown)} that ran this long have ended recently"
    return (soonest, latest), ""
