"""Check `rollout` of a worker, which says how traffic moves to new versions: the rules between its fields."""

from collections.abc import Mapping
from typing import Any, Literal

from twgen.model.paths import Path, written_path
from twgen.model.shapes import Findings, Shape, unchanged
from twgen.model.spec import Encoding, Gate, GateInput, Rollout, RolloutStep, Strategy
from twgen.specs.connections import SECRET_KEY
from twgen.specs.declared import spec_shape
from twgen.specs.fields import Fields

_GATE_INPUTS: Mapping[Literal["ConfigMap", "Secret"], str] = {
    "ConfigMap": "configMapKeyRef",
    "Secret": "secretKeyRef",
}


def _check_rollout(fields: Fields, rollout: Rollout) -> None:
    # an unknown strategy is reported already, and may have steps
    if fields.raw("strategy") != rollout.strategy:
        return
    if rollout.strategy is Strategy.PROGRESSIVE and not rollout.steps:
        fields.problem("steps", "is required: Progressive needs at least one step")
    elif rollout.steps and rollout.strategy is Strategy.MANUAL:
        fields.warning(
            "steps", "are made only by `twgen promote`: strategy Manual moves no traffic by itself"
        )
    elif rollout.steps and rollout.strategy is Strategy.ALL_AT_ONCE:
        fields.warning("steps", f"have no effect: strategy {rollout.strategy} has no steps")
    before: float = 0
    for step_fields, step in zip(fields.mappings("steps"), rollout.steps, strict=False):
        if 0 < step.percentage <= before:
            wrong = f"{step.percentage:g} is not above the step before it ({before:g})"
            step_fields.problem("rampPercentage", wrong)
        before = max(before, step.percentage)
    if rollout.gate is None and "gate" in fields.value:
        fields.warning("gate", "is empty: new versions have no gate")


def _check_step(fields: Fields, step: RolloutStep) -> None:
    if step.percentage != int(step.percentage):
        rounded = f"the controller would round {step.percentage:g} down to {int(step.percentage)}"
        fields.warning("rampPercentage", rounded)
    if fields.has("gate"):
        fields.problem("gate", "is not read: write the gate of a step in spec.steps of a RolloutPolicy")


def _check_gate(fields: Fields, gate: Gate) -> None:
    if fields.has("input") and fields.has("inputFrom"):
        fields.problem("inputFrom", "a gate has input or inputFrom, not both")
    encoding = gate.encoding
    if encoding is Encoding.BINARY_MESSAGE and not gate.message_type:
        fields.problem("messageType", "must not be empty" if fields.has("messageType") else "is required")
    # an unknown encoding is reported already, and the rest cannot be checked
    if gate.message_type and not encoding.is_message and fields.raw("encoding") in (None, encoding):
        messages = " or ".join(item for item in Encoding if item.is_message)
        fields.problem(
            "messageType", f"is only for protobuf messages: write encoding {messages}, or leave it out"
        )
    if encoding.is_binary and not fields.has("inputFrom"):
        fields.problem("encoding", f"{encoding} needs bytes, which a spec cannot contain: write inputFrom")
    elif fields.has("encoding") and not (fields.has("input") or fields.has("inputFrom")):
        fields.warning("encoding", "has no effect: the gate has neither input nor inputFrom")


def _read_gate_input(value: Any, path: Path, findings: Findings) -> GateInput | None:
    source = Fields(value, written_path(path), findings)
    references = {
        kind: source.get(name, SECRET_KEY) for kind, name in _GATE_INPUTS.items() if source.has(name)
    }
    if len(references) != 1:
        source.problem("", "must have exactly one of configMapKeyRef and secretKeyRef")
    source.close(*_GATE_INPUTS.values())
    inputs = [GateInput(kind, key.name, key.key) for kind, key in references.items() if key]
    return inputs[0] if inputs else None


_GATE_INPUT = Shape(_read_gate_input, unchanged, {})
ROLLOUT = spec_shape(
    Rollout,
    _check_rollout,
    shapes={
        RolloutStep: spec_shape(RolloutStep, _check_step),
        Gate: spec_shape(Gate, _check_gate, shapes={GateInput: _GATE_INPUT}),
    },
)
