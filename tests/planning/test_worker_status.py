"""Where a worker stands, and what of it is urgent or pending."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import NOW, SPEC, drained, live, routing, situation, temporal, version
from tests.planning.times import DAY, HOUR
from twgen.model.operator import Caller
from twgen.model.plan import Phase, Plan
from twgen.model.policy import OnDelete, PolicyStep
from twgen.model.spec import AttachedResource, Rollout, RolloutStep, Strategy
from twgen.model.status import Status
from twgen.model.temporal import VersionStatus as S
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import World
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import is_pending, make_status, urgency

ME = Caller("me", forced=True)
IS_CURRENT = temporal(version("v3", S.CURRENT), traffic=routing("v3"))


def plan_of(world: World, **changes: Any) -> Plan:
    return make_plan([replace(SPEC, **changes)], world, NOW, ME)


def status_of(world: World) -> Status:
    return make_status(plan_of(world), world, ME)


def ours(build_id: str = "v3", **facts: Any) -> dict[str, Any]:
    """A version's Deployment as this caller renders it."""
    manifest = live(build_id, **facts)
    manifest["metadata"]["annotations"]["twgen.io/identity"] = "me"
    return manifest


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
    ramping = temporal(
        version("v3", S.RAMPING), version("v1", S.CURRENT), traffic=routing("v1", ("v3", share))
    )
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
    ramping = temporal(version("v3", S.RAMPING), version("v1", S.CURRENT), traffic=routing("v1", ("v3", 5)))
    at_once = replace(RAMPS, strategy=Strategy.ALL_AT_ONCE)
    for world, rollout in (
        (situation(IS_CURRENT, [ours()]), RAMPS),
        (situation(ramping, [ours(), ours("v1")]), at_once),
    ):
        assert not make_status(plan_of(world, rollout=rollout), world, ME).workers[0].steps


def test_settled_plan_is_not_pending() -> None:
    assert not is_pending(plan_of(situation(IS_CURRENT, [ours()])))


BUDGET = AttachedResource(
    "budget", {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}, autoscales=False
)


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


def test_other_replicas_than_live_are_pending() -> None:
    world = situation(IS_CURRENT, [live("v3", replicas=2)])
    (worker,) = plan_of(world).workers
    assert (worker.routing.phase, worker.versions.versions[0].action) == (Phase.SETTLED, "Keep")
    assert is_pending(plan_of(world))


def test_replicas_that_are_left_out_are_not_pending() -> None:
    (worker,) = plan_of(situation(IS_CURRENT, [live("v3", replicas=2)])).workers
    left_out = replace(worker.versions.versions[0], replicas=None, changed_marks=())
    plan = Plan(NOW, (replace(worker, versions=replace(worker.versions, versions=(left_out,))),))
    assert not is_pending(plan)


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
