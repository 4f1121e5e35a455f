"""Planning the versions of one worker: the version table applied to all that exist."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

from twgen.errors import StateUnavailable
from twgen.model.plan import VersionAction, VersionPlan, WorkerVersions
from twgen.model.policy import MissingTemplate
from twgen.model.spec import WorkerSpec
from twgen.model.world import VersionStatus, WorkerWorld, World
from twgen.planning.facts import Facts, Words
from twgen.planning.history import recorded_version
from twgen.planning.ownership import doubts_about_cluster
from twgen.planning.status import routed_build_ids, status_of
from twgen.planning.version_table import Row, row_for
from twgen.planning.version_warnings import version_warnings
from twgen.versioning.hashes import connection_hash
from twgen.versioning.names import versioned_deployment_name

_UNREAD = "if it is there, its prune protection holds it"
_WITHOUT_WORK = {VersionStatus.NOT_REGISTERED, VersionStatus.INACTIVE, VersionStatus.DRAINED}
_LOST = "nothing can run them until its manifest is back in twgen.lock.yaml"


def plan_worker_versions(spec: WorkerSpec, world: World, now: datetime) -> WorkerVersions:
    """What becomes of every version of a worker; raises StateUnavailable when the world does not hold it."""
    rows = [(version, row_for(version)) for version in _all_facts(spec, world, now)]
    blocked = _blocked(spec, rows)
    plans = [_planned(version, row, blocked) for version, row in rows]
    return WorkerVersions(
        spec=spec,
        versions=tuple(plan for plan in plans if plan),
        warnings=(*doubts_about_cluster(spec, worker_world(spec, world)), *_warnings(rows, plans)),
        blocked=blocked,
    )


def worker_world(spec: WorkerSpec, world: World) -> WorkerWorld:
    """What the world says of a worker; raises StateUnavailable when it says nothing."""
    found = world.workers.get((spec.worker_deployment, spec.temporal_namespace))
    if not found or not found.temporal_was_read:
        raise StateUnavailable(
            f"the snapshot does not say what Temporal knows of {spec.worker_deployment} in Temporal"
            f" namespace {spec.temporal_namespace}: take a new one"
        )
    return found


def versions_to_count(spec: WorkerSpec, known: WorkerWorld, now: datetime) -> Collection[str]:
    """The build IDs whose open pinned workflows must be counted before pods or a Deployment go."""
    world = World(now, {(known.name, known.temporal_namespace): known})
    facts = _all_facts(spec, world, now)
    return [version.build_id for version in facts if _is_due(version, row_for(version).action)]


def _is_due(version: Facts, action: VersionAction) -> bool:
    goes = action is VersionAction.SCALE_DOWN or (action is VersionAction.DROP and version.live is not None)
    return goes and version.version is not None


def _all_facts(spec: WorkerSpec, world: World, now: datetime) -> Iterator[Facts]:
    known = worker_world(spec, world)
    live = {deployment.build_id: deployment for deployment in known.deployments or ()}
    versions = {version.build_id: version for version in (known.temporal.versions if known.temporal else ())}
    expected_hash = connection_hash(spec.connection)
    routed = routed_build_ids(known.temporal)
    for build_id in sorted({spec.build_id, *live, *versions, *routed}):
        version = versions.get(build_id)
        yield Facts(
            spec=spec,
            world=known,
            now=now,
            build_id=build_id,
            status=status_of(build_id, known.temporal),
            version=version,
            live=live.get(build_id),
            recorded=recorded_version(spec, build_id, world, live.get(build_id)),
            spec_connection_hash=expected_hash,
        )


def _planned(version: Facts, row: Row, blocked: str) -> VersionPlan | None:
    if row.action is VersionAction.DROP and not version.live:
        return None
    action, because = row.action, row.because.format_map(Words(version))
    new_connection = action is VersionAction.KEEP and version.gets_new_connection
    if new_connection:
        action, because = VersionAction.UPDATE, f"{because}; its connection changed"
    if version.is_target and action is VersionAction.CREATE and blocked:
        action, because = VersionAction.NONE, blocked
    elif action is not VersionAction.DROP and not version.is_target and not version.recorded:
        action, because = VersionAction.NONE, f"{because}, but no manifest of it is known anywhere"
    from_spec = action in {VersionAction.CREATE, VersionAction.UPDATE} and version.is_target
    return VersionPlan(
        build_id=version.build_id,
        status=version.status,
        deployment=_deployment_name(version),
        action=action,
        because=because,
        replicas=None if action is VersionAction.NONE else row.replicas(version),
        protected=row.protected and action is not VersionAction.NONE,
        live=version.live,
        recorded=None if from_spec and not new_connection else version.recorded,
        new_connection=new_connection,
    )


def _deployment_name(version: Facts) -> str:
    return (
        version.live.name if version.live else versioned_deployment_name(version.spec.name, version.build_id)
    )


def _blocked(spec: WorkerSpec, rows: Iterable[tuple[Facts, Row]]) -> str:
    if not any(_may_wait(version) for version, _ in rows):
        return ""
    holding = [version for version, row in rows if _counts(version, row)]
    if len(holding) < spec.policy.max_versions:
        return ""
    return (
        f"{len(holding)} versions still exist and maxVersions is {spec.policy.max_versions}: "
        f"{spec.build_id} waits until one is gone"
    )


def _may_wait(version: Facts) -> bool:
    # one that Temporal may already send work to needs its pods, however many there are
    idle = version.status in _WITHOUT_WORK and not version.has_open_workflows
    return version.is_target and not version.live and idle


def _counts(version: Facts, row: Row) -> bool:
    if version.is_target:
        return False
    if not version.live:
        return row.action is not VersionAction.DROP
    return not (version.status is VersionStatus.DRAINED and version.live.replicas == 0)


def _warnings(rows: Iterable[tuple[Facts, Row]], plans: Iterable[VersionPlan | None]) -> Iterator[str]:
    for (version, row), plan in zip(rows, plans, strict=True):
        if not plan:
            continue
        yield from version_warnings(version, row, plan)
        if plan.action is VersionAction.NONE and version.is_target:
            yield f"{version.build_id} is not rendered: {plan.because}"
        elif plan.action is VersionAction.NONE:
            missing = f"{version.build_id}: {plan.because}"
            if version.spec.policy.missing_template is MissingTemplate.FAIL:
                raise StateUnavailable(f"{version.spec.worker_deployment}: {missing}")
            yield f"{missing}; {_UNREAD if version.world.deployments is None else _LOST}"
