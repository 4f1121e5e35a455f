"""The verdict on a ramping version by its measurements: it fails, it passes, or it is undecided."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from twgen.model.analysis import (
    Analysis,
    Backlog,
    BacklogAge,
    Failures,
    Judgement,
    Measurement,
    Metric,
    PrometheusQuery,
    ReportedProblems,
    StuckWorkflows,
    Verdict,
    WorkflowFailures,
)
from twgen.model.problem import counted
from twgen.model.times import later
from twgen.planning.analysis.failures import judged_failures
from twgen.planning.analysis.prometheus import judged_points
from twgen.planning.sentences import listed, spoken

_SECOND = timedelta(seconds=1)
_KEEPS_UP = 0.8
"""A version keeps up if it takes this share of the arriving tasks; both rates are rough 30-second means."""


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
            return judged_points(name, measure, points)
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
