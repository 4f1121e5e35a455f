"""What a RolloutPolicy says of single steps of its workers, and whether they have such steps."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import StrEnum

from twgen.model.paths import value_at
from twgen.model.policy import Policy, PolicyStep
from twgen.model.problem import did_you_mean, quoted
from twgen.model.spec import Strategy, WorkerSpec
from twgen.specs.fields import Fields
from twgen.specs.limits import MOST_STEPS, RAMP_PERCENTAGES
from twgen.specs.numbers import read_number
from twgen.specs.spec_document import SpecDocument


class _Until(StrEnum):
    PROMOTED = "Promoted"


def parse_steps(spec: Fields) -> tuple[PolicyStep, ...]:
    """The steps of a policy's `spec`."""
    written = spec.raw("steps")
    if isinstance(written, list) and len(written) > MOST_STEPS:
        spec.problem("steps", f"has {len(written)} steps: at most {MOST_STEPS} are allowed")
        return ()
    return tuple(_steps(spec))


def check_metrics(policy: Policy, spec: Fields) -> None:
    """Note each metric of a step that the policy's analysis does not have."""
    names = {metric.name for metric in policy.analysis.metrics} if policy.analysis else set()
    for fields in spec.mappings("steps"):
        for index, name in enumerate(fields.texts("metrics")):
            if name not in names:
                wrong = f"{quoted(name)} is not a metric of spec.analysis{did_you_mean(name, names)}"
                fields.problem(f"metrics[{index}]", wrong)


def check_steps(policies: Iterable[SpecDocument], workers: Iterable[WorkerSpec]) -> None:
    """Note what has no effect on the worker that a policy is for by name, or on any of its workers."""
    of_policy: dict[int, list[WorkerSpec]] = {}
    for worker in workers:
        of_policy.setdefault(id(worker.policy.document), []).append(worker)
    for spec in policies:
        found = of_policy.get(id(spec.document), ())
        if not found:
            continue
        policy = found[0].policy
        note = spec.fields.problem if policy.worker else spec.fields.warning
        if all(worker.rollout.strategy is not Strategy.PROGRESSIVE for worker in found):
            of = f"strategy {found[0].rollout.strategy} of {found[0].name} has no steps"
            why = of if policy.worker else "none of its workers has strategy Progressive"
            for name in ("analysis", "steps"):
                if spec.fields.has(name):
                    note(name, f"has no effect: {why}")
            continue
        ramps = [sum((step.pause for step in worker.rollout.steps), timedelta()) for worker in found]
        is_said = value_at(spec.fields.value, "analysis", "initialDelay") is not None
        if is_said and policy.analysis and policy.analysis.initial_delay >= max(ramps):
            why = "is as long as all steps together: no metric is judged before the last step has ended"
            spec.fields.warning("analysis.initialDelay", why)
        there = {step.percentage for worker in found for step in worker.rollout.steps}
        for index, step in enumerate(policy.steps):
            if step.percentage not in there:
                of = policy.worker or "any of its workers"
                note(f"steps[{index}].rampPercentage", f"{step.percentage:g}% is not a step of {of}")


def _steps(spec: Fields) -> Iterator[PolicyStep]:
    seen: set[float] = set()
    for fields in spec.mappings("steps"):
        percentage = _percentage(fields)
        if percentage in seen:
            fields.problem("rampPercentage", f"{percentage:g} appears twice: merge the two steps")
        seen.add(percentage)
        gate = fields.mapping("gate")
        metrics = fields.lines("metrics")
        yield PolicyStep(
            percentage=percentage,
            gate=gate.line("workflowType", required=fields.has("gate")),
            metrics=frozenset(metrics) if fields.has("metrics") else None,
            until_promoted=fields.has("until")
            and fields.choice("until", _Until, _Until.PROMOTED) is _Until.PROMOTED,
        )
        if not any(map(fields.has, ("gate", "metrics", "until"))):
            fields.warning("", "has no effect: add a gate, metrics or until, or remove it")
        gate.close()
        fields.close()


def _percentage(fields: Fields) -> float:
    value = read_number(fields, "rampPercentage", required=True)
    least, most = RAMP_PERCENTAGES
    if value is not None and not least <= value <= most:
        fields.problem("rampPercentage", f"{value} is not from {least} to {most}")
    return float(value or 0)
