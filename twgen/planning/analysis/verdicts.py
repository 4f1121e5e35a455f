"""What the measurements of a ramping version say: it fails, it may go on, or nobody can tell yet."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from twgen.model.analysis import (
    Analysis,
    FailureCount,
    Judgement,
    Measurement,
    Metric,
    Verdict,
    WorkflowFailures,
)
from twgen.model.times import later
from twgen.planning.analysis.failures import false_alarm, upper_bound
from twgen.planning.sentences import spoken


def judgements(
    analysis: Analysis,
    measurements: Iterable[Measurement],
    since: datetime | None,
    now: datetime,
    *,
    is_last: bool,
) -> tuple[Judgement, ...]:
    """What each metric says of a version that is measured since then, in their order.

    `is_last`: at its last step.
    """
    measured = {one.metric: one for one in measurements if one.since == since}
    young = later(since, analysis.initial_delay) - now if since else timedelta()
    return tuple(
        _judged(metric, measured.get(metric.name), young, is_last=is_last) for metric in analysis.metrics
    )


def told(judged: Iterable[Judgement], verdict: Verdict) -> str:
    """What the metrics of a verdict say, in a sentence; empty: none does."""
    return "; ".join(f"{one.metric}: {one.because}" for one in judged if one.verdict is verdict)


def _judged(metric: Metric, measured: Measurement | None, young: timedelta, *, is_last: bool) -> Judgement:
    if not measured:
        return Judgement(metric.name, Verdict.UNDECIDED, "it was not measured")
    if measured.problem or not measured.target:
        return Judgement(metric.name, Verdict.UNDECIDED, f"it cannot be read: {measured.problem}")
    found = measured.target, measured.current
    judged = _failures(metric.name, metric.workflow_failures, *found, is_last=is_last)
    if young > timedelta():
        because = f"{judged.because}; judged in {spoken(young)}"
        return Judgement(metric.name, Verdict.UNDECIDED, because, judged.value, judged.bound)
    return judged


def _failures(
    name: str,
    asked: WorkflowFailures,
    target: FailureCount,
    current: FailureCount | None,
    *,
    is_last: bool,
) -> Judgement:
    bound = asked.max_ratio
    if bound is None:
        if not current:
            return Judgement(name, Verdict.UNDECIDED, "the current version was not measured")
        bound = upper_bound(current.failed, current.started)
    failed, started = target.failed, target.started
    ratio = failed / started if started else 0.0
    alarm = false_alarm(failed, started, bound)
    because = f"{failed} of {started} failed ({100 * ratio:.3g} %), bound {100 * bound:.3g} %"
    if alarm <= asked.false_alarms:
        because = f"{because}, false alarm {_percent(alarm)}"
        return Judgement(name, Verdict.FAILS, because, ratio, bound)
    if is_last and started < asked.at_least:
        because = f"{because}; {asked.at_least} must have started before its last step ends"
        return Judgement(name, Verdict.UNDECIDED, because, ratio, bound)
    return Judgement(name, Verdict.PASSES, because, ratio, bound)


def _percent(probability: float) -> str:
    percent = 100 * probability
    return f"{percent:.2g} %" if percent >= 0.01 else "below 0.01 %"  # noqa: PLR2004 - of little use to people
