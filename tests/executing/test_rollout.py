"""Rollouts of one worker against a model of Temporal whose answers get lost, and where people interrupt."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planning.situations import HOUR, MAIN, MINUTE, NOW, RAMPS, SECOND, live, situation
from twgen.errors import OutOfTime, OwnedBySomebodyElse, StateUnavailable, TwgenError
from twgen.executing.rollout import Rollout, roll_out
from twgen.model.operator import Caller
from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.spec import Gate, WorkerSpec
from twgen.model.world import GateRun, GateStatus, WorkerDeployment, World
from twgen.simulating.temporal import TemporalModel, server_of
from twgen.versioning.names import ABORTED, PAUSED

ME, YOU, ELSE = "twgen/me", "twgen/you", "somebody/else"
GATED = replace(RAMPS, rollout=replace(RAMPS.rollout, gate=Gate("Check", input={"deep": True})))
TROUBLES = ("", "", "", "refused", "lost request", "lost answer", "late", "slow")
SLOW, LATE = 7 * SECOND, 25 * SECOND
DEEDS = ("ramp", "unversioned", "stop ramp", "back", "pause", "resume", "abort", "retry", "claim", "release")


@dataclass
class Server:
    """A Temporal that is modelled, with a clock on which everybody sleeps in turn."""

    token: int = 1
    last_modifier: str = ""
    marks: dict[str, Any] = field(default_factory=dict)
    """Of the target."""
    done: list[str] = field(default_factory=list)
    registrations: int = 1
    gate_inputs: list[bytes | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = TemporalModel(server_of("1.32.0"), NOW, HOUR, 3 * MINUTE)
        for build_id in ("v1", "v3"):
            self.model.polled(build_id, [MAIN])
        self.model.set_current("v1")
        self.model.advance(NOW + HOUR)
        self._sleeping: list[tuple[Any, int, asyncio.Future[None]]] = []
        self._order = count()

    async def sleep(self, length: timedelta) -> None:
        assert length > timedelta()
        wakes = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleeping, (self.model.now + length, next(self._order), wakes))
        await wakes

    def run(self, *work: Coroutine[Any, Any, WorkerPlan | None]) -> list[Any]:
        """What all of it returns or raises, side by side, as the clock jumps from one wake to the next."""

        async def all_of_it() -> list[Any]:
            tasks = [asyncio.ensure_future(each) for each in work]
            while self._sleeping or not all(task.done() for task in tasks):
                for _ in range(3):  # whoever is awake goes on until it sleeps
                    await asyncio.sleep(0)
                if self._sleeping:
                    moment, _, wakes = heapq.heappop(self._sleeping)
                    self.model.advance(moment)
                    wakes.set_result(None)
            return await asyncio.gather(*tasks, return_exceptions=True)

        ended = asyncio.run(all_of_it())
        for end in ended:
            if isinstance(end, BaseException) and not isinstance(end, TwgenError):
                raise end
        return ended

    def described(self) -> WorkerDeployment:
        found = self.model.described()
        assert found
        versions = tuple(
            replace(version, metadata=dict(self.marks) if version.build_id == "v3" else {})
            for version in found.versions
        )
        return replace(found, versions=versions, conflict_token=str(self.token))

    def change(self, apply: Callable[[], None], by: str) -> None:
        """As a server does: what changes nothing, by whoever changed it last, leaves the token alone."""
        before = self._value()
        apply()
        if self._value() != before or self.last_modifier != by:
            self.token, self.last_modifier = self.token + 1, by

    def _value(self) -> Any:
        current, ramping = self.model.routing.current, self.model.routing.ramping
        ramp = ramping and (ramping.build_id, ramping.percentage)
        return current and current.build_id, ramp, self.model.manager

    async def person(self, deeds: Sequence[tuple[int, str]]) -> None:
        """Do what people do, each deed so many seconds after the one before."""
        for pause, deed in deeds:
            await self.sleep(pause * SECOND)
            await self._do(deed)
        await self.sleep(HOUR)
        for deed in ("resume", "retry", "release"):
            await self._do(deed)

    async def _do(self, deed: str) -> None:
        model = self.model
        routing = {"ramp": ("v3", 50), "unversioned": ("", 10), "stop ramp": ("", 0), "abort": ("", 0)}
        if deed == "abort":
            self.marks[ABORTED] = {"by": "a person"}
        if deed in routing:
            current = model.routing.current
            if not (current and current.build_id == routing[deed][0]) and "v3" in model.versions:
                self.change(lambda: model.set_ramp(*routing[deed]), model.manager)
        match deed:
            case "back":
                self.change(lambda: model.set_current("v1"), model.manager)
            case "pause":
                self.marks[PAUSED] = {"by": "a person"}
            case "resume":
                self.marks[PAUSED] = False
            case "retry":
                self.marks[ABORTED] = False
            case "claim" | "release":
                self.change(lambda: setattr(model, "manager", ELSE if deed == "claim" else ""), ELSE)
            case "vanish" if not any(
                routed and routed.build_id == "v3"
                for routed in (model.routing.current, model.routing.ramping)
            ):
                model.versions.pop("v3")
                model.gate_ends.clear()
                self.marks.clear()
                await self.sleep(30 * SECOND)
                model.polled("v3", [MAIN])
                self.registrations += 1


@dataclass
class Client:
    """One rollout's way to the server, which checks that every write is justified by a read of its own."""

    server: Server
    spec: WorkerSpec
    identity: str = ME
    troubles: list[str] = field(default_factory=list)
    """What goes wrong with the next reads and writes."""
    said: list[str] = field(default_factory=list)
    looks: int = 0
    glances: int = 0
    read_last: WorkerDeployment | None = None
    """Until it has justified a write."""

    async def read(self) -> World:
        self.looks += 1
        self.read_last = None
        trouble = await self._trouble()
        found = self.server.described()
        if trouble == "slow":
            await self.server.sleep(SLOW)
        self.read_last = found
        return situation(found, [live("v1"), live("v3")])

    async def conflict_token(self) -> str:
        self.glances += 1
        await self._trouble()
        return self.server.described().conflict_token

    async def set_manager(self, manager: str, conflict_token: str) -> str:
        def apply() -> None:
            if (self.server.model.manager, self.server.last_modifier) == (manager, self.identity):
                return
            self._check(conflict_token)
            assert self.server.model.manager == "", "it takes the worker over from somebody"
            self.server.change(lambda: setattr(self.server.model, "manager", manager), self.identity)

        await self._write(f"manager {manager}", apply, conflict_token)
        return str(self.server.token)

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        model = self.server.model

        def move() -> None:
            if change.action is RoutingAction.SET_CURRENT:
                model.set_current(change.build_id or "")
            else:
                model.set_ramp(change.build_id or "", change.percentage or 0)

        def apply() -> None:
            self._check(conflict_token)
            if model.manager not in {"", self.identity}:
                raise OwnedBySomebodyElse("ManagerIdentity")
            if change.build_id and change.build_id not in model.versions:
                raise StateUnavailable("no such version")
            self.server.change(move, self.identity)

        marks = next(
            (told.metadata or {} for told in (self.read_last or WorkerDeployment()).versions
             if told.build_id == "v3"), {},
        )  # fmt: skip
        if change.action is not RoutingAction.CLEAR_RAMP:
            assert not marks.get(ABORTED), "it was aborted"
            assert not marks.get(PAUSED), "it was paused"
        await self._write(f"{change.action} {change.build_id} {change.percentage}", apply, conflict_token)

    async def start_gate(self, gate: GateStart, gate_input: bytes | None) -> None:
        model = self.server.model

        def apply() -> None:
            if "v3" not in model.versions:
                raise StateUnavailable("no such version")
            if any(run.workflow_id == gate.workflow_id for run in model.versions["v3"].gate_runs or ()):
                raise OwnedBySomebodyElse("it runs already")
            self.server.gate_inputs.append(gate_input)
            run = GateRun(gate.task_queue, gate.workflow_id, GateStatus.RUNNING, model.now)
            model.start_gate("v3", run, model.now + 20 * SECOND, GateStatus.COMPLETED)

        await self._write(f"gate {gate.workflow_id.rpartition('-')[2]}", apply)

    async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        raise AssertionError((build_id, marks))

    def _check(self, conflict_token: str) -> None:
        if conflict_token != str(self.server.token):
            raise OwnedBySomebodyElse("conflict token mismatch")

    async def _write(self, name: str, apply: Callable[[], None], conflict_token: str | None = None) -> None:
        read, self.read_last = self.read_last, None
        assert read, f"{name} has no read of its own"
        assert read.manager_identity in {"", self.identity}, f"{name}, though it is somebody else's"
        assert conflict_token in {None, read.conflict_token}, f"{name} goes with a token that was not read"

        def arrive() -> None:
            apply()
            self.server.done.append(name)

        async def arrive_late() -> None:
            await self.server.sleep(LATE)
            with suppress(OwnedBySomebodyElse, StateUnavailable):  # nobody waits for the answer
                arrive()

        trouble = await self._trouble()
        if trouble == "late":
            self.arriving = asyncio.ensure_future(arrive_late())
            await self.server.sleep(20 * SECOND)
            raise OutOfTime("nobody knows")
        if trouble == "slow":
            await self.server.sleep(SLOW)
        arrive()
        if trouble == "lost answer":
            raise OutOfTime("nobody knows")

    async def _trouble(self) -> str:
        trouble = self.troubles.pop(0) if self.troubles else ""
        if trouble == "refused":
            raise StateUnavailable("refused")
        if trouble == "lost request":
            raise OutOfTime("nobody knows")
        return trouble

    def rolling(self, *, once: bool = False) -> Coroutine[Any, Any, WorkerPlan]:
        async def gate_input() -> bytes:
            return b'{"deep": true}'

        rollout = Rollout(
            spec=self.spec,
            caller=Caller(self.identity, drives=True),
            clock=lambda: self.server.model.now,
            sleep=self.server.sleep,
            read=self.read,
            conflict_token=self.conflict_token,
            writer=lambda identity: self if identity == self.identity else pytest.fail(identity),
            gate_input=gate_input,
            show=lambda _: None,
            say=self.said.append,
        )
        return roll_out(rollout, once=once)


def rolled_out(client: Client, *, once: bool = False) -> WorkerPlan:
    [ended] = client.server.run(client.rolling(once=once))
    if isinstance(ended, BaseException):
        raise ended
    assert isinstance(ended, WorkerPlan)
    return ended


def test_rollout_gates_claims_ramps_and_promotes_in_this_order() -> None:
    client = Client(server := Server(), GATED)
    begin = server.model.now
    assert rolled_out(client).routing.phase is Phase.SETTLED
    assert server.done == [
        "gate main",
        f"manager {ME}",
        "SetRamp v3 5",
        "SetRamp v3 25",
        "SetCurrent v3 None",
    ]
    assert server.gate_inputs == [b'{"deep": true}']
    assert 40 * MINUTE < server.model.now - begin < 41 * MINUTE, "no pause is cut short"
    assert [line.partition(": ")[2].partition(" (")[0] for line in client.said] == [
        "started the gate test-shop/payments:v3-main on task queue main",
        f"{ME} manages it now",
        "5 % of new workflows go to v3 now",
        "25 % of new workflows go to v3 now",
        "v3 is current now",
    ]


def test_pause_of_a_step_is_one_small_read_in_30_seconds() -> None:
    client = Client(Server(), RAMPS)
    rolled_out(client)
    assert client.glances <= 40 * 2
    assert client.looks <= 40 / 5 + 12


def test_change_by_hand_during_a_pause_is_seen_within_30_seconds() -> None:
    client = Client(server := Server(), RAMPS)
    server.run(client.rolling(), server.person([(45, "ramp")]))
    assert server.done[:3] == [f"manager {ME}", "SetRamp v3 5", "SetRamp v3 25"]
    assert "the live 50 % is no step's; 25 % is the nearest" in client.said[2]


def test_once_makes_one_change_for_which_it_becomes_the_manager() -> None:
    client = Client(Server(), RAMPS)
    assert rolled_out(client, once=True).routing.action is RoutingAction.SET_RAMP
    assert client.server.done == [f"manager {ME}", "SetRamp v3 5"]


@pytest.mark.parametrize(("trouble", "error"), [("lost request", OutOfTime), ("refused", StateUnavailable)])
def test_first_look_that_fails_ends_the_rollout(trouble: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        rolled_out(Client(Server(), RAMPS, troubles=[trouble]))


def test_failure_that_lasts_is_said_once() -> None:
    client = Client(Server(), RAMPS, troubles=["", "", *["refused"] * 9])
    rolled_out(client)
    assert client.said.count("refused; looking again") == 1


def test_worker_of_somebody_else_is_left_alone() -> None:
    client = Client(server := Server(), GATED)
    server.model.manager = ELSE
    assert rolled_out(client).routing.phase is Phase.BLOCKED
    assert server.done == []


def test_claim_made_elsewhere_under_the_same_name_lets_no_abort_be_undone() -> None:
    client = Client(server := Server(), RAMPS, troubles=["slow"])

    async def another() -> None:
        await server.sleep(SECOND)
        server.change(lambda: setattr(server.model, "manager", ME), ME)
        server.marks[ABORTED] = {"by": "a person"}

    server.run(client.rolling(), another())
    assert not any(name.startswith("Set") for name in server.done)


deeds = st.lists(st.tuples(st.integers(1, 400), st.sampled_from((*DEEDS, "vanish"))), max_size=8)
troubles = st.lists(st.sampled_from(TROUBLES), max_size=25)


@given(troubles, troubles, deeds, st.sampled_from([RAMPS, GATED]), st.sampled_from([ME, YOU]))
def test_whatever_gets_lost_and_whoever_interrupts_two_rollouts_make_no_write_unread_and_the_next_one_settles(
    first: list[str], second: list[str], people: list[tuple[int, str]], spec: WorkerSpec, other: str
) -> None:
    server = Server()
    clients = [Client(server, spec, ME, ["", *first]), Client(server, spec, other, ["", *second])]
    server.run(*(client.rolling() for client in clients), server.person(people))
    assert rolled_out(Client(server, spec)).routing.phase is Phase.SETTLED
    current: Any = server.model.routing.current
    assert current.build_id == "v3"
    assert server.model.routing.ramping is None
    assert sum(name.startswith("gate") for name in server.done) <= server.registrations
