"""Which entry of a policy's `draining` is due, its batch operation, and when nothing may be done."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.planning.situations import SPEC, drained, routing, serving, target_in, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, ago
from tests.strategies import NOW, with_policy
from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.model.draining import Batch, BatchAction, DrainingAction, DrainingEntry, ScheduledAction
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import Drainage, Version, VersionStatus, WorkerDeployment
from twgen.planning.draining.actions import (
    announced_mark,
    batch_of,
    begun_mark,
    due_actions,
    in_words,
    is_due,
    old_enough,
    planned_actions,
    scheduled_as,
    schedules,
)
from twgen.planning.routing.target import Target
from twgen.versioning.names import MarkKey

S = VersionStatus
SIGNAL = DrainingAction(BatchAction.SIGNAL, ("Poller",), signal_name="stop")
CANCEL, TERMINATE = DrainingAction(BatchAction.CANCEL), DrainingAction(BatchAction.TERMINATE)
DEMANDS = ("Signal-62f6f903", "Cancel-0ee35f03", "Terminate-0ee35f03")
RUNS = RolloutInCluster()
ENTRIES = map(DrainingEntry, (DAY, 2 * DAY, 2 * DAY + HOUR), (SIGNAL, CANCEL, TERMINATE))
DRAINS = with_policy(SPEC, draining=tuple(ENTRIES))


def draining(age: timedelta, metadata: dict[str, Any] | None = None, build_id: str = "v1") -> Version:
    drainage = Drainage(S.DRAINING, ago(age), NOW)
    told: dict[str, Any] = {} if metadata is None else metadata
    return version(build_id, S.DRAINING, created_at=ago(99 * DAY), drainage=drainage, metadata=told)


def world_of(*versions: Version, ramp: tuple[str, float] | None = None, **facts: Any) -> WorkerDeployment:
    return temporal(*versions, version("v3", S.CURRENT), traffic=routing("v3", ramp), **facts)


def scheduled(*versions: Version, now: datetime = NOW) -> list[ScheduledAction]:
    found = schedules(DRAINS, world_of(*versions), now)
    return [scheduled_action for schedule in found.values() for scheduled_action in schedule]


def target_of(
    says: WorkerDeployment, spec: WorkerSpec = DRAINS, rollout: RolloutInCluster = RUNS, **facts: Any
) -> Target:
    return target_in(serving(says, "v3", rollout=rollout), spec, **facts)


def due(says: WorkerDeployment, identity: str = "me", rollout: RolloutInCluster = RUNS) -> list[str]:
    target = target_of(says, rollout=rollout, identity=identity)
    return [f"{one.build_id} {one.what.action}" for one in due_actions(target)]


def begun(one: Version, scheduled_action: ScheduledAction, at: datetime, workflows: int = 2) -> Version:
    return replace(one, metadata={**(one.metadata or {}), **begun_mark(one, scheduled_action, at, workflows)})


def test_entries_are_due_by_the_age_of_the_drainage() -> None:
    assert [(one.what, one.at) for one in scheduled(draining(HOUR))] == [
        (SIGNAL, ago(HOUR) + DAY),
        (CANCEL, ago(HOUR) + 2 * DAY),
        (TERMINATE, ago(HOUR) + 2 * DAY + HOUR),
    ]
    assert due(world_of(draining(DAY - MINUTE))) == []
    assert due(world_of(draining(DAY), draining(9 * DAY, build_id="v2"))) == ["v1 Signal", "v2 Signal"]


def test_version_that_is_old_already_gets_one_entry_and_then_the_time_between() -> None:
    old = draining(90 * DAY)
    first, second, third = scheduled(old)
    assert (first.is_next, second.is_next) == (True, False)
    assert (second.at, third.at) == (NOW + DAY, NOW + DAY + HOUR)
    old = begun(old, first, NOW)
    assert due(world_of(old)) == []
    first, second, third = scheduled(old, now=NOW + HOUR)
    assert (first.is_begun, first.workflows, first.at, second.is_next) == (True, 2, NOW, True)
    assert (second.at, third.at) == (NOW + DAY, NOW + DAY + HOUR)
    old = begun(draining(90 * DAY), first, ago(DAY))
    assert due(world_of(old)) == ["v1 Cancel"]


def test_entry_that_was_begun_is_not_begun_again_while_the_version_drains() -> None:
    one = draining(DAY + HOUR)
    first, *_ = scheduled(one)
    one = begun(one, first, ago(HOUR))
    assert due(world_of(one)) == []
    # a server calls the same time another millisecond
    drainage = replace(one.drainage, changed_at=ago(DAY + HOUR) + timedelta(milliseconds=7))  # type: ignore[type-var]
    assert due(world_of(replace(one, drainage=drainage))) == []
    # it was current again since
    again = replace(one, drainage=Drainage(S.DRAINING, ago(DAY), NOW))
    assert due(world_of(again)) == ["v1 Signal"]
    assert scheduled(again)[0].job_id != first.job_id


def test_two_entries_that_say_the_same_are_two() -> None:
    twice = (DrainingEntry(DAY, SIGNAL), DrainingEntry(2 * DAY, SIGNAL))
    spec = with_policy(DRAINS, draining=twice)
    one = draining(3 * DAY)
    [first, second] = schedules(spec, world_of(one), NOW)["v1"]
    assert first.job_id != second.job_id
    [first, second] = schedules(spec, world_of(begun(one, first, ago(DAY))), NOW)["v1"]
    assert (first.is_begun, second.is_begun, second.is_next) == (True, False, True)


def test_other_delay_of_an_entry_does_not_begin_it_again() -> None:
    one = draining(3 * DAY)
    one = begun(one, scheduled(one)[0], ago(DAY - HOUR))
    later = (DrainingEntry(DAY + HOUR, SIGNAL), *DRAINS.policy.draining[1:])
    spec = with_policy(DRAINS, draining=later)
    assert schedules(spec, world_of(one), NOW)["v1"][0].is_begun


def test_demand_is_what_temporal_remembers_of_it_in_every_release() -> None:
    [first, second, third] = scheduled(draining(3 * DAY))
    assert (first.demand, second.demand, third.demand) == DEMANDS
    other = replace(SIGNAL, without_replay=True)
    spec = with_policy(DRAINS, draining=(DrainingEntry(DAY, other),))
    assert schedules(spec, world_of(draining(3 * DAY)), NOW)["v1"][0].demand == first.demand


def test_command_of_a_person_that_does_what_is_next_is_that_entry() -> None:
    target = target_of(world_of(draining(3 * DAY)))
    found = scheduled_as(target, "v1", SIGNAL)
    assert found is not None
    assert found.demand == DEMANDS[0]
    for what in (CANCEL, replace(SIGNAL, older_than=HOUR), replace(SIGNAL, signal_name="other")):
        assert scheduled_as(target, "v1", what) is None
    assert scheduled_as(target, "v2", SIGNAL) is None


@pytest.mark.parametrize("marks", ["oops", [1], 7, True])
def test_marks_that_nobody_can_read_as_a_whole_begin_nothing(marks: Any) -> None:
    assert due(world_of(draining(9 * DAY, {MarkKey.DRAINED_BY: marks}))) == []


@pytest.mark.parametrize("mark", ["by hand", {}, {"at": "yesterday", "since": "x"}, [1], 7])
def test_mark_that_nobody_can_read_counts_as_begun(mark: Any) -> None:
    one = draining(3 * DAY)
    demand = scheduled(one)[0].demand
    assert due(world_of(replace(one, metadata={MarkKey.DRAINED_BY: {demand: mark}}))) == []


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(world_of(draining(DAY), manager_identity="somebody"), id="managed by somebody else"),
        pytest.param(world_of(draining(DAY), manager_identity=""), id="managed by nobody"),
        pytest.param(
            world_of(draining(DAY), version("v4", S.RAMPING), ramp=("v4", 5)), id="another version ramps"
        ),
        pytest.param(world_of(draining(DAY), ramp=("", 5)), id="unversioned workers ramp"),
        pytest.param(world_of(replace(draining(DAY), metadata=None)), id="metadata not read"),
        pytest.param(world_of(replace(draining(DAY), drainage=None)), id="no drainage"),
        pytest.param(
            world_of(replace(draining(DAY), drainage=Drainage(S.DRAINING))), id="since nobody knows when"
        ),
        pytest.param(world_of(drained(DAY)), id="drained"),
        pytest.param(world_of(version("v1", S.INACTIVE)), id="never active"),
        pytest.param(world_of(draining(DAY, build_id="v3")), id="current"),
    ],
)
def test_nothing_is_due(says: WorkerDeployment) -> None:
    assert due(says) == []


def test_nothing_is_due_while_a_person_has_paused_the_worker() -> None:
    says = world_of(draining(DAY))
    assert due(says) == ["v1 Signal"]
    assert due(says, rollout=RolloutInCluster(is_paused=True)) == []
    assert due(says, identity="") == []
    paused = version("v3", S.INACTIVE, metadata={"twgen.io/paused": {"by": "ana"}})
    moved = temporal(draining(DAY), version("v2", S.CURRENT), paused, traffic=routing("v2"))
    assert due(moved) == []


def test_age_alone_tells_what_is_to_be_read() -> None:
    one = draining(3 * DAY)
    ids = [scheduled_action.job_id for scheduled_action in scheduled(one)]
    assert old_enough(DRAINS, world_of(one), NOW) == set(ids)
    assert old_enough(DRAINS, world_of(draining(DAY)), NOW) == {scheduled(draining(DAY))[0].job_id}
    assert old_enough(SPEC, world_of(one), NOW) == frozenset()


def cancels(*entries: DrainingAction) -> WorkerSpec:
    draining = tuple(DrainingEntry(DAY, what) for what in entries)
    return with_policy(SPEC, draining=draining)


def all_due(spec: WorkerSpec, one: Version, now: datetime = NOW) -> list[ScheduledAction]:
    return list(due_actions(target_of(world_of(one), spec, now=now)))


@pytest.mark.parametrize("what", [CANCEL, TERMINATE])
def test_what_ends_workflows_is_begun_again_each_day_for_those_that_started_since(
    what: DrainingAction,
) -> None:
    spec, one = cancels(what), draining(2 * DAY)
    [first] = all_due(spec, one)
    one, job_ids = begun(one, first, NOW), [first.job_id]
    for day in range(1, 9):
        assert all_due(spec, one, NOW + day * DAY - MINUTE) == []
        found = all_due(spec, one, NOW + day * DAY)
        if day == 8:
            assert found == [], "seven times are enough"
            break
        [again] = found
        assert again.repeat
        assert again.repeat.started_after == NOW + (day - 1) * DAY - MINUTE
        job_ids.append(again.repeat.job_id)
        one = begun(one, again, NOW + day * DAY, workflows=1)
    assert len(set(job_ids)) == 8
    [told] = schedules(spec, world_of(one), NOW + 9 * DAY)["v1"]
    assert (told.at, told.workflows, told.repeats, told.repeat) == (NOW, 2, 7, None)


def test_turn_that_finds_no_workflow_does_not_count_and_is_not_tried_again_the_same_day() -> None:
    spec, one = cancels(CANCEL), draining(2 * DAY)
    [first] = all_due(spec, one)
    one = begun(one, first, NOW)
    for day in range(1, 30):
        [again] = all_due(spec, one, NOW + day * DAY)
        one = begun(one, again, NOW + day * DAY, workflows=0)
        assert all_due(spec, one, NOW + day * DAY + HOUR) == []
    assert again.repeats == 0


@pytest.mark.parametrize("what", [SIGNAL, DrainingAction(BatchAction.MOVE, without_replay=True)])
def test_signal_and_move_come_once(what: DrainingAction) -> None:
    spec, one = cancels(what), draining(2 * DAY)
    [first] = all_due(spec, one)
    assert all_due(spec, begun(one, first, NOW), NOW + 99 * DAY) == []


def test_entry_is_not_begun_again_once_a_later_one_does_more_to_the_same_workflows() -> None:
    of_type = replace(CANCEL, workflow_types=("Poller",))
    spec, one = cancels(of_type, TERMINATE), draining(9 * DAY)
    for _ in range(2):
        [next_one] = all_due(spec, one)
        one = begun(one, next_one, NOW)
    [again] = all_due(spec, one, NOW + DAY)
    assert again.what == TERMINATE
    # the other way round each is for workflows of its own
    spec, one = cancels(TERMINATE, of_type), draining(9 * DAY)
    for _ in range(2):
        [next_one] = all_due(spec, one)
        one = begun(one, next_one, NOW)
    assert [each.repeat is not None for each in schedules(spec, world_of(one), NOW)["v1"]] == [True, True]


def test_later_entry_comes_as_long_after_the_first_time_whatever_was_begun_again() -> None:
    entries = (DrainingEntry(2 * DAY, CANCEL), DrainingEntry(5 * DAY, TERMINATE))
    spec, one = with_policy(SPEC, draining=entries), draining(2 * DAY)
    for now in (NOW, NOW + DAY, NOW + 2 * DAY):
        [cancel] = all_due(spec, one, now)
        one = begun(one, cancel, now)
    assert (cancel.what, cancel.repeats) == (CANCEL, 1)
    assert [each.what for each in all_due(spec, one, NOW + 3 * DAY)] == [TERMINATE]


@pytest.mark.parametrize("again", ["often", {}, {"times": 1}, {"times": "x", "at": "y"}, 7])
def test_mark_of_a_turn_that_nobody_can_read_is_the_last_one(again: Any) -> None:
    spec, one = cancels(CANCEL), draining(2 * DAY)
    [first] = all_due(spec, one)
    marks = begun_mark(one, first, NOW, 2)
    marks[MarkKey.DRAINED_BY][first.demand]["again"] = again
    assert all_due(spec, replace(one, metadata=marks), NOW + 99 * DAY) == []


def test_job_id_is_what_was_written_down_first_and_never_of_something_else() -> None:
    one = draining(DAY)
    first, *_ = scheduled(one)
    marks = announced_mark(one, first)
    other_minute = replace(one, drainage=Drainage(S.DRAINING, ago(DAY) - timedelta(milliseconds=1), NOW))
    assert scheduled(other_minute)[0].job_id != first.job_id
    announced, *_ = scheduled(replace(other_minute, metadata=marks))
    assert (announced.job_id, announced.is_begun, announced.is_announced) == (first.job_id, False, True)
    marks[MarkKey.DRAINED_BY][first.demand]["job"] = "somebody-elses"
    assert scheduled(replace(one, metadata=marks))[0].job_id == first.job_id
    # it was current again since
    again = replace(one, drainage=Drainage(S.DRAINING, NOW, NOW), metadata=announced_mark(one, first))
    assert scheduled(again)[0].job_id != first.job_id


def retired(*versions: Version, **facts: Any) -> WorkerDeployment:
    left = draining(2 * DAY, {"twgen.io/retired": {"by": "twgen/ana"}}, "v3")
    return temporal(left, *versions, traffic=routing(None), **facts)


@pytest.mark.parametrize(
    "rollout", [RolloutInCluster(is_superseded=True), RolloutInCluster(older_pods=("payments-rollout-x",))]
)
def test_nothing_is_ended_while_an_earlier_rollout_may_still_act(rollout: RolloutInCluster) -> None:
    says = world_of(draining(9 * DAY))
    held = target_of(says, rollout=rollout)
    assert (len(due(says)), due_actions(held)) == (1, ())
    assert planned_actions(held)[0].held_by == "an earlier rollout has not ended"


def test_worker_that_is_retired_is_emptied_and_its_target_too() -> None:
    assert due(retired(draining(9 * DAY))) == ["v3 Signal", "v1 Signal"]
    unmarked = temporal(draining(9 * DAY), draining(2 * DAY, {}, "v3"), traffic=routing(None))
    assert due(unmarked) == ["v1 Signal"]
    assert due(retired(draining(9 * DAY)), rollout=RolloutInCluster(is_paused=True)) == []


PAUSED = version("v3", S.INACTIVE, metadata={"twgen.io/paused": {"by": "twgen/ana"}})


@pytest.mark.parametrize(
    ("says", "identity", "why"),
    [
        (world_of(draining(DAY)), "", ""),
        (retired(draining(DAY)), "", ""),
        (temporal(draining(DAY), PAUSED, traffic=routing("v2")), "", "its rollout is paused"),
        (world_of(draining(DAY), version("v4", S.RAMPING), ramp=("v4", 5)), "", "a version ramps"),
        (world_of(draining(DAY), manager_identity=""), "", "it has no manager"),
        (world_of(draining(DAY), manager_identity="eve"), "me", "its manager is eve"),
        (world_of(draining(DAY), manager_identity="eve"), "", ""),
    ],
    ids=("due", "retired", "paused", "ramps", "nobody's", "another's", "perhaps another's"),
)
def test_plan_promises_only_what_tick_does(says: WorkerDeployment, identity: str, why: str) -> None:
    spec = with_policy(DRAINS, identity=identity)
    target = target_of(says, spec)
    planned = planned_actions(target)
    first, second, _ = (one for one in planned if one.build_id == "v1")
    assert (first.held_by, second.held_by) == (why, "")
    assert bool(why) is not is_due(first, NOW)
    if why:
        assert due_actions(target) == ()


def target(*, manager: str = "me", current: str | None = "v2", now: Any = NOW) -> Target:
    versions = (
        version("v0", S.DRAINING, created_at=ago(9 * DAY)),
        drained(DAY, "v1"),
        version("v2", S.CURRENT if current else S.INACTIVE),
        version("v3", S.INACTIVE),
        version("v4", S.RAMPING),
        version("v5", S.CREATED),
    )
    says = temporal(*versions, traffic=routing(current, ("v4", 5)), manager_identity=manager)
    return target_in(serving(says, "v3"), now=now)


def asked(what: DrainingAction = CANCEL, build_id: str = "v0", **facts: Any) -> Batch:
    return batch_of(target(**facts), build_id, what)


@pytest.mark.parametrize("build_id", ["v0", "v1"])
def test_version_that_drains_or_is_drained_may_be_emptied(build_id: str) -> None:
    assert asked(build_id=build_id).query == (
        f"TemporalWorkerDeploymentVersion = 'shop/payments:{build_id}'"
        " AND TemporalWorkflowVersioningBehavior = 'Pinned'"
        " AND StartTime <= '2026-11-21T12:00:00Z'"
    )


@pytest.mark.parametrize(
    ("build_id", "state"),
    [
        ("v2", "it is Current"),
        ("v3", "it is the target"),
        ("v4", "it is Ramping"),
        ("v5", "it is Created"),
        ("v9", ""),
    ],
)
def test_no_other_version_is_emptied(build_id: str, state: str) -> None:
    rule = f"{state}, but only the workflows of draining versions can be ended"
    because = rule if state else "Temporal does not know it"
    with pytest.raises(NegativeAnswer, match=f"^shop/payments, version {build_id}: {because}$"):
        asked(build_id=build_id)


def test_target_is_emptied_once_its_worker_is_retired() -> None:
    retired, aborted = (
        target_of(temporal(version("v3", S.DRAINING, metadata={key: {"by": "ana"}}), traffic=routing(None)))
        for key in ("twgen.io/retired", "twgen.io/aborted")
    )
    assert batch_of(retired, "v3", CANCEL).query.startswith("TemporalWorkerDeploymentVersion = 'shop/pay")
    with pytest.raises(NegativeAnswer, match="it is the target"):
        batch_of(aborted, "v3", CANCEL)


def test_worker_that_somebody_else_manages_is_left_alone() -> None:
    with pytest.raises(OwnedBySomebodyElse, match="its manager is somebody, and you act as me"):
        asked(manager="somebody")


def test_type_and_age_are_part_of_the_query_whatever_is_in_them() -> None:
    batch = asked(DrainingAction(BatchAction.SIGNAL, ("it's \\ here", "Order"), HOUR, signal_name="stop"))
    assert batch.query.endswith(
        r" AND WorkflowType IN ('it\'s \\ here', 'Order') AND StartTime <= '2026-11-21T11:00:00Z'"
    )
    assert in_words(batch.what, "all") == "send signal stop to all"


def test_same_demand_is_the_same_batch_operation_at_any_time() -> None:
    older = DrainingAction(BatchAction.CANCEL, older_than=HOUR)
    first, later = asked(older), asked(older, now=NOW + timedelta(minutes=5))
    assert first.job_id == later.job_id
    assert first.query != later.query
    signal, of_type = replace(SIGNAL, workflow_types=()), replace(CANCEL, workflow_types=("Order",))
    demands = (CANCEL, TERMINATE, signal, replace(signal, signal_input=b"1"), of_type)
    others = [asked(build_id="v1"), *map(asked, demands)]
    assert len({batch.job_id for batch in [first, *others]}) == 1 + len(others)


def test_workflows_move_to_the_current_version_or_to_one_that_is_named() -> None:
    assert asked(DrainingAction(BatchAction.MOVE, without_replay=True)).what.to_build_id == "v2"
    moved = asked(DrainingAction(BatchAction.MOVE, without_replay=True, to_build_id="v3")).what
    assert in_words(moved, "all") == "move all to v3"


@pytest.mark.parametrize(
    ("to", "current", "because"),
    [
        ("", None, "there is no current version: choose the destination with --to"),
        ("v0", "v2", "the workflows are already on v0"),
        ("v5", "v2", "no worker of v5 has polled"),
        ("v9", "v2", "no worker of v9 has polled"),
    ],
)
def test_workflows_do_not_move_where_nobody_goes_on_with_them(
    to: str, current: str | None, because: str
) -> None:
    with pytest.raises(NegativeAnswer, match=because):
        asked(DrainingAction(BatchAction.MOVE, without_replay=True, to_build_id=to), current=current)
