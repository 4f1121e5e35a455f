"""Reading the analysis of a RolloutPolicy: what is measured while a version ramps."""

import math
from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Any

from twgen.model.analysis import Analysis, ClosedStatus, Metric, OnFailure, WorkflowFailures
from twgen.model.problem import quoted, wrong_type
from twgen.specs.fields import Fields
from twgen.specs.limits import LABEL, LONGEST_LABEL

MOST_METRICS = 10
"""Each costs a server a count at every look."""
_MOST_TYPES = 50
_LARGEST_RATIO = 0.9
"""Above it, nothing is much worse."""
_FALSE_ALARMS = 0.01


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
        fields.problem("metrics", "is required: nothing is measured without")
    fields.close()
    return analysis


def _metrics(analysis: Fields) -> Iterator[Metric]:
    seen: set[str] = set()
    for index, fields in enumerate(analysis.mappings("metrics")):
        name = fields.text("name", required=True, form=LABEL, most=LONGEST_LABEL)
        if name and name in seen:
            fields.problem("name", f"{quoted(name)} is there twice: make it one metric")
        seen.add(name)
        if index == MOST_METRICS:
            fields.problem("", f"is more than the {MOST_METRICS} metrics that a look may count")
        if not fields.has("workflowFailures"):
            fields.problem("workflowFailures", "is required")
        failures = fields.mapping("workflowFailures")
        yield Metric(name, _failures(failures))
        failures.close()
        fields.close()


def _failures(fields: Fields) -> WorkflowFailures:
    compares = fields.has("notAbove")
    if compares:
        fields.choice("notAbove", _NotAbove, _NotAbove.CURRENT)
    if compares == fields.has("maxRatio"):
        fields.problem("", "needs one of maxRatio and notAbove")
    types = fields.lines("workflowTypes")
    for at, name in enumerate(types):
        if "'" in name or '"' in name or "\\" in name:
            fields.problem(f"workflowTypes[{at}]", f"{quoted(name)} is no name of a workflow: it has a quote")
    if len(types) > _MOST_TYPES:
        fields.problem("workflowTypes", f"{len(types)} are more than {_MOST_TYPES}")
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
    value: Any = fields.raw(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        fields.problem(name, wrong_type("a number", value))
    elif not 0 < value <= most or not math.isfinite(value):
        percent = f": {value} % is {value / 100:g}" if 1 <= value <= 100 else ""  # noqa: PLR2004 - percent
        fields.problem(name, f"{value} is not above 0 and at most {most}{percent}")
    else:
        return float(value)
    return default
