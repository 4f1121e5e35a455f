"""The rollouts of a command: their access to the servers, and the exit code after they end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from twgen.cli.following import Standing
from twgen.cli.live import Connections, Servers
from twgen.cli.settings import Settings, clock
from twgen.clients.deadline import Deadline, monotonic
from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.executing.clock import SlowestClock
from twgen.executing.rollout import WorkerRollout
from twgen.executing.temporal import TemporalWriter
from twgen.model.operator import Caller
from twgen.model.plan import Phase, Plan, WorkerPlan
from twgen.model.reasons.routing import RoutingReason
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import World
from twgen.planning.plan import worker_world
from twgen.reading.kubernetes import read_gate_input
from twgen.reading.temporal.reader import SharedReads, TemporalReader


async def sleep(length: timedelta) -> None:
    """Let a length of time pass."""
    await asyncio.sleep(length.total_seconds())


async def glance_at(spec: WorkerSpec, settings: Settings, opened: Connections) -> WorkerDeployment | None:
    """The traffic and the versions of a worker, by one call; None: Temporal does not know it."""
    shared = SharedReads(opened.temporal, settings.reading_deadline())
    return await TemporalReader(spec, shared).deployment()


def rollout_of(  # noqa: PLR0913 - values that all rollouts of a command share, and values of each
    spec: WorkerSpec,
    caller: Caller,
    settings: Settings,
    servers: Servers,
    opened: Connections,
    *,
    show: Callable[[Plan, World], Awaitable[None]],
    say: Callable[[str], None],
    recall: Callable[[World], World] = lambda world: world,
) -> WorkerRollout:
    """The rollout of a worker, over these connections; `recall` adds old versions from Git."""
    cluster = opened.kubernetes
    slowest = SlowestClock(clock, monotonic, lambda: cluster.heard if cluster else None)

    async def read() -> World:
        began = monotonic()
        worker = worker_world(spec, await servers.read_soon(opened, [spec], for_routing=True, goes_on=True))
        slowest.saw(worker.temporal.routing.changed_at if worker.temporal else None, began)
        # other objects in the cluster belong to workers that other specs and intents name
        world = World(slowest(), {spec.key: replace(worker, clocks_apart=slowest.apart())})
        # reading Git may take seconds
        return await asyncio.to_thread(recall, world)

    async def glance() -> WorkerDeployment | None:
        began = monotonic()
        temporal = await glance_at(spec, settings, opened)
        slowest.saw(temporal.routing.changed_at if temporal else None, began)
        return temporal

    return WorkerRollout(
        spec=spec,
        caller=caller,
        clock=slowest,
        sleep=sleep,
        read=read,
        glance=glance,
        writer=lambda identity: TemporalWriter(spec, identity, opened.temporal, settings.timeout),
        gate_input=lambda: read_gate_input(spec, opened.kubernetes, Deadline(settings.timeout)),
        show=show,
        say=say,
    )


def judge(outcomes: Sequence[WorkerPlan | BaseException]) -> None:
    """Raise the reason why rollouts have not succeeded, if any."""
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    plans = [plan for plan in outcomes if isinstance(plan, WorkerPlan)]
    blocked = [plan for plan in plans if plan.routing.phase is Phase.BLOCKED]
    sentence = "; ".join(str(Standing.of(plan)) for plan in blocked)
    if any(plan.routing.reason is RoutingReason.FOREIGN_MANAGER for plan in blocked):
        raise OwnedBySomebodyElse(sentence)
    if blocked:
        raise NegativeAnswer(sentence)
