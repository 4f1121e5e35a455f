"""Stories that a simulation tells, as their events."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.simulating.workers import ASSUMED, ME, MINUTE
from tests.strategies import a_spec
from twgen.model.spec import Gate, Rollout, RolloutStep, Strategy, Sunset, WorkerSpec
from twgen.model.timeline import Assumptions, Happening, Timeline, WorkerTimeline
from twgen.model.world import World
from twgen.simulating.simulate import simulate

ALL_AT_ONCE = Rollout(Strategy.ALL_AT_ONCE)
PROGRESSIVE = Rollout(
    Strategy.PROGRESSIVE,
    (RolloutStep(5, 10 * MINUTE), RolloutStep(25, 30 * MINUTE), RolloutStep(75, 60 * MINUTE)),
)
GATED = Rollout(Strategy.ALL_AT_ONCE, gate=Gate("SmokeTest"))


def a_worker_spec(rollout: Rollout = PROGRESSIVE, name: str = "payments", **changes: Any) -> WorkerSpec:
    spec = replace(a_spec(name), rollout=rollout, sunset=Sunset(60 * MINUTE, timedelta(days=1)))
    return replace(spec, **changes)


def tell(
    specs: Sequence[WorkerSpec],
    world: World | None = None,
    begins: datetime | None = None,
    assumed: Assumptions = ASSUMED,
    **changes: Any,
) -> Timeline:
    return simulate(specs, world, begins, ME, replace(assumed, **changes))


def told(rollout: Rollout = PROGRESSIVE, world: World | None = None, **assumed: Any) -> WorkerTimeline:
    """The story of one worker, from the usual world unless one is given."""
    (worker,) = tell([a_worker_spec(rollout)], world, world.taken_at if world else None, **assumed).workers
    return worker


def when(worker: WorkerTimeline, happening: Happening, build_id: str) -> timedelta:
    """When it first happened; an error when it did not."""
    at = worker.first(happening, build_id)
    assert at is not None, f"{build_id}: {happening} never happened"
    return at


def happenings(worker: WorkerTimeline, build_id: str) -> list[Happening]:
    return [event.happening for event in worker.events if event.build_id == build_id]
