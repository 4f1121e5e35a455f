"""The promises of the design, over any spec and any world."""

import copy
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given, reject

from tests.strategies import NOW, TARGET, a_spec, specs, world, worlds
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.plan import RoutingAction, VersionAction, VersionPlan
from twgen.model.policy import Policy
from twgen.model.spec import WorkerSpec
from twgen.model.world import Version, VersionStatus, WorkerWorld, World
from twgen.planning.plan import Manager, make_plan, plan_versions
from twgen.rendering.manifests import render_manifests
from twgen.rendering.text import FORMATS

ME = Manager("me", forced=True)


def worker_world(found: World) -> WorkerWorld:
    (worker,) = found.workers.values()
    return worker


def planned(spec: WorkerSpec, found: World) -> dict[str, VersionPlan]:
    (worker,) = plan_versions([spec], found, NOW, ME).workers
    return {version.build_id: version for version in worker.versions}


def rendered(spec: WorkerSpec, found: World) -> list[dict[str, Any]]:
    workers = plan_versions([spec], found, NOW, ME).workers

    def identity(_: Policy) -> str:
        return "me"

    return render_manifests(workers, [], identity)


def may_have_work(build_id: str, worker: WorkerWorld) -> bool:
    """What the promise says, in words of its own: not the planner's."""
    temporal = worker.temporal
    live = next(item for item in worker.deployments or () if item.build_id == build_id)
    if build_id == TARGET or temporal is None:
        return True
    routed = {temporal.routing.current and temporal.routing.current.build_id}
    routed |= {temporal.routing.ramping and temporal.routing.ramping.build_id}
    if build_id in routed:
        return True
    version = next((item for item in temporal.versions if item.build_id == build_id), None)
    if version is None:
        return not live.created_at or NOW - live.created_at <= timedelta(minutes=10)
    return bool(version.open_workflows) or not is_idle(version)


def is_idle(version: Version) -> bool:
    draining = version.drainage and version.drainage.status
    if version.status is VersionStatus.DRAINED:
        return draining in {None, VersionStatus.DRAINED}
    active = version.first_activated_at or version.last_current_at or version.last_deactivated_at
    never_active = version.status is VersionStatus.INACTIVE and not active
    return never_active and draining is not VersionStatus.DRAINING


@given(specs, worlds())
def test_version_that_may_have_work_keeps_its_pods_and_its_protection(spec: WorkerSpec, found: World) -> None:
    plans, worker = planned(spec, found), worker_world(found)
    for live in worker.deployments or ():
        if not may_have_work(live.build_id, worker):
            continue
        plan = plans[live.build_id]
        assert plan.is_rendered
        assert plan.protected
        says_fewer = spec.replicas is not None and plan.replicas == spec.replicas
        assert plan.replicas is None or plan.replicas >= live.replicas or says_fewer
        if plan.replicas is None:
            assert live.replicas_are_external


@given(specs, worlds())
def test_target_and_routed_versions_are_never_dropped_or_scaled_down(spec: WorkerSpec, found: World) -> None:
    (worker,) = make_plan([spec], found, NOW, ME).workers
    gone = {
        version.build_id
        for version in worker.versions.versions
        if version.action in {VersionAction.DROP, VersionAction.SCALE_DOWN}
    }
    temporal = worker_world(found).temporal
    routed = {TARGET, worker.routing.build_id}
    if temporal:
        routed |= {temporal.routing.current and temporal.routing.current.build_id}
        routed |= {temporal.routing.ramping and temporal.routing.ramping.build_id}
    assert not gone & routed


@given(specs, worlds())
def test_drop_follows_a_scale_down_that_was_synced(spec: WorkerSpec, found: World) -> None:
    for plan in planned(spec, found).values():
        if plan.action is VersionAction.DROP:
            assert plan.live
            assert (plan.live.replicas, plan.live.protected) == (0, False)


@given(specs, worlds())
def test_every_change_of_traffic_goes_to_the_target_or_ends_a_ramp(spec: WorkerSpec, found: World) -> None:
    (worker,) = make_plan([spec], found, NOW, ME).workers
    expected = {RoutingAction.NONE: None, RoutingAction.CLEAR_RAMP: ""}.get(worker.routing.action, TARGET)
    assert worker.routing.build_id == expected
    assert worker.routing.because


@given(specs, worlds())
def test_foreign_owner_is_never_overruled(spec: WorkerSpec, found: World) -> None:
    (worker,) = make_plan([spec], found, NOW, ME).workers
    temporal = worker_world(found).temporal
    if temporal and temporal.manager_identity == "somebody else":
        assert worker.routing.action is RoutingAction.NONE


@given(specs, worlds())
def test_same_inputs_give_the_same_bytes_and_stay_as_they_are(spec: WorkerSpec, found: World) -> None:
    before = copy.deepcopy((spec, found))
    try:
        first = FORMATS["yaml"](rendered(spec, found))
    except InvalidInput:
        reject()
    assert FORMATS["yaml"](rendered(spec, found)) == first
    assert (spec, found) == before


@given(specs, worlds())
def test_rendering_what_was_applied_changes_nothing_more(spec: WorkerSpec, found: World) -> None:
    temporal = worker_world(found).temporal
    assume(worker_world(found).deployments is not None)
    try:
        once = rendered(spec, found)
    except InvalidInput:
        reject()
    applied = [as_live(manifest, found) for manifest in once]
    twice = {item["metadata"]["name"]: item for item in rendered_or_nothing(spec, world(temporal, applied))}
    for manifest in once:
        name = manifest["metadata"]["name"]
        # what was taken to zero may go away next; all else stays as it is
        if (
            name in twice
            or "Prune=false" in manifest["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
        ):
            assert twice[name] == manifest


def as_live(manifest: dict[str, Any], found: World) -> dict[str, Any]:
    live = copy.deepcopy(manifest)
    before = {item.name: item for item in worker_world(found).deployments or ()}.get(live["metadata"]["name"])
    live["metadata"]["uid"] = before.uid if before else "uid-new"
    if before and before.created_at:
        live["metadata"]["creationTimestamp"] = before.created_at.isoformat()
    if "replicas" not in live["spec"]:
        live["spec"]["replicas"] = before.replicas if before else 1
        fields = {"f:spec": {"f:replicas": {}}}
        live["metadata"]["managedFields"] = [{"manager": "hpa", "subresource": "scale", "fieldsV1": fields}]
    return live


def rendered_or_nothing(spec: WorkerSpec, found: World) -> list[dict[str, Any]]:
    try:
        return rendered(spec, found)
    except InvalidInput:
        return []


@given(specs)
def test_world_that_lacks_the_worker_yields_nothing(spec: WorkerSpec) -> None:
    with pytest.raises(StateUnavailable):
        plan_versions([spec], World(NOW, {}), NOW, ME)


@given(specs, worlds())
def test_dropped_version_is_in_no_manifest(spec: WorkerSpec, found: World) -> None:
    plans = planned(spec, found)
    try:
        names = {manifest["metadata"]["name"] for manifest in rendered(spec, found)}
    except InvalidInput:
        reject()
    assert names == {plan.deployment for plan in plans.values() if plan.is_rendered}


@pytest.mark.parametrize("names", [(("a-b", "c"), ("a", "b-c")), (("x", "y"), ("x", "y2"))])
def test_two_workers_never_share_a_name(names: tuple[tuple[str, str], tuple[str, str]]) -> None:
    workers = [a_spec(name, build_id=build_id) for name, build_id in names]
    found = World(
        NOW, {(w.worker_deployment, "default"): WorkerWorld(w.worker_deployment, "default") for w in workers}
    )
    plan = plan_versions(workers, found, NOW, ME)
    deployments = [version.deployment for worker in plan.workers for version in worker.versions]
    if len(set(deployments)) == len(deployments):
        assert len(render_manifests(plan.workers, [], ME.of)) == len(workers)
    else:
        with pytest.raises(InvalidInput, match="rename"):
            render_manifests(plan.workers, [], ME.of)
