"""Simulated workers, and looking at them at any interval."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.strategies import NOW, a_spec, world
from twgen.model.operator import Caller
from twgen.model.plan import WorkerPlan
from twgen.model.spec import WorkerSpec
from twgen.model.timeline import Assumptions
from twgen.model.times import FOREVER
from twgen.model.world import World
from twgen.simulating.simulate import initial_state
from twgen.simulating.worker import SimulatedWorker

ME = Caller("me", forced=True)
SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
ASSUMED = Assumptions(
    workflow_duration=HOUR,
    startup=30 * SECOND,
    gate_duration=MINUTE,
    gate_passes=True,
    drainage_interval=3 * MINUTE,
    render_interval=3 * MINUTE,
)
QUICK = replace(ASSUMED, workflow_duration=timedelta(), startup=timedelta())
"""Pods serve at the next frame, and no workflow is pinned."""


def a_worker(
    spec: WorkerSpec | None = None,
    found: World | None = None,
    held: frozenset[str] = frozenset(),
    assumed: Assumptions = QUICK,
) -> SimulatedWorker:
    """A worker in a world, by default one that knows nothing of it; `held`: their workflows never end."""
    worker = initial_state(spec or a_spec(), found or world(None, []), NOW, ME, assumed)
    for build_id in held:
        worker.temporal.held_until[build_id] = FOREVER
    return worker


def deploy(worker: SimulatedWorker, build_id: str, **changes: Any) -> None:
    """Change the spec in Git."""
    worker.spec = replace(worker.spec, build_id=build_id, **changes)


def act(worker: SimulatedWorker) -> WorkerPlan:
    """Render, sync and roll out; what was planned."""
    plan = worker.plan()
    worker.sync(plan)
    worker.roll_out()
    return plan


def wait(worker: SimulatedWorker, length: timedelta) -> None:
    """Let time pass."""
    worker.advance(worker.now + length)
