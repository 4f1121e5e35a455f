"""What is foretold of a version that fails is what a rollout does to one, look by look."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.simulating.stories import PROGRESSIVE, a_worker_spec
from tests.simulating.workers import ME, QUICK
from tests.strategies import NOW
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
from twgen.model.timeline import Traffic
from twgen.planning.analysis.noticing import noticed
from twgen.planning.rollout import only_time_passes_until, until_next_look
from twgen.simulating.simulate import initial_state, usual_world
from twgen.versioning.names import MarkKey


def counting(max_ratio: float | None, at_least: int) -> Analysis:
    failures = WorkflowFailures(max_ratio, (ClosedStatus.FAILED,), (), 0.01, at_least)
    return Analysis((Metric("failures", failures),), OnFailure.ABORT, timedelta(minutes=1))


def taken_back(analysis: Analysis, traffic: Traffic) -> tuple[timedelta, float] | None:
    """When a rollout takes back a ramp of which every workflow fails, and at which share; None: never."""
    spec = a_worker_spec(PROGRESSIVE)
    spec = replace(spec, policy=replace(spec.policy, analysis=analysis))
    worker = initial_state(spec, usual_world([spec], NOW, ME), NOW, ME, QUICK)
    worker.sync(worker.plan())
    worker.advance(NOW)
    started, at = 0.0, NOW
    share = 0.0

    def measure(metric: Metric, since: datetime, now: datetime) -> Measurement:
        on_target = int(started + 1e-6)
        everything = int(traffic.starts_per_hour * ((now - since) / timedelta(hours=1)) + 1e-6)
        counted = Failures(FailureCount(on_target, on_target), FailureCount(everything - on_target, 0))
        return Measurement(metric.name, since, failures=counted)

    worker.measure = measure
    while True:
        plan = worker.roll_out()
        version = worker.temporal.versions["v3"]
        if MarkKey.ABORTED in (version.metadata or {}):
            return at - NOW, share
        ramp = worker.temporal.routing.ramping
        if not ramp:
            return None
        share = ramp.percentage
        until = only_time_passes_until(plan, at) or at + until_next_look(plan, at)
        started += traffic.starts_per_hour * share / 100 * ((until - at) / timedelta(hours=1))
        at = until
        worker.advance(at)


@pytest.mark.parametrize("max_ratio", [0.01, 0.2, None])
@pytest.mark.parametrize("starts", [3, 10, 100, 1_000, 10_000])
def test_version_that_always_fails_is_taken_back_when_it_is_foretold(
    max_ratio: float | None, starts: float
) -> None:
    analysis, traffic = counting(max_ratio, 0), Traffic(starts, 1.0)
    (foretold,) = noticed(PROGRESSIVE.steps, analysis, traffic)
    happened = taken_back(analysis, traffic)
    # who has too few to compare with waits for more, and so notices what was not foretold
    assert (happened is None) == (foretold.half is None) or (max_ratio is None and happened)
    if happened and foretold.half:
        assert happened[1] == foretold.half.percentage
        # a change of traffic is looked at again until every task queue knows of it
        assert abs(happened[0] - foretold.half.after) <= timedelta(minutes=5)
