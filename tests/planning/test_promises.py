"""The promises of the design about plans, over any spec and any world."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import BY_HAND, NOW, TARGET, may_have_work, routed_versions, specs, with_policy, worlds
from twgen.errors import StateUnavailable
from twgen.model.operator import Caller
from twgen.model.plan import RoutingAction, VersionAction, WorkerPlan
from twgen.model.policy import HistorySource, MissingTemplate
from twgen.model.problem import quoted
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import WorkerWorld, World
from twgen.planning.plan import make_plan, plan_versions

ME = Caller("me", forced=True)


def worker_world(found: World) -> WorkerWorld:
    (worker,) = found.workers.values()
    return worker


def planned(spec: WorkerSpec, found: World) -> WorkerPlan:
    (worker,) = make_plan([spec], found, NOW, ME).workers
    return worker


@given(specs, worlds())
def test_version_that_may_have_work_keeps_its_pods_and_its_protection(spec: WorkerSpec, found: World) -> None:
    plans = {plan.build_id: plan for plan in planned(spec, found).versions.versions}
    for live in worker_world(found).deployments or ():
        if live.terminating or live.name.endswith(BY_HAND):
            continue
        if live.build_id != TARGET and not may_have_work(live.build_id, found):
            continue
        plan = plans[live.build_id]
        assert plan.is_rendered
        assert plan.protected
        # the spec speaks for what takes new workflows, and for no other version
        is_resized = live.build_id in {TARGET, *routed_versions(worker_world(found).temporal)}
        says_fewer = is_resized and plan.replicas == spec.replicas
        if plan.status is VersionStatus.DRAINING and plan.build_id != TARGET:
            says_fewer = says_fewer or plan.replicas == spec.policy.draining_replicas
        patch = next((item for item in spec.policy.patches if item.build_id == plan.build_id), None)
        says_fewer = says_fewer or (patch is not None and plan.replicas == patch.replicas)
        assert plan.replicas is None or plan.replicas >= live.replicas or says_fewer
        if plan.replicas is None:
            assert live.replicas_are_external


@given(
    specs, worlds(), st.lists(st.sampled_from(HistorySource), unique=True), st.sampled_from(MissingTemplate)
)
def test_version_with_work_that_nothing_protects_is_rendered_whatever_tells_its_manifest(
    spec: WorkerSpec, found: World, history: list[HistorySource], missing: MissingTemplate
) -> None:
    spec = with_policy(spec, history=tuple(history), missing_template=missing)
    try:
        plans = {plan.build_id: plan for plan in planned(spec, found).versions.versions}
    except StateUnavailable:
        assert missing is MissingTemplate.FAIL
        return
    for live in worker_world(found).deployments or ():
        is_left_alone = live.protected or live.terminating or live.name.endswith(BY_HAND)
        if not is_left_alone and (live.build_id == TARGET or may_have_work(live.build_id, found)):
            assert plans[live.build_id].is_rendered
            assert plans[live.build_id].protected


@given(specs, worlds())
def test_version_without_a_deployment_comes_back_or_is_warned_of(spec: WorkerSpec, found: World) -> None:
    worker, known = planned(spec, found).versions, worker_world(found)
    plans = {plan.build_id: plan for plan in worker.versions}
    live = {item.build_id for item in known.deployments or () if not item.terminating}
    listed = {version.build_id for version in (known.temporal.versions if known.temporal else ())}
    for build_id in (listed | routed_versions(known.temporal)) - live:
        if not may_have_work(build_id, found):
            continue
        plan = plans[build_id]
        # what twgen did not make is told in quotes
        told = any(build_id in text or quoted(build_id) in text for text in worker.warnings)
        assert (plan.is_rendered and plan.protected) or told
        if plan.is_rendered and build_id != TARGET:
            assert plan.replicas is None or plan.replicas > 0


@given(specs, worlds())
def test_no_plan_takes_a_version_away_and_sends_it_traffic(spec: WorkerSpec, found: World) -> None:
    worker = planned(spec, found)
    gone = {
        version.build_id
        for version in worker.versions.versions
        if version.action in {VersionAction.DROP, VersionAction.SCALE_DOWN}
    }
    assert not gone & {TARGET, worker.routing.build_id, *routed_versions(worker_world(found).temporal)}


@given(specs, worlds())
def test_what_becomes_of_versions_is_the_same_whatever_becomes_of_traffic(
    spec: WorkerSpec, found: World
) -> None:
    (versions,) = plan_versions([spec], found, NOW, ME).workers
    assert planned(spec, found).versions.versions == versions.versions


@given(specs, worlds())
def test_drop_follows_a_scale_down_that_was_synced(spec: WorkerSpec, found: World) -> None:
    for plan in planned(spec, found).versions.versions:
        if plan.action is VersionAction.DROP:
            assert plan.live
            assert (plan.live.replicas, plan.live.protected) == (0, False)


@given(specs, worlds())
def test_every_change_of_traffic_goes_to_the_target_or_ends_a_ramp(spec: WorkerSpec, found: World) -> None:
    change = planned(spec, found).routing
    expected = {RoutingAction.NONE: None, RoutingAction.CLEAR_RAMP: ""}.get(change.action, TARGET)
    assert change.build_id == expected
    assert change.because


@given(specs, worlds())
def test_foreign_owner_is_never_overruled(spec: WorkerSpec, found: World) -> None:
    temporal = worker_world(found).temporal
    if temporal and temporal.manager_identity == "somebody else":
        assert planned(spec, found).routing.action is RoutingAction.NONE


@given(specs)
def test_world_that_lacks_the_worker_yields_nothing(spec: WorkerSpec) -> None:
    with pytest.raises(StateUnavailable):
        plan_versions([spec], World(NOW, {}), NOW, ME)
