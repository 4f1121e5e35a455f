"""Every row of the routing table, in its order, and both sides of every limit."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import MAIN, SPEC, live, routed, routing, serving, situation, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, SECOND, ago
from tests.strategies import NOW, STEPS
from twgen.model.plan import Phase, RoutingAction, RoutingPlan
from twgen.model.policy import PolicyStep
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import Rollout, RolloutStep, Strategy, WorkerSpec
from twgen.model.temporal import (
    RampingVersion,
    Routing,
    TaskQueue,
    TaskQueueType,
    UpdateState,
    Version,
    VersionStatus,
    WorkerDeployment,
)
from twgen.model.world import World

NONE, SET_CURRENT = RoutingAction.NONE, RoutingAction.SET_CURRENT
SET_RAMP, CLEAR_RAMP = RoutingAction.SET_RAMP, RoutingAction.CLEAR_RAMP
STEPWISE = replace(SPEC, rollout=Rollout(Strategy.PROGRESSIVE, STEPS))
LATER = (RolloutStep(50, 10 * MINUTE), RolloutStep(75, HOUR))
MANUAL = replace(STEPWISE, rollout=replace(STEPWISE.rollout, strategy=Strategy.MANUAL))
S = VersionStatus
OLD = version("v1", S.CURRENT, created_at=ago(9 * DAY))
SAME_NAME = replace(MAIN, type=TaskQueueType.ACTIVITY)
ABORTED = {"twgen.io/aborted": {"by": "a person"}}


def after(target: Version, traffic: Routing) -> World:
    return serving(temporal(OLD, target, traffic=traffic))


def told(plan: RoutingPlan) -> tuple[Any, ...]:
    return plan.action, plan.build_id, plan.percentage, plan.phase


CLEARED = (CLEAR_RAMP, "", 0, Phase.MOVING)
CURRENT = (SET_CURRENT, "v3", None, Phase.MOVING)
WAITS, BLOCKED = (NONE, None, None, Phase.WAITING), (NONE, None, None, Phase.BLOCKED)
SETTLED = (NONE, None, None, Phase.SETTLED)


def ramp(percentage: float) -> tuple[Any, ...]:
    return SET_RAMP, "v3", percentage, Phase.MOVING


@pytest.mark.parametrize(
    ("traffic", "expected"),
    [
        pytest.param(routing("v1", ("v3", 5)), CLEARED, id="and ramping loses its ramp"),
        pytest.param(routing("v1"), BLOCKED, id="is blocked"),
        pytest.param(routing("v1", ("v0", 5)), CLEARED, id="ends what replaced it"),
        pytest.param(routing("v3"), SETTLED, id="is settled when somebody made it current since"),
    ],
)
def test_aborted_target(traffic: Routing, expected: tuple[Any, ...]) -> None:
    assert told(routed(after(version(metadata=ABORTED), traffic))) == expected


def test_mark_that_a_retry_took_away_is_no_mark() -> None:
    found = after(version(metadata={"twgen.io/aborted": None}), routing("v1"))
    assert told(routed(found)) == CURRENT


@pytest.mark.parametrize("other", ["v1", ""])
def test_ramp_beside_a_current_target_ends(other: str) -> None:
    assert told(routed(after(version(), routing("v3", (other, 5))))) == CLEARED


@pytest.mark.parametrize("rollout", [SPEC.rollout, STEPWISE.rollout, Rollout(Strategy.MANUAL)])
def test_current_target_is_settled(rollout: Rollout) -> None:
    found = after(version("v3", S.CURRENT), routing("v3"))
    assert told(routed(found, replace(SPEC, rollout=rollout))) == SETTLED


@pytest.mark.parametrize("strategy", [Strategy.PROGRESSIVE, Strategy.MANUAL])
@pytest.mark.parametrize("paused", [{}, {"twgen.io/paused": {"by": "a person"}}])
def test_ramp_of_an_aborted_target_is_ended_whoever_else_would_be_waited_for(
    strategy: Strategy, paused: dict[str, Any]
) -> None:
    marks = {"twgen.io/aborted": {"by": "a person"}, **paused}
    found = after(version("v3", S.RAMPING, metadata=marks), routing("v1", ("v3", 5)))
    plan = routed(found, replace(STEPWISE, rollout=replace(STEPWISE.rollout, strategy=strategy)))
    assert (plan.action, plan.reason) == (RoutingAction.CLEAR_RAMP, "Aborted")


CURRENT_TARGET = temporal(version("v3", S.CURRENT), traffic=routing("v3"))
UNAVAILABLE = {"type": "Available", "status": "False"}
STALLED = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}


@pytest.mark.parametrize(
    ("deployments", "because"),
    [
        pytest.param([], "it has no Deployment yet", id="without Deployment"),
        pytest.param([live("v3", 0)], "its Deployment has zero replicas", id="at zero"),
        pytest.param(
            [live("v3", deletionTimestamp=ago(MINUTE).isoformat())],
            "its Deployment is being deleted, and will be recreated",
            id="Terminating",
        ),
    ],
)
def test_current_target_without_pods_waits(deployments: list[dict[str, Any]], because: str) -> None:
    plan = routed(situation(CURRENT_TARGET, deployments))
    assert (told(plan), plan.reason) == (WAITS, "CurrentNotServing")
    assert plan.because == because


@pytest.mark.parametrize(
    ("part", "facts", "because"),
    [
        ("spec", {"paused": True}, "`kubectl rollout resume deployment/payments-v3 -n shop`"),
        ("status", {"conditions": [UNAVAILABLE, STALLED]}, "ProgressDeadlineExceeded"),
    ],
    ids=["is paused by hand", "cannot progress"],
)
def test_current_target_is_blocked_if_its_deployment(part: str, facts: dict[str, Any], because: str) -> None:
    deployment = live("v3")
    deployment[part] |= facts
    plan = routed(situation(CURRENT_TARGET, [deployment]))
    assert plan.phase is Phase.BLOCKED
    assert because in plan.because


def test_current_target_at_zero_is_settled_where_its_spec_says_so() -> None:
    found = situation(CURRENT_TARGET, [live("v3", 0)])
    assert told(routed(found, replace(SPEC, replicas=0))) == SETTLED


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(None, id="worker"),
        pytest.param(temporal(OLD, traffic=routing("v1")), id="version"),
        pytest.param(
            temporal(OLD, version("v3", S.CREATED), traffic=routing("v1")), id="poll of a created version"
        ),
    ],
)
def test_target_waits_while_temporal_knows_no(says: WorkerDeployment | None) -> None:
    plan = routed(serving(says))
    assert told(plan) == WAITS
    known = says and any(item.build_id == "v3" for item in says.versions)
    begin = "Temporal lists it only as Created" if known else "Temporal does not know it yet"
    assert plan.because.startswith(
        f"{begin}: none of its workers has polled, although its Deployment is available"
    )
    assert "TEMPORAL_DEPLOYMENT_NAME" in plan.because


def test_target_that_ramps_and_is_not_listed_is_not_called_unknown() -> None:
    plan = routed(serving(temporal(OLD, traffic=routing("v1", ("v3", 5)))))
    assert told(plan) == WAITS
    assert plan.because.startswith("it is ramping, but Temporal does not list it")


@pytest.mark.parametrize(("known", "is_full"), [(99, False), (100, True)])
def test_target_that_a_full_worker_deployment_refuses_is_told_so(known: int, *, is_full: bool) -> None:
    others = [version(f"old-{number}") for number in range(known - 1)]
    plan = routed(serving(temporal(OLD, *others, traffic=routing("v1"))))
    assert told(plan) == WAITS
    assert ("rejects polls of a new version" in plan.because) is is_full


@pytest.mark.parametrize("number", [None, 0, 99])
def test_worker_of_a_namespace_that_has_room_is_asked_about_its_versioning(number: int | None) -> None:
    plan = routed(serving(None, worker_deployments=number))
    assert plan == routed(serving(None))
    assert "matching.maxDeployments" not in plan.because


@pytest.mark.parametrize(("number", "told_as"), [(100, "100"), (240, "240"), (1000, "1000 or more")])
def test_worker_that_a_full_namespace_may_refuse_is_told_what_to_do(number: int, told_as: str) -> None:
    plan = routed(serving(None, worker_deployments=number))
    assert (told(plan), plan.reason) == (WAITS, "WaitingForRegistration")
    begin = "Temporal does not know it yet, although its Deployment is available: its Temporal namespace has"
    assert plan.because.startswith(f"{begin} {told_as} Worker Deployments. At its limit (by default 100)")
    for advice in ("`temporal worker deployment delete`", "`matching.maxDeployments`", "TEMPORAL_ADDRESS"):
        assert advice in plan.because


def test_version_of_a_known_worker_is_kept_out_by_no_limit_of_its_namespace() -> None:
    says = temporal(OLD, traffic=routing("v1"))
    assert routed(serving(says, worker_deployments=100)) == routed(serving(says))


@pytest.mark.parametrize(
    ("state", "age", "expected"),
    [
        pytest.param(UpdateState.IN_PROGRESS, MINUTE, WAITS, id="is waited for"),
        pytest.param(UpdateState.IN_PROGRESS, 2 * MINUTE - SECOND, WAITS, id="is waited for to its limit"),
        pytest.param(UpdateState.IN_PROGRESS, 2 * MINUTE, CURRENT, id="is not waited for at its limit"),
        pytest.param(UpdateState.IN_PROGRESS, None, WAITS, id="of unknown age is waited for"),
        pytest.param(UpdateState.COMPLETED, MINUTE, CURRENT, id="that is complete is not waited for"),
        pytest.param(None, MINUTE, CURRENT, id="of an older server is not waited for"),
    ],
)
def test_routing_update(state: UpdateState | None, age: timedelta | None, expected: tuple[Any, ...]) -> None:
    traffic = replace(routing("v1"), update_state=state, changed_at=ago(age) if age else None)
    assert told(routed(after(version(), traffic))) == expected


BILLING = TaskQueue("billing", TaskQueueType.WORKFLOW, pollers=True)


@pytest.mark.parametrize("missing", [BILLING, SAME_NAME])
@pytest.mark.parametrize(
    ("age", "expected"), [(5 * MINUTE - SECOND, WAITS), (5 * MINUTE, BLOCKED), (DAY, BLOCKED)]
)
def test_task_queue_that_the_target_lacks_holds_it_up(
    missing: TaskQueue, age: timedelta, expected: tuple[Any, ...]
) -> None:
    current = replace(OLD, task_queues=(MAIN, missing))
    says = temporal(current, version(created_at=ago(age)), traffic=routing("v1"))
    plan = routed(serving(says))
    assert told(plan) == expected
    assert f"{missing.type.lower()} task queue {missing.name}, but v1 does" in plan.because
    assert plan.due_at == (ago(age) + 5 * MINUTE if expected is WAITS else None)


def test_task_queues_that_were_not_read_hold_nothing_up() -> None:
    unread = replace(OLD, task_queues=None)
    assert told(routed(serving(temporal(unread, version(), traffic=routing("v1"))))) == CURRENT


UNVERSIONED, UNREAD = (replace(MAIN, unversioned_pollers=seen) for seen in (True, None))
NEW_ACTIVITY = TaskQueue("new", TaskQueueType.ACTIVITY, pollers=True, unversioned_pollers=False)
OLD_ACTIVITY = replace(NEW_ACTIVITY, unversioned_pollers=True)


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param(None, WAITS, id="waits until its task queues are known"),
        pytest.param((), WAITS, id="waits until it has task queues"),
        pytest.param((MAIN,), CURRENT, id="becomes current where nobody else polls"),
        pytest.param((UNVERSIONED,), ramp(5), id="shares with unversioned workers"),
        pytest.param(
            (NEW_ACTIVITY, UNVERSIONED), ramp(5), id="shares although its activity queue is new and its own"
        ),
        pytest.param(
            (MAIN, UNVERSIONED), ramp(5), id="shares with unversioned workers of one workflow queue"
        ),
        pytest.param((MAIN, UNREAD), ramp(5), id="shares when one workflow queue was not read"),
        pytest.param((MAIN, OLD_ACTIVITY), CURRENT, id="becomes current when only activities are shared"),
        pytest.param((UNREAD,), ramp(5), id="shares with unversioned workers that nobody looked for"),
    ],
)
def test_first_version(queues: tuple[TaskQueue, ...] | None, expected: tuple[Any, ...]) -> None:
    found = serving(temporal(version(task_queues=queues)), "v3")
    assert told(routed(found, STEPWISE)) == expected


@pytest.mark.parametrize(
    ("age", "queues", "expected"),
    [
        pytest.param(59 * SECOND, (NEW_ACTIVITY,), WAITS, id="may poll for workflows in a moment"),
        pytest.param(MINUTE, (NEW_ACTIVITY,), CURRENT, id="has no workflows"),
        pytest.param(MINUTE, (NEW_ACTIVITY, OLD_ACTIVITY), ramp(5), id="shares one activity queue"),
    ],
)
def test_first_version_that_polls_for_activities_alone(
    age: timedelta, queues: tuple[TaskQueue, ...], expected: tuple[Any, ...]
) -> None:
    """Its own workflows may be another's still, who polls for them without a version."""
    known = version(created_at=ago(age), task_queues=queues)
    found = serving(temporal(known), "v3")
    assert told(routed(found, STEPWISE)) == expected


@pytest.mark.parametrize("status", [S.RAMPING, S.INACTIVE], ids=["", "although the list lags behind"])
def test_first_version_that_ramps_already_goes_on(status: VersionStatus) -> None:
    says = temporal(version("v3", status), traffic=routing(None, ("v3", 5)))
    assert told(routed(serving(says, "v3"), STEPWISE)) == ramp(33.3)


@pytest.mark.parametrize("ramp", [None, ("v3", 5)], ids=["from the start", "in the middle of a ramp"])
def test_all_at_once_makes_it_current(ramp: tuple[str, float] | None) -> None:
    target = version("v3", S.RAMPING if ramp else S.INACTIVE)
    assert told(routed(after(target, routing("v1", ramp)))) == CURRENT


@pytest.mark.parametrize("other", [None, ("", 75.0)])
def test_progressive_begins_with_the_first_step(other: tuple[str, float] | None) -> None:
    assert told(routed(after(version(), routing("v1", other)), STEPWISE)) == ramp(5)


@pytest.mark.parametrize("target", [None, version(), version(metadata=ABORTED), version(status=S.CREATED)])
@pytest.mark.parametrize("spec", [SPEC, STEPWISE], ids=["AllAtOnce", "Progressive"])
def test_ramp_to_a_version_that_the_spec_no_longer_describes_ends_at_once(
    target: Version | None, spec: WorkerSpec
) -> None:
    before = version("v2", S.RAMPING, created_at=ago(2 * DAY))
    versions = [OLD, before, *([target] if target else [])]
    traffic = routing("v1", ("v2", 75))
    plan = routed(serving(temporal(*versions, traffic=traffic)), spec)
    assert told(plan) == CLEARED
    because = "the spec no longer describes v2: its share goes back to v1 until v3 can take traffic"
    assert plan.because == because


@pytest.mark.parametrize(
    ("pods", "spec"),
    [(0, STEPWISE), (3, MANUAL)],
    ids=["the current one has no pods", "its traffic is a person's"],
)
def test_ramp_to_a_version_that_the_spec_no_longer_describes_stays_where(pods: int, spec: WorkerSpec) -> None:
    says = temporal(OLD, version("v2", S.RAMPING), version(), traffic=routing("v1", ("v2", 75)))
    assert routed(situation(says, [live("v3", 0), live("v1", pods)]), spec).action is NONE


@pytest.mark.parametrize("reads_cluster", [True, False])
def test_ramp_beside_workers_without_a_version_stays_since_no_current_version_can_take_its_share(
    *, reads_cluster: bool
) -> None:
    says = temporal(version("v2", S.RAMPING), version(), traffic=routing(None, ("v2", 75)))
    deployments = [live("v3", 0), live("v2")] if reads_cluster else None
    assert routed(situation(says, deployments), STEPWISE).reason != "ReplacedRamp"


@pytest.mark.parametrize("because", ["", "failures: 9 of 41 failed"])
def test_pause_of_the_target_keeps_no_other_ramp(because: str) -> None:
    paused = version(metadata={"twgen.io/paused": {"by": "me", "because": because}})
    says = temporal(OLD, version("v2", S.RAMPING), paused, traffic=routing("v1", ("v2", 75)))
    assert told(routed(serving(says), STEPWISE)) == CLEARED


@pytest.mark.parametrize("deployment", [[], [live("v3", age=9 * DAY)]], ids=["without", "of long ago"])
def test_rollout_of_an_older_spec_leaves_a_ramp_alone_that_began_since(
    deployment: list[dict[str, Any]],
) -> None:
    says = temporal(OLD, version("v4", S.RAMPING, created_at=ago(HOUR)), traffic=routing("v1", ("v4", 5)))
    assert told(routed(situation(says, [live("v1"), *deployment]), STEPWISE)) == WAITS


@pytest.mark.parametrize(
    ("percentage", "age", "expected"),
    [
        pytest.param(0, DAY, ramp(5), id="zero goes to the first step"),
        pytest.param(1, DAY, ramp(5), id="below all steps goes to the first"),
        pytest.param(40, DAY, ramp(33.3), id="between two steps goes to the lower"),
        pytest.param(100, DAY, ramp(75), id="above all steps goes to the last"),
        pytest.param(5, 10 * MINUTE, WAITS, id="exactly at its pause waits"),
        pytest.param(5, 10 * MINUTE + SECOND, ramp(33.3), id="past its pause goes on"),
        pytest.param(33.29999923706055, MINUTE, WAITS, id="a fraction as the wire says it is the step"),
        pytest.param(33.29999923706055, HOUR, ramp(75), id="a fraction as the wire says it goes on"),
        pytest.param(75, HOUR, WAITS, id="the last step waits"),
        pytest.param(75, HOUR + SECOND, CURRENT, id="past the last step becomes current"),
    ],
)
def test_ramp_at(percentage: float, age: timedelta, expected: tuple[Any, ...]) -> None:
    traffic = routing("v1", ("v3", percentage), age=age)
    assert told(routed(after(version("v3", S.RAMPING), traffic), STEPWISE)) == expected


@pytest.mark.parametrize("times", [(DAY, MINUTE), (MINUTE, DAY)], ids=["its percentage", "its own ramp"])
def test_pause_counts_from_the_later_change_of(times: tuple[timedelta, timedelta]) -> None:
    """Another version may have had the same percentage."""
    later = replace(routing("v1"), ramping=RampingVersion("v3", 5, *map(ago, times)))
    plan = routed(after(version("v3", S.RAMPING), later), STEPWISE)
    assert (told(plan), plan.due_at) == (WAITS, NOW + 9 * MINUTE)


@pytest.mark.parametrize("status", [S.CURRENT, S.RAMPING])
def test_target_does_not_take_all_at_once_from_a_version_that_says_it_has_traffic(status: S) -> None:
    nobody = routing(None)
    assert told(routed(serving(temporal(version(), traffic=nobody)), STEPWISE)) == CURRENT
    says = temporal(version("v1", status), version(), traffic=nobody)
    assert told(routed(serving(says), STEPWISE)) == ramp(5)


def test_share_between_two_steps_goes_down_to_the_lower_one() -> None:
    plan = routed(after(version("v3", S.RAMPING), routing("v1", ("v3", 32))), STEPWISE)
    assert (told(plan), plan.reason) == (ramp(5), Reason.OFF_STEP)
    assert plan.because == "its share of 32% matches no step; the next lower step is 5%"


@pytest.mark.parametrize(("share", "steps"), [(5, LATER), (1, STEPS), (25, LATER)])
def test_share_below_the_first_step_waits_for_the_pause_of_that_step(
    share: float, steps: tuple[RolloutStep, ...]
) -> None:
    """As after an edit of the steps: a percentage of one minute is no step that was passed."""
    spec = replace(STEPWISE, rollout=replace(STEPWISE.rollout, steps=steps))

    def after_minutes(number: float) -> RoutingPlan:
        traffic = routing("v1", ("v3", share), age=number * MINUTE)
        return routed(after(version("v3", S.RAMPING), traffic), spec)

    early, late = after_minutes(1), after_minutes(10.1)
    assert (told(early), early.reason, early.due_at) == (WAITS, Reason.RAMP_PAUSED, NOW + 9 * MINUTE)
    assert early.because == f"it stays at {share}% for 9m more"
    assert (told(late), late.reason) == (ramp(steps[0].percentage), Reason.NEXT_STEP)
    assert late.because == f"its pause of 10m at {share}% is over"


def test_share_below_the_first_step_waits_for_its_pause_and_no_person() -> None:
    """A step that only a person ends has not begun."""
    policy = replace(STEPWISE.policy, steps=(PolicyStep(50, until_promoted=True),))
    spec = replace(STEPWISE, rollout=replace(STEPWISE.rollout, steps=LATER), policy=policy)
    plan = routed(after(version("v3", S.RAMPING), routing("v1", ("v3", 5))), spec)
    assert plan.reason is Reason.NEXT_STEP


def test_ramp_of_unknown_age_needs_a_person() -> None:
    undated = replace(routing("v1"), ramping=RampingVersion("v3", 5))
    plan = routed(after(version("v3", S.RAMPING), undated), STEPWISE)
    assert told(plan) == BLOCKED
    assert "run `twgen promote` to continue" in plan.because
