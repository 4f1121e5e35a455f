"""Which entry of a policy's `draining` is due, and when nothing may be done."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.planning.situations import (
    DAY,
    HOUR,
    MINUTE,
    SPEC,
    ago,
    drained,
    live,
    routing,
    situation,
    temporal,
    version,
)
from tests.strategies import NOW
from twgen.model.draining import DrainingEntry, Ending, ScheduledEnding, WhatEnds
from twgen.model.rollout import RolloutInCluster
from twgen.model.temporal import Drainage, Version, VersionStatus, WorkerDeployment
from twgen.planning.draining.schedule import begun_mark, due_endings, old_enough, scheduled_as, schedules
from twgen.planning.plan import worker_world
from twgen.planning.routing.target import Target
from twgen.versioning.names import DRAINED_BY

S = VersionStatus
SIGNAL = WhatEnds(Ending.SIGNAL, ("Poller",), signal_name="stop")
CANCEL, TERMINATE = WhatEnds(Ending.CANCEL), WhatEnds(Ending.TERMINATE)
DEMANDS = ("Signal-62f6f903", "Cancel-0ee35f03", "Terminate-0ee35f03")
DRAINS = replace(
    SPEC,
    policy=replace(
        SPEC.policy,
        draining=(
            DrainingEntry(DAY, SIGNAL),
            DrainingEntry(2 * DAY, CANCEL),
            DrainingEntry(2 * DAY + HOUR, TERMINATE),
        ),
    ),
)


def draining(age: timedelta, metadata: dict[str, Any] | None = None, build_id: str = "v1") -> Version:
    drainage = Drainage(S.DRAINING, ago(age), NOW)
    told: dict[str, Any] = {} if metadata is None else metadata
    return version(build_id, S.DRAINING, created_at=ago(99 * DAY), drainage=drainage, metadata=told)


def world_of(*versions: Version, ramp: tuple[str, float] | None = None, **facts: Any) -> WorkerDeployment:
    return temporal(*versions, version("v3", S.CURRENT), traffic=routing("v3", ramp), **facts)


def scheduled(*versions: Version, now: datetime = NOW) -> list[ScheduledEnding]:
    found = schedules(DRAINS, world_of(*versions), now)
    return [ending for schedule in found.values() for ending in schedule]


def due(says: WorkerDeployment, identity: str = "me", rollout: RolloutInCluster | None = None) -> list[str]:
    world = worker_world(DRAINS, situation(says, [live("v3")]))
    world = replace(world, rollout=rollout or RolloutInCluster())
    return [
        f"{one.build_id} {one.what.ending}" for one in due_endings(Target(DRAINS, world, NOW, identity, ""))
    ]


def begun(one: Version, ending: ScheduledEnding, at: datetime, workflows: int = 2) -> Version:
    return replace(one, metadata={**(one.metadata or {}), **begun_mark(one, ending, at, workflows)})


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
    spec = replace(DRAINS, policy=replace(DRAINS.policy, draining=twice))
    one = draining(3 * DAY)
    [first, second] = schedules(spec, world_of(one), NOW)["v1"]
    assert first.job_id != second.job_id
    [first, second] = schedules(spec, world_of(begun(one, first, ago(DAY))), NOW)["v1"]
    assert (first.is_begun, second.is_begun, second.is_next) == (True, False, True)


def test_other_delay_of_an_entry_does_not_begin_it_again() -> None:
    one = draining(3 * DAY)
    one = begun(one, scheduled(one)[0], ago(DAY - HOUR))
    later = (DrainingEntry(DAY + HOUR, SIGNAL), *DRAINS.policy.draining[1:])
    spec = replace(DRAINS, policy=replace(DRAINS.policy, draining=later))
    assert schedules(spec, world_of(one), NOW)["v1"][0].is_begun


def test_demand_is_what_temporal_remembers_of_it_in_every_release() -> None:
    [first, second, third] = scheduled(draining(3 * DAY))
    assert (first.demand, second.demand, third.demand) == DEMANDS
    other = replace(SIGNAL, without_replay=True)
    spec = replace(DRAINS, policy=replace(DRAINS.policy, draining=(DrainingEntry(DAY, other),)))
    assert schedules(spec, world_of(draining(3 * DAY)), NOW)["v1"][0].demand == first.demand


def test_command_of_a_person_that_does_what_is_next_is_that_entry() -> None:
    world = worker_world(DRAINS, situation(world_of(draining(3 * DAY)), [live("v3")]))
    target = Target(DRAINS, world, NOW, "me", "")
    found = scheduled_as(target, "v1", SIGNAL)
    assert found is not None
    assert found.demand == DEMANDS[0]
    for what in (CANCEL, replace(SIGNAL, older_than=HOUR), replace(SIGNAL, signal_name="other")):
        assert scheduled_as(target, "v1", what) is None
    assert scheduled_as(target, "v2", SIGNAL) is None


@pytest.mark.parametrize("marks", ["oops", [1], 7, True])
def test_marks_that_nobody_can_read_as_a_whole_begin_nothing(marks: Any) -> None:
    assert due(world_of(draining(9 * DAY, {DRAINED_BY: marks}))) == []


@pytest.mark.parametrize("mark", ["by hand", {}, {"at": "yesterday", "since": "x"}, [1], 7])
def test_mark_that_nobody_can_read_counts_as_begun(mark: Any) -> None:
    one = draining(3 * DAY)
    demand = scheduled(one)[0].demand
    assert due(world_of(replace(one, metadata={DRAINED_BY: {demand: mark}}))) == []


@pytest.mark.parametrize(
    "says",
    [
        world_of(draining(DAY), manager_identity="somebody"),
        world_of(draining(DAY), manager_identity=""),
        world_of(draining(DAY), version("v4", S.RAMPING), ramp=("v4", 5)),
        world_of(draining(DAY), ramp=("", 5)),
        world_of(replace(draining(DAY), metadata=None)),
        world_of(replace(draining(DAY), drainage=None)),
        world_of(replace(draining(DAY), drainage=Drainage(S.DRAINING))),
        world_of(drained(DAY)),
        world_of(version("v1", S.INACTIVE)),
        world_of(draining(DAY, build_id="v3")),
    ],
    ids=(
        "managed by somebody else",
        "managed by nobody",
        "another version ramps",
        "unversioned workers ramp",
        "metadata not read",
        "no drainage",
        "since nobody knows when",
        "drained",
        "never active",
        "current",
    ),
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
    ids = [ending.job_id for ending in scheduled(one)]
    assert old_enough(DRAINS, world_of(one), NOW) == set(ids)
    assert old_enough(DRAINS, world_of(draining(DAY)), NOW) == {scheduled(draining(DAY))[0].job_id}
    assert old_enough(SPEC, world_of(one), NOW) == frozenset()
