"""`twgen rollout`."""

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

import click

from twgen.cli.display import FRAME_SECONDS, Log, Screen, display
from twgen.cli.inputs import Memory, load_specs
from twgen.cli.live import Connections, Servers
from twgen.cli.observer import Observation
from twgen.cli.options import READING, options, output_option, paths_argument
from twgen.cli.settings import Settings, clock, settings_of
from twgen.clients.deadline import Deadline, monotonic
from twgen.errors import InvalidInput, NegativeAnswer, OutOfTime, OwnedBySomebodyElse
from twgen.executing.clock import SlowestClock
from twgen.executing.rollout import WorkerRollout, roll_out
from twgen.executing.temporal import TemporalWriter
from twgen.model.operator import Caller
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.planning.plan import worker_world
from twgen.planning.sentences import spoken
from twgen.reading.kubernetes import read_gate_input
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.temporal.shared import SharedReads
from twgen.specs.parse import Specs

Recall = Callable[[World], World]

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

        log = Log(as_json=output == "json")
        return IntentRollout(settings, place, params["intent_hash"] or "", within, log).run()
    within = within or _WITHIN
    specs = load_specs(settings, needs_worker=True)
    caller = replace(settings.planning_caller, drives=True)
    memory = Memory(settings)
    with (
        Servers(settings) as servers,
        display(output, color, "Ctrl-C ends, and leaves traffic as it is then") as shown,
    ):
        view = _View(settings, specs, caller, shown)

        async def story(opened: Connections) -> list[WorkerPlan | BaseException]:
            workers = [
                rollout_of(spec, partial(memory.recall, specs), view, servers, opened)
                for spec in specs.workers
            ]
            async with asyncio.timeout(within):
                # one that fails does not stop the others
                rollouts = (roll_out(worker, once=once) for worker in workers)
                work = asyncio.gather(*rollouts, return_exceptions=True)
                while not (await asyncio.wait([work], timeout=FRAME_SECONDS))[0]:
                    shown.repaint()
            return work.result()

        try:
            ended = servers.run(specs.workers, story)
        except TimeoutError as error:
            late = f"not settled within {spoken(timedelta(seconds=within))}: {view.unsettled()}"
            raise OutOfTime(late) from error
    return judge(ended)


def rollout_of(
    spec: WorkerSpec, recall: Recall, view: View, servers: Servers, opened: Connections
) -> WorkerRollout:
    """The rollout of a worker, over these connections, which a view shows."""
    settings, cluster = view.settings, opened.kubernetes
    slowest = SlowestClock(clock, monotonic, lambda: cluster.heard if cluster else None)

    async def read() -> World:
        began = monotonic()
        world = await servers.read_soon(opened, [spec], for_routing=True)
        temporal = worker_world(spec, world).temporal
        slowest.saw(temporal.routing.changed_at if temporal else None, began)
        apart = slowest.apart()
        workers = {key: replace(known, clocks_apart=apart) for key, known in world.workers.items()}
        world = World(slowest(), workers)
        # it may read Git, for seconds
        return await asyncio.to_thread(recall, world)

    async def conflict_token() -> str:
        began, shared = monotonic(), SharedReads(opened.temporal, Deadline(settings.timeout))
        temporal = await TemporalReader(spec, shared).deployment()
        slowest.saw(temporal.routing.changed_at if temporal else None, began)
        return temporal.conflict_token if temporal else ""

    return WorkerRollout(
        spec=spec,
        caller=view.caller,
        clock=slowest,
        sleep=lambda length: asyncio.sleep(length.total_seconds()),
        read=read,
        conflict_token=conflict_token,
        writer=lambda identity: TemporalWriter(spec, identity, opened.temporal, settings.timeout),
        gate_input=lambda: read_gate_input(spec, opened.kubernetes, Deadline(settings.timeout)),
        show=view.show,
        say=view.say,
    )


class _View:
    """Shows the rollouts of one command, and keeps what was read last of every worker."""

    def __init__(self, settings: Settings, specs: Specs, caller: Caller, shown: Screen | Log) -> None:
        self.settings, self.specs, self.caller = settings, specs, caller
        self.say = shown.say
        self._shown = shown
        self._world = World(clock(), {})

    async def show(self, world: World) -> None:
        """Take in a look at some of the workers."""
        self._world = World(world.taken_at, {**self._world.workers, **world.workers})
        self._shown.show(self._observation())

    def unsettled(self) -> str:
        """The workers that are not settled by what was read last, and why."""
        plans = [worker.plan for worker in self._observation().status().workers]
        read = {plan.spec.worker_deployment: plan for plan in plans}
        names = [spec.worker_deployment for spec in self.specs.workers]
        return "; ".join(
            _where_it_stands(read[name]) if name in read else f"{name} was not read"
            for name in names
            if name not in read or read[name].routing.phase is not Phase.SETTLED
        )

    def _observation(self) -> Observation:
        read = [spec for spec in self.specs.workers if spec.key in self._world.workers]
        specs = self.specs._replace(workers=tuple(read))
        return Observation(specs, self._world, self.caller, self._world.taken_at)


def _where_it_stands(plan: WorkerPlan) -> str:
    return f"{plan.spec.worker_deployment} is {plan.routing.phase}, because {plan.routing.because}"


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
