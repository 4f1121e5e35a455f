"""The steps of a RolloutPolicy, as people write them and as they mistake them."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, policy, told, worker
from twgen.model.policy import PolicyStep

RAMPS = {
    "strategy": "Progressive",
    "steps": [{"rampPercentage": percentage, "pauseDuration": "1m"} for percentage in (5, 25)],
}
ANALYSIS = {"metrics": [{"name": "stuck", "reportedProblems": {}}]}


def found(*steps: dict[str, Any], named: bool = True, rollout: Any = RAMPS, **more: Any) -> Any:
    of = {"workerRef": {"name": "payments"}} if named else {}
    return parsed(worker(rollout=rollout), CONNECTION, policy(steps=list(steps), **of, **more))


def test_step_says_its_gate_its_metrics_and_who_ends_it() -> None:
    step = {
        "rampPercentage": 25,
        "gate": {"workflowType": "SmokeAt25"},
        "metrics": ["stuck"],
        "until": "Promoted",
    }
    specs = found(step, {"rampPercentage": 5, "metrics": []}, analysis=ANALYSIS)
    assert (specs.problems, specs.warnings) == ((), ())
    read = specs.workers[0].policy
    assert read.step(25) == PolicyStep(25, "SmokeAt25", ("stuck",), until_promoted=True)
    assert read.step(5) == PolicyStep(5, metrics=())
    assert read.step(50) is None


@pytest.mark.parametrize(
    ("wrong", "steps"),
    [
        ("spec.steps[0].rampPercentage: 10% is not a step of payments", [{"rampPercentage": 10}]),
        (
            "spec.steps[1].rampPercentage: 25 appears twice: merge the two steps",
            [{"rampPercentage": 25, "until": "Promoted"}] * 2,
        ),
        ("spec.steps[0].rampPercentage: is required", [{"until": "Promoted"}]),
        ("spec.steps[0].rampPercentage: 100 is not from 1 to 99", [{"rampPercentage": 100}]),
        (
            "spec.steps[0].metrics[0]: 'stuk' is not a metric of spec.analysis; did you mean stuck?",
            [{"rampPercentage": 25, "metrics": ["stuk"]}],
        ),
        ("spec.steps[0].gate.workflowType: is required", [{"rampPercentage": 25, "gate": {}}]),
        (
            "spec.steps[0].until: 'promoted' is not Promoted; did you mean Promoted?",
            [{"rampPercentage": 25, "until": "promoted"}],
        ),
    ],
)
def test_mistake_is_told(wrong: str, steps: list[dict[str, Any]]) -> None:
    assert told(found(*steps, analysis=ANALYSIS).problems) == [wrong]


def test_percentage_that_no_worker_of_a_namespace_has_is_warned_of() -> None:
    specs = found({"rampPercentage": 10, "until": "Promoted"}, named=False)
    assert specs.problems == ()
    assert told(specs.warnings) == ["spec.steps[0].rampPercentage: 10% is not a step of any of its workers"]
    assert found({"rampPercentage": 5, "until": "Promoted"}, named=False).warnings == ()


def test_steps_of_a_worker_without_steps_are_refused_where_it_is_named() -> None:
    specs = found({"rampPercentage": 5, "until": "Promoted"}, rollout={"strategy": "AllAtOnce"})
    assert told(specs.problems) == ["spec.steps: has no effect: strategy AllAtOnce of payments has no steps"]


def test_policy_of_a_namespace_without_any_ramp_is_warned_of() -> None:
    specs = found({"rampPercentage": 5, "until": "Promoted"}, named=False, rollout={"strategy": "AllAtOnce"})
    assert specs.problems == ()
    assert told(specs.warnings) == ["spec.steps: has no effect: none of its workers has strategy Progressive"]


@pytest.mark.parametrize(("delay", "warned"), [("2h", True), ("1m", False)])
def test_analysis_that_waits_for_longer_than_the_ramp_is_warned_of(delay: str, warned: bool) -> None:  # noqa: FBT001
    specs = found({"rampPercentage": 5, "until": "Promoted"}, analysis=ANALYSIS | {"initialDelay": delay})
    why = "is as long as all steps together: no metric is judged before the last step has ended"
    assert told(specs.warnings) == ([f"spec.analysis.initialDelay: {why}"] if warned else [])


def test_step_that_says_nothing_is_warned_of() -> None:
    [warning] = found({"rampPercentage": 5}).warnings
    assert warning.message == "has no effect: add a gate, metrics or until, or remove it"


@pytest.mark.parametrize("analysis", [True, 1, "initialDelay", ["initialDelay"]])
def test_analysis_of_a_wrong_type_is_told_of_beside_steps(analysis: Any) -> None:
    [wrong] = told(found({"rampPercentage": 5, "until": "Promoted"}, analysis=analysis).problems)
    assert wrong.startswith("spec.analysis: must be a mapping, not ")
