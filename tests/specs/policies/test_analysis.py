"""The analysis of a RolloutPolicy, as people write it and as they mistake it."""

import math
from datetime import timedelta
from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, policy, told, worker
from twgen.model.analysis import (
    BacklogAge,
    ClosedStatus,
    NoData,
    OnFailure,
    PrometheusQuery,
    ReportedProblems,
    WorkflowFailures,
)

WORDS = ", ".join(ClosedStatus)
OF_FAILURES = "spec.analysis.metrics[0].workflowFailures"
STEPS = {"strategy": "Progressive", "steps": [{"rampPercentage": 5, "pauseDuration": "1m"}]}


def analysis(**failures: Any) -> dict[str, Any]:
    return {"metrics": [{"name": "failures", "workflowFailures": failures}]}


def problems(written: dict[str, Any]) -> list[str]:
    found = parsed(worker(rollout=STEPS), CONNECTION, policy(analysis=written))
    return told(found.problems) + told(found.unknown_fields)


def test_what_is_left_out_has_its_default() -> None:
    found = parsed(worker(rollout=STEPS), CONNECTION, policy(analysis=analysis(maxRatio=0.02)))
    assert (found.problems, found.warnings) == ((), ())
    read = found.workers[0].policy.analysis
    assert read
    assert (read.on_failure, read.initial_delay) == (OnFailure.ABORT, timedelta(minutes=1))
    [metric] = read.metrics
    asked = metric.measure
    assert isinstance(asked, WorkflowFailures)
    assert (asked.max_ratio, asked.false_alarms, asked.at_least) == (0.02, 0.01, 0)
    assert (asked.statuses, asked.workflow_types) == ((ClosedStatus.FAILED, ClosedStatus.TIMED_OUT), ())


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ({}, "spec.analysis.metrics: is required: without metrics, nothing is measured"),
        ({"metrics": []}, "spec.analysis.metrics: must not be empty"),
        (analysis(), f"{OF_FAILURES}: needs exactly one of maxRatio and notAbove"),
        (
            analysis(maxRatio=0.1, notAbove="Current"),
            f"{OF_FAILURES}: needs exactly one of maxRatio and notAbove",
        ),
        (analysis(maxRatio=2), f"{OF_FAILURES}.maxRatio: 2 is not from 0.000001 to 0.9: 2% is 0.02"),
        (analysis(maxRatio=0), f"{OF_FAILURES}.maxRatio: 0 is not from 0.000001 to 0.9"),
        (analysis(maxRatio=math.nan), f"{OF_FAILURES}.maxRatio: nan is not from 0.000001 to 0.9"),
        (
            analysis(maxRatio=0.1, workflowTypes=["it's"]),
            f'{OF_FAILURES}.workflowTypes[0]: "it\'s" is not a workflow name: one line, without quotes',
        ),
        (analysis(maxRatio=0.1, statuses=[]), f"{OF_FAILURES}.statuses: must not be empty"),
        (
            analysis(maxRatio=0.1, statuses=["Fialed"]),
            f"{OF_FAILURES}.statuses[0]: 'Fialed' is not one of {WORDS}; did you mean Failed?",
        ),
        (
            {"metrics": analysis(maxRatio=0.1)["metrics"] * 2},
            "spec.analysis.metrics[1].name: 'failures' appears twice: merge the two metrics",
        ),
    ],
)
def test_mistake_is_told(written: dict[str, Any], wrong: str) -> None:
    assert wrong in problems(written)


QUERY = {"query": "up{v='{{ .BuildID }}'}", "thresholdRange": {"max": 1}}


def of(**measure: Any) -> list[str]:
    """What is wrong with one metric, less the name of its place."""
    wrong = problems({"metrics": [{"name": "one", **measure}]})
    return [line.replace("spec.analysis.metrics[0]", "metric") for line in wrong]


def test_every_kind_of_metric_has_its_defaults() -> None:
    kinds = [
        {"name": "stuck", "reportedProblems": {}},
        {"name": "backlog", "backlogAge": {"max": "90s"}},
        {"name": "errors", "prometheus": QUERY},
    ]
    found = parsed(worker(rollout=STEPS), CONNECTION, policy(analysis={"metrics": kinds}))
    assert (found.problems, found.warnings) == ((), ())
    read = found.workers[0].policy.analysis
    assert read
    assert [metric.measure for metric in read.metrics] == [
        ReportedProblems(0),
        BacklogAge(timedelta(seconds=90)),
        PrometheusQuery(QUERY["query"], "", None, 1.0, timedelta(minutes=1), 0, NoData.WAIT),
    ]


ONE_OF = "metric: needs exactly one of workflowFailures, reportedProblems, backlogAge, prometheus"


@pytest.mark.parametrize(
    ("wrong", "measure"),
    [
        (ONE_OF, {}),
        (ONE_OF, {"reportedProblems": {}, "backlogAge": {"max": "2m"}}),
        ("metric.backlogAge.max: is required: write a duration such as 2m", {"backlogAge": {}}),
        ("metric.backlogAge.max: 0s is shorter than 1s", {"backlogAge": {"max": "0s"}}),
        ("metric.reportedProblems.max: -1 is below 0", {"reportedProblems": {"max": -1}}),
    ],
)
def test_mistake_in_a_metric_is_told(wrong: str, measure: dict[str, Any]) -> None:
    assert any(line.startswith(wrong) for line in of(**measure)), of(**measure)


@pytest.mark.parametrize(
    ("wrong", "query"),
    [
        ("thresholdRange: min (2) is above max (1)", {"thresholdRange": {"min": 2, "max": 1}}),
        ("thresholdRange: needs min, max or both", {"thresholdRange": {}}),
        ("thresholdRange.max: inf is not a finite number", {"thresholdRange": {"max": math.inf}}),
        ("thresholdRange.max: 1", {"thresholdRange": {"max": 10**400}}),
        ("thresholdRange.max: must be a number, not a string", {"thresholdRange": {"max": "5%"}}),
        ("query: only {{ .DeploymentName }}, {{ .BuildID }}", {"query": "up{v='{{ .Values.version }}'}"}),
        ("interval: 1s is shorter than 10s", {"interval": "1s"}),
        ("interval: is longer than 24h: no step would get a second measurement", {"interval": "48h"}),
        ("noData: 'Skip' is not one of Wait, Pass, Fail", {"noData": "Skip"}),
        ("url: no such field", {"url": "http://169.254.169.254"}),
    ],
)
def test_mistake_in_a_query_is_told(wrong: str, query: dict[str, Any]) -> None:
    [found] = of(prometheus=QUERY | query)
    assert found.startswith(f"metric.prometheus.{wrong}")


def test_query_of_a_megabyte_is_refused() -> None:
    [wrong] = of(prometheus=QUERY | {"query": "x" * 1_000_000})
    assert wrong.endswith("is longer than 4096 characters")
    assert len(wrong) < 1000


def test_query_that_names_no_version_is_warned_of() -> None:
    metrics = [{"name": "errors", "prometheus": QUERY | {"query": "up"}}]
    [warning] = parsed(worker(rollout=STEPS), CONNECTION, policy(analysis={"metrics": metrics})).warnings
    assert warning.message == "measures all versions together: filter by {{ .BuildID }}"


@pytest.mark.parametrize("strategy", ["AllAtOnce", "Manual"])
def test_analysis_of_a_worker_without_steps_is_refused_where_it_is_named(strategy: str) -> None:
    rollout = {"strategy": strategy}
    named = policy(analysis=analysis(maxRatio=0.1), workerRef={"name": "payments"})
    wrong = f"spec.analysis: has no effect: strategy {strategy} of payments has no steps"
    assert told(parsed(worker(rollout=rollout), CONNECTION, named).problems) == [wrong]
    for_all = policy(analysis=analysis(maxRatio=0.1))
    assert parsed(worker(rollout=rollout), CONNECTION, for_all).problems == ()
