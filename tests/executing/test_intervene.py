"""What a person does to a rollout, when somebody else does something at the same moment."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.planning.situations import MAIN, NOW, RAMPS, live, routing, situation, target_in, temporal, version
from tests.planning.times import DAY, MINUTE, ago
from twgen.errors import NegativeAnswer, OutOfTime, OwnedBySomebodyElse
from twgen.executing.ports import RolloutView
from twgen.executing.rollout import RolloutLoop
from twgen.model.analysis import Analysis, Measurement, Metric, OnFailure, ReportedProblems, StuckWorkflows
from twgen.model.operator import Caller
from twgen.model.plan import GateStart, RoutingAction, RoutingPlan
from twgen.model.spec import Gate, WorkerSpec
from twgen.model.temporal import GateRun, GateStatus, Routing, UpdateState, WorkerDeployment
from twgen.model.times import format_time
from twgen.model.world import WorkerWorld, World
from twgen.planning.interventions import abort, promote, retry
from twgen.planning.plan import worker_world
from twgen.planning.routing.target import Target
from twgen.versioning.names import MarkKey


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
    refused: str = ""
    """The write that the server refuses."""
    after: Routing | None = None
    """The traffic after the change; None: the change was made."""
    spec: WorkerSpec = RAMPS
    written: list[str] = field(default_factory=list)
    marks: dict[str, Any] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    traffic: Routing = field(default_factory=Routing)

    def now(self) -> datetime:
        return NOW

    async def sleep(self, _: timedelta) -> None:
        pass

    async def read(self) -> World:
        if not self.worlds:
            raise OutOfTime("the look came to nothing")
        self.seen = self.worlds.pop(0)
        return World(NOW, {self.spec.key: self.seen})

    def temporal(self, _: str) -> "Person":
        return self

    async def read_routing(self) -> WorkerDeployment:
        assert self.seen.temporal
        return replace(self.seen.temporal, routing=self.traffic)

    async def set_manager(self, manager: str, conflict_token: str) -> None:
        self._write(f"manager {manager} by {conflict_token}")

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        share = change.percentage if change.action is RoutingAction.SET_RAMP else 0
        self.traffic = self.after or routing("v1", ("v3", share) if share else None, age=MINUTE)
        self._write(f"{change.action} by {conflict_token}")

    async def end_gate(self, workflow_id: str) -> None:
        self._write(f"end {workflow_id}")

    async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        self.marks |= marks
        self._write(f"mark {build_id} {' '.join(marks)}")

    async def start_gate(self, gate: GateStart, gate_input: bytes | None) -> None:
        raise AssertionError((gate, gate_input))

    def _write(self, what: str) -> None:
        self.written.append(what)
        if self.refused and what.startswith(self.refused):
            raise OwnedBySomebodyElse("nothing was changed")
        if self.lost and what.startswith(self.lost):
            raise OutOfTime(what)


def does(person: Person, decide: Any) -> list[str]:
    servers: Any = person
    rollout = RolloutLoop(servers, Caller("me", forced=True), RolloutView(person.said.append))

    async def story() -> None:
        target = rollout.target_of(await rollout.read())
        await rollout.intervene(target, decide(target))

    asyncio.run(story())
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
    written = does(person, lambda target: promote(target, full=False, skip_gate=False))
    assert written == ["SetRamp by old", f"mark v3 {MarkKey.MOVED_BY}"]


def test_change_that_timed_out_and_was_not_made_is_not_repeated() -> None:
    person = Person([seen("me"), seen("me")], lost="SetRamp")
    with pytest.raises(OutOfTime):
        does(person, lambda target: promote(target, full=False, skip_gate=False))
    assert person.written == ["SetRamp by old"]


FAILING = Analysis((Metric("stuck", ReportedProblems(0)),), OnFailure.ABORT, timedelta())
STUCK = (Measurement("stuck", ago(DAY), stuck=StuckWorkflows(2, ("order-1",))),)


def a_failing_ramp() -> Target:
    """Its gate has not run, and its analysis fails."""
    rollout, policy = replace(RAMPS.rollout, gate=Gate("Smoke")), replace(RAMPS.policy, analysis=FAILING)
    known, told = (version("v1"), version("v3", measurements=STUCK)), {"conflict_token": "old"}
    says = temporal(*known, traffic=routing("v1", ("v3", 5)), **told)
    return target_in(
        situation(says, [live("v1"), live("v3")]), replace(RAMPS, rollout=rollout, policy=policy)
    )


def test_refused_promotion_leaves_no_mark_that_would_make_the_rollout_faster() -> None:
    target = a_failing_ramp()
    person = Person([target.world], spec=target.spec, refused="SetRamp")
    with pytest.raises(OwnedBySomebodyElse, match=r"^nothing was changed$"):
        does(person, lambda target: promote(target, full=False, skip_gate=True))
    assert (person.written, person.marks) == (["SetRamp by old"], {})


def test_promotion_past_its_gate_and_a_failing_analysis_is_marked_together_with_the_change() -> None:
    target = a_failing_ramp()
    person = Person([target.world], spec=target.spec)
    written = does(person, lambda target: promote(target, full=False, skip_gate=True))
    assert written == ["SetRamp by old", f"mark v3 {MarkKey.MOVED_BY} {MarkKey.MEASURED_SINCE}"]
    moved = person.marks[MarkKey.MOVED_BY]
    assert (moved["percentage"], moved["gates"]) == (25, ["Smoke"])
    assert moved["stay"] == format_time(ago(MINUTE)), "of the traffic after the change"


def test_change_that_another_client_has_undone_since_is_not_recorded() -> None:
    person = Person([seen("me")], after=routing("v1", ("v3", 3)))
    written = does(person, lambda target: promote(target, full=False, skip_gate=False))
    assert written == ["SetRamp by old"]
    assert (
        person.said[-1]
        == "could not record the routing change for v3: its routing or its intent has changed since then"
    )


@pytest.mark.parametrize(
    ("worlds", "decide", "before"),
    [
        ([seen("me")], abort, f"v3 was marked ({MarkKey.ABORTED})"),
        ([seen(), seen("me", "new")], abort, f"v3 was marked ({MarkKey.ABORTED}) and me became the manager"),
    ],
)
def test_refusal_says_what_was_changed_before_it(worlds: list[WorkerWorld], decide: Any, before: str) -> None:
    with pytest.raises(OwnedBySomebodyElse) as error:
        does(Person(worlds, refused="ClearRamp"), decide)
    assert str(error.value) == f"nothing was changed; before that, {before}"


def test_lost_answer_whose_look_fails_too_says_what_was_changed_before_it() -> None:
    with pytest.raises(OutOfTime) as error:
        does(Person([seen("me")], lost="ClearRamp"), abort)
    assert str(error.value) == f"ClearRamp by old; before that, v3 was marked ({MarkKey.ABORTED})"


def test_retry_terminates_the_gate_that_cannot_complete_before_it_starts_another() -> None:
    run = GateRun("main", "test-shop/payments:v3-main", GateStatus.RUNNING, ago(MINUTE), "not registered")
    gated = replace(RAMPS, rollout=replace(RAMPS.rollout, gate=Gate("Smoke")))
    says = temporal(version("v1"), version("v3", gate_runs=(run,)), traffic=routing("v1"))
    target = target_in(situation(says, [live("v1"), live("v3")]), gated)
    person = Person([target.world], spec=target.spec)
    assert does(person, retry) == ["end test-shop/payments:v3-main", f"mark v3 {MarkKey.GATE_ATTEMPT}"]


def test_what_is_refused_writes_nothing() -> None:
    unknown = replace(seen("me"), temporal=temporal(version("v1"), traffic=routing("v1")))
    person = Person([unknown])
    with pytest.raises(NegativeAnswer):
        does(person, abort)
    assert person.written == []
