"""Judges a ramping version by its measurements: each metric fails, passes or is undecided.

The test of a failure ratio is exact for ten workflows as well as for ten thousand, and can be repeated any
number of times. The test uses a mixture of likelihood ratios. While the true ratio is at most the bound, the
mean likelihood ratio is a nonnegative supermartingale that begins at 1. By Ville's inequality, the
probability that this mean ever reaches `1 / false_alarms` is at most `false_alarms`. Running workflows count
as started. Otherwise, the failure ratio of a new version would be too high, since failing workflows can end
sooner than successful workflows.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from twgen.model.analysis import (
    INFINITE,
    Analysis,
    Backlog,
    BacklogAge,
    Failures,
    Judgement,
    Measurement,
    Metric,
    NoData,
    Point,
    PrometheusQuery,
    ReportedProblems,
    StuckWorkflows,
    Verdict,
    WorkflowFailures,
)
from twgen.model.problem import counted
from twgen.model.spec import WorkerSpec
from twgen.model.times import later
from twgen.planning.sentences import listed, spoken
from twgen.versioning.names import filled, placeholders, versioned_deployment_name

_SECOND = timedelta(seconds=1)
_KEEPS_UP = 0.8
"""A version keeps up if it handles this share of the arriving tasks. Both rates are rough 30-second averages.
"""
MOST_POINTS = 1000
"""The maximum number of points per query. For a longer ramp, only the newest points are queried."""
_UNSAFE = re.compile(r"""["'`\\]|[^ -~]""")
"""The characters to escape in a PromQL string: quotes, backslashes, and everything except printable ASCII."""
_ALTERNATIVES = 24
"""The bound is tested against this many alternative ratios, spaced evenly in log-odds."""
_WORST = 0.95
"""The largest alternative ratio."""
_CONFIDENCE = 0.99
"""The confidence level of the upper bound of a counted ratio."""
_LEAST_BOUND = 0.001
"""The smallest upper bound, even if a version never failed."""
_PRECISION = 1e-12
_LEAST_SHOWN = 0.0001
_COMPARABLE = 10
"""If fewer workflows than this started on the current version, a high bound only shows that the sample is
small."""
_WIDE = 0.5


def judgements(
    analysis: Analysis,
    measurements: Iterable[Measurement],
    since: datetime | None,
    now: datetime,
    *,
    is_last: bool,
) -> tuple[Judgement, ...]:
    """The verdict of each metric on a version, in the order of the analysis.

    `since` is the time when measuring began. `is_last` says whether the version is at its last step.
    """
    measured = {item.metric: item for item in measurements if item.since == since}
    young = later(since, analysis.initial_delay) - now if since else timedelta()
    return tuple(_judged(item, measured.get(item.name), young, is_last=is_last) for item in analysis.metrics)


def metrics_sentence(judged: Iterable[Judgement], verdict: Verdict) -> str:
    """The reasons of all metrics with this verdict, joined. Empty if no metric has this verdict."""
    return "; ".join(f"{item.metric}: {item.because}" for item in judged if item.verdict is verdict)


def _judged(metric: Metric, measured: Measurement | None, young: timedelta, *, is_last: bool) -> Judgement:
    if not measured:
        return Judgement(metric.name, Verdict.UNDECIDED, "it was not measured")
    if measured.problem:
        return Judgement(metric.name, Verdict.UNDECIDED, f"it cannot be read: {measured.problem}")
    judged = _of_kind(metric, measured, is_last=is_last)
    if young > timedelta():
        because = f"{judged.because}; the first verdict comes in {spoken(max(young, _SECOND))}"
        return replace(judged, verdict=Verdict.UNDECIDED, because=because)
    return judged


def _of_kind(metric: Metric, measured: Measurement, *, is_last: bool) -> Judgement:
    """Judge a metric by the rule for its kind.

    A measurement of another kind does not count: it was made for an earlier metric with the same name.
    """
    name, verdict = metric.name, Verdict.PASSES
    match metric.measure, measured:
        case WorkflowFailures() as measure, Measurement(failures=Failures() as failures):
            return judged_failures(name, measure, failures, is_last=is_last)
        case PrometheusQuery() as measure, Measurement(points=tuple() as points):
            return _judged_points(name, measure, points)
        case ReportedProblems(most), Measurement(stuck=StuckWorkflows() as stuck):
            first = f" ({listed(stuck.first)})" if stuck.first else ""
            are = "is" if stuck.number == 1 else "are"
            because = f"{counted(stuck.number, 'running workflow')} {are} stuck{first}, bound {most}"
            if stuck.number > most:
                verdict = Verdict.FAILS
            elif not stuck.is_all:
                because = f"{because}; more may be stuck than twgen can check"
                verdict = Verdict.UNDECIDED
            return Judgement(name, verdict, because, float(stuck.number), float(most))
        case BacklogAge(longest), Measurement(backlog=Backlog() as backlog):
            age, bound = timedelta(seconds=backlog.seconds), f"bound {spoken(longest)}"
            because = f"the oldest task has waited {spoken(age)}" if age else "no task waits"
            because = f"{because}, {bound}"
            if age > longest:
                verdict = Verdict.FAILS
                because = (
                    f"the oldest task of {backlog.task_queue} has waited {spoken(age)}, {bound};"
                    f" {backlog.added:.3g} tasks arrive per second, and its workers take"
                    f" {backlog.dispatched:.3g}"
                )
                # versions that share a task queue also share its oldest task: only the rates show which
                # version falls behind
                if backlog.dispatched >= _KEEPS_UP * backlog.added:
                    verdict = Verdict.UNDECIDED
                    because = f"{because}: it keeps up, so the old task may belong to another version"
            return Judgement(name, verdict, because, age.total_seconds(), longest.total_seconds())
    return Judgement(name, Verdict.UNDECIDED, "it was not measured")


def query_for(measure: PrometheusQuery, spec: WorkerSpec) -> str:
    """The query with its placeholders replaced by the escaped names of the target."""
    deployment = versioned_deployment_name(spec.name, spec.build_id)
    names = placeholders(deployment, spec.build_id, spec.temporal_namespace, spec.worker_deployment)

    def escaped(match: re.Match[str]) -> str:
        # these escapes work in strings quoted with " or ', but not in strings quoted with `
        return "".join(f"\\x{byte:02x}" for byte in match[0].encode())

    return filled(measure.query, {key: _UNSAFE.sub(escaped, name) for key, name in names.items()})


def moments(
    measure: PrometheusQuery, since: datetime, initial_delay: timedelta, now: datetime
) -> tuple[datetime, datetime] | None:
    """The first and the last moment to query, or None if the first is still in the future.

    The intervals are counted from the end of the initial delay, so every evaluation queries the same moments.
    """
    begin = later(since, initial_delay)
    passed = (now - begin) // measure.interval
    if passed < 1:
        return None
    return begin + max(1, passed - MOST_POINTS + 1) * measure.interval, begin + passed * measure.interval


def _judged_points(name: str, measure: PrometheusQuery, points: Sequence[Point]) -> Judgement:
    named = (("below", measure.least), ("above", measure.most))
    limits = [f"{word} {limit:g}" for word, limit in named if limit is not None]
    limits += ["without data"] if measure.no_data is NoData.FAIL else []
    bound = measure.least if measure.most is None else measure.most
    if not points:
        because = f"it has no data point yet: it is measured every {spoken(measure.interval)}"
        return Judgement(name, Verdict.UNDECIDED, because, bound=bound)
    outside = sum(_is_outside(measure, point.value) for point in points)
    newest = points[-1].value
    value = "infinity" if newest is None or abs(newest) >= INFINITE else f"{newest:.4g}"
    state = "has no data" if newest is None else f"is {value}"
    are = "is" if outside == 1 else "are"
    because = f"the newest point {state}; {outside} of {len(points)} {are} {' or '.join(limits)}"
    verdict = Verdict.PASSES
    if outside > measure.failure_limit:
        verdict, because = Verdict.FAILS, f"{because} ({measure.failure_limit} allowed)"
    elif newest is None and measure.no_data is NoData.WAIT:
        verdict = Verdict.UNDECIDED
    return Judgement(name, verdict, because, newest, bound)


def _is_outside(measure: PrometheusQuery, point_value: float | None) -> bool:
    if point_value is None:
        return measure.no_data is NoData.FAIL
    below = measure.least is not None and point_value < measure.least
    return below or (measure.most is not None and point_value > measure.most)


def false_alarm(failed: int, started: int, bound: float) -> float:
    """The probability that a version whose failure ratio equals the bound has this many failures by chance.

    The probability covers all evaluations so far. It is 1 if the bound is not below the largest alternative
    ratio, because then nothing can be tested.
    """
    ratios = [failed * fails + (started - failed) * goes_well for fails, goes_well in _alternatives(bound)]
    if not ratios:
        return 1.0
    largest = max(ratios)
    # the logarithm of the mean likelihood ratio of all alternatives against the bound
    evidence = largest + math.log(sum(math.exp(ratio - largest) for ratio in ratios) / len(ratios))
    return math.exp(min(0.0, -evidence))


def upper_bound(failed: int, started: int) -> float:
    """The largest failure ratio that is consistent with these numbers, at 99% confidence, but at least 0.001.

    This is the one-sided Clopper-Pearson bound (https://doi.org/10.1093/biomet/26.4.404).
    """
    if failed >= started:
        return 1.0
    low, high = failed / started, 1.0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(failed, started, middle) > 1 - _CONFIDENCE else (low, middle)
    return max(high, _LEAST_BOUND)


def probability(failed: int, started: int, ratio: float) -> float:
    """The probability that exactly `failed` workflows fail. The ratio must be above 0 and below 1."""
    choose = math.lgamma(started + 1) - math.lgamma(failed + 1) - math.lgamma(started - failed + 1)
    return math.exp(choose + failed * math.log(ratio) + (started - failed) * math.log1p(-ratio))


def judged_failures(name: str, measure: WorkflowFailures, failures: Failures, *, is_last: bool) -> Judgement:
    """Judge a version by the number of its workflows that failed."""
    bound = measure.max_ratio
    if bound is None:
        if not failures.current:
            return Judgement(name, Verdict.UNDECIDED, "the current version was not measured")
        bound = upper_bound(failures.current.failed, failures.current.started)
    failed, started = failures.target.failed, failures.target.started
    ratio = failed / started if started else 0.0
    alarm = false_alarm(failed, started, bound)
    because = f"{failed} of {started} failed ({100 * ratio:.3g}%), bound {100 * bound:.3g}%"
    if alarm <= measure.false_alarms:
        # more digits would not help a reader
        chance = f"{100 * alarm:.2g}%" if alarm >= _LEAST_SHOWN else "below 0.01%"
        because = f"{because}, chance of a false alarm {chance}"
        return Judgement(name, Verdict.FAILS, because, ratio, bound)
    compared = failures.current if measure.max_ratio is None else None
    if failed and compared and bound > _WIDE and compared.started < _COMPARABLE:
        few = counted(compared.started, "workflow")
        because = f"{because}; only {few} started on the current version, too few for a comparison"
        return Judgement(name, Verdict.UNDECIDED, because, ratio, bound)
    if is_last and started < measure.at_least:
        because = f"{because}; at least {measure.at_least} must start before the last step ends"
        return Judgement(name, Verdict.UNDECIDED, because, ratio, bound)
    return Judgement(name, Verdict.PASSES, because, ratio, bound)


@lru_cache(maxsize=64)
def _alternatives(bound: float) -> tuple[tuple[float, float], ...]:
    """For each alternative ratio, the evidence added by one failure and the evidence added by one success."""
    if not 0 < bound < _WORST:
        return ()
    first, last = math.log(bound / (1 - bound)), math.log(_WORST / (1 - _WORST))
    odds = (first + (last - first) * step / _ALTERNATIVES for step in range(1, _ALTERNATIVES + 1))
    ratios = [1 / (1 + math.exp(-log_odds)) for log_odds in odds]
    return tuple((math.log(ratio / bound), math.log((1 - ratio) / (1 - bound))) for ratio in ratios)


def _at_most(failed: int, started: int, ratio: float) -> float:
    """The probability that at most `failed` workflows fail. The ratio must be above `failed / started`."""
    total = term = probability(failed, started, ratio)
    # the terms decrease, so the first few hundred terms are enough, even if there are millions
    for count in range(failed, 0, -1):
        term *= count * (1 - ratio) / ((started - count + 1) * ratio)
        total += term
        if term <= total * _PRECISION:
            break
    return total
