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
"""The share of arriving tasks that a version takes if it keeps up; both are rough means of 30 seconds."""


def judgements(
    analysis: Analysis,
    measurements: Iterable[Measurement],
    since: datetime | None,
    now: datetime,
    *,
    is_last: bool,
) -> tuple[Judgement, ...]:
    """The verdict of each metric on a version that is measured since then, in their order.

    `is_last`: at its last step.
    """
    measured = {measurement.metric: measurement for measurement in measurements if measurement.since == since}
    young = later(since, analysis.initial_delay) - now if since else timedelta()
    return tuple(
        _judged(metric, measured.get(metric.name), young, is_last=is_last) for metric in analysis.metrics
    )


def metrics_sentence(judged: Iterable[Judgement], verdict: Verdict) -> str:
    """The reasons of all metrics with this verdict, in a sentence; empty: there is none."""
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
    """By the kind of the metric; a measurement of another kind is of an earlier metric with the same name."""
    match metric.measure, measured:
        case WorkflowFailures() as asked, Measurement(failures=Failures() as found):
            return judged_failures(metric.name, asked, found, is_last=is_last)
        case ReportedProblems(most), Measurement(stuck=StuckWorkflows() as found):
            return _stuck(metric.name, most, found)
        case BacklogAge(longest), Measurement(backlog=Backlog() as found):
            return _backlog(metric.name, longest, found)
        case PrometheusQuery() as asked, Measurement(points=tuple() as found):
            return judged_points(metric.name, asked, found)
    return Judgement(metric.name, Verdict.UNDECIDED, "it was not measured")


def _stuck(name: str, most: int, found: StuckWorkflows) -> Judgement:
    first = f" ({listed(found.first)})" if found.first else ""
    verdict = Verdict.FAILS if found.number > most else Verdict.PASSES
    are = "is" if found.number == 1 else "are"
    because = f"{counted(found.number, 'running workflow')} {are} stuck{first}, bound {most}"
    if verdict is Verdict.PASSES and not found.is_all:
        because = f"{because}; more may be stuck than twgen can check"
        verdict = Verdict.UNDECIDED
    return Judgement(name, verdict, because, float(found.number), float(most))


def _backlog(name: str, longest: timedelta, found: Backlog) -> Judgement:
    age, bound = timedelta(seconds=found.seconds), longest.total_seconds()
    if age <= longest:
        because = f"the oldest task has waited {spoken(age)}" if age else "no task waits"
        return Judgement(
            name, Verdict.PASSES, f"{because}, bound {spoken(longest)}", age.total_seconds(), bound
        )
    because = (
        f"the oldest task of {found.task_queue} has waited {spoken(age)}, bound {spoken(longest)};"
        f" {found.added:.3g} tasks arrive per second, and its workers take {found.dispatched:.3g}"
    )
    verdict = Verdict.FAILS
    # the versions that share a task queue share its oldest task: only the rates show which one falls behind
    if found.dispatched >= _KEEPS_UP * found.added:
        verdict = Verdict.UNDECIDED
        because = f"{because}: it keeps up, so the old task may belong to another version"
    return Judgement(name, verdict, because, age.total_seconds(), bound)
