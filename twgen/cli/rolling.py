"""The rollouts of a command: their ways to the servers, and what their end means for its exit code."""

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
from twgen.model.world import World
from twgen.planning.plan import worker_world
from twgen.reading.kubernetes import read_gate_input
from twgen.reading.temporal.reader import SharedReads, TemporalReader


async def sleep(length: timedelta) -> None:
    """Let a length of time pass."""
    await asyncio.sleep(length.total_seconds())


def rollout_of(  # noqa: PLR0913 - what all rollouts of a command share, and what each has of its own
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
    """The rollout of a worker, over these connections; `recall` adds what Git remembers of it."""
    cluster = opened.kubernetes
    slowest = SlowestClock(clock, monotonic, lambda: cluster.heard if cluster else None)

    async def read() -> World:
        began = monotonic()
        found = worker_world(spec, await servers.read_soon(opened, [spec], for_routing=True, goes_on=True))
        slowest.saw(found.temporal.routing.changed_at if found.temporal else None, began)
        # what else the cluster has is of workers that other specs and intents name
        world = World(slowest(), {spec.key: replace(found, clocks_apart=slowest.apart())})
        # it may read Git, for seconds
        return await asyncio.to_thread(recall, world)

    async def conflict_token() -> str:
        began, shared = monotonic(), SharedReads(opened.temporal, Deadline(settings.timeout))
        temporal = await TemporalReader(spec, shared).deployment()
        slowest.saw(temporal.routing.changed_at if temporal else None, began)
        return temporal.conflict_token if temporal else ""

    return WorkerRollout(
        spec=spec,
        caller=caller,
        clock=slowest,
        sleep=sleep,
        read=read,
        conflict_token=conflict_token,
        writer=lambda identity: TemporalWriter(spec, identity, opened.temporal, settings.timeout),
        gate_input=lambda: read_gate_input(spec, opened.kubernetes, Deadline(settings.timeout)),
        show=show,
        say=say,
    )


def judge(ended: Sequence[WorkerPlan | BaseException]) -> None:
    """Raise what keeps the rollouts from being done."""
    for end in ended:
        if isinstance(end, BaseException):
            raise end
    blocked = [end for end in ended if isinstance(end, WorkerPlan) and end.routing.phase is Phase.BLOCKED]
    stand = "; ".join(str(Standing.of(end)) for end in blocked)
    if any(end.routing.reason is RoutingReason.FOREIGN_MANAGER for end in blocked):
        raise OwnedBySomebodyElse(stand)
    if blocked:
        raise NegativeAnswer(stand)
