"""Rollouts that meet trouble on their way to a modelled Temporal."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.executing.server import Server
from tests.planning.situations import RAMPS, live, situation
from tests.planning.times import SECOND
from twgen.errors import OutOfTime, OwnedBySomebodyElse, StateUnavailable
from twgen.executing.ports import RolloutView
from twgen.executing.rollout import RolloutLoop
from twgen.model.operator import Caller
from twgen.model.plan import GateStart, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import Gate, WorkerSpec
from twgen.model.temporal import GateRun, GateStatus, WorkerDeployment
from twgen.model.world import World
from twgen.planning.version_status import is_in_force
from twgen.versioning.names import MarkKey, read_mark

ME, YOU = "twgen/me", "twgen/you"
GATED = replace(RAMPS, rollout=replace(RAMPS.rollout, gate=Gate("Check", input={"deep": True})))
TROUBLES = ("", "", "", "refused", "lost request", "lost answer", "late", "slow")
SLOW, LATE = 7 * SECOND, 25 * SECOND


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
    routing_reads: int = 0
    is_requested: bool = False
    """A person has ever requested something of it."""
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

    async def read_routing(self) -> WorkerDeployment:
        self.routing_reads += 1
        await self._trouble()
        return self.server.described()

    async def set_manager(self, manager: str, conflict_token: str) -> None:
        def apply() -> None:
            if (self.server.model.manager, self.server.last_modifier) == (manager, self.identity):
                return
            self._check(conflict_token)
            assert self.server.model.manager == "", "it takes the worker over from somebody"
            self.server.change(lambda: setattr(self.server.model, "manager", manager), self.identity)

        await self._write(f"manager {manager}", apply, conflict_token)

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        model = self.server.model

        def move() -> None:
            if change.action is RoutingAction.SET_CURRENT:
                model.set_current(change.build_id or "")
            else:
                model.set_ramp(change.build_id or "", change.percentage or 0)

        def apply() -> None:
            current, ramping = model.routing.current, model.routing.ramping
            live = (ramping.build_id, ramping.percentage) if ramping else ("", 0)
            is_set = change.action is RoutingAction.SET_CURRENT
            wanted = (change.build_id, change.percentage)
            is_so = current and current.build_id == change.build_id if is_set else live == wanted
            if is_so and self.server.last_modifier == self.identity:
                return  # before it looks at the token
            self._check(conflict_token)
            if model.manager not in {"", self.identity}:
                raise OwnedBySomebodyElse("ManagerIdentity")
            if change.build_id and change.build_id not in model.versions:
                raise StateUnavailable("no such version")
            assert self._is_in_turn(change), f"{change} comes before its time"
            self.server.change(move, self.identity)
            self.server.promotions += change.reason is Reason.MANUAL

        if change.action is not RoutingAction.CLEAR_RAMP:
            assert not self._is_marked(MarkKey.ABORTED), "it was aborted"
            is_promotion = change.reason is Reason.MANUAL  # which moves a paused one too
            assert is_promotion or not self._is_marked(MarkKey.PAUSED), "it was paused"
        await self._write(f"{change.action} {change.build_id} {change.percentage}", apply, conflict_token)

    def _is_marked(self, key: MarkKey) -> bool:
        told = self.read_last or WorkerDeployment()
        version = next((one for one in told.versions if one.build_id == self.spec.build_id), None)
        mark = read_mark(key, (version.metadata or {}).get(key)) if version else None
        return bool(version and mark and is_in_force(mark, version, told))

    async def start_gate(self, gate: GateStart, gate_input: bytes | None) -> None:
        model = self.server.model

        target = self.spec.build_id

        def apply() -> None:
            if target not in model.versions:
                raise StateUnavailable("no such version")
            runs = model.versions[target].gate_runs or ()
            runs = [run for run in runs if run.workflow_id == gate.workflow_id]
            runs_already = any(run.status is GateStatus.RUNNING for run in runs)
            if runs_already or gate.request_id in self.server.gate_requests:
                raise OwnedBySomebodyElse("it runs already")
            self.server.gate_requests.add(gate.request_id)
            self.server.gate_inputs.append(gate_input)
            run = GateRun(gate.task_queue, gate.workflow_id, GateStatus.RUNNING, model.now)
            ends_as = self.server.gates_end_as.pop(0) if self.server.gates_end_as else GateStatus.COMPLETED
            model.start_gate(target, run, model.now + 20 * SECOND, ends_as)

        await self._write(f"gate {gate.workflow_id.rpartition('-')[2]}", apply)

    async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        if MarkKey.MOVED_BY in marks:
            kinds = tuple(RoutingAction)
            moves = [done.split() for done in self.server.done if done.startswith(kinds)]
            assert moves[-1][1] == build_id, "of the version that was moved last"
        else:
            assert self.is_requested, "only people mark a version"
        await self._trouble()
        self.server.marks |= marks

    def _is_in_turn(self, change: RoutingPlan) -> bool:
        """It leaves no step out and cuts no pause short, by what is true when it arrives."""
        if change.action is RoutingAction.CLEAR_RAMP or change.reason in {
            Reason.ROLLBACK,
            Reason.ALL_AT_ONCE,
            Reason.MANUAL,
        }:
            return True
        ramp, steps = self.server.model.routing.ramping, self.spec.rollout.steps
        if not ramp or ramp.build_id != self.spec.build_id:
            return change.percentage == steps[0].percentage
        done = [step for step in steps if step.percentage <= ramp.percentage] or [steps[0]]
        if change.percentage == done[-1].percentage:
            return ramp.percentage != change.percentage
        follows = steps[len(done)].percentage if len(done) < len(steps) else None
        waited = self.server.model.now - (ramp.percentage_changed_at or self.server.model.now)
        is_next = (ramp.percentage, change.percentage) == (done[-1].percentage, follows)
        return is_next and waited >= done[-1].pause

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
        if trouble == "broken":  # the connection, after the request
            raise StateUnavailable("UNAVAILABLE: transport error")

    async def _trouble(self) -> str:
        trouble = self.troubles.pop(0) if self.troubles else ""
        if trouble == "refused":
            raise StateUnavailable("refused")
        if trouble == "lost request":
            raise OutOfTime("nobody knows")
        return trouble

    def now(self) -> datetime:
        return self.server.model.now

    async def sleep(self, length: timedelta) -> None:
        await self.server.sleep(length)

    def temporal(self, identity: str) -> Any:
        assert identity == self.identity
        return self

    async def gate_input(self) -> bytes:
        return b'{"deep": true}'

    def rollout(self, kind: type[RolloutLoop] = RolloutLoop) -> RolloutLoop:
        return kind(self, Caller(self.identity, drives=True), RolloutView(self.said.append))

    def rolling(self, *, once: bool = False) -> Coroutine[Any, Any, WorkerPlan]:
        return self.rollout().run(once=once)
