"""The analysis of a RolloutPolicy, as people write it and as they mistake it."""

from datetime import timedelta
from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, policy, told, worker
from twgen.model.analysis import ClosedStatus, OnFailure, WorkflowFailures

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
        ({}, "spec.analysis.metrics: is required: nothing is measured without"),
        ({"metrics": []}, "spec.analysis.metrics: is required: nothing is measured without"),
        (
            analysis(),
            "spec.analysis.metrics[0].workflowFailures: needs one of maxRatio and notAbove",
        ),
        (
            analysis(maxRatio=0.1, notAbove="Current"),
            "spec.analysis.metrics[0].workflowFailures: needs one of maxRatio and notAbove",
        ),
        (
            analysis(maxRatio=2),
            f"{OF_FAILURES}.maxRatio: 2 is not above 0 and at most 0.9: 2 % is 0.02",
        ),
        (
            analysis(maxRatio=0),
            "spec.analysis.metrics[0].workflowFailures.maxRatio: 0 is not above 0 and at most 0.9",
        ),
        (
            analysis(maxRatio=float("nan")),
            "spec.analysis.metrics[0].workflowFailures.maxRatio: nan is not above 0 and at most 0.9",
        ),
        (
            analysis(maxRatio=0.1, workflowTypes=["it's"]),
            f'{OF_FAILURES}.workflowTypes[0]: "it\'s" is no name of a workflow: it has a quote',
        ),
        (
            analysis(maxRatio=0.1, statuses=[]),
            "spec.analysis.metrics[0].workflowFailures.statuses: is empty: no workflow would count as failed",
        ),
        (
            analysis(maxRatio=0.1, statuses=["Fialed"]),
            f"{OF_FAILURES}.statuses[0]: 'Fialed' is not one of {WORDS}; did you mean Failed?",
        ),
        (
            {"metrics": analysis(maxRatio=0.1)["metrics"] * 2},
            "spec.analysis.metrics[1].name: 'failures' is there twice: make it one metric",
        ),
    ],
)
def test_mistake_is_told(written: dict[str, Any], wrong: str) -> None:
    assert wrong in problems(written)


@pytest.mark.parametrize("strategy", ["AllAtOnce", "Manual"])
def test_analysis_of_a_worker_without_steps_is_refused_where_it_is_named(strategy: str) -> None:
    rollout = {"strategy": strategy}
    named = policy(analysis=analysis(maxRatio=0.1), workerRef={"name": "payments"})
    wrong = f"spec.analysis: has no effect: strategy {strategy} of payments has no steps"
    assert told(parsed(worker(rollout=rollout), CONNECTION, named).problems) == [wrong]
    for_all = policy(analysis=analysis(maxRatio=0.1))
    assert parsed(worker(rollout=rollout), CONNECTION, for_all).problems == ()
