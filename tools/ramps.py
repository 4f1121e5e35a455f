"""Simulate thousands of ramps, and write the planner's decisions into a page (`make documentation`)."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from random import Random
from typing import NamedTuple

from tests.simulating.stories import a_worker_spec
from tests.simulating.workers import ME, QUICK
from twgen.model.analysis import (
    Analysis,
    ClosedStatus,
    FailureCount,
    Failures,
    Measurement,
    Metric,
    OnFailure,
    WorkflowFailures,
)
from twgen.model.spec import Rollout, RolloutStep, Strategy
from twgen.planning.rollout import WriteMarks, next_write
from twgen.planning.sentences import spoken
from twgen.simulating.simulate import NO_TIME, initial_state, usual_world
from twgen.simulating.worker import AssumedMeasurement, SimulatedWorker
from twgen.versioning.names import MarkKey

RAMPS = 1000
BOUND, FAILING = 0.01, 0.2
IN_FIRST_STEP = 100
"""The number of workflows that start during the pause of the first step."""
_STEPS = (
    RolloutStep(5, timedelta(minutes=10)),
    RolloutStep(25, timedelta(minutes=30)),
    RolloutStep(75, timedelta(hours=1)),
)
_APART = timedelta(seconds=30)
"""The time between two checks."""
_SEED = 20261125
TITLE = "ramps  fails  is taken back"
"""The line above the figures. The assumptions are below them."""


class Ramp(NamedTuple):
    """The result of one ramp."""

    started: int
    """The number of workflows that started on the target before it was taken back or became current."""
    is_taken_back: bool

    @property
    def is_noticed_at_once(self) -> bool:
        """Whether the ramp was taken back during its first step."""
        return self.is_taken_back and self.started <= IN_FIRST_STEP


@cache
def simulated_ramps(failing: float, number: int = RAMPS) -> list[Ramp]:
    """Simulate ramps of a version with this failure rate. The planner checks each ramp every 30 seconds.

    Workflows start evenly and fail by chance. At each check, all ramps have the same number of workflows, so
    the planner is asked only once how many failures are too many.
    """
    draws, worker = Random(_SEED), _ramping()  # noqa: S311 - a simulation
    going, ended, before, now = [0] * number, list[Ramp](), 0, timedelta()
    while going and worker.temporal.routing.ramping:
        now += _APART
        started = _started(now)
        worker.advance(worker.now + _APART)
        going = [failed + sum(draws.random() < failing for _ in range(started - before)) for failed in going]
        most = _most_that_pass(worker, started, going)
        ended += [Ramp(started, is_taken_back=True) for failed in going if failed > most]
        going, before = [failed for failed in going if failed <= most], started
        worker.measure = _counted(started, 0)
        worker.roll_out()
    return [*ended, *(Ramp(before, is_taken_back=False) for _ in going)]


def ramps_text() -> str:
    """The figures for the page."""
    well, bad = simulated_ramps(BOUND), simulated_ramps(FAILING)
    taken = 100 * sum(ramp.is_taken_back for ramp in well) / RAMPS
    at_once = 100 * sum(ramp.is_noticed_at_once for ramp in bad) / RAMPS
    whole, after = max(ramp.started for ramp in well), sorted(ramp.started for ramp in bad)
    half, most = (after[len(after) * tenths // 10 - 1] for tenths in (5, 9))
    steps = ", ".join(f"{step.percentage:g}% for {spoken(step.pause)}" for step in _STEPS)
    return (
        f"{TITLE}\n"
        f"{RAMPS:5,}  {100 * BOUND:3g}%  {taken:g}%, over a whole ramp of {whole:,} workflows\n"
        f"{RAMPS:5,}  {100 * FAILING:3g}%  {at_once:g}%, within the first step of"
        f" {IN_FIRST_STEP} workflows,\n"
        f"{'':14}half by the {half}th, 9 of 10 by the {most}th\n"
        f"at {steps}, with a bound of {100 * BOUND:g}% and a check every {spoken(_APART)}\n"
    )


def _ramping() -> SimulatedWorker:
    """A worker whose target has just begun its ramp."""
    measure = WorkflowFailures(BOUND, (ClosedStatus.FAILED, ClosedStatus.TIMED_OUT), (), 0.01, 0)
    analysis = Analysis((Metric("failures", measure),), OnFailure.ABORT, timedelta(minutes=1))
    spec = a_worker_spec(Rollout(Strategy.PROGRESSIVE, _STEPS))
    spec = replace(spec, policy=replace(spec.policy, analysis=analysis))
    worker = initial_state(spec, usual_world([spec], NO_TIME, ME), NO_TIME, ME, QUICK)
    worker.sync(worker.plan())
    worker.advance(worker.now)
    worker.roll_out()
    return worker


def _started(now: timedelta) -> int:
    """The number of workflows that have started on the target this long after its ramp began."""
    started, begin = 0.0, timedelta()
    each = IN_FIRST_STEP / (_STEPS[0].percentage * (_STEPS[0].pause / _APART))
    for step in _STEPS:
        # the first check after the pause ends the step
        end = begin + step.pause + _APART
        started += each * step.percentage * (max(min(now, end) - begin, timedelta()) / _APART)
        begin = end
    return int(started + 1e-6)


def _most_that_pass(worker: SimulatedWorker, started: int, counts: Iterable[int]) -> int:
    """The largest of these numbers of failures with which the ramp continues, or -1 if it never does."""
    others: set[tuple[object, ...]] = set()

    def is_taken_back(failed: int) -> bool:
        worker.measure = _counted(started, failed)
        plan = worker.plan()
        match next_write(plan):
            case WriteMarks(marks=marks) if MarkKey.ABORTED in marks:
                return True
            case _:
                others.add((plan.routing.action, plan.routing.percentage, plan.routing.reason))
                return False

    ordered = [-1, *sorted(set(counts))]
    most = ordered[bisect_left(ordered, x=True, lo=1, key=is_taken_back) - 1]
    if len(others) > 1:
        raise AssertionError(f"the planner decided differently about ramps that continue: {others}")
    return most


def _counted(started: int, failed: int) -> AssumedMeasurement:
    def measure(metric: Metric, since: datetime, _: datetime) -> Measurement:
        return Measurement(metric.name, since, failures=Failures(FailureCount(started, failed)))

    return measure
