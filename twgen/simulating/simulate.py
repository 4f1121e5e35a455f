"""Simulates rollouts: the clock jumps from one event to the next until no event is left.

A simulation starts from a world that was read, or from an assumed usual world.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from twgen.model.analysis import Analysis, WorkflowFailures
from twgen.model.operator import Caller
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.rollout import Driver
from twgen.model.spec import RolloutStep, Strategy, WorkerSpec
from twgen.model.temporal import (
    CurrentVersion,
    Drainage,
    GateStatus,
    Routing,
    TaskQueue,
    TaskQueueType,
    UpdateState,
    Version,
    VersionStatus,
    WorkerDeployment,
)
from twgen.model.timeline import Assumptions, Outcome, Timeline, WorkerTimeline
from twgen.model.times import FOREVER, later
from twgen.model.world import LiveDeployment, ReplayState, WorkerWorld, World
from twgen.planning.analysis.noticing import Judged, noticed, too_short
from twgen.planning.ownership import refuse_foreign
from twgen.planning.plan import worker_world
from twgen.planning.version_status import IN_ROUTING, ever_active, routed_build_ids, shares, status_of
from twgen.planning.versions.facts import deployments_of
from twgen.simulating.frames import Frame, events_of, frame_of, lanes
from twgen.simulating.servers import NEWEST, ClusterModel, TemporalModel, as_described, server_of
from twgen.simulating.worker import UNNAMED_QUEUE, SimulatedWorker, gate_end
from twgen.versioning.names import versioned_deployment_name

_OUTCOMES = {
    Phase.SETTLED: Outcome.SETTLED,
    Phase.WAITING: Outcome.WAITING,
    Phase.BLOCKED: Outcome.BLOCKED,
    Phase.MOVING: Outcome.UNFINISHED,
}
NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""The start time of a simulation whose report shows only offsets."""
_BEFORE = timedelta(days=1)


def simulate(
    specs: Iterable[WorkerSpec],
    world: World | None,
    begins: datetime | None,
    caller: Caller,
    assumed: Assumptions,
) -> Timeline:
    """Simulate the rollout of every worker, starting from `world`, or from `usual_world` if `world` is None.

    Raises StateUnavailable if the world lacks a worker, and OwnedBySomebodyElse if a Deployment has another
    owner.
    """
    timelines = []
    for spec in specs:
        start = world or usual_world([spec], begins or NO_TIME, caller)
        timelines.append(_timeline(spec, start, begins, caller, assumed))
    return Timeline(begins=begins, is_usual=world is None, assumptions=assumed, workers=tuple(timelines))


def run(worker: SimulatedWorker) -> Iterator[tuple[Frame, WorkerPlan]]:
    """Yield the worker's state and its plan at each moment when anything may change.

    Each moment has up to four frames: after events that twgen does not cause, after a sync, after the
    rollout's changes, and after the policy's actions on workflows.
    """
    previous_states = deque[object](maxlen=8)
    # no rollout has this many moments: it has at most 20 steps, and 5 moments for each of 100 versions
    for _ in range(5000):
        plan = worker.plan()
        yield frame_of(worker), plan
        if worker.is_render_due() and worker.sync(plan):
            plan = worker.plan()
            yield frame_of(worker), plan
        rolled_out = worker.roll_out(plan)
        if rolled_out is not plan:
            yield frame_of(worker), rolled_out
        if worker.end_workflows(rolled_out):
            rolled_out = worker.plan()
            yield frame_of(worker), rolled_out
        event = worker.next_event(rolled_out)
        moment = worker.or_next_render(rolled_out, event)
        if moment >= FOREVER:
            return
        if event >= FOREVER:
            # two renders might undo each other forever, so stop if only the time has changed since an earlier
            # state
            temporal, deployments = worker.temporal, dict(worker.cluster.deployments)
            if (state := (deployments, dict(temporal.versions), temporal.routing)) in previous_states:
                return
            previous_states.append(state)
        worker.advance(moment)


def _timeline(
    spec: WorkerSpec, world: World, begins: datetime | None, caller: Caller, assumed: Assumptions
) -> WorkerTimeline:
    worker = initial_state(spec, world, begins or NO_TIME, caller, assumed)
    moments = list(run(worker))
    frames, first, last = [frame for frame, _ in moments], moments[0][1], moments[-1][1]
    events = events_of(frames, begins)
    phases = [(plan.routing.phase, plan.routing.reason) for _, plan in moments]
    other_phases = (index for index in reversed(range(len(phases))) if phases[index] != phases[-1])
    temporal = worker_world(spec, world).temporal
    current = temporal.routing.current if temporal else None
    measured = measured_steps(spec)
    is_unfinished = worker.or_next_render(last, worker.next_event(last)) < FOREVER
    return WorkerTimeline(
        worker=spec.worker_deployment,
        temporal_namespace=spec.temporal_namespace,
        current_build_id=current.build_id if current else None,
        target_build_id=spec.build_id,
        rollout=spec.rollout,
        sunset=spec.sunset,
        server_version=worker.temporal.server.version,
        outcome=Outcome.UNFINISHED if is_unfinished else _OUTCOMES[last.routing.phase],
        because=last.routing.because,
        ends=events[-1].at if events else timedelta(),
        unchanged_since=frames[next(other_phases, -1) + 1].at,
        events=events,
        lanes=lanes(frames),
        noticing=noticed(*measured, assumed.traffic, _judged(spec)) if assumed.traffic and measured else (),
        notes=tuple(_notes(world, worker, first, last)),
    )


def measured_steps(spec: WorkerSpec) -> tuple[tuple[RolloutStep, ...], Analysis] | None:
    """The steps of a spec and their analysis, or None if no step measures failed workflows."""
    analysis, rollout = spec.policy.analysis, spec.rollout
    if not analysis or not rollout.steps or rollout.strategy is not Strategy.PROGRESSIVE:
        return None
    counts = any(isinstance(metric.measure, WorkflowFailures) for metric in analysis.metrics)
    return (rollout.steps, analysis) if counts else None


def _judged(spec: WorkerSpec) -> Judged:
    return tuple(
        (step.percentage, frozenset(metric.name for metric in analysis.metrics))
        for step in spec.rollout.steps
        if (analysis := spec.policy.analysis_at(step.percentage))
    )


def _notes(world: World, worker: SimulatedWorker, first: WorkerPlan, last: WorkerPlan) -> Iterator[str]:
    if worker_world(worker.spec, world).deployments is None:
        yield (
            "the snapshot has no data about the cluster: versions that are in use or have pollers are assumed"
            " to have pods"
        )
    if worker.spec.policy.driver is Driver.NONE:
        yield "the driver is None: `twgen rollout` is assumed to run continuously"
    if measured := measured_steps(worker.spec):
        if not worker.assumed.traffic:
            yield from too_short(*measured, _judged(worker.spec))
        if least := measured[1].least_started:
            counted = f"its last step ends once {least} workflows have started on the target"
            yield f"{counted}, but the simulation does not count workflows"
    if worker.spec.policy.replay and worker.replay.state is ReplayState.PASSED:
        yield "its replay is assumed to pass immediately"
    if worker.spec.policy.draining:
        yield (
            "`twgen tick` is assumed to carry out `draining`. Workflows that are signalled or cancelled are"
            " assumed to keep running"
        )
    yield from first.versions.warnings
    for version in last.versions.versions:
        if version.build_id != worker.spec.build_id and version.live and version.status not in IN_ROUTING:
            yield f"{version.build_id} stays: {version.because}"


def usual_world(specs: Iterable[WorkerSpec], begin: datetime, caller: Caller) -> World:
    """A usual world: the version `previous` is current, and the target has just been committed."""
    return World(begin, {spec.key: _usual(spec, begin, caller) for spec in specs})


def initial_state(
    spec: WorkerSpec, world: World, begin: datetime, caller: Caller, assumed: Assumptions
) -> SimulatedWorker:
    """The worker in the state that the world describes.

    The status of each version is made consistent with the routing. If the cluster was not read, versions that
    are in use or have pollers are assumed to have pods. Raises StateUnavailable if the world lacks the
    worker, and OwnedBySomebodyElse if a Deployment has another owner.
    """
    start = worker_world(spec, world)
    server = server_of(start.temporal.server_version if start.temporal else "")
    temporal = TemporalModel(
        server=server,
        now=begin,
        workflow_duration=assumed.workflow_duration,
        drainage_interval=assumed.drainage_interval,
    )
    if start.temporal:
        temporal.manager = start.temporal.manager_identity
        state = UpdateState.COMPLETED if server.reports_update_state else None
        temporal.routing = replace(start.temporal.routing, update_state=state)
        coherent = _coherent(start.temporal, begin, assumed.drainage_interval)
        temporal.versions = {version.build_id: version for version in coherent}
        temporal.held_until = _last_ends(start.temporal, begin, assumed.workflow_duration)
        temporal.gate_ends = {
            (version.build_id, run.workflow_id): gate_end(begin, assumed)
            for version in start.temporal.versions
            for run in version.gate_runs or ()
            if run.status is GateStatus.RUNNING
        }
    # a person simulates, but the worker's own rollout will make the changes
    is_managed_by_twgen = caller.is_person and temporal.manager.startswith("twgen/")
    acting = replace(caller, identity=temporal.manager) if is_managed_by_twgen else caller
    refuse_foreign(spec, start, acting)
    worker = SimulatedWorker(
        spec, temporal, ClusterModel(assumed.startup), acting, assumed, begin, start.ledger, start.history
    )
    if start.replay and start.replay.state is ReplayState.FAILED:
        worker.replay = start.replay
    if start.deployments is None:
        described, in_use = temporal.described(), IN_ROUTING | {VersionStatus.DRAINING}
        live = {
            build_id: _running(spec, build_id, begin)
            for build_id, version in sorted(temporal.versions.items())
            if any(queue.pollers for queue in version.task_queues or ())
            or status_of(build_id, version, described) in in_use
        }
    else:  # if a version has several Deployments, take the one that planning uses
        live = {build_id: several[0] for build_id, several in deployments_of(spec, start).items()}
    worker.cluster.sync(live, begin)
    worker.advance(begin)
    return worker


def _running(spec: WorkerSpec, build_id: str, now: datetime, identity: str = "") -> LiveDeployment:
    """A version's Deployment whose pods are all available. The spec sets its number of replicas."""
    replicas = 1 if spec.replicas is None else spec.replicas
    name = versioned_deployment_name(spec.name, build_id)
    return LiveDeployment(
        build_id=build_id,
        recorded=as_described(spec, build_id, replicas),
        name=name,
        uid=f"uid of {name}",
        replicas=replicas,
        replicas_are_external=spec.replicas_are_external,
        serving=replicas > 0,
        protected=True,
        identity=identity,
        created_at=now - _BEFORE,
        template_is_as_applied=True,
    )


def _usual(spec: WorkerSpec, begin: datetime, caller: Caller) -> WorkerWorld:
    build_id = "earlier" if spec.build_id == "previous" else "previous"
    since = begin - _BEFORE
    version = Version(
        build_id,
        VersionStatus.CURRENT,
        created_at=since,
        first_activated_at=since,
        last_current_at=since,
        task_queues=(TaskQueue(UNNAMED_QUEUE, TaskQueueType.WORKFLOW, pollers=True),),
    )
    temporal = WorkerDeployment(
        routing=Routing(current=CurrentVersion(build_id, since)),
        versions=(version,),
        server_version=NEWEST,
        manager_identity=caller.of(spec.policy),
    )
    live = _running(spec, build_id, begin, caller.on_deployments_of(spec.policy))
    return WorkerWorld(*spec.key, temporal, (live,))


def _coherent(temporal: WorkerDeployment, begin: datetime, interval: timedelta) -> Iterator[Version]:
    """Every version with the status that planning derives, even a version that only the routing names."""
    listed = {version.build_id: version for version in temporal.versions}
    for build_id in sorted(routed_build_ids(temporal) - set(listed)):
        listed[build_id] = Version(build_id, VersionStatus.UNSPECIFIED, begin)
    for version in listed.values():
        status = status_of(version.build_id, version, temporal)
        drainage = version.drainage
        if status is VersionStatus.DRAINING:
            known_drainage = drainage or Drainage(status)
            checked = known_drainage.checked_at
            # the next drainage check must not be in the past
            is_recent = checked is not None and later(checked, interval) > begin
            drainage = Drainage(status, known_drainage.changed_at or begin, checked if is_recent else begin)
        yield replace(version, status=status, drainage=drainage)


def _last_ends(temporal: WorkerDeployment, begin: datetime, duration: timedelta) -> dict[str, datetime]:
    """When each version's last pinned workflow ends, for versions that have pinned workflows at the start."""
    share = shares(temporal.routing)
    holds = {}
    for version in temporal.versions:
        status = status_of(version.build_id, version, temporal)
        left_at = version.last_deactivated_at
        if share.get(version.build_id) or version.open_workflows:
            holds[version.build_id] = later(begin, duration)
        elif status is VersionStatus.DRAINING and ever_active(version):
            holds[version.build_id] = max(later(left_at or begin, duration), begin)
    return {build_id: until for build_id, until in holds.items() if until > begin}
