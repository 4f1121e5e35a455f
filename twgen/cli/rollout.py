"""`twgen rollout`."""

import asyncio
import gc
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import click

from twgen.cli.inputs import load_recorded, load_specs, planning_caller
from twgen.cli.live import Connections, Servers
from twgen.cli.observer import Observation
from twgen.cli.options import READING, options, output_option, paths_argument
from twgen.cli.output import is_terminal
from twgen.cli.settings import Settings, clock, settings_of
from twgen.cli.watch import Screen, Seen, StatusLog
from twgen.clients.deadline import Deadline
from twgen.errors import InvalidInput, NegativeAnswer, OutOfTime, OwnedBySomebodyElse, StateUnavailable
from twgen.executing.rollout import Rollout, roll_out
from twgen.executing.temporal import TemporalWriter
from twgen.model.operator import Caller
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.spec import WorkerSpec
from twgen.model.world import RecordedDeployment, World
from twgen.planning.plan import worker_world
from twgen.planning.sentences import spoken
from twgen.specs.parse import Specs

Answer = TypeVar("Answer")
Ledger = Mapping[tuple[str, str], RecordedDeployment]

_FRAME_SECONDS = 1.0
_WITHIN = 3600.0
"""Seconds."""


class View(Protocol):
    """What shows rollouts to whoever follows them."""

    @property
    def settings(self) -> Settings:
        """What the command line asked for."""

    @property
    def caller(self) -> Caller:
        """As whom they are planned."""

    async def show(self, world: World) -> None:
        """Take in a look at some of the workers."""

    def say(self, line: str) -> None:
        """Tell of a change, or of a failure."""


@click.command()
@paths_argument
@output_option("text", "json")
@options(
    "once",
    "within",
    "intent",
    "intent_hash",
    *READING,
    "identity",
    "namespace",
    "operator_config",
    "strict",
    "quiet",
    "color",
)
def command(output: str, color: str, once: bool, within: float | None, **params: Any) -> None:  # noqa: FBT001
    """Move the traffic of every worker to its target: start the gate, ramp, make it current.

    Deployments are not created here: apply what `twgen render` prints.

    \b
    twgen rollout .
    twgen rollout . --within 2h
    twgen rollout . --once

    Ends with 0 when every worker is Settled, 1 when one is Blocked, 4 when --within has passed, and 5 when
    somebody else manages a worker. With --once, it makes one change at most and ends with 0 unless Blocked.
    It may be ended and run again at any time: it goes on from what Temporal says.
    """
    gc.enable()  # it lives for hours
    settings = settings_of(params)
    if settings.surroundings.needs_identity:
        raise InvalidInput("a plugin of Argo CD only renders: run `twgen rollout` elsewhere")
    if place := params["intent"]:
        from twgen.cli.in_cluster import IntentRollout

        log = StatusLog(as_json=output == "json")
        return IntentRollout(settings, place, params["intent_hash"] or "", within, log).run()
    within = within or _WITHIN
    specs = load_specs(settings, needs_worker=True)
    caller = replace(planning_caller(settings), drives=True)
    ledger = load_recorded(settings, specs)
    view = _View(settings, specs, caller, output, color)
    with Servers(settings) as servers:

        async def story(opened: Connections) -> list[WorkerPlan | BaseException]:
            workers = [rollout_of(spec, ledger, view, servers, opened) for spec in specs.workers]
            async with asyncio.timeout(within):
                # one that fails does not stop the others
                rollouts = (roll_out(worker, once=once) for worker in workers)
                return await view.beside(asyncio.gather(*rollouts, return_exceptions=True))

        try:
            ended = servers.run(specs.workers, story)
        except TimeoutError as error:
            late = f"not settled within {spoken(timedelta(seconds=within))}: {view.unsettled()}"
            raise OutOfTime(late) from error
    return judge(ended)


def rollout_of(
    spec: WorkerSpec, ledger: Ledger, view: View, servers: Servers, opened: Connections
) -> Rollout:
    """The rollout of a worker, over these connections, which a view shows."""
    settings = view.settings

    async def read() -> World:
        world = await servers.read_soon(opened, [spec], for_routing=True)
        return world.remembering(ledger)

    async def conflict_token() -> str:
        world = await servers.read_soon(opened, [spec], for_routing=False)
        temporal = worker_world(spec, world).temporal
        return temporal.conflict_token if temporal else ""

    async def gate_input() -> bytes | None:
        gate = spec.rollout.gate
        if not gate or (gate.input is None and not gate.input_from):
            return None
        if not gate.input_from:
            return json.dumps(gate.input).encode()
        if not opened.kubernetes:
            raise StateUnavailable(
                f"{spec.worker_deployment}: the input of its gate is in {gate.input_from.kind}"
                f" {gate.input_from.name}, and no cluster is read"
            )
        source, deadline = gate.input_from, Deadline(settings.timeout)
        return await opened.kubernetes.data(source.kind, spec.namespace, source.name, source.key, deadline)

    return Rollout(
        spec=spec,
        caller=view.caller,
        clock=clock,
        sleep=lambda length: asyncio.sleep(length.total_seconds()),
        read=read,
        conflict_token=conflict_token,
        writer=lambda identity: TemporalWriter(spec, identity, opened.temporal, settings.timeout),
        gate_input=gate_input,
        show=view.show,
        say=view.say,
    )


class _View:
    """What is shown of the rollouts: a tree that repaints on a terminal, else a line for each change."""

    def __init__(self, settings: Settings, specs: Specs, caller: Caller, output: str, color: str) -> None:
        self.settings, self.specs, self.caller = settings, specs, caller
        self._log = StatusLog(as_json=output == "json")
        self._screen = (
            Screen(color, "Ctrl-C ends, and leaves traffic as it is then")
            if output == "text" and is_terminal()
            else None
        )
        self._world = World(clock(), {})

    async def show(self, world: World) -> None:
        """Take in a look at some of the workers."""
        self._world = World(world.taken_at, {**self._world.workers, **world.workers})
        if self._screen:
            self._screen.paint(Seen(self._observation()))
        else:
            self._log.tell(self._observation().status())

    def say(self, line: str) -> None:
        """Tell of a change, or of a failure."""
        if self._screen:
            self._screen.say(f"{clock():%H:%M:%S} {line}")
        else:
            self._log.say([line], clock())

    async def beside(self, work: "asyncio.Future[Answer]") -> Answer:
        """What the work returns, while the terminal counts the seconds."""
        if not self._screen:
            return await work
        with self._screen:
            while not work.done():
                await asyncio.wait([work], timeout=_FRAME_SECONDS)
                if self._world.workers:
                    self._screen.paint(Seen(self._observation()))
        return work.result()

    def unsettled(self) -> str:
        """The workers that are not settled by what was read last, and why."""
        plans = [worker.plan for worker in self._observation().status().workers]
        read = {plan.versions.spec.worker_deployment: plan for plan in plans}
        names = [spec.worker_deployment for spec in self.specs.workers]
        return "; ".join(
            _where_it_stands(read[name]) if name in read else f"{name} was not read"
            for name in names
            if name not in read or read[name].routing.phase is not Phase.SETTLED
        )

    def _observation(self) -> Observation:
        read = [
            spec
            for spec in self.specs.workers
            if (spec.worker_deployment, spec.temporal_namespace) in self._world.workers
        ]
        specs = self.specs._replace(workers=tuple(read))
        return Observation(specs, self._world, self.caller, self._world.taken_at)


def _where_it_stands(plan: WorkerPlan) -> str:
    return f"{plan.versions.spec.worker_deployment} is {plan.routing.phase}, because {plan.routing.because}"


def judge(ended: Sequence[WorkerPlan | BaseException]) -> None:
    """Raise what keeps the rollouts from being done."""
    for end in ended:
        if isinstance(end, BaseException):
            raise end
    blocked = [end for end in ended if isinstance(end, WorkerPlan) and end.routing.phase is Phase.BLOCKED]
    stand = "; ".join(map(_where_it_stands, blocked))
    if any(end.routing.reason is RoutingReason.FOREIGN_MANAGER for end in blocked):
        raise OwnedBySomebodyElse(stand)
    if blocked:
        raise NegativeAnswer(stand)
