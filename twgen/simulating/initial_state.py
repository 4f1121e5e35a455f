"""The beginning of a simulation: a world that was read, or the usual world of a deploy."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from twgen.model.histories import ReplayState
from twgen.model.operator import Caller
from twgen.model.spec import WorkerSpec
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
from twgen.model.timeline import Assumptions
from twgen.model.times import later
from twgen.model.world import LiveDeployment, WorkerWorld, World
from twgen.planning.ownership import refuse_foreign
from twgen.planning.plan import worker_world
from twgen.planning.version_status import IN_ROUTING, ever_active, routed_build_ids, shares, status_of
from twgen.planning.versions.facts import deployments_of
from twgen.simulating.cluster import ClusterModel, as_described
from twgen.simulating.temporal import NEWEST, TemporalModel, server_of
from twgen.simulating.worker import UNNAMED_QUEUE, SimulatedWorker, gate_end
from twgen.versioning.names import versioned_deployment_name

NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""The beginning of a simulation whose times are offsets only."""
_BEFORE = timedelta(days=1)
_USUAL_REPLICAS = 1


def usual_world(specs: Iterable[WorkerSpec], begin: datetime, caller: Caller) -> World:
    """The world of a deploy: one version, `previous`, is current, and the target has just been committed."""
    return World(begin, {spec.key: _usual(spec, begin, caller) for spec in specs})


def initial_state(
    spec: WorkerSpec, world: World, begin: datetime, caller: Caller, assumed: Assumptions
) -> SimulatedWorker:
    """The worker in the state that the world describes.

    Raises StateUnavailable if the world lacks it, OwnedBySomebodyElse if a Deployment has another owner. Each
    version is made consistent with the routing. If the cluster was not read, versions that have pollers, or
    must have some, are assumed to run.
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
        state = UpdateState.COMPLETED if server.tells_update_state else None
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
    # a person simulates the rollout that owns the worker
    is_managed_by_twgen = caller.is_person and temporal.manager.startswith("twgen/")
    acting = replace(caller, identity=temporal.manager) if is_managed_by_twgen else caller
    refuse_foreign(spec, start, acting)
    worker = SimulatedWorker(
        spec, temporal, ClusterModel(assumed.startup), acting, assumed, begin, start.ledger, start.history
    )
    if start.replay and start.replay.state is ReplayState.FAILED:
        worker.replay = start.replay
    if start.deployments is None:
        live = {build_id: _running(spec, build_id, begin) for build_id in _in_use(temporal)}
    else:  # of two Deployments of one version, the one that planning uses
        live = {build_id: several[0] for build_id, several in deployments_of(spec, start).items()}
    worker.cluster.sync(live, begin)
    worker.advance(begin)
    return worker


def _in_use(temporal: TemporalModel) -> list[str]:
    described = temporal.described()
    return sorted(
        build_id
        for build_id, version in temporal.versions.items()
        if any(queue.pollers for queue in version.task_queues or ())
        or status_of(build_id, version, described) in IN_ROUTING | {VersionStatus.DRAINING}
    )


def _running(spec: WorkerSpec, build_id: str, now: datetime, identity: str = "") -> LiveDeployment:
    """The Deployment of a version that serves, with the replicas of the spec."""
    replicas = _USUAL_REPLICAS if spec.replicas is None else spec.replicas
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
    """Every version with the status that planning derives; versions that only routing names are included."""
    listed = {version.build_id: version for version in temporal.versions}
    for build_id in sorted(routed_build_ids(temporal) - set(listed)):
        listed[build_id] = Version(build_id, VersionStatus.UNSPECIFIED, begin)
    for version in listed.values():
        status = status_of(version.build_id, version, temporal)
        drainage = version.drainage
        if status is VersionStatus.DRAINING:
            known_drainage = drainage or Drainage(status)
            checked = known_drainage.checked_at
            # the next count of its workflows must not be in the past
            is_recent = checked is not None and later(checked, interval) > begin
            drainage = Drainage(status, known_drainage.changed_at or begin, checked if is_recent else begin)
        yield replace(version, status=status, drainage=drainage)


def _last_ends(temporal: WorkerDeployment, begin: datetime, duration: timedelta) -> dict[str, datetime]:
    """When the last pinned workflow of each version ends, for versions that have one at the beginning."""
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
