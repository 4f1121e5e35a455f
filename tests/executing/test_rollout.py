"""The rollout of one worker against a model of Temporal whose answers get lost and whom people interrupt."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planning.situations import MAIN, NOW, RAMPS, live, situation
from twgen.errors import OutOfTime, OwnedBySomebodyElse, StateUnavailable
from twgen.executing.rollout import Rollout, roll_out
from twgen.model.operator import Caller
from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.spec import Gate, WorkerSpec
from twgen.model.world import GateRun, GateStatus, World
from twgen.simulating.temporal import TemporalModel, server_of

ME, ELSE = "twgen/me", "somebody/else"
GATED = replace(RAMPS, rollout=replace(RAMPS.rollout, gate=Gate("Check", input={"deep": True})))
TROUBLES = ("", "", "", "refused", "lost request", "lost answer")


@dataclass
class Server:
    """A Temporal that is modelled, and its client: every write needs a read of its own, and its token."""

    spec: WorkerSpec
    troubles: list[str] = field(default_factory=list)
    """What goes wrong with the next reads and writes."""
    interruptions: list[str] = field(default_factory=list)
    """What other people do while the rollout sleeps."""
    token: int = 1
    may_write: bool = False
    said: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    gate_inputs: list[bytes | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        hour = timedelta(hours=1)
        self.model = TemporalModel(server_of("1.32.0"), NOW, hour, timedelta(minutes=3))
        for build_id in ("v1", "v3"):
            self.model.polled(build_id, [MAIN])
        self.model.set_current("v1")
        self.model.advance(NOW + hour)

    async def read(self) -> World:
        self._trouble("nothing to lose")
        self.may_write = True
        found = self.model.described()
        assert found
        versions = tuple(
            replace(version, metadata={}, task_queues=(MAIN,), gate_runs=version.gate_runs or ())
            for version in found.versions
        )
        told = replace(found, versions=versions, conflict_token=str(self.token), server_version="1.32.0")
        return situation(told, [live("v1"), live("v3")])

    async def sleep(self, length: timedelta) -> None:
        assert length > timedelta()
        match self.interruptions.pop(0) if self.interruptions else "":
            case "ramp":
                self._change(lambda: self.model.set_ramp("v3", 50))
            case "unversioned":
                self._change(lambda: self.model.set_ramp("", 10))
            case "stop ramp":
                self._change(lambda: self.model.set_ramp("", 0))
            case "back":
                self._change(lambda: self.model.set_current("v1"))
        self.model.advance(self.model.now + length)

    async def set_manager(self, manager: str, conflict_token: str) -> str:
        return await self._write(
            f"manager {manager}", conflict_token, lambda: self._manage(manager), claims=True
        )

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        def apply() -> None:
            if change.action is RoutingAction.SET_CURRENT:
                self.model.set_current(change.build_id or "")
            else:
                self.model.set_ramp(change.build_id or "", change.percentage or 0)

        name = f"{change.action} {change.build_id} {change.percentage}"
        await self._write(name, conflict_token, lambda: self._change(apply))

    async def start_gate(self, gate: GateStart, gate_input: bytes | None) -> None:
        def start() -> None:
            runs = self.model.versions["v3"].gate_runs or ()
            if any(run.workflow_id == gate.workflow_id for run in runs):
                raise OwnedBySomebodyElse("it runs already")
            self.gate_inputs.append(gate_input)
            run = GateRun(gate.task_queue, gate.workflow_id, GateStatus.RUNNING, self.model.now)
            ends = self.model.now + timedelta(seconds=20)
            self.model.start_gate("v3", run, ends, GateStatus.COMPLETED)

        await self._write(f"gate {gate.task_queue}", str(self.token), start)

    async def mark(self, build_id: str, marks: dict[str, Any]) -> None:
        raise AssertionError((build_id, marks))

    async def _write(self, name: str, conflict_token: str, apply: Any, *, claims: bool = False) -> str:
        assert self.may_write, f"{name} has no read of its own"
        self.may_write = claims
        if conflict_token != str(self.token):
            raise OwnedBySomebodyElse("conflict token mismatch")
        if not claims and self.model.manager not in {"", ME}:
            raise OwnedBySomebodyElse("ManagerIdentity")
        self._trouble("lost answer")
        apply()
        self.done.append(name)
        if self.troubles and self.troubles[0] == "lost answer":
            self.troubles.pop(0)
            raise OutOfTime("nobody knows")
        return str(self.token)

    def _trouble(self, later: str) -> None:
        match self.troubles[0] if self.troubles else "":
            case "refused":
                self.troubles.pop(0)
                raise StateUnavailable("refused")
            case "lost request":
                self.troubles.pop(0)
                raise OutOfTime("nobody knows")
            case trouble if trouble != later and self.troubles:
                self.troubles.pop(0)

    def _manage(self, manager: str) -> None:
        self.model.manager = manager
        self.token += 1

    def _change(self, apply: Any) -> None:
        apply()
        self.token += 1


def rolled_out(server: Server, *, once: bool = False) -> WorkerPlan:
    async def gate_input() -> bytes:
        return b'{"deep": true}'

    rollout = Rollout(
        spec=server.spec,
        caller=Caller(ME, drives=True),
        clock=lambda: server.model.now,
        sleep=server.sleep,
        read=server.read,
        writer=lambda identity: server if identity == ME else pytest.fail(identity),
        gate_input=gate_input,
        show=lambda _: None,
        say=server.said.append,
    )
    return asyncio.run(roll_out(rollout, once=once))


def test_rollout_claims_gates_ramps_and_promotes_in_this_order() -> None:
    server = Server(GATED)
    begin = server.model.now
    assert rolled_out(server).routing.phase is Phase.SETTLED
    assert server.done == [
        "gate main", f"manager {ME}", "SetRamp v3 5", "SetRamp v3 25", "SetCurrent v3 None"
    ]  # fmt: skip
    assert server.gate_inputs == [b'{"deep": true}']
    assert timedelta(minutes=40) < server.model.now - begin < timedelta(minutes=41), "no pause is cut short"
    assert [line.partition(": ")[2].partition(" (")[0] for line in server.said] == [
        "started the gate test-shop/payments:v3-main on task queue main",
        "5 % of new workflows go to v3 now",
        "25 % of new workflows go to v3 now",
        "v3 is current now",
    ]


def test_once_makes_one_change() -> None:
    server = Server(RAMPS)
    assert rolled_out(server, once=True).routing.action is RoutingAction.SET_RAMP
    assert server.done == [f"manager {ME}", "SetRamp v3 5"]


@pytest.mark.parametrize("error", [OutOfTime, StateUnavailable])
def test_first_look_that_fails_ends_the_rollout(error: type[Exception]) -> None:
    server = Server(RAMPS, ["lost request" if error is OutOfTime else "refused"])
    with pytest.raises(error):
        rolled_out(server)


def test_worker_of_somebody_else_is_left_alone() -> None:
    server = Server(GATED)
    server.model.manager = ELSE
    assert rolled_out(server).routing.phase is Phase.BLOCKED
    assert server.done == []


@given(
    st.lists(st.sampled_from(TROUBLES), max_size=25),
    st.lists(st.sampled_from(["", "ramp", "unversioned", "stop ramp", "back"]), max_size=8),
    st.sampled_from([RAMPS, GATED]),
)
def test_whatever_gets_lost_and_whoever_interrupts_the_rollout_settles_with_no_write_unread(
    troubles: list[str], interruptions: list[str], spec: WorkerSpec
) -> None:
    server = Server(spec, ["", *troubles], interruptions)
    assert rolled_out(server).routing.phase is Phase.SETTLED
    current: Any = server.model.routing.current
    assert current.build_id == "v3"
    assert server.model.routing.ramping is None
    assert sum(name.startswith("gate") for name in server.done) <= 1
    assert server.model.now < datetime.max.replace(tzinfo=NOW.tzinfo)
