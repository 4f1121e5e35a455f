"""Simulates a thousand ramps to find how soon a version with a given failure rate is detected.

The simulation judges a ramp by the same statistical test as a real rollout. It assumes that workflows start
at even intervals, that a failing workflow fails immediately, and that no workflow fails on the current
version. The random seed is fixed, so the result is always the same.
"""

import math
from bisect import bisect, bisect_left
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from twgen.model.analysis import Analysis, Metric, WorkflowFailures
from twgen.model.spec import RolloutStep
from twgen.model.timeline import Notice, Noticing, Traffic
from twgen.planning.analysis.verdicts import false_alarm, probability, upper_bound
from twgen.planning.rollout import LONGEST_BLIND
from twgen.planning.sentences import plain_percentage, spoken

USUAL = Traffic(100, 0.2)
"""The traffic that twgen assumes when it checks the steps of a policy."""
RAMPS = 1000
"""The number of simulated ramps."""
_SEED = 20261125
_MOST_EVALUATIONS = 1000
"""The maximum number of evaluations per ramp. A long ramp is evaluated less often than in a real rollout."""
_NEARLY_ALL = 0.9
_LONGEST_WAIT = timedelta(days=3650)
"""The longest time that the last step waits for enough workflows to start."""
_HOUR = timedelta(hours=1)
_WIDTH = 12
"""Random numbers are drawn up to this many standard deviations from the mean."""


class _Evaluation(NamedTuple):
    """One evaluation of a ramp's metrics."""

    after: timedelta
    step: RolloutStep
    target: int
    """The number of workflows that have started on the target since the ramp began."""
    both: int
    """The number of workflows that have started on either version since the ramp began."""
    metrics: frozenset[str]
    """The names of the metrics that this evaluation judges."""


Judged = tuple[tuple[float, frozenset[str]], ...]
"""The names of the metrics to judge at each percentage. At other percentages, all metrics are judged."""


@lru_cache(maxsize=64)
def noticed(
    steps: tuple[RolloutStep, ...], analysis: Analysis, traffic: Traffic, judged: Judged = ()
) -> tuple[Noticing, ...]:
    """How soon each metric that counts failed workflows detects the failure rate of `traffic`."""
    evaluations = list(_evaluations(steps, analysis, traffic, judged))
    return tuple(
        _of_metric(metric, metric.measure, evaluations, traffic)
        for metric in analysis.metrics
        if isinstance(metric.measure, WorkflowFailures)
    )


def too_short(steps: tuple[RolloutStep, ...], analysis: Analysis, judged: Judged = ()) -> Iterator[str]:
    """A warning if the first step is too short to detect a version that fails one workflow in five."""
    at_first = dict(judged).get(steps[0].percentage)
    noticings = (item for item in noticed(steps, analysis, USUAL, judged) if not item.is_allowed)
    of_first = [item for item in noticings if at_first is None or item.metric in at_first]
    if not of_first:
        return
    # one metric that detects the version is enough
    best = min(of_first, key=lambda noticing: noticing.most.after if noticing.most else timedelta.max)
    first, most = steps[0], best.most
    share = f"{plain_percentage(first.percentage)}%"
    if most and most.percentage == first.percentage:
        return
    needed = long_enough(first, analysis, best.metric, USUAL)
    if most:
        at = f"{plain_percentage(most.percentage)}%"
        comes = f"9 of 10 such versions are detected within {spoken(most.after)}, at {at}"
    else:
        comes = f"{100 * best.unnoticed:.3g}% of such versions become current undetected"
    yield (
        f"{share} for {spoken(first.pause)} is too short for metric {best.metric}: if"
        f" {USUAL.starts_per_hour:g} workflows start per hour, a version that fails one in five is detected"
        f" after {spoken(needed) if needed else 'more than a month'} at {share}. With these steps, {comes}."
        " To assume other numbers, use --starts-per-hour and --failing"
    )


def long_enough(step: RolloutStep, analysis: Analysis, metric: str, traffic: Traffic) -> timedelta | None:
    """How long a ramp must stay at this step to detect the version, or None if longer than a month."""
    needed, length = None, timedelta(days=30)
    for _ in range(2):  # the second pass evaluates as often as a rollout does
        first = RolloutStep(step.percentage, length)
        noticings = noticed((first,), analysis, traffic)
        most = next(noticing.most for noticing in noticings if noticing.metric == metric)
        if not most:
            break
        needed = length = most.after
    return needed


def _evaluations(
    steps: Sequence[RolloutStep], analysis: Analysis, traffic: Traffic, judged: Judged
) -> Iterator[_Evaluation]:
    """The evaluations of a rollout's metrics, every few minutes and at the end of each step."""
    every, judged_at = frozenset(metric.name for metric in analysis.metrics), dict(judged)
    ends = _ends(steps, analysis, traffic)
    apart, now, on_target = max(LONGEST_BLIND, ends[-1] / _MOST_EVALUATIONS), timedelta(), 0.0
    for step, end in zip(steps, ends, strict=True):
        while now < end:
            passed = min(apart, end - now)
            now += passed
            on_target += _starting(step, traffic) * (passed / _HOUR)
            both = traffic.starts_per_hour * (now / _HOUR)
            is_judged = now >= analysis.initial_delay
            metrics = judged_at.get(step.percentage, every) if is_judged else frozenset[str]()
            yield _Evaluation(now, step, _whole(on_target), _whole(both), metrics)


def _ends(steps: Sequence[RolloutStep], analysis: Analysis, traffic: Traffic) -> list[timedelta]:
    """The end of each step, which is never before the initial delay.

    The last step also waits for enough workflows.
    """
    ends, now, started = [], timedelta(), 0.0
    for step in steps:
        end = max(now + step.pause, analysis.initial_delay)
        started += _starting(step, traffic) * ((end - now) / _HOUR)
        now = end
        ends.append(end)
    if started < analysis.least_started:
        hours = (analysis.least_started - started) / _starting(steps[-1], traffic)
        ends[-1] += min(hours, _LONGEST_WAIT / _HOUR) * _HOUR
    return ends


def _starting(step: RolloutStep, traffic: Traffic) -> float:
    """The number of workflows that start on the target per hour."""
    return traffic.starts_per_hour * step.percentage / 100


def _of_metric(
    metric: Metric, measure: WorkflowFailures, evaluations: Sequence[_Evaluation], traffic: Traffic
) -> Noticing:
    from random import Random

    if measure.max_ratio is not None and traffic.failing <= measure.max_ratio:
        return Noticing(metric.name, None, None, 1.0, is_allowed=True)
    draws = Random(_SEED)  # noqa: S311 - a simulation
    failures, before = [0] * RAMPS, 0
    half = most = None
    for evaluation in evaluations:
        draw, before = _drawn(evaluation.target - before, traffic.failing), evaluation.target
        failures = [failed + draw(draws.random()) for failed in failures]
        if metric.name not in evaluation.metrics:
            continue
        least = _least_failures(measure, evaluation)
        failures = [failed for failed in failures if failed < least]
        share = 1 - len(failures) / RAMPS
        met = evaluation.target / max(evaluation.both, 1)
        notice = Notice(evaluation.after, evaluation.step.percentage, evaluation.target, met)
        half = half or (notice if share >= 1 / 2 else None)
        most = most or (notice if share >= _NEARLY_ALL else None)
        if not failures:
            break
    return Noticing(metric.name, half, most, len(failures) / RAMPS)


def _least_failures(measure: WorkflowFailures, evaluation: _Evaluation) -> int:
    """The smallest number of failed workflows that makes this evaluation fail the version."""
    started = evaluation.target
    bound = upper_bound(0, evaluation.both - started) if measure.max_ratio is None else measure.max_ratio
    return bisect_left(
        range(started + 1),
        x=True,
        key=lambda failed: false_alarm(failed, started, bound) <= measure.false_alarms,
    )


@lru_cache(maxsize=256)
def _drawn(started: int, failing: float) -> Callable[[float], int]:
    """Maps a random number between 0 and 1 to a number of failed workflows, by the binomial quantile."""
    width = _WIDTH * math.sqrt(started * failing * (1 - failing)) + _WIDTH
    least, most = (round(started * failing + side) for side in (-width, width))
    least, most = max(0, least), min(started, most)
    if failing == 1 or not started:
        return lambda _: started
    summed = list(accumulate(probability(failed, started, failing) for failed in range(least, most)))
    return lambda number: least + bisect(summed, number)


def _whole(number: float) -> int:
    """Round down, but tolerate the rounding error of a long sum."""
    return math.floor(number + 1e-6)
