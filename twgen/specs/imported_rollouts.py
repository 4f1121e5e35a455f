"""Import the strategy of an Argo Rollout."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.times import parse_spoken_duration, write_duration
from twgen.versioning.names import DEPLOYMENT_API

ROLLOUT = GroupKind("argoproj.io", "Rollout")
_LEAST_PAUSE = timedelta(seconds=30)
"""A step's shortest allowed pause, used if the pauses of the Rollout are shorter."""
_MEASURED = "use a gate or an analysis instead"
_INSTEAD = {
    "canary": {"analysis": _MEASURED},
    "blueGreen": {
        "prePromotionAnalysis": _MEASURED,
        "postPromotionAnalysis": _MEASURED,
        "autoPromotionSeconds": "use a step with a pauseDuration instead",
    },
}
"""The fields of each strategy of a Rollout that are left out, and the remedies."""


class Traffic(NamedTuple):
    """How a new version gets its traffic, converted from a Rollout."""

    rollout: Mapping[str, Any]
    """The `spec.rollout` of the worker."""
    by_hand: Sequence[float] = ()
    """The percentages that become `until: Promoted` in a RolloutPolicy, because the pause has no duration."""
    notes: Sequence[str] = ()
    """Sentences about settings that a person must replace."""


class _Step(NamedTuple):
    percentage: float
    pauses: list[timedelta | None]
    """None is a pause without a duration."""


def as_deployment(rollout: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an Argo Rollout to a Deployment with the same pods."""
    kept = ("replicas", "selector", "template", "minReadySeconds", "revisionHistoryLimit")
    spec = {field: item for field, item in rollout["spec"].items() if field in kept}
    head = {"apiVersion": DEPLOYMENT_API, "kind": "Deployment", "metadata": rollout["metadata"]}
    return {**head, "spec": spec}


def traffic_of(strategy: Any) -> Traffic:
    """Convert the `spec.strategy` of a Rollout. A Deployment has none."""
    notes = [
        f"{field} of the Rollout is left out: {remedy}"
        for kind, fields in _INSTEAD.items()
        for field, remedy in fields.items()
        if value_at(strategy, kind, field)
    ]
    if value_at(strategy, "blueGreen", "autoPromotionEnabled") is False:
        return Traffic({"strategy": "Manual"}, notes=notes)
    steps, of_steps = _steps(value_at(strategy, "canary", "steps") or ())
    shown = [
        {"rampPercentage": step.percentage, "pauseDuration": _written(filter(None, step.pauses))}
        for step in steps
    ]
    return Traffic(
        {"strategy": "Progressive", "steps": shown} if shown else {"strategy": "AllAtOnce"},
        [step.percentage for step in steps if None in step.pauses],
        [*notes, *of_steps],
    )


def _steps(steps: Iterable[Any]) -> tuple[list[_Step], list[str]]:
    """The steps of a canary that twgen has too, and notes about the others."""
    found: list[_Step] = []
    notes = []
    percentage: float = 0
    highest: float = 0
    for at, step in enumerate(steps, 1):
        weight, pause = value_at(step, "setWeight"), value_at(step, "pause")
        left_out = ""
        if isinstance(weight, int | float) and not isinstance(weight, bool):
            if weight < highest:
                left_out = f"(setWeight: {weight}) is left out: each percentage must be above the one before"
            elif highest < weight < 100:
                found.append(_Step(weight, []))
            percentage, highest = weight, max(weight, highest)
        elif not isinstance(pause, dict):
            left_out = f"({', '.join(step) if isinstance(step, dict) else step}) is left out: {_MEASURED}"
        elif not found or found[-1].percentage != percentage:
            remedy = (
                "lengthen the pause of a step instead" if found else "use a gate or strategy Manual instead"
            )
            left_out = f"(pause at {percentage}%) is left out: {remedy}"
        else:
            try:
                found[-1].pauses.append(_length(pause.get("duration")))
            except ValueError as error:
                left_out = f"(pause) is left out, because {error}: set pauseDuration of the step"
        notes += [f"step {at} of the Rollout {left_out}"] if left_out else []
    return found, notes


def _length(duration: Any) -> timedelta | None:
    """The length of a pause, or None if it has no end. A number without a unit means seconds."""
    if duration is None or duration == "":
        return None
    text = str(duration)
    return parse_spoken_duration(f"{text}s" if text.isdecimal() else text)


def _written(pauses: Iterable[timedelta]) -> str:
    return write_duration(max(sum(pauses, timedelta()), _LEAST_PAUSE))
