"""One worker in one situation, and what the tables make of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.planning.times import DAY, HOUR, MINUTE, ago
from tests.strategies import NOW, a_spec, live_manifest
from twgen.cluster.deployments import live_deployments, recorded_deployment
from twgen.model.operator import Caller
from twgen.model.plan import RoutingPlan, VersionPlan, WorkerPlan
from twgen.model.spec import Rollout, RolloutStep, Strategy, WorkerSpec
from twgen.model.temporal import (
    CurrentVersion,
    Drainage,
    RampingVersion,
    Routing,
    TaskQueue,
    TaskQueueType,
    Version,
    VersionStatus,
    WorkerDeployment,
)
from twgen.model.times import format_time
from twgen.model.world import WorkerWorld, World
from twgen.planning.plan import make_plan, plan_versions, worker_world
from twgen.planning.routing.target import Target

SPEC = replace(a_spec(), has_custom_build_id=False)
"""Its target is v3, with three replicas, AllAtOnce; it scales down after 1 h and deletes after 24 h more."""
_STEPS = RolloutStep(5, timedelta(minutes=10)), RolloutStep(25, timedelta(minutes=30))
RAMPS = replace(SPEC, rollout=Rollout(Strategy.PROGRESSIVE, _STEPS))
"""The same, Progressive: 10 min at 5%, 30 min at 25%."""
MAIN = TaskQueue("main", TaskQueueType.WORKFLOW, pollers=True, unversioned_pollers=False)


def mark(age: timedelta = MINUTE, **details: Any) -> dict[str, Any]:
    """A mark as a person wrote it this long before now."""
    return {"by": "a person", "at": format_time(ago(age)), **details}


def live(
    build_id: str, replicas: int = 3, *, protected: bool = True, age: timedelta = DAY, **metadata: Any
) -> dict[str, Any]:
    """A version's Deployment, available when it has replicas."""
    manifest = live_manifest(SPEC, build_id, replicas, creationTimestamp=ago(age).isoformat(), **metadata)
    if not protected:
        manifest["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] = "ServerSideApply=true"
    return manifest


def version(build_id: str = "v3", status: VersionStatus = VersionStatus.INACTIVE, **facts: Any) -> Version:
    """A version that Temporal has known for an hour, or since it drained, and that polls the queue `main`."""
    drainage = facts.get("drainage")
    drained_at = drainage.changed_at if drainage and drainage.changed_at else NOW
    told: dict[str, Any] = {"created_at": min(ago(HOUR), drained_at), "task_queues": (MAIN,)}
    return Version(build_id, status, **told | facts)


def drained(age: timedelta | None, build_id: str = "v1", **facts: Any) -> Version:
    """A version that has been drained for so long; None: since nobody knows when."""
    drainage = Drainage(VersionStatus.DRAINED, None if age is None else ago(age))
    return version(
        build_id, VersionStatus.DRAINED, first_activated_at=ago(9 * DAY), drainage=drainage, **facts
    )


def routing(
    current: str | None = None, ramping: tuple[str, float] | None = None, *, age: timedelta = DAY
) -> Routing:
    """Traffic as it has been for a while, a day unless told."""
    since = ago(age)
    return Routing(
        current=CurrentVersion(current, since) if current else None,
        ramping=RampingVersion(*ramping, since, since) if ramping else None,
    )


def temporal(*versions: Version, traffic: Routing | None = None, **facts: Any) -> WorkerDeployment:
    """What Temporal says; it is managed by `me` unless told."""
    told = {"manager_identity": "me", "server_version": "1.32.0"} | facts
    return WorkerDeployment(routing=traffic or Routing(), versions=versions, **told)


def situation(
    says: WorkerDeployment | None,
    deployments: Sequence[dict[str, Any]] | None = (),
    ledger: Mapping[str, dict[str, Any]] | None = None,
    namespace: str = "default",
    **facts: Any,
) -> World:
    """The world of the worker; deployments None: the cluster was not read; a ledger by build ID;
    the Temporal namespace; and what else is known of it."""
    found = None if deployments is None else tuple(live_deployments(list(deployments)))
    worker = WorkerWorld("shop/payments", namespace, says, found, **facts)
    recorded = {("shop/payments", key): recorded_deployment(item) for key, item in (ledger or {}).items()}
    return World(NOW, {worker.key: worker}).remembering(recorded)


def serving(says: WorkerDeployment | None, *build_ids: str, **facts: Any) -> World:
    """The world in which these versions have pods that serve: v3 and v1 unless told."""
    return situation(says, [live(build_id) for build_id in build_ids or ("v3", "v1")], **facts)


def planned(found: World, spec: WorkerSpec = SPEC) -> WorkerPlan:
    """The plan of the worker, made by `me`."""
    (worker,) = make_plan([spec], found, NOW, Caller("me", forced=True)).workers
    return worker


def listed(found: World, build_id: str, spec: WorkerSpec = SPEC) -> VersionPlan | None:
    """What becomes of one version; None: it is not listed."""
    (worker,) = plan_versions([spec], found, NOW, Caller("me", forced=True)).workers
    return next((item for item in worker.versions if item.build_id == build_id), None)


def decided(found: World, build_id: str, spec: WorkerSpec = SPEC) -> VersionPlan:
    """What becomes of one version, which must be listed."""
    plan = listed(found, build_id, spec)
    assert plan, f"{build_id} is not listed"
    return plan


def routed(found: World, spec: WorkerSpec = SPEC) -> RoutingPlan:
    """What becomes of the traffic."""
    return planned(found, spec).routing


def target_in(found: World, spec: WorkerSpec = SPEC, now: datetime = NOW, identity: str = "me") -> Target:
    """The target of the worker, as a command of `me` sees it."""
    return Target(spec, worker_world(spec, found), now, identity)
