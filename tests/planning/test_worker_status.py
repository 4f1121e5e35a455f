"""Where a worker stands, and what of it is urgent or pending."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.planning.situations import NOW, SPEC, drained, live, planned, routing, situation, temporal, version
from tests.planning.times import DAY, HOUR
from tests.schemas.printed import reported
from twgen.clients.argocd import refused_objects
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import Phase, Plan, VersionPlan, WorkerPlan
from twgen.model.policy import OnDelete, PolicyStep
from twgen.model.spec import AttachedResource, Rollout, RolloutStep, Strategy
from twgen.model.status import AttachedState, RolloutStatus, Status
from twgen.model.temporal import Drainage, Routing, WorkerDeployment
from twgen.model.temporal import VersionStatus as S
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster, Condition
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import (
    AttachedRead,
    attached_to_read,
    attached_views,
    is_pending,
    make_status,
    rollout_status,
    urgency,
    with_refusals,
)
from twgen.versioning.names import ATTACHED

ME = Caller("me", forced=True)
IS_CURRENT = temporal(version("v3", S.CURRENT), traffic=routing("v3"))
BUDGETS = GroupKind("policy", "PodDisruptionBudget")
BUDGET = AttachedResource(
    "budget", {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}, autoscales=False
)
SPEC_OF_ONE = replace(SPEC, attached=(BUDGET,))


def plan_of(world: World, **changes: Any) -> Plan:
    return make_plan([replace(SPEC, **changes)], world, NOW, ME)


def status_of(world: World) -> Status:
    return make_status(plan_of(world), world, ME)


def ours(build_id: str = "v3", **facts: Any) -> dict[str, Any]:
    """A version's Deployment as this caller renders it."""
    manifest = live(build_id, **facts)
    manifest["metadata"]["annotations"]["twgen.io/identity"] = "me"
    return manifest


RAMPING = temporal(version("v3", S.RAMPING), version("v1", S.CURRENT), traffic=routing("v1", ("v3", 5)))
RAMPS = Rollout(Strategy.PROGRESSIVE, tuple(RolloutStep(share, HOUR) for share in (5, 33.3, 75)))


@pytest.mark.parametrize(
    ("share", "places"),
    [
        (2, ["Ahead", "Ahead", "Ahead"]),
        (5, ["Present", "Ahead", "Ahead"]),
        (33.29999923706055, ["Done", "Present", "Ahead"]),
        (50, ["Done", "Present", "Ahead"]),
        (75, ["Done", "Done", "Present"]),
    ],
)
def test_steps_of_a_ramp_have_the_place_that_the_rollout_counts_from(share: float, places: list[str]) -> None:
    ramping = replace(RAMPING, routing=routing("v1", ("v3", share)))
    policy = replace(SPEC.policy, steps=(PolicyStep(33.3, gate="Smoke"), PolicyStep(75, until_promoted=True)))
    world = situation(ramping, [ours(), ours("v1")])
    [worker] = make_status(plan_of(world, rollout=RAMPS, policy=policy), world, ME).workers
    assert [step.place for step in worker.steps] == places
    assert [(step.percentage, step.gate, step.until_promoted) for step in worker.steps] == [
        (5, "", False),
        (33.3, "Smoke", False),
        (75, "", True),
    ]


def test_worker_that_does_not_ramp_or_has_no_steps_shows_none() -> None:
    at_once = replace(RAMPS, strategy=Strategy.ALL_AT_ONCE)
    for says, rollout in ((IS_CURRENT, RAMPS), (RAMPING, at_once)):
        world = situation(says, [ours(), ours("v1")])
        assert not make_status(plan_of(world, rollout=rollout), world, ME).workers[0].steps


@pytest.mark.parametrize(
    ("changes", "edit", "told"),
    [
        ({"pace": {"minReadySeconds": 30}}, {}, "minReadySeconds (30)"),
        ({"pace": {"progressDeadlineSeconds": 900}}, {}, "progressDeadlineSeconds (900)"),
        ({"pace": {"strategy": {"type": "Recreate"}}}, {}, "strategy"),
        ({"attached": (BUDGET,)}, {}, "attached objects"),
        ({}, {"labels": {}}, "labels"),
        ({"policy": replace(SPEC.policy, on_delete=OnDelete.ORPHAN)}, {}, "annotations"),
    ],
)
def test_whatever_a_render_would_change_is_pending_and_told(
    changes: dict[str, Any], edit: dict[str, Any], told: str
) -> None:
    deployment = ours()
    deployment["metadata"] |= edit
    plan = plan_of(situation(IS_CURRENT, [deployment]), **changes)
    (version,) = plan.workers[0].versions.versions
    assert is_pending(plan)
    assert (version.action, version.because) == ("Keep", f"it is the target; applying changes its {told}")


def test_other_replicas_than_live_are_pending_unless_they_are_left_out() -> None:
    assert not is_pending(plan_of(situation(IS_CURRENT, [ours()])))
    plan = plan_of(situation(IS_CURRENT, [live("v3", replicas=2)]))
    (worker,) = plan.workers
    assert (worker.routing.phase, worker.versions.versions[0].action) == (Phase.SETTLED, "Keep")
    assert is_pending(plan)
    left_out = replace(worker.versions.versions[0], replicas=None, changed_marks=())
    versions = replace(worker.versions, versions=(left_out,))
    assert not is_pending(replace(plan, workers=(replace(worker, versions=versions),)))


@pytest.mark.parametrize(
    ("says", "deployments"),
    [
        (temporal(version("v3"), version("v2", S.CURRENT), traffic=routing("v2")), ["v3", "v2"]),
        (temporal(version("v3", S.CURRENT), drained(2 * HOUR), traffic=routing("v3")), ["v3", "v1"]),
    ],
)
def test_change_of_traffic_or_of_a_deployment_is_pending(
    says: WorkerDeployment, deployments: list[str]
) -> None:
    assert is_pending(plan_of(situation(says, [live(build_id) for build_id in deployments])))


def test_alarm_comes_first_and_then_what_needs_a_person_most() -> None:
    unsorted = [(phase, is_alarm) for is_alarm in (False, True) for phase in Phase]
    ordered = sorted(unsorted, key=lambda one: urgency(one[0], is_alarm=one[1]))
    worst_first = [Phase.BLOCKED, Phase.WAITING, Phase.MOVING, Phase.SETTLED]
    assert ordered == [(phase, is_alarm) for is_alarm in (True, False) for phase in worst_first]


def test_versions_are_counted_beside_their_caps() -> None:
    others = [version("v2", S.DRAINING, first_activated_at=NOW - DAY), drained(2 * HOUR), drained(HOUR, "v0")]
    says = temporal(version("v3", S.CURRENT), *others, traffic=routing("v3"))
    world = situation(says, [live("v3"), live("v2"), live("v1", 0), live("v0")])
    (worker,) = status_of(world).workers
    assert (worker.count.deployed, worker.count.most_deployed) == (2, 75)
    assert (worker.count.registered, worker.count.most_registered) == (4, 100)


def test_target_and_versions_in_routing_come_first_then_the_newest() -> None:
    says = temporal(
        version("v3"),
        version("v2", S.CURRENT, created_at=NOW - 3 * DAY),
        drained(HOUR, "v1", created_at=NOW - 2 * DAY),
        drained(HOUR, "v0", created_at=NOW - DAY),
        traffic=routing("v2"),
    )
    world = situation(says, [live(name) for name in ("v3", "v2", "v1", "v0")])
    (worker,) = status_of(world).workers
    assert [item.build_id for item in worker.versions] == ["v3", "v2", "v0", "v1"]


@pytest.mark.parametrize(
    ("status", "drained_at", "since"),
    [
        (S.INACTIVE, None, NOW - 9 * DAY),
        (S.DRAINING, None, NOW - DAY),
        (S.DRAINING, NOW - HOUR, NOW - HOUR),
        (S.DRAINED, None, NOW - DAY),
        (S.DRAINED, NOW - HOUR, NOW - HOUR),
    ],
)
def test_version_without_traffic_has_the_time_of_its_status_as_far_as_temporal_reports_it(
    status: S, drained_at: datetime | None, since: datetime
) -> None:
    drains = {"last_deactivated_at": NOW - DAY, "drainage": Drainage(status, drained_at)}
    old = version("v1", status, created_at=NOW - 9 * DAY, **({} if status is S.INACTIVE else drains))
    says = temporal(version("v3", S.CURRENT), old, traffic=routing("v3"))
    (worker,) = status_of(situation(says, [ours(), ours("v1")])).workers
    assert [item.since for item in worker.versions if item.build_id == "v1"] == [since]


def test_version_with_a_deployment_has_its_pods_and_before_it_polls_the_age_of_that() -> None:
    says = temporal(version("v3", S.CURRENT), version("v2", S.DRAINING), traffic=routing("v3"))
    (worker,) = status_of(situation(says, [ours(), ours("v1", replicas=2, age=HOUR)])).workers
    found = {item.build_id: item for item in worker.versions}
    pods = {name: item.pods and (item.pods.available, item.pods.wanted) for name, item in found.items()}
    assert pods == {"v3": (3, 3), "v2": None, "v1": (2, 2)}
    assert (found["v1"].status, found["v1"].since) == (S.NOT_REGISTERED, NOW - HOUR)


@pytest.mark.parametrize(
    ("traffic", "current", "percentage"),
    [(routing("v1"), "v1", 0), (routing("v1", ("v3", 5)), "v1", 5), (routing("v3"), "v3", 100)],
)
def test_status_of_a_rollout_has_the_share_of_its_target(
    traffic: Routing, current: str, percentage: float
) -> None:
    says = temporal(version("v1"), version("v3"), traffic=traffic)
    told = rollout_status(status_of(situation(says, [ours(), ours("v1")])), NOW, "")
    assert (told.target, told.current, told.percentage) == ("v3", current, percentage)


@pytest.mark.parametrize(
    ("mark", "modifier", "application"),
    [
        ({"by": "twgen/me", "application": "pay", "intent": "41adf410", "at": "2026"}, "twgen/me", "pay"),
        ({"by": "twgen/me"}, "twgen/me", ""),
        ({"by": "twgen/me"}, "somebody/else", None),
        ("by hand", "by hand", None),
        (False, "", None),
    ],
)
def test_what_moved_a_version_is_told_unless_somebody_else_changed_routing_since(
    mark: Any, modifier: str, application: str | None
) -> None:
    known = version("v3", S.CURRENT, metadata={"twgen.io/moved-by": mark})
    says = temporal(known, traffic=routing("v3"), last_modifier_identity=modifier)
    (worker,) = status_of(situation(says, [ours()])).workers
    moved = worker.versions[0].moved_by
    assert (moved.application if moved else None) == application


def looked(*deployments: Any) -> tuple[WorkerPlan, VersionPlan]:
    worker = planned(situation(IS_CURRENT, list(deployments)), SPEC_OF_ONE)
    [target] = [item for item in worker.versions.versions if item.build_id == "v3"]
    return worker, target


def rendered_with(*objects: str) -> dict[str, Any]:
    manifest = live("v3")
    manifest["metadata"]["annotations"][ATTACHED] = ",".join(objects)
    return manifest


def condition(kind: str, type_: str, status: str, reason: str = "", message: str = "") -> str:
    """What is said of an object of this kind that has one condition."""
    item = AttachedInCluster(
        *(GroupKind("", kind), "/path", "v1", "name", "uid", frozenset[str]()),
        conditions=(Condition(type_, status, reason, message),),
    )
    _, target = looked(live("v3"))
    [attached] = target.attached
    one = replace(target, attached=(replace(attached, kind=kind, name="name"),))
    [view] = attached_views(one, AttachedRead((item,)))
    assert view.is_ready == (not view.says)
    return view.says


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (("HorizontalPodAutoscaler", "ScalingActive", "True", "ValidMetricFound"), ""),
        (("HorizontalPodAutoscaler", "ScalingActive", "False", "ScalingDisabled"), ""),
        (("HorizontalPodAutoscaler", "ScalingLimited", "True", "TooManyReplicas"), ""),
        (
            ("HorizontalPodAutoscaler", "ScalingActive", "False", "FailedGetExternalMetric", "no metric"),
            "ScalingActive is False (FailedGetExternalMetric: no metric)",
        ),
        (
            ("HorizontalPodAutoscaler", "AbleToScale", "False", "FailedGetScale"),
            "AbleToScale is False (FailedGetScale)",
        ),
        (("ScaledObject", "Ready", "Unknown"), ""),
        (("ScaledObject", "Active", "False", "ScalerNotActive"), ""),
        (("ScaledObject", "Ready", "False", "", "bad trigger"), "Ready is False (bad trigger)"),
        (("ScaledObject", "Fallback", "True"), "Fallback is True"),
        (("PodDisruptionBudget", "DisruptionAllowed", "False", "InsufficientPods"), ""),
        (
            ("PodDisruptionBudget", "DisruptionAllowed", "False", "SyncFailed", "no controller"),
            "DisruptionAllowed is False (SyncFailed: no controller)",
        ),
        (("VerticalPodAutoscaler", "RecommendationProvided", "False"), ""),
        (("Greeting", "Stalled", "True"), "Stalled is True"),
    ],
)
def test_condition_that_speaks_against_its_object_is_told(told: tuple[str, ...], says: str) -> None:
    assert condition(*told) == says


def test_object_is_missing_only_where_it_was_applied_and_could_be_read() -> None:
    _, target = looked(live("v3"))
    [item] = target.attached

    def state(manifest: dict[str, Any], read: AttachedRead | None) -> AttachedState:
        [view] = attached_views(looked(manifest)[1], read)
        return view.state

    there = AttachedInCluster(BUDGETS, "/path", "policy/v1", item.name, "uid", frozenset())
    applied = rendered_with(f"{item.kind}/{item.name}")
    assert state(applied, AttachedRead((there,))) is AttachedState.READY
    assert state(applied, AttachedRead((replace(there, is_going=True),))) is AttachedState.FAILING
    assert state(applied, AttachedRead(())) is AttachedState.MISSING
    assert state(live("v3"), AttachedRead(())) is AttachedState.PENDING
    assert state(applied, AttachedRead((), {item.kind: "forbidden"})) is AttachedState.UNREAD
    assert state(applied, None) is AttachedState.UNREAD


def test_kinds_are_read_only_where_something_is_attached_to_a_live_version() -> None:
    worker, _ = looked(live("v3"))
    assert attached_to_read([worker.versions]) == {"shop": {BUDGETS}}
    nothing_live, _ = looked()
    plain = planned(situation(IS_CURRENT, [live("v3")]), SPEC)
    assert attached_to_read([nothing_live.versions, plain.versions]) == {}


def test_kind_that_may_not_be_listed_is_told_of_once() -> None:
    world = situation(IS_CURRENT, [live("v3")])
    read = {"shop": AttachedRead((), {"PodDisruptionBudget": "it is forbidden"})}
    status = make_status(plan_of(world, attached=SPEC_OF_ONE.attached), world, ME, read)
    assert status.warnings == (
        "the state of PodDisruptionBudget objects in namespace shop is unknown: it is forbidden",
    )


def test_object_that_a_sync_could_not_apply_is_refused_while_it_is_not_there() -> None:
    def told(state: str, worker: str = "shop/pay") -> str:
        item = {"kind": "PodDisruptionBudget", "name": "budget", "state": state, "message": ""}
        report = reported([{"attached": [item]}], worker=worker)
        status = RolloutStatus(worker, Phase.SETTLED, "Settled", "", "v1", "v1", 100, NOW, report)
        after = with_refusals(status, refused_objects(application)).details
        assert after
        [found] = after.versions[0].attached
        return f"{found.state} {found.says}".strip()

    failed = {"namespace": "shop", "kind": "PodDisruptionBudget", "name": "budget", "status": "SyncFailed"}
    results = [{**failed, "message": "a webhook\n says no"}, {**failed, "name": "other"}, "by hand"]
    application = {"status": {"operationState": {"syncResult": {"resources": results}}}}
    assert told("Missing") == told("Pending") == "Refused a webhook says no"
    assert told("Ready") == "Ready", "an older one is there"
    assert told("NotRead") == "NotRead"
    assert told("Missing", worker="mail/pay") == "Missing"
    assert refused_objects({"status": {}}) == {}
