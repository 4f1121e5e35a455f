"""Selects the facts that must be read about a worker before a decision, and reports failed reads."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.model.analysis import Metric
from twgen.model.plan import VersionAction
from twgen.model.policy import HistorySource, ReplayBefore
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import Drainage, TaskQueue, TaskQueueType, Version, VersionStatus, WorkerDeployment
from twgen.model.values import dataclass
from twgen.model.world import LiveDeployment, WorkerWorld
from twgen.planning.draining.actions import schedules
from twgen.planning.routing.gates import gates_up_to, on_queues
from twgen.planning.routing.polling import missing_queues
from twgen.planning.routing.target import Target
from twgen.planning.version_status import LOOKS_IDLE, may_have_work, status_of
from twgen.planning.versions.facts import known_to_temporal, version_facts
from twgen.planning.versions.table import decide
from twgen.versioning.build_ids import may_be_ours
from twgen.versioning.injection import task_queue_of

_STALE_AFTER = timedelta(minutes=15)
"""A server checks every few minutes whether a version has drained, but its list of versions might never show
the result: 1.32.2 loses it if another version registers a task queue at that moment."""

_MOST_LEFT_OVERS = 10
"""twgen searches Git for at most this many versions that are no longer needed."""


@dataclass(frozen=True, slots=True)
class Reads:
    """The facts that must still be read about a worker once its versions are known."""

    open_workflows: frozenset[str]
    """The build IDs of the versions whose open pinned workflows must be counted."""
    auto_upgrade_workflows: tuple[str, ...] = ()
    """The build IDs of the versions whose open auto-upgrade workflows must be counted, since a rollback moves
    these workflows."""
    task_queues: frozenset[TaskQueue] = frozenset()
    """The task queues whose pollers must be read."""
    tasks_of: tuple[tuple[str, TaskQueue], ...] = ()
    """The task queues that the current version polls but the target does not, each with the current build ID.
    These task queues might have tasks."""
    gate_runs: tuple[tuple[str, str], ...] | None = None
    """The target's gate workflows to read, as task queue and workflow ID, or None if no gate matters."""
    metrics: tuple[Metric, ...] = ()
    """The metrics that must be measured on the ramping target."""
    measured_since: datetime | None = None
    """When measuring began, or None if nothing is measured."""
    worker_deployments: bool = False
    """Whether to list the namespace's Worker Deployments: the namespace may be full, or contain a misspelled
    name."""
    other_workers: bool = False
    """Whether to search for pollers that might be this worker under a wrong name."""
    task_queue_of_variables: TaskQueue | None = None
    """The task queue from the containers' environment variables, if its other pollers must be read."""
    pods_of: tuple[LiveDeployment, ...] = ()
    """The Deployments whose Pods must be read, because no pod is available or no pod polls yet."""
    replay: bool = False
    """Whether to read the state of the target's replay."""
    held: tuple[str, ...] = ()
    """The build IDs of draining versions with pods. People want to see which workflows keep these versions
    running."""


def versions_to_describe(
    spec: WorkerSpec, world: WorkerWorld, now: datetime, *, for_routing: bool
) -> tuple[str, ...]:
    """The build IDs of the versions to describe one by one, because Temporal's version list is not enough.

    The list may be out of date. For example, it may lack a live version, which would then be scaled down as
    unknown, or contain an old drainage status. With `for_routing`, the result includes versions whose
    metadata and task queues affect traffic, or the policy's actions on workflows.
    """
    if not world.temporal:
        return ()
    listed = {version.build_id: version for version in world.temporal.versions}
    live = {live.build_id for live in world.deployments or () if may_be_ours(live.build_id)}
    stale = {version.build_id for version in listed.values() if _is_stale(version, now)}
    deciding: set[str] = set()
    if for_routing:
        deciding = _deciding_on_traffic(spec, world.temporal) | schedules(spec, world.temporal, now).keys()
    return tuple(sorted((live - listed.keys()) | stale | (deciding & listed.keys())))


def further_reads(
    spec: WorkerSpec, world: WorkerWorld, now: datetime, *, for_routing: bool, for_people: bool = False
) -> Reads:
    """The reads to make once the versions are known.

    Without `for_routing`, the result contains only the reads that can show that a version is still needed.
    """
    holding = frozenset(versions_to_count(spec, world, now)) | _idle_without_deployment(spec, world)
    if not for_routing:
        return Reads(holding)
    # the reads depend neither on the identity nor on the reason why a Deployment is not created
    target = Target(spec, world, now, identity="")
    deciding = _deciding_on_traffic(spec, target.temporal)
    # the target may have available pods, but none of its workers has polled
    may_poll = world.deployments is None or target.obstacle is None
    is_missing = may_poll and not (target.is_registered or spec.says_zero)
    versions = (version for version in target.temporal.versions if version.build_id in deciding)
    queues = {queue for version in versions for queue in version.own_task_queues}
    queue_name = task_queue_of(spec.template.content) if is_missing else ""
    queue_of_spec = TaskQueue(queue_name, TaskQueueType.WORKFLOW) if queue_name else None
    return Reads(
        open_workflows=holding,
        auto_upgrade_workflows=(target.current,) if target.current and target.goes_back else (),
        task_queues=frozenset(queues),
        tasks_of=tuple((target.current, queue) for queue in missing_queues(target))
        if target.current and not target.is_current
        else (),
        gate_runs=gate_runs_to_read(target),
        metrics=target.analysis.metrics if target.analysis else (),
        measured_since=target.measured_since,
        worker_deployments=world.temporal is None and is_missing,
        other_workers=is_missing,
        task_queue_of_variables=None if queue_of_spec in queues else queue_of_spec,
        pods_of=tuple(
            live
            for live in world.deployments or ()
            if live.replicas > 0
            and not live.terminating
            and (not live.serving or (is_missing and live.build_id == spec.build_id))
        ),
        replay=spec.policy.replay is not None
        and (not target.is_current or spec.policy.replay.before is not ReplayBefore.RAMP),
        held=tuple(_draining_with_pods(target)) if for_people else (),
    )


def gate_runs_to_read(target: Target) -> tuple[tuple[str, str], ...] | None:
    """The task queue and workflow ID of each gate that must be read, or None if no decision needs them.

    If a known run of another workflow type uses a workflow ID, the next attempt's ID is read.
    """
    # a rollback needs no gates, but its window may end before the plan is made, so gates are read anyway
    gates = () if target.is_current else gates_up_to(target, target.next_percentage)
    names = tuple((on_queue.task_queue, on_queue.workflow_id) for on_queue in on_queues(target, gates))
    return names if gates else None


def _draining_with_pods(target: Target) -> Iterator[str]:
    """The build IDs of the draining versions that may have pods."""
    for version in target.temporal.versions:
        live = target.deployments.get(version.build_id)
        has_pods = live.replicas > 0 if live else target.world.deployments is None
        status = status_of(version.build_id, version, target.temporal)
        if status is VersionStatus.DRAINING and has_pods and version.build_id != target.build_id:
            yield version.build_id


def versions_to_count(spec: WorkerSpec, world: WorkerWorld, now: datetime) -> tuple[str, ...]:
    """The build IDs whose open pinned workflows must be counted before their pods or code change."""
    build_ids = []
    for version in version_facts(spec, world, now):
        action = decide(version).action
        edited = action is VersionAction.KEEP and version.applied and version.applied.since.changed
        replaced = edited or action in {VersionAction.SCALE_DOWN, VersionAction.UPDATE}
        if version.version and (replaced or (action is VersionAction.DROP and version.live)):
            build_ids.append(version.build_id)
    return tuple(build_ids)


def versions_to_look_for(spec: WorkerSpec, world: WorkerWorld, now: datetime) -> frozenset[str]:
    """The build IDs whose manifests may only be in the Git history, because no earlier source has them."""
    history = spec.policy.history
    if HistorySource.GIT not in history:
        return frozenset()
    before = history[: history.index(HistorySource.GIT)]
    live = {deployment.build_id for deployment in world.deployments or ()}
    with_manifest = {spec.build_id, *(live if HistorySource.CLUSTER in before else ())}
    with_manifest |= world.ledger.keys() if HistorySource.LEDGER in before else set()
    # do not apply the table to versions that drained long ago: a worker may have a hundred thousand of them
    unknown = {
        build_id
        for build_id, version in known_to_temporal(world).items()
        if build_id not in with_manifest
        and (
            world.deployments is None or may_have_work(status_of(build_id, version, world.temporal), version)
        )
    } | (live - with_manifest)
    return frozenset(
        version.build_id
        for version in (version_facts(spec, world, now, unknown) if unknown else ())
        if decide(version).action not in {VersionAction.DROP, VersionAction.NONE}
    )


def left_overs_to_look_for(spec: WorkerSpec, world: WorkerWorld, now: datetime) -> frozenset[str]:
    """The newest versions that are no longer needed but may still have Deployments, as no cluster was read.

    twgen searches Git for only a few of these versions, since each version costs time in every render for as
    long as Temporal lists it.
    """
    if world.deployments is not None or HistorySource.GIT not in spec.policy.history:
        return frozenset()
    left_overs = [
        version
        for version in version_facts(spec, world, now)
        if version.is_left_over
        and version.is_among_newest
        and not (version.recorded or version.is_target or version.is_of_others)
    ]
    newest = sorted(left_overs, key=lambda version: version.registered_for or timedelta.max)
    return frozenset(version.build_id for version in newest[:_MOST_LEFT_OVERS])


def _deciding_on_traffic(spec: WorkerSpec, temporal: WorkerDeployment) -> set[str]:
    # include the target even if it is current: it may be marked as aborted, or have no pollers
    current = temporal.routing.current
    return {spec.build_id, current.build_id} if current else {spec.build_id}


def _is_stale(version: Version, now: datetime) -> bool:
    drainage = version.drainage or Drainage(VersionStatus.UNSPECIFIED)
    checked_at = drainage.checked_at or drainage.changed_at
    is_old = checked_at is None or now - checked_at > _STALE_AFTER
    return version.status is VersionStatus.DRAINING and is_old


def _idle_without_deployment(spec: WorkerSpec, world: WorkerWorld) -> set[str]:
    # Temporal's drainage check may miss a workflow that started pinned to one of these versions
    deployed = {spec.build_id, *(deployment.build_id for deployment in world.deployments or ())}
    return {
        version.build_id
        for version in (world.temporal.versions if world.temporal else ())
        if version.status in LOOKS_IDLE
        and version.build_id not in deployed
        and may_be_ours(version.build_id)
        and status_of(version.build_id, version, world.temporal) in LOOKS_IDLE
    }


_ONE_LINE_FROM = 3
"""If this many workers have the same failure, they share a line."""
_OF_ONE_WORKER = re.compile(r", namespace '[^']*' \(for [^)]*\)")


class Unread(NamedTuple):
    """A worker that could not be read."""

    address: str
    """The address of the worker's Temporal server."""
    why: str
    is_busy: bool = False
    """Whether the server rate-limited the call, so that a later attempt may succeed."""
    is_late: bool = False
    """Whether the server did not respond in time."""


def unread_error(unread: Sequence[Unread]) -> TwgenError:
    """The error for a command that could not read these workers."""
    kind = OutOfTime if all(one.is_late for one in unread) else StateUnavailable
    return kind("; ".join(unread_lines(unread)))


def unread_lines(unread: Iterable[Unread]) -> list[str]:
    """The reasons why workers were not read. Workers of one server with the same failure share a line."""
    alike: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for one in unread:
        alike[one.address, _OF_ONE_WORKER.sub("", one.why)].append(one.why)
    lines: dict[str, None] = {}
    for (address, _), reasons in alike.items():
        if len(reasons) >= _ONE_LINE_FROM and address in reasons[0]:
            lines[f"{len(reasons)} workers of {address} were not read: {reasons[0]}"] = None
        else:
            lines |= dict.fromkeys(reasons)
    return list(lines)
