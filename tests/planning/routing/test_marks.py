"""A mark decides nothing after the stay of its version that it was made in."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planning.situations import (
    NOW,
    RAMPS,
    drained,
    mark,
    planned,
    routing,
    serving,
    target_in,
    temporal,
    version,
)
from tests.planning.times import DAY, HOUR, MINUTE, SECOND, ago
from twgen.model.plan import Phase, RoutingAction, RoutingPlan
from twgen.model.policy import PolicyStep
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import Gate, RolloutStep
from twgen.model.temporal import GateRun, GateStatus, RampingVersion, Routing, Version, VersionStatus
from twgen.model.times import format_time
from twgen.planning.interventions import pause, promote
from twgen.planning.plan import worker_world
from twgen.planning.routing.target import Target
from twgen.planning.version_status import is_in_force
from twgen.versioning.names import Lifetime, Mark, MarkKey, read_mark, write_mark

S = VersionStatus
GATED = replace(RAMPS, rollout=replace(RAMPS.rollout, gate=Gate("Smoke")))
OLD = version("v1", S.CURRENT)
BAD = version("v4", S.CURRENT, created_at=ago(30 * MINUTE))
"""A newer build that is current."""
LEFT = ago(10 * MINUTE)
STOPS = pytest.mark.parametrize("key", ["twgen.io/paused", "twgen.io/aborted"])


def routed(
    target: Version, traffic: Routing, others: tuple[Version, ...] = (OLD,), spec: Any = RAMPS
) -> RoutingPlan:
    says = temporal(*others, target, traffic=traffic)
    return planned(serving(says, *(one.build_id for one in (*others, target))), spec).routing


def reverted_to(metadata: dict[str, Any], **facts: Any) -> RoutingPlan:
    """v3 was current until v4 took its place ten minutes ago, and is the target again."""
    told = {"last_current_at": ago(5 * HOUR), "last_deactivated_at": LEFT, "created_at": ago(DAY)} | facts
    target = version("v3", S.DRAINING, metadata=metadata, **told)
    return routed(target, routing("v4", age=10 * MINUTE), (BAD,))


@STOPS
@pytest.mark.parametrize("because", ["", "failures: 9 of 90 failed"])
def test_mark_of_before_it_was_current_stops_no_revert(key: str, because: str) -> None:
    plan = reverted_to({key: mark(6 * HOUR, because=because)})
    assert (plan.reason, plan.action) == (Reason.ROLLBACK, RoutingAction.SET_CURRENT)


def test_server_that_does_not_tell_when_it_was_current_makes_no_difference() -> None:
    paused = {"twgen.io/paused": mark(6 * HOUR)}
    target = version("v3", S.DRAINING, metadata=paused, last_deactivated_at=LEFT, created_at=ago(DAY))
    says = temporal(BAD, target, traffic=routing("v4", age=10 * MINUTE), server_version="1.29.1")
    plan = planned(serving(says, "v3", "v4"), RAMPS).routing
    assert plan.reason is Reason.ROLLBACK


@pytest.mark.parametrize("server_version", ["1.29.1", "1.32.0"])
@STOPS
def test_nor_does_a_server_that_tells_only_of_the_version_before_this_one(
    key: str, server_version: str
) -> None:
    """Two back on 1.29, or back to what became current before the server was updated."""
    paused = mark(6 * HOUR, stay=format_time(ago(7 * HOUR)), ramping=True)
    moved = mark(9 * HOUR, percentage=100, stay=format_time(ago(5 * HOUR)))
    target = version(
        "v3",
        S.DRAINING,
        metadata={key: paused, "twgen.io/moved-by": moved},
        first_activated_at=ago(7 * HOUR),
        last_deactivated_at=ago(2 * HOUR),
        created_at=ago(DAY),
    )
    says = temporal(BAD, target, traffic=routing("v4", age=10 * MINUTE), server_version=server_version)
    plan = planned(serving(says, "v3", "v4"), RAMPS).routing
    assert plan.reason is Reason.FIRST_STEP


@STOPS
def test_person_who_stops_the_revert_itself_is_heard(key: str) -> None:
    assert reverted_to({key: mark(MINUTE)}).action is RoutingAction.NONE


@STOPS
def test_share_that_somebody_took_away_by_hand_does_not_come_back(key: str) -> None:
    """Paused while it ramped, then the ramp was ended with another tool: nobody wants it back."""
    target = version("v3", metadata={key: mark(20 * MINUTE)}, last_deactivated_at=LEFT)
    assert routed(target, routing("v1")).action is RoutingAction.NONE


@STOPS
def test_version_that_got_traffic_again_since_goes_on(key: str) -> None:
    target = version("v3", S.RAMPING, metadata={key: mark(20 * MINUTE)}, last_deactivated_at=LEFT)
    ramp = routing("v1", ("v3", 5), age=5 * MINUTE)
    assert routed(target, ramp).reason is Reason.RAMP_PAUSED


def test_gate_that_drains_its_own_version_is_not_asked_again() -> None:
    """A server that counts pinned workflows takes a version for draining once its gate has started."""
    retried = {"twgen.io/gate-attempt": mark(HOUR, attempt=2, stay=format_time(ago(DAY)))}
    run = GateRun("main", "test-shop/payments:v3-main-2", GateStatus.COMPLETED, ago(30 * MINUTE))
    target = drained(10 * MINUTE, "v3", created_at=ago(DAY), metadata=retried, gate_runs=(run,))
    target = replace(target, first_activated_at=None)
    assert routed(target, routing("v1"), spec=GATED).reason is Reason.FIRST_STEP


@STOPS
def test_server_forgets_when_a_share_was_lost_and_the_mark_does_not(key: str) -> None:
    """It ramped when it was marked, lost its share, and ramps again: 1.32 forgets the end between."""
    stay = format_time(ago(DAY))
    made = mark(20 * MINUTE, stay=stay, ramping=True)
    target = version(
        "v3", S.RAMPING, metadata={key: made}, first_activated_at=ago(DAY), created_at=ago(2 * DAY)
    )
    again = routing("v1", ("v3", 5), age=5 * MINUTE)
    assert routed(target, again).reason is Reason.RAMP_PAUSED
    same = routing("v1", ("v3", 5), age=DAY)
    assert routed(target, same).reason in {Reason.PAUSED, Reason.ABORTED}


@STOPS
def test_pause_that_races_with_the_first_share_counts(key: str) -> None:
    """A person marked the version in the moment in which its Job gave it a share."""
    made = mark(5 * MINUTE + SECOND, stay=format_time(LEFT))
    activated = ago(5 * MINUTE)
    target = version("v3", S.RAMPING, metadata={key: made}, created_at=LEFT, first_activated_at=activated)
    traffic = routing("v1", ("v3", 5), age=5 * MINUTE)
    assert routed(target, traffic).reason in {Reason.PAUSED, Reason.ABORTED}


def test_gate_of_an_earlier_stay_that_still_runs_is_not_started_beside_itself() -> None:
    run = GateRun("main", "test-shop/payments:v3-main", GateStatus.RUNNING, ago(20 * MINUTE))
    target = version("v3", last_deactivated_at=LEFT, created_at=ago(DAY), gate_runs=(run,))
    says = temporal(OLD, target, traffic=routing("v1"))
    plan = planned(serving(says), GATED)
    assert (plan.routing.reason, plan.gates) == (Reason.GATE_RUNNING, ())
    failed = replace(target, gate_runs=(replace(run, status=GateStatus.FAILED),))
    ended = replace(says, versions=(says.versions[0], failed))
    assert planned(serving(ended), GATED).gates


@pytest.mark.parametrize("age", [HOUR, SECOND, -HOUR], ids=["behind", "right", "ahead"])
@pytest.mark.parametrize(
    ("stay", "asks"),
    [
        pytest.param(MINUTE, False, id="of this stay"),
        pytest.param(MINUTE + 2 * SECOND, True, id="of the stay before"),
        pytest.param(MINUTE - 2 * SECOND, True, id="of a stay to come"),
        pytest.param(None, True, id="of no stay"),
    ],
)
def test_gate_is_asked_in_each_stay_whatever_the_clock_of_the_mark(
    age: timedelta, stay: timedelta | None, *, asks: bool
) -> None:
    """Another tool may give the same share again within seconds."""
    of_stay = {"stay": format_time(ago(stay))} if stay else {}
    moved = {"twgen.io/moved-by": mark(age, percentage=5, gates=["Smoke"], **of_stay)}
    target, traffic = version("v3", S.RAMPING, metadata=moved), routing("v1", ("v3", 5), age=MINUTE)
    plan = routed(target, traffic, spec=GATED)
    assert plan.reason is (Reason.GATE_RUNNING if asks else Reason.RAMP_PAUSED)
    undated = replace(traffic, ramping=RampingVersion("v3", 5))
    unknown = routed(target, undated, spec=GATED)
    assert unknown.reason is Reason.GATE_RUNNING, "an unknown stay is no proof"


def test_what_a_command_writes_counts_in_its_stay_and_not_after_it() -> None:
    target = version("v3", S.RAMPING, created_at=ago(DAY))
    says = temporal(OLD, target, traffic=routing("v1", ("v3", 5)))
    world = worker_world(RAMPS, serving(says))
    told = pause(Target(RAMPS, world, NOW - HOUR, "me")).marks
    paused = read_mark(MarkKey.PAUSED, told["twgen.io/paused"])
    assert paused
    assert is_in_force(paused, target, says)
    assert not is_in_force(paused, target, replace(says, routing=routing("v3", age=MINUTE)))


def test_retired_worker_stays_so_until_a_version_gets_traffic() -> None:
    retired = {"twgen.io/retired": mark(20 * MINUTE)}
    target = version("v3", S.DRAINING, metadata=retired, last_deactivated_at=LEFT, last_current_at=ago(HOUR))
    plan = routed(target, routing(None), ())
    assert (plan.reason, plan.phase) == (Reason.RETIRED, Phase.SETTLED)
    reverted = routed(replace(target, created_at=ago(DAY)), routing("v4", age=MINUTE), (BAD,))
    assert reverted.reason is Reason.ROLLBACK
    # it was current again, and somebody has sent all traffic elsewhere since
    again = replace(target, last_current_at=ago(10 * MINUTE), last_deactivated_at=ago(MINUTE))
    assert routed(again, routing(None), ()).reason is not Reason.RETIRED
    # another version had traffic since, and was left by hand
    for name in ("first_activated_at", "last_current_at"):
        other = version("v4", S.DRAINING, **{name: ago(10 * MINUTE)})
        assert routed(target, routing(None), (other,)).reason is not Reason.RETIRED
        before = version("v4", S.DRAINING, **{name: ago(21 * MINUTE)}, last_deactivated_at=LEFT)
        assert routed(target, routing(None), (before,)).reason is Reason.RETIRED


def test_retirement_that_took_no_traffic_away_stops_nothing() -> None:
    target = version("v3", metadata={"twgen.io/retired": mark(20 * MINUTE)})
    plan = routed(target, routing("v1"))
    assert (plan.reason, plan.action) == (Reason.FIRST_STEP, RoutingAction.SET_RAMP)


@pytest.mark.parametrize("live_percentage", [0, 1, 5, 30])
@pytest.mark.parametrize("age", [SECOND, DAY])
def test_steps_edited_in_mid_ramp_give_nothing_that_their_gate_has_not_allowed(
    live_percentage: float, age: timedelta
) -> None:
    steps = (RolloutStep(50, 30 * MINUTE), RolloutStep(75, HOUR))
    policy = replace(RAMPS.policy, steps=(PolicyStep(50, gate="SmokeAt50"),))
    spec = replace(RAMPS, rollout=replace(RAMPS.rollout, steps=steps), policy=policy)
    target = version("v3", S.RAMPING, metadata={"twgen.io/moved-by": mark(percentage=live_percentage)})
    traffic = routing("v1", ("v3", live_percentage), age=age)
    plan = routed(target, traffic, spec=spec)
    is_early = live_percentage and age < DAY
    assert plan.reason is (Reason.RAMP_PAUSED if is_early else Reason.GATE_RUNNING)
    found = serving(temporal(OLD, target, traffic=traffic))
    with pytest.raises(Exception, match="its gate SmokeAt50 before 50% has not passed"):
        promote(target_in(found, spec), full=False, skip_gate=False)


def test_share_that_somebody_else_gave_passes_the_gates_below_it_first() -> None:
    policy = replace(RAMPS.policy, steps=(PolicyStep(5, gate="SmokeAt5"),))
    spec = replace(RAMPS, policy=policy)
    target = version("v3", S.RAMPING)
    plan = routed(target, routing("v1", ("v3", 25)), spec=spec)
    assert plan.reason is Reason.GATE_RUNNING
    moved = mark(percentage=25, gates=["SmokeAt5@5"], stay=format_time(ago(DAY)))
    given = replace(target, metadata={"twgen.io/moved-by": moved})
    plan = routed(given, routing("v1", ("v3", 25)), spec=spec)
    assert plan.action is RoutingAction.SET_CURRENT


TIMES = st.integers(0, 100).map(lambda hours: ago(hours * HOUR))
GAPS = st.integers(1, 10_000).map(lambda minutes: minutes * MINUTE)


@given(
    key=st.sampled_from([key for key in MarkKey if key.lifetime is not Lifetime.DRAINAGE]),
    because=st.sampled_from(["", "failures"]),
    gaps=st.tuples(GAPS, GAPS, GAPS),
    ramps=st.booleans(),
)
def test_mark_older_than_the_present_stay_changes_no_plan(
    key: MarkKey, because: str, gaps: tuple[timedelta, ...], *, ramps: bool
) -> None:
    left = ago(gaps[0])
    became_current = left - gaps[1]
    made = became_current - gaps[2]
    told = {"created_at": made - HOUR, "last_current_at": became_current, "last_deactivated_at": left}
    traffic = routing("v4", ("v3", 5) if ramps else None, age=timedelta())

    def plan(metadata: dict[str, Any]) -> RoutingPlan:
        target = version("v3", S.RAMPING if ramps else S.DRAINING, metadata=metadata, **told)
        return routed(target, traffic, (BAD,), GATED)

    old = write_mark(Mark(key, "anna", made, because, details={"percentage": 5, "attempt": 2}))
    assert plan({key.value: old}) == plan({})


@given(st.builds(Mark, st.sampled_from(MarkKey), st.text(), TIMES, st.text(), TIMES | st.none()))
def test_mark_reads_back_as_it_was_written(made: Mark) -> None:
    assert read_mark(made.key, write_mark(made)) == made


@pytest.mark.parametrize("taken_back", [None, False])
def test_mark_that_was_taken_back_is_none(taken_back: Any) -> None:
    assert read_mark(MarkKey.PAUSED, taken_back) is None
