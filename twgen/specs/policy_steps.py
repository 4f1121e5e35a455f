"""Check the `steps` of a RolloutPolicy against the rollouts of its workers."""

from collections.abc import Iterable
from datetime import timedelta

from twgen.model.paths import value_at
from twgen.model.policy import Policy, PolicyStep
from twgen.model.problem import did_you_mean, quoted
from twgen.model.spec import Strategy, WorkerSpec
from twgen.specs.declared import spec_shape
from twgen.specs.fields import Fields
from twgen.specs.spec_document import SpecDocument


def _check(fields: Fields, _: PolicyStep) -> None:
    if not any(map(fields.has, ("gate", "metrics", "until"))):
        fields.warning("", "has no effect: add a gate, metrics or until, or remove it")


STEP = spec_shape(PolicyStep, _check)


def check_metrics(policy: Policy, spec: Fields) -> None:
    """Note each metric of a step that the analysis of the policy does not define."""
    names = {metric.name for metric in policy.analysis.metrics} if policy.analysis else set()
    for place, step in enumerate(policy.steps):
        for index, name in enumerate(step.metrics or ()):
            if name not in names:
                wrong = f"{quoted(name)} is not a metric of spec.analysis{did_you_mean(name, names)}"
                spec.problem(f"steps[{place}].metrics[{index}]", wrong)


def check_steps(policies: Iterable[SpecDocument], workers: Iterable[WorkerSpec]) -> None:
    """Note each step without effect on the worker that the policy names, or on any of its workers."""
    of_policy: dict[int, list[WorkerSpec]] = {}
    for worker in workers:
        of_policy.setdefault(id(worker.policy.document), []).append(worker)
    for spec in policies:
        own_workers = of_policy.get(id(spec.document), ())
        if not own_workers:
            continue
        policy = own_workers[0].policy
        note = spec.fields.problem if policy.worker else spec.fields.warning
        if all(worker.rollout.strategy is not Strategy.PROGRESSIVE for worker in own_workers):
            of = f"strategy {own_workers[0].rollout.strategy} of {own_workers[0].name} has no steps"
            why = of if policy.worker else "none of its workers has strategy Progressive"
            for name in ("analysis", "steps"):
                if spec.fields.has(name):
                    note(name, f"has no effect: {why}")
            continue
        ramps = [sum((step.pause for step in worker.rollout.steps), timedelta()) for worker in own_workers]
        is_said = value_at(spec.fields.value, "analysis", "initialDelay") is not None
        if is_said and policy.analysis and policy.analysis.initial_delay >= max(ramps):
            why = "is as long as all steps together: no metric is judged before the last step has ended"
            spec.fields.warning("analysis.initialDelay", why)
        there = {step.percentage for worker in own_workers for step in worker.rollout.steps}
        for index, step in enumerate(policy.steps):
            if step.percentage not in there:
                of = policy.worker or "any of its workers"
                note(f"steps[{index}].rampPercentage", f"{step.percentage:g}% is not a step of {of}")
