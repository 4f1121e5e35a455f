"""Temporal as a model on a clock that jumps, and what people do to it meanwhile."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from tests.planning.situations import MAIN, NOW
from tests.planning.times import HOUR, MINUTE, SECOND
from twgen.errors import TwgenError
from twgen.model.plan import WorkerPlan
from twgen.model.temporal import GateStatus, WorkerDeployment
from twgen.model.times import format_time
from twgen.planning.version_status import stay_began
from twgen.simulating.servers import TemporalModel, server_of
from twgen.versioning.names import MarkKey

ELSE = "somebody/else"
_LONGEST = 72 * HOUR
DEEDS = ("ramp", "unversioned", "stop ramp", "back", "pause", "resume", "abort", "retry", "claim", "release")


@dataclass
class Server:
    """A Temporal that is modelled, with a clock on which everybody sleeps in turn."""

    token: int = 1
    last_modifier: str = ""
    marks: dict[str, Any] = field(default_factory=dict)
    """Of the target."""
    done: list[str] = field(default_factory=list)
    stays: int = 1
    """Of v3, of which each has a gate of its own."""
    promotions: int = 0
    """How often traffic moved because a person asked for it."""
    gate_inputs: list[bytes | None] = field(default_factory=list)
    gate_requests: set[str] = field(default_factory=set)
    gates_end_as: list[GateStatus] = field(default_factory=list)
    """How the next gates end; all others pass."""

    def __post_init__(self) -> None:
        self.model = TemporalModel(server_of("1.32.0"), NOW, HOUR, 3 * MINUTE)
        for build_id in ("v1", "v3"):
            self.model.polled(build_id, [MAIN])
        self.model.set_current("v1")
        self.model.advance(NOW + HOUR)
        self._sleeping: list[tuple[Any, int, asyncio.Future[None]]] = []
        self._order = count()
        self._tasks: list[asyncio.Task[Any]] = []

    async def sleep(self, length: timedelta) -> None:
        assert length > timedelta()
        wakes = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleeping, (self.model.now + length, next(self._order), wakes))
        await wakes

    def run(self, *work: Coroutine[Any, Any, WorkerPlan | None]) -> list[Any]:
        """What all of it returns or raises, side by side, as the clock jumps from one wake to the next."""

        async def all_of_it() -> list[Any]:
            for each in work:
                self.start(each)
            tasks = self._tasks
            while self._sleeping or not all(task.done() for task in tasks):
                assert self.model.now < NOW + _LONGEST, "it never ends"
                for _ in range(3):  # whoever is awake goes on until it sleeps
                    await asyncio.sleep(0)
                if self._sleeping:
                    moment, _, wakes = heapq.heappop(self._sleeping)
                    self.model.advance(moment)
                    if not wakes.done():  # whoever slept may have been killed
                        wakes.set_result(None)
            return await asyncio.gather(*tasks, return_exceptions=True)

        self._tasks.clear()
        ended = asyncio.run(all_of_it())
        for end in ended:
            if isinstance(end, BaseException) and not isinstance(end, TwgenError):
                raise end
        return ended

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do it beside all that runs."""
        self._tasks.append(task := asyncio.ensure_future(work))
        return task

    def described(self) -> WorkerDeployment:
        found = self.model.described()
        assert found
        versions = tuple(
            replace(version, metadata=dict(self.marks) if version.build_id == "v3" else {})
            for version in found.versions
        )
        return replace(
            found,
            versions=versions,
            conflict_token=str(self.token),
            last_modifier_identity=self.last_modifier,
        )

    def change(self, apply: Callable[[], None], by: str) -> None:
        """As a server does: what changes nothing, by whoever changed it last, leaves the token alone."""
        before, stay = self._value(), self._stay()
        apply()
        self.stays += self._stay() != stay
        if self._value() != before or self.last_modifier != by:
            self.token, self.last_modifier = self.token + 1, by

    def _stay(self) -> datetime | None:
        target, says = self.model.versions.get("v3"), self.model.described()
        return stay_began(target, says) if target and says else None

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
            self.marks[MarkKey.ABORTED] = {"by": "a person"}
        if deed in routing:
            current = model.routing.current
            if not (current and current.build_id == routing[deed][0]) and "v3" in model.versions:
                self.change(lambda: model.set_ramp(*routing[deed]), model.manager)
        match deed:
            case "back":
                self.change(lambda: model.set_current("v1"), model.manager)
            case "pause":
                self.marks[MarkKey.PAUSED] = {"by": "a person"}
            case "resume":
                self.marks[MarkKey.PAUSED] = False
            case "retry":
                self._retry()
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
                self.stays += 1

    def _retry(self) -> None:
        self.marks[MarkKey.ABORTED] = False
        target = self.model.versions.get("v3")
        # each attempt has one run, on the one task queue
        [*_, last] = (target and target.gate_runs) or [None]
        if last and last.status.has_failed:
            _, _, number = last.workflow_id.rpartition("main")
            attempt = int(number.removeprefix("-") or 1) + 1
            if stay := self._stay():
                self.marks[MarkKey.GATE_ATTEMPT] = {"stay": format_time(stay), "attempt": attempt}
