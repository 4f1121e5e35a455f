"""What a person does to a rollout, when somebody else does something at the same moment."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.planning.situations import MAIN, NOW, RAMPS, live, routing, situation, temporal, version
from twgen.errors import NegativeAnswer, OutOfTime, OwnedBySomebodyElse
from twgen.executing.rollout import intervene
from twgen.model.marks import MarkKey
from twgen.model.plan import GateStart, RoutingPlan
from twgen.model.temporal import UpdateState
from twgen.model.world import WorkerWorld
from twgen.planning.interventions import abort, promote
from twgen.planning.plan import worker_world
from twgen.planning.routing.target import Target


def seen(
    manager: str = "", version_of_traffic: str = "old", percentage: float = 5, **metadata: Any
) -> WorkerWorld:
    known = (version("v1"), version("v3", metadata=metadata, task_queues=(MAIN,)))
    traffic = routing("v1", ("v3", percentage) if percentage else None)
    says = temporal(*known, traffic=traffic, manager_identity=manager, conflict_token=version_of_traffic)
    return worker_world(RAMPS, situation(says, [live("v1"), live("v3")]))


def telling(state: UpdateState, world: WorkerWorld) -> WorkerWorld:
    assert world.temporal
    traffic = replace(world.temporal.routing, update_state=state)
    return replace(world, temporal=replace(world.temporal, routing=traffic))


@dataclass
class Person:
    """Looks at these worlds one after the other, and remembers what was written."""

    worlds: list[WorkerWorld]
    lost: str = ""
    """The write whose answer does not come."""
    written: list[str] = field(default_factory=list)

    async def look(self) -> Target:
        return Target(RAMPS, self.worlds.pop(0), NOW, "me", "")

    async def set_manager(self, manager: str, conflict_token: str) -> None:
        self._write(f"manager {manager} by {conflict_token}")

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        self._write(f"{change.action} by {conflict_token}")

    async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        self._write(f"mark {build_id} {' '.join(marks)}")

    async def start_gate(self, gate: GateStart, gate_input: bytes | None) -> None:
        raise AssertionError((gate, gate_input))

    def _write(self, what: str) -> None:
        self.written.append(what)
        if self.lost and what.startswith(self.lost):
            raise OutOfTime(what)


def does(person: Person, decide: Any) -> list[str]:
    asyncio.run(intervene(person.look, decide, lambda _: person, lambda _: None))
    return person.written


def test_change_of_who_manages_already_goes_with_the_token_of_the_one_look() -> None:
    assert does(Person([seen("me")]), abort) == [f"mark v3 {MarkKey.ABORTED}", "ClearRamp by old"]


def test_change_after_a_claim_goes_with_the_token_of_a_new_look() -> None:
    person = Person([seen(), seen("me", "new")])
    assert does(person, abort) == [f"mark v3 {MarkKey.ABORTED}", "manager me by old", "ClearRamp by new"]


def test_last_change_that_every_task_queue_has_heard_of_meanwhile_keeps_nobody_from_ending_a_ramp() -> None:
    told = Person(
        [telling(UpdateState.IN_PROGRESS, seen()), telling(UpdateState.COMPLETED, seen("me", "new"))]
    )
    assert does(told, abort)[-1] == "ClearRamp by new"


@pytest.mark.parametrize("after", [seen("me", "new", percentage=25), seen("else", "new")])
def test_traffic_that_somebody_changed_during_the_claim_stays_as_it_is(after: WorkerWorld) -> None:
    person = Person([seen(), after])
    with pytest.raises(OwnedBySomebodyElse, match="at the same time"):
        does(person, lambda target: promote(target, full=False, skip_gate=False))
    assert person.written == ["manager me by old"]


def test_promotion_is_recorded_once_it_was_made_and_stands_when_that_fails() -> None:
    for lost, tries in (("", 1), (f"mark v3 {MarkKey.MOVED_BY}", 2)):
        person = Person([seen("me")], lost=lost)
        written = does(person, lambda target: promote(target, full=False, skip_gate=False))
        assert written == ["SetRamp by old", *[f"mark v3 {MarkKey.MOVED_BY}"] * tries]


def test_change_that_timed_out_and_was_made_is_done() -> None:
    made = seen("me", percentage=25)
    person = Person([seen("me"), made], lost="SetRamp")
    assert does(person, lambda target: promote(target, full=False, skip_gate=False)) == ["SetRamp by old"]


def test_change_that_timed_out_and_was_not_made_is_not_repeated() -> None:
    person = Person([seen("me"), seen("me")], lost="SetRamp")
    with pytest.raises(OutOfTime):
        does(person, lambda target: promote(target, full=False, skip_gate=False))
    assert person.written == ["SetRamp by old"]


def test_what_is_refused_writes_nothing() -> None:
    unknown = replace(seen("me"), temporal=temporal(version("v1"), traffic=routing("v1")))
    person = Person([unknown])
    with pytest.raises(NegativeAnswer):
        does(person, abort)
    assert person.written == []
