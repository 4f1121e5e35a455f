"""The verdict on a ramping version by its measurements: it fails, it passes, or it is undecided."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

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
from twgen.planning.analysis.failures import judged_failures
from twgen.planning.sentences import listed, spoken
from twgen.versioning.names import filled, placeholders, versioned_deployment_name

_SECOND = timedelta(seconds=1)
_KEEPS_UP = 0.8
"""A version keeps up if it takes this share of the arriving tasks; both rates are rough 30-second means."""
MOST_POINTS = 1000
"""The most points of one query; for a longer ramp, the newest ones."""
_UNSAFE = re.compile(r"""["'`\\]|[^ -~]""")
"""The characters that end a string of PromQL, or begin an escape in it."""


def judgements(
    analysis: Analysis,
    measurements: Iterable[Measurement],
    since: datetime | None,
    now: datetime,
    *,
    is_last: bool,
) -> tuple[Judgement, ...]:
    """The verdict of each metric, in their order, on a version that is measured since `since`.

    `is_last`: the version is at its last step.
    """
    measured = {measurement.metric: measurement for measurement in measurements if measurement.since == since}
    young = later(since, analysis.initial_delay) - now if since else timedelta()
    return tuple(
        _judged(metric, measured.get(metric.name), young, is_last=is_last) for metric in analysis.metrics
    )


def metrics_sentence(judged: Iterable[Judgement], verdict: Verdict) -> str:
    """The reasons of all metrics with this verdict, in a sentence; empty: no metric has it."""
    return "; ".join(
        f"{judgement.metric}: {judgement.because}" for judgement in judged if judgement.verdict is verdict
    )


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
    """By the kind of the metric; a measurement of another kind is from an earlier metric with its name."""
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
            because = (
                f"the oldest task has waited {spoken(age)}, {bound}" if age else f"no task waits, {bound}"
            )
            if age > longest:
                verdict = Verdict.FAILS
                because = (
                    f"the oldest task of {backlog.task_queue} has waited {spoken(age)}, {bound};"
                    f" {backlog.added:.3g} tasks arrive per second, and its workers take"
                    f" {backlog.dispatched:.3g}"
                )
                # the versions that share a task queue share its oldest task: only the rates show which one
                # falls behind
                if backlog.dispatched >= _KEEPS_UP * backlog.added:
                    verdict = Verdict.UNDECIDED
                    because = f"{because}: it keeps up, so the old task may belong to another version"
            return Judgement(name, verdict, because, age.total_seconds(), longest.total_seconds())
    return Judgement(name, Verdict.UNDECIDED, "it was not measured")


def query_for(measure: PrometheusQuery, spec: WorkerSpec) -> str:
    """The query with the names of the target instead of their placeholders, with any characters."""
    deployment = versioned_deployment_name(spec.name, spec.build_id)
    names = placeholders(deployment, spec.build_id, spec.temporal_namespace, spec.worker_deployment)

    def escaped(match: re.Match[str]) -> str:
        # escaped bytes mean the same within " and ', but between ` there are no escapes
        return "".join(f"\\x{byte:02x}" for byte in match[0].encode())

    return filled(measure.query, {key: _UNSAFE.sub(escaped, name) for key, name in names.items()})


def moments(
    measure: PrometheusQuery, since: datetime, initial_delay: timedelta, now: datetime
) -> tuple[datetime, datetime] | None:
    """The first and the last moment to query, whole intervals apart; None: the first is in the future.

    The intervals begin with the ramp, so that every look queries the same moments.
    """
    begin = later(since, initial_delay)
    passed = (now - begin) // measure.interval
    if passed < 1:
        return None
    return begin + max(1, passed - MOST_POINTS + 1) * measure.interval, begin + passed * measure.interval


def _judged_points(name: str, measure: PrometheusQuery, points: Sequence[Point]) -> Judgement:
    """The verdict on the points of a query."""
    named = (("below", measure.least), ("above", measure.most))
    limits = [f"{word} {limit:g}" for word, limit in named if limit is not None]
    limits += ["without data"] if measure.no_data is NoData.FAIL else []
    bound = measure.least if measure.most is None else measure.most
    if not points:
        because = f"its first point comes {spoken(measure.interval)} after measuring starts"
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
