"""`twgen rollout`."""

import asyncio
import gc
from dataclasses import replace
from typing import Any

import click

from twgen.cli.display import FRAME_SECONDS, Log, Screen, display
from twgen.cli.following import RolloutState, not_settled
from twgen.cli.inputs import Memory, load_specs
from twgen.cli.live import Connections, Servers
from twgen.cli.observer import Observation
from twgen.cli.options import INPUT, MEASURING, Grouped, options, output_option, paths_argument
from twgen.cli.rolling import RolloutServers, judge
from twgen.cli.settings import clock, settings_of
from twgen.errors import InvalidInput, OutOfTime
from twgen.executing.ports import View
from twgen.executing.rollout import Rollout
from twgen.model.operator import Caller
from twgen.model.plan import Phase, Plan, WorkerPlan
from twgen.model.spec import WorkerKey, WorkerSpec
from twgen.model.world import WorkerWorld, World
from twgen.specs.parse import Specs

_WITHIN = 3600.0
"""Seconds."""


@click.command(cls=Grouped)
@paths_argument
@output_option("text", "json")
@options(
    "once",
    "within",
    "intent",
    "intent_hash",
    *MEASURING,
    *INPUT,
    "identity",
    "namespace",
    "operator_config",
    "strict",
    "quiet",
    "color",
)
def command(output: str, color: str, once: bool, within: float | None, **params: Any) -> None:  # noqa: FBT001
    """Move the traffic of every worker to its target: run the gate, ramp, make it current.

    It does not create Deployments: apply the output of `twgen render`.

    \b
    twgen rollout .
    twgen rollout . --within 2h
    twgen rollout . --once

    Exits with 0 when every worker is Settled, 1 when one is Blocked, 4 when --within has passed, and 5 if
    another manager owns a worker. With --once, it makes one change at most and exits with 0 unless Blocked.
    You can stop it and run it again at any time: it continues from the state in Temporal.
    """
    gc.enable()  # it runs for hours
    settings = settings_of(params)
    if settings.environment.is_plugin:
        raise InvalidInput("the Argo CD plugin can only render: run `twgen rollout` elsewhere")
    if place := params["intent"]:
        from twgen.cli.in_cluster import roll_out_intent

        log = Log(as_json=output == "json")
        return roll_out_intent(settings, place, params["intent_hash"] or "", within, log)
    within = within or _WITHIN
    specs = load_specs(settings, needs_worker=True)
    memory, caller = Memory(settings), replace(settings.planning_caller, drives=True)
    with (
        Servers(settings) as servers,
        display(output, color, "Ctrl-C stops the rollout and leaves the traffic as it is") as screen,
    ):
        view = _AllWorkers(specs, screen)

        async def work(opened: Connections) -> list[WorkerPlan | BaseException]:
            async with asyncio.timeout(within):
                # a rollout that fails does not stop the others
                rollouts = (
                    Rollout(_RecallingServers(spec, opened, memory, specs), caller, view).run(once=once)
                    for spec in specs.workers
                )
                work = asyncio.gather(*rollouts, return_exceptions=True)
                while not (await asyncio.wait([work], timeout=FRAME_SECONDS))[0]:
                    screen.repaint()
            return work.result()

        try:
            outcomes = servers.run(specs.workers, work)
        except TimeoutError as error:
            # a settled rollout still waits until the change has reached every task queue
            if unsettled := view.unsettled():
                raise OutOfTime(not_settled(within, unsettled)) from error
            return None
    return judge(outcomes)


class _RecallingServers(RolloutServers):
    """The servers of a worker, whose old versions are also read from Git."""

    def __init__(self, spec: WorkerSpec, opened: Connections, memory: Memory, specs: Specs) -> None:
        super().__init__(spec, opened)
        # without a look at all other workers
        self._memory, self._specs = memory, specs._replace(workers=(spec,))

    async def read(self, *, for_routing: bool = True) -> World:
        world = await super().read(for_routing=for_routing)
        # reading Git may take seconds
        return await asyncio.to_thread(self._memory.recall, self._specs, world)


class _AllWorkers(View):
    """Shows the rollouts of one command together, by the last read of each worker."""

    def __init__(self, specs: Specs, screen: Screen | Log) -> None:
        super().__init__(screen.say)
        self._specs, self._screen = specs, screen
        self._plans: dict[WorkerKey, WorkerPlan] = {}
        self._worlds: dict[WorkerKey, WorkerWorld] = {}
        self._failures: dict[WorkerKey, str] = {}

    def fail(self, spec: WorkerSpec, failure: str) -> None:
        self._failures[spec.key] = failure

    def show(self, plan: Plan, world: World, caller: Caller) -> None:
        for worker in plan.workers:
            self._failures.pop(worker.spec.key, None)
        self._worlds.update(world.workers)
        self._plans.update((worker.spec.key, worker) for worker in plan.workers)
        read_at = clock()

        def whole() -> Observation:
            # only when it is shown: with many workers, this costs more than a look at one
            plans = tuple(self._plans[spec.key] for spec in self._specs.workers if spec.key in self._plans)
            together, worlds = replace(plan, workers=plans), replace(world, workers=dict(self._worlds))
            return Observation(worlds, caller, together, read_at)

        self._screen.show_part(Observation(world, caller, plan, read_at), whole)

    def unsettled(self) -> list[str]:
        """The workers that were not settled at the last read, with the reason and the failure since then."""
        sentences = []
        for spec in self._specs.workers:
            plan, failure = self._plans.get(spec.key), self._failures.get(spec.key, "")
            if failure or not plan or plan.routing.phase is not Phase.SETTLED:
                sentence = str(RolloutState.of(plan)) if plan else f"{spec.worker_deployment} was not read"
                sentences.append(f"{sentence}; {failure}" if failure else sentence)
        return sentences
