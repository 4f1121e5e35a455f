"""Rolling out one worker: look, plan, make the one change that is wanted, and look again."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from twgen.errors import TwgenError
from twgen.model.operator import Caller
from twgen.model.plan import GateStart, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.planning.interventions import Intervention
from twgen.planning.plan import make_plan, worker_world
from twgen.planning.rollout import FAILED_LOOK, is_over, until_next_look
from twgen.planning.routing.target import Target
from twgen.planning.sentences import plain_percentage

_AFTER_A_CHANGE = timedelta(seconds=1)


class Writer(Protocol):
    """What may be changed; each method is one call that is made once."""

    async def set_manager(self, manager: str, conflict_token: str) -> str:
        """Make somebody the manager of the worker, or nobody; the conflict token of what follows."""

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        """Make a plan's change of traffic."""

    async def start_gate(self, gate: GateStart, gate_input: bytes | None) -> None:
        """Start a gate workflow on the target, with JSON as its input; None: without."""

    async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        """Write entries of a version's metadata, as JSON."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One worker's rollout, and its ways to the world."""

    spec: WorkerSpec
    caller: Caller
    clock: Callable[[], datetime]
    sleep: Callable[[timedelta], Awaitable[None]]
    read: Callable[[], Awaitable[World]]
    """What is known of the worker right now; raises TwgenError."""
    writer: Callable[[str], Writer]
    """The changes that a manager identity may make."""
    gate_input: Callable[[], Awaitable[bytes | None]]
    """The input of the gate as JSON, read when it starts; None: it has none."""
    show: Callable[[World], None]
    """Gets every look."""
    say: Callable[[str], None]
    """Gets every change that was made, and every failure."""


async def roll_out(rollout: Rollout, *, once: bool) -> WorkerPlan:
    """Roll out until nothing is left to do or a person is needed; the last plan.

    `once` looks, and changes, once. A failure of the only look, or of the first, is raised; a later one is
    said, and looked at again.
    """
    is_first = True
    while True:
        try:
            world = await rollout.read()
            now = rollout.clock()
            [plan] = make_plan([rollout.spec], world, now, rollout.caller).workers
            rollout.show(world)
            is_first = False
            changed = await _make_the_change(rollout, plan, world)
        except TwgenError as error:
            if once or is_first:
                raise
            # nor does anybody know whether a change that timed out was made: the next look tells
            rollout.say(str(error))
            await rollout.sleep(FAILED_LOOK)
            continue
        if once or is_over(plan, worker_world(rollout.spec, world), now):
            return plan
        await rollout.sleep(_AFTER_A_CHANGE if changed else until_next_look(plan, now))


async def _make_the_change(rollout: Rollout, plan: WorkerPlan, world: World) -> bool:
    """Whether there was one to make: the gate that is missing, or the next change of traffic."""
    worker, change = rollout.spec.worker_deployment, plan.routing
    writer = rollout.writer(plan.identity)
    for gate in plan.gates:
        await writer.start_gate(gate, await rollout.gate_input())
        rollout.say(f"{worker}: started the gate {gate.workflow_id} on task queue {gate.task_queue}")
    temporal = worker_world(rollout.spec, world).temporal
    if plan.gates or change.action is RoutingAction.NONE or not temporal:
        return bool(plan.gates)
    await _route(writer, change, plan.identity, temporal.conflict_token)
    claimed = f", and {plan.identity} manages the worker" if change.claim_manager else ""
    rollout.say(f"{worker}: {_done(change)} ({change.because}){claimed}")
    return True


async def intervene(target: Target, intervention: Intervention, writer: Writer) -> None:
    """Do what a person decided: the marks first, so that no rollout undoes the change of traffic."""
    if intervention.marks:
        await writer.mark(target.build_id, intervention.marks)
    if intervention.change:
        await _route(writer, intervention.change, target.identity, target.temporal.conflict_token)


async def _route(writer: Writer, change: RoutingPlan, identity: str, conflict_token: str) -> None:
    if change.claim_manager:
        conflict_token = await writer.set_manager(identity, conflict_token)
    await writer.route(change, conflict_token)


def _done(change: RoutingPlan) -> str:
    match change.action:
        case RoutingAction.SET_CURRENT:
            return f"{change.build_id} is current now"
        case RoutingAction.SET_RAMP:
            return (
                f"{plain_percentage(change.percentage or 0)} % of new workflows go to {change.build_id} now"
            )
    return "the ramp is ended"
