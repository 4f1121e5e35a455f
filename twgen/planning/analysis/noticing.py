"""When a version that fails so often would be noticed, by the test that judges a ramp, over a thousand ramps.

Workflows start evenly, those of the target that are to fail fail at once, and the current version is well.
The same ramps are drawn each time.
"""

import math
from bisect import bisect, bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from twgen.model.analysis import Analysis, Metric, WorkflowFailures
from twgen.model.spec import RolloutStep
from twgen.model.timeline import Notice, Noticing, Traffic
from twgen.planning.analysis.failures import false_alarm, probability, upper_bound
from twgen.planning.rollout import LONGEST_BLIND
from twgen.planning.sentences import plain_percentage, spoken

USUAL = Traffic(100, 0.2)
"""What a step is taken to be for, where nobody says how many workflows start and fail."""
RAMPS = 1000
"""So many are drawn."""
_SEED = 20261125
_MOST_LOOKS = 1000
"""Of a ramp that takes so long that a rollout looks more often, that many are taken."""
_MOST_OF_THEM = 0.9
_LONGEST_WAIT = timedelta(days=3650)
"""For the workflows that the last step is to see."""
_HOUR = timedelta(hours=1)
_WIDTH = 12
"""Standard deviations: what is further from the mean is never drawn."""


class _Look(NamedTuple):
    """What a rollout sees of a ramp at one look."""

    after: timedelta
    step: RolloutStep
    target: int
    """Workflows that have started on it since the ramp began."""
    both: int
    """On it and on the current version."""
    metrics: frozenset[str]
    """The names of those that are judged at it."""


Judged = Mapping[float, frozenset[str]]
"""The names of the metrics that are judged at a step, by its percentage; all, where it is not there."""


def noticed(
    steps: Sequence[RolloutStep], analysis: Analysis, traffic: Traffic, judged: Judged = MappingProxyType({})
) -> tuple[Noticing, ...]:
    """When each metric of workflows that fail would notice a version that fails so, on such a ramp."""
    return _noticed(tuple(steps), analysis, traffic, tuple(judged.items()))


def too_short(
    steps: Sequence[RolloutStep], analysis: Analysis, judged: Judged = MappingProxyType({})
) -> Iterator[str]:
    """What the first step would need to notice a version that fails one in five, unless it is long enough."""
    at_first = judged.get(steps[0].percentage)
    told = [
        one
        for one in noticed(steps, analysis, USUAL, judged)
        if not one.is_allowed and (at_first is None or one.metric in at_first)
    ]
    if not told:
        return
    # one metric that notices is enough
    best = min(told, key=lambda one: one.most.after if one.most else timedelta.max)
    first, most = steps[0], best.most
    share = f"{plain_percentage(first.percentage)} %"
    if most and most.percentage == first.percentage:
        return
    needed = long_enough(first, analysis, best.metric, USUAL)
    if most:
        comes = f"9 of 10 are noticed within {spoken(most.after)}, at {plain_percentage(most.percentage)} %"
    else:
        comes = f"{100 * best.unnoticed:.3g} % of them become current"
    yield (
        f"{share} for {spoken(first.pause)} is too short for metric {best.metric} to notice a version"
        f" that fails one workflow in five where {USUAL.starts_per_hour:g} start an hour: that takes"
        f" {spoken(needed) if needed else 'more than a month'} at {share}. As it is, {comes};"
        " --starts-per-hour and --failing ask for others"
    )


def long_enough(step: RolloutStep, analysis: Analysis, metric: str, traffic: Traffic) -> timedelta | None:
    """How long a ramp must stay at the share of a step until a metric notices; None: longer than a month."""
    found, longest = None, timedelta(days=30)
    for _ in range(2):  # the second time looked at as often as a rollout does
        first = RolloutStep(step.percentage, longest)
        told = next(one for one in noticed((first,), analysis, traffic) if one.metric == metric)
        if not told.most:
            break
        found = longest = told.most.after
    return found


@lru_cache(maxsize=64)
def _noticed(
    steps: tuple[RolloutStep, ...],
    analysis: Analysis,
    traffic: Traffic,
    judged: tuple[tuple[float, frozenset[str]], ...],
) -> tuple[Noticing, ...]:
    looks = list(_looks(steps, analysis, traffic, dict(judged)))
    return tuple(
        _of_metric(metric, metric.measure, looks, traffic)
        for metric in analysis.metrics
        if isinstance(metric.measure, WorkflowFailures)
    )


def _looks(
    steps: Sequence[RolloutStep], analysis: Analysis, traffic: Traffic, judged: Judged
) -> Iterator[_Look]:
    """Those of a rollout: every few minutes, and where a step ends."""
    every = frozenset(metric.name for metric in analysis.metrics)
    ends = _ends(steps, analysis, traffic)
    apart, now, on_target = max(LONGEST_BLIND, ends[-1] / _MOST_LOOKS), timedelta(), 0.0
    for step, end in zip(steps, ends, strict=True):
        while now < end:
            passed = min(apart, end - now)
            now += passed
            on_target += _starting(step, traffic) * (passed / _HOUR)
            both = traffic.starts_per_hour * (now / _HOUR)
            metrics = (
                judged.get(step.percentage, every) if now >= analysis.initial_delay else frozenset[str]()
            )
            yield _Look(now, step, _whole(on_target), _whole(both), metrics)


def _ends(steps: Sequence[RolloutStep], analysis: Analysis, traffic: Traffic) -> list[timedelta]:
    """When each step ends: once it is judged, and the last one once so many have started as a metric asks."""
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
    """Workflows that start on the target in an hour."""
    return traffic.starts_per_hour * step.percentage / 100


def _of_metric(metric: Metric, asked: WorkflowFailures, looks: Sequence[_Look], traffic: Traffic) -> Noticing:
    from random import Random

    if asked.max_ratio is not None and traffic.failing <= asked.max_ratio:
        return Noticing(metric.name, None, None, 1.0, is_allowed=True)
    draws = Random(_SEED)  # noqa: S311 - a simulation
    failures, before = [0] * RAMPS, 0
    half = most = None
    for look in looks:
        draw, before = _drawn(look.target - before, traffic.failing), look.target
        failures = [failed + draw(draws.random()) for failed in failures]
        if metric.name not in look.metrics:
            continue
        least = _least_failures(asked, look)
        failures = [failed for failed in failures if failed < least]
        share = 1 - len(failures) / RAMPS
        notice = Notice(look.after, look.step.percentage, look.target, look.target / max(look.both, 1))
        half = half or (notice if share >= 1 / 2 else None)
        most = most or (notice if share >= _MOST_OF_THEM else None)
        if not failures:
            break
    return Noticing(metric.name, half, most, len(failures) / RAMPS)


def _least_failures(asked: WorkflowFailures, look: _Look) -> int:
    """So many must have failed at this look that the version is taken back."""
    started = look.target
    bound = upper_bound(0, look.both - look.target) if asked.max_ratio is None else asked.max_ratio
    return bisect_left(
        range(started + 1),
        x=True,
        key=lambda failed: false_alarm(failed, started, bound) <= asked.false_alarms,
    )


@lru_cache(maxsize=256)
def _drawn(started: int, failing: float) -> Callable[[float], int]:
    """How many of so many fail, by a number between 0 and 1 that is drawn: the inverse of the binomial."""
    width = _WIDTH * math.sqrt(started * failing * (1 - failing)) + _WIDTH
    least, most = (round(started * failing + side) for side in (-width, width))
    least, most = max(0, least), min(started, most)
    if failing == 1 or not started:
        return lambda _: started
    summed = list(accumulate(probability(failed, started, failing) for failed in range(least, most)))
    return lambda number: least + bisect(summed, number)


def _whole(number: float) -> int:
    """As many as have started for certain: a sum of many parts may be a hair too small."""
    return math.floor(number + 1e-6)
