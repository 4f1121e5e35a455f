"""Reading the analysis of a RolloutPolicy: what is measured while a version ramps."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum

from twgen.model.analysis import (
    Analysis,
    BacklogAge,
    ClosedStatus,
    Measure,
    Metric,
    NoData,
    OnFailure,
    PrometheusQuery,
    ReportedProblems,
    WorkflowFailures,
)
from twgen.model.operator import PrometheusServer, prometheus_called
from twgen.model.problem import Problem, quoted
from twgen.model.spec import WorkerSpec
from twgen.specs.fields import Fields
from twgen.specs.limits import LABEL, LONGEST_LABEL, ONLY_PLACEHOLDERS, WORKFLOW_TYPE
from twgen.specs.numbers import read_number
from twgen.versioning.names import tells_versions_apart, unknown_placeholder

MOST_METRICS = 10
"""Each costs a server a count at every look."""
_MOST_TYPES = 50
_LARGEST_RATIO = 0.9
"""Above it, nothing is much worse."""
_SMALLEST_RATIO = 0.000001
_FALSE_ALARMS = 0.01
_LONGEST_QUERY = 4096
_LEAST_INTERVAL = timedelta(seconds=10)
_MOST_INTERVAL = timedelta(days=1)


class _NotAbove(StrEnum):
    CURRENT = "Current"


def parse_analysis(spec: Fields) -> Analysis | None:
    """The analysis of a policy's `spec`; None: it has none."""
    if not spec.has("analysis"):
        return None
    fields = spec.mapping("analysis")
    analysis = Analysis(
        metrics=tuple(_metrics(fields)),
        on_failure=fields.choice("onFailure", OnFailure, OnFailure.ABORT),
        initial_delay=fields.duration("initialDelay", timedelta(minutes=1)),
    )
    if fields.raw("metrics") in (None, []):
        fields.problem("metrics", "is required: without metrics, nothing is measured")
    fields.close()
    return analysis


def unusable_prometheus(
    workers: Iterable[WorkerSpec], usable: Sequence[PrometheusServer], remedy: str
) -> Iterator[Problem]:
    """A warning for each metric that asks a Prometheus which its rollout may not ask: the ramp would wait."""
    policies = {id(worker.policy.document): worker.policy for worker in workers}
    for policy in policies.values():
        for index, metric in enumerate(policy.analysis.metrics if policy.analysis else ()):
            asked = metric.measure
            if not isinstance(asked, PrometheusQuery):
                continue
            if why := prometheus_called(asked.server, usable, remedy)[1]:
                where = f"spec.analysis.metrics[{index}].prometheus"
                yield Problem.at(policy.document, where, f"cannot be measured: {why}")


def _metrics(analysis: Fields) -> Iterator[Metric]:
    seen: set[str] = set()
    for index, fields in enumerate(analysis.mappings("metrics")):
        if index == MOST_METRICS:
            fields.problem("", f"is too many: at most {MOST_METRICS} metrics are allowed")
        kinds = [kind for kind in _KINDS if fields.has(kind)]
        if len(kinds) != 1:
            fields.problem("", f"needs exactly one of {', '.join(_KINDS)}")
        name = fields.text("name", required=True, form=LABEL, most=LONGEST_LABEL)
        if name and name in seen:
            fields.problem("name", f"{quoted(name)} appears twice: merge the two metrics")
        seen.add(name)
        for kind in kinds[:1]:
            asked = fields.mapping(kind)
            yield Metric(name, _KINDS[kind](asked))
            asked.close()
        fields.close()


def _failures(fields: Fields) -> WorkflowFailures:
    compares = fields.has("notAbove")
    if compares:
        fields.choice("notAbove", _NotAbove, _NotAbove.CURRENT)
    if compares == fields.has("maxRatio"):
        fields.problem("", "needs exactly one of maxRatio and notAbove")
    types = fields.lines("workflowTypes", form=WORKFLOW_TYPE)
    if len(types) > _MOST_TYPES:
        fields.problem("workflowTypes", f"has {len(types)} types: at most {_MOST_TYPES} are allowed")
    default = (ClosedStatus.FAILED, ClosedStatus.TIMED_OUT)
    statuses = fields.choices("statuses", ClosedStatus, default)
    if fields.raw("statuses") == []:
        fields.problem("statuses", "is empty: no workflow would count as failed")
    return WorkflowFailures(
        max_ratio=None if compares else _ratio(fields, "maxRatio", _LARGEST_RATIO, _LARGEST_RATIO),
        statuses=statuses,
        workflow_types=types,
        false_alarms=_ratio(fields, "falseAlarms", 0.5, _FALSE_ALARMS),
        at_least=fields.integer("atLeast", 0, least=0) or 0,
    )


def _ratio(fields: Fields, name: str, most: float, default: float) -> float:
    value = read_number(fields, name)
    if value is None:
        return default
    if not _SMALLEST_RATIO <= value <= most:
        percent = f": {value}% is {value / 100:g}" if 1 <= value <= 100 else ""  # noqa: PLR2004 - percent
        fields.problem(name, f"{value} is not from {_SMALLEST_RATIO:f} to {most}{percent}")
        return default
    return float(value)


def _problems(fields: Fields) -> ReportedProblems:
    return ReportedProblems(fields.integer("max", 0, least=0) or 0)


def _backlog(fields: Fields) -> BacklogAge:
    if not fields.has("max"):
        fields.problem("max", "is required: write a duration such as 2m")
    return BacklogAge(fields.duration("max", timedelta(minutes=2), least=timedelta(seconds=1)))


def _prometheus(fields: Fields) -> PrometheusQuery:
    limits = fields.mapping("thresholdRange")
    least, most = _limit(limits, "min"), _limit(limits, "max")
    if least is None and most is None:
        fields.problem("thresholdRange", "needs min, max or both")
    elif least is not None and most is not None and least > most:
        limits.problem("", f"min ({least:g}) is above max ({most:g})")
    limits.close()
    query = fields.text("query", required=True, most=_LONGEST_QUERY)
    if unknown_placeholder(query):
        fields.problem("query", ONLY_PLACEHOLDERS)
    elif query and not tells_versions_apart(query):
        fields.warning("query", "measures all versions together: filter by {{ .BuildID }}")
    interval = fields.duration("interval", timedelta(minutes=1), least=_LEAST_INTERVAL)
    if interval > _MOST_INTERVAL:
        fields.problem("interval", "is longer than 24h: no step would get a second measurement")
    return PrometheusQuery(
        server=fields.text("server", required=fields.has("server"), form=LABEL, most=LONGEST_LABEL),
        query=query,
        least=least,
        most=most,
        interval=interval,
        failure_limit=fields.integer("failureLimit", 0, least=0) or 0,
        no_data=fields.choice("noData", NoData, NoData.WAIT),
    )


def _limit(fields: Fields, name: str) -> float | None:
    value = read_number(fields, name)
    if value is not None and not math.isfinite(value):
        fields.problem(name, f"{value} is not a limit: leave it out")
        return None
    return None if value is None else float(value)


_KINDS: Mapping[str, Callable[[Fields], Measure]] = {
    "workflowFailures": _failures,
    "reportedProblems": _problems,
    "backlogAge": _backlog,
    "prometheus": _prometheus,
}
"""What a metric may measure, and how that is read."""
